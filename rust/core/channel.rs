// SPDX-License-Identifier: GPL-2.0

//! A channel: what it stands on, and what it shares between CPUs.

use crate::{
    cpu_state::CpuState,
    free_stack::FreeStack,
    lost::LostReport,
    page_memory::PageMemory,
    uapi::PageHeader,
    word::Word, //
};

/// Bytes of a page's header.
pub const HEADER_SIZE: usize = size_of::<PageHeader>();

/// What a channel stands on: memory, a clock, a way to wake the reader.
pub trait Backend {
    /// The shared words.
    type Word: Word;
    /// The pages.
    type Memory: PageMemory;

    /// One element for each CPU that may ever write.
    fn cpus(&self) -> &[CpuState<Self::Word>];

    /// One word for each page.
    fn links(&self) -> &[Self::Word];

    /// The queue of finished pages: a power of two of words, as many as pages or more, made with zero.
    fn ring(&self) -> &[Self::Word];

    /// The pages.
    fn memory(&self) -> &Self::Memory;

    /// The time in ns, in any context; not zero.
    fn clock(&self) -> u64;

    /// Wakes the reader, soon and from any context.
    fn wake(&self);
}

/// Whose records these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What happens: may take any free page; what finds none is counted as lost.
    Live,
    /// What existed before: leaves pages to live records, and can be written later.
    Injected,
}

/// What a CPU did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Pages published.
    pub pages: u64,
    /// Records written inside another's write.
    pub nested: u64,
    /// What was lost; the times are those of losses that no page reports yet.
    pub lost: LostReport,
}

/// A channel of the model *paged* in the mode *discard*.
///
/// Each CPU has an open page; finished pages of all CPUs go to one queue. `Documentation/engine.rst`
/// has the argument why what follows is correct.
pub struct Channel<B: Backend> {
    backend: B,
    /// Pages for whoever needs one.
    common: FreeStack<B::Word>,
    /// Pages that `common` had in the beginning.
    common_size: u64,
    /// Pages that each CPU keeps for itself.
    reserve_size: u64,
    /// Next ticket of the queue.
    pub(crate) tail: B::Word,
    /// Next ticket that the reader takes. Only the reader stores it.
    pub(crate) head: B::Word,
    /// Finished pages that are worth a wake-up; zero while the reader waits for none.
    pub(crate) wanted: B::Word,
}

impl<B: Backend> Channel<B> {
    /// Makes a channel of all the pages of `backend`, of which every CPU keeps `reserve_size`.
    pub fn new(backend: B, reserve_size: u64) -> Self {
        let mut channel = Self {
            common: FreeStack::new(),
            common_size: 0,
            reserve_size,
            tail: B::Word::new(0),
            head: B::Word::new(0),
            wanted: B::Word::new(0),
            backend,
        };
        // Backwards, so that the first page is used first.
        for page in (0..channel.backend.links().len() as u32).rev() {
            channel.common.push(channel.backend.links(), page);
        }
        for cpu in channel.backend.cpus() {
            for _ in 0..reserve_size {
                if let Some(page) = channel.common.pop(channel.backend.links(), 0) {
                    cpu.reserve().push(channel.backend.links(), page);
                }
            }
        }
        channel.common_size = channel.common.count();
        channel
    }

    /// What the channel stands on.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    pub(crate) fn cpu(&self, cpu: usize) -> Option<&CpuState<B::Word>> {
        self.backend.cpus().get(cpu)
    }

    pub(crate) fn set_link(&self, page: u32, next: u32) {
        if let Some(link) = self.backend.links().get(page as usize) {
            link.store(u64::from(next));
        }
    }

    pub(crate) fn link(&self, page: u32) -> u64 {
        match self.backend.links().get(page as usize) {
            Some(link) => link.load(),
            None => u64::from(crate::open_word::NO_PAGE),
        }
    }

    /// Takes a free page for `cpu`: its own first, then a common one. Injected records leave half of
    /// the common pages, and every CPU's own, to live ones.
    pub(crate) fn take_page(&self, cpu: &CpuState<B::Word>, class: Class) -> Option<u32> {
        let links = self.backend.links();
        match class {
            Class::Live => cpu
                .reserve()
                .pop(links, 0)
                .or_else(|| self.common.pop(links, 0)),
            Class::Injected => self.common.pop(links, self.common_size / 2),
        }
    }

    /// Gives a page back: to the CPU that used it, if that lacks some, else to all.
    pub(crate) fn give_page(&self, cpu: &CpuState<B::Word>, page: u32) {
        let stack = if cpu.reserve().count() < self.reserve_size {
            cpu.reserve()
        } else {
            &self.common
        };
        stack.push(self.backend.links(), page);
    }

    /// What `cpu` did so far, or [`None`] if there is no such CPU.
    pub fn status(&self, cpu: usize) -> Option<Status> {
        let cpu = self.cpu(cpu)?;
        Some(Status {
            pages: cpu.pages().load(),
            nested: cpu.nested().load(),
            lost: cpu.lost().snapshot(),
        })
    }
}
