// SPDX-License-Identifier: GPL-2.0

//! Free pages that anybody may take: some are kept for each CPU, the others are for all.

use crate::{
    channel::Class,
    cpu_state::CpuState,
    free_stack::FreeStack,
    lent::Lent,
    page_state::PageState,
    word::Word, //
};

/// The pages that are free, of a pool.
pub(crate) struct Pool<W> {
    /// Pages for whoever needs one.
    common: FreeStack<W>,
    /// Pages that `common` had in the beginning.
    common_size: u64,
    /// Pages that each CPU keeps for itself.
    reserve_size: u64,
    /// Pages that others refer to.
    lent: Lent<W>,
}

impl<W: Word> Pool<W> {
    /// All of `pages` are free, and every CPU keeps `reserve_size`.
    pub(crate) fn new(pages: &[PageState<W>], cpus: &[CpuState<W>], reserve_size: u64) -> Self {
        let common = FreeStack::new();
        // Backwards, so that the first page is used first.
        for page in (0..pages.len() as u32).rev() {
            common.push(pages, page);
        }
        for cpu in cpus {
            for _ in 0..reserve_size {
                if let Some(page) = common.pop(pages, 0) {
                    cpu.reserve().push(pages, page);
                }
            }
        }
        Self {
            common_size: common.count(),
            common,
            reserve_size,
            lent: Lent::new(pages.len()),
        }
    }

    /// The pages that are lent.
    pub(crate) fn lent(&self) -> &Lent<W> {
        &self.lent
    }

    /// Takes a page for `cpu`: its own first, then a common one. Injected records leave half of the
    /// common pages, and every CPU's own, to live ones.
    pub(crate) fn take(
        &self,
        pages: &[PageState<W>],
        cpu: &CpuState<W>,
        class: Class,
    ) -> Option<u32> {
        match class {
            Class::Live => cpu
                .reserve()
                .pop(pages, 0)
                .or_else(|| self.common.pop(pages, 0)),
            Class::Injected => self.common.pop(pages, self.common_size / 2),
        }
    }

    /// Gives a page back: to the CPU that used it, if that lacks some, else to all.
    pub(crate) fn give(&self, pages: &[PageState<W>], cpu: &CpuState<W>, page: u32) {
        let stack = if cpu.reserve().count() < self.reserve_size {
            cpu.reserve()
        } else {
            &self.common
        };
        stack.push(pages, page);
    }
}
