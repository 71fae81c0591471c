// SPDX-License-Identifier: GPL-2.0

//! Free pages: a stack that any CPU pops from and the reader pushes to, in any context.
//!
//! It is Treiber's stack. Its head carries a tag that changes with every operation, so that a pop
//! that was interrupted between reading the second element and replacing the head fails when the
//! stack has changed, even if the same page is on top again. The links are words of the pages,
//! which are free while the page is.

use crate::{
    open_word::NO_PAGE,
    page_state::PageState,
    word::Word, //
};

const COUNT_SHIFT: u32 = 20;
const TAG_SHIFT: u32 = 40;
const FIELD: u64 = (1 << 20) - 1;

/// Top page (20 bits), number of pages (20) and tag (24).
pub(crate) struct FreeStack<W> {
    head: W,
}

/// Packs a head that follows `old`.
fn pack(page: u32, count: u64, old: u64) -> u64 {
    let tag = (old >> TAG_SHIFT).wrapping_add(1);
    u64::from(page) | count << COUNT_SHIFT | tag << TAG_SHIFT
}

impl<W: Word> FreeStack<W> {
    pub(crate) fn new() -> Self {
        Self {
            head: W::new(u64::from(NO_PAGE)),
        }
    }

    /// Number of pages in it, which may have changed on return.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.head.load() >> COUNT_SHIFT & FIELD
    }

    /// Puts `page` on top.
    pub(crate) fn push(&self, pages: &[PageState<W>], page: u32) {
        let Some(state) = pages.get(page as usize) else {
            return;
        };
        let mut old = self.head.load();
        loop {
            state.link.store(old & FIELD);
            let count = (old >> COUNT_SHIFT & FIELD) + 1;
            match self.head.compare_exchange(old, pack(page, count, old)) {
                Ok(()) => return,
                Err(found) => old = found,
            }
        }
    }

    /// Takes the page on top, if more than `keep` are there.
    ///
    /// The second element is read before it is known that the first is still there. It may be
    /// anything by then, but the tag makes the exchange fail in that case.
    pub(crate) fn pop(&self, pages: &[PageState<W>], keep: u64) -> Option<u32> {
        let mut old = self.head.load_acquire();
        loop {
            let page = (old & FIELD) as u32;
            let count = old >> COUNT_SHIFT & FIELD;
            if count <= keep {
                return None;
            }
            let next = pages.get(page as usize)?.link.load() & FIELD;
            let new = pack(next as u32, count - 1, old);
            match self.head.compare_exchange(old, new) {
                Ok(()) => return Some(page),
                Err(found) => old = found,
            }
        }
    }
}

#[cfg(any(test, weir_kunit))]
#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_free_stack))]
mod tests {
    use super::*;
    use crate::test_backend::TestWord;

    #[test]
    fn every_page_comes_out_once() {
        let pages: [PageState<TestWord>; 4] = core::array::from_fn(|_| PageState::new());
        let stack = FreeStack::new();
        assert!(stack.pop(&pages, 0).is_none());
        for page in 0..4 {
            stack.push(&pages, page);
        }
        assert_eq!(stack.count(), 4);
        let mut seen = 0;
        while let Some(page) = stack.pop(&pages, 0) {
            assert!(page < 4);
            assert_eq!(seen & 1 << page, 0);
            seen |= 1 << page;
        }
        assert_eq!(seen, 0b1111);
        assert_eq!(stack.count(), 0);
    }

    #[test]
    fn what_is_to_be_kept_stays() {
        let pages: [PageState<TestWord>; 4] = core::array::from_fn(|_| PageState::new());
        let stack = FreeStack::new();
        for page in 0..4 {
            stack.push(&pages, page);
        }
        assert_eq!(stack.pop(&pages, 3), Some(3));
        assert_eq!(stack.pop(&pages, 3), None);
        assert_eq!(stack.count(), 3);
    }

    #[test]
    fn a_page_of_no_channel_is_not_pushed() {
        let pages: [PageState<TestWord>; 2] = core::array::from_fn(|_| PageState::new());
        let stack = FreeStack::new();
        stack.push(&pages, 2);
        assert_eq!(stack.count(), 0);
    }
}
