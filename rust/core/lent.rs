// SPDX-License-Identifier: GPL-2.0

//! Pages of a pool that were delivered without a copy.
//!
//! Whoever got such a page refers to its memory, and says nothing when it has been read. So the page is put
//! into a set, and those who need pages look there for one that nobody refers to any more. The set is a bit a
//! page. Several may look at the same time, in any context; who clears the bit has the page.

use crate::{
    channel::{
        Backend,
        Channel, //
    },
    head::Head,
    page_memory::PageMemory,
    page_state::PageState,
    queue::Pages,
    word::Word, //
};

const BITS: u32 = u64::BITS;

/// How much one call looks at, as it may be made in an NMI: pages, and words of 64.
const PAGES_AT_ONCE: u32 = 16;
const WORDS_AT_ONCE: u32 = 64;

/// The set.
pub(crate) struct Lent<W> {
    /// Pages in it, and those that somebody just looks at.
    count: W,
    /// The page at which the next search begins.
    next: W,
    /// Most pages that may be in it.
    limit: u64,
}

/// The word with the bit of `page`, and the bit.
fn bit<W>(pages: &[PageState<W>], page: u32) -> Option<(&W, u64)> {
    let state = pages.get((page / BITS) as usize)?;
    Some((&state.lent, 1 << (page % BITS)))
}

impl<W: Word> Lent<W> {
    /// The set of a pool of so many pages. The other half of them stays for writers, however slow others are.
    pub(crate) fn new(pages: usize) -> Self {
        Self {
            count: W::new(0),
            next: W::new(0),
            limit: pages as u64 / 2,
        }
    }

    /// Whether a page may be added. Asked by the reader, which alone adds.
    pub(crate) fn has_room(&self) -> bool {
        self.count.load() < self.limit
    }

    /// Pages in it.
    pub(crate) fn count(&self) -> u64 {
        self.count.load()
    }

    /// Adds a page, which others refer to by now.
    pub(crate) fn add(&self, pages: &[PageState<W>], page: u32) {
        self.count.fetch_add(1);
        self.put(pages, page);
    }

    /// Sets a page's bit.
    fn put(&self, pages: &[PageState<W>], page: u32) {
        let Some((word, bit)) = bit(pages, page) else {
            return;
        };
        let mut old = word.load();
        while let Err(found) = word.compare_exchange(old, old | bit) {
            old = found;
        }
    }

    /// Clears a page's bit; [`false`] if somebody else did.
    fn claim(&self, pages: &[PageState<W>], page: u32) -> bool {
        let Some((word, bit)) = bit(pages, page) else {
            return false;
        };
        let mut old = word.load();
        loop {
            if old & bit == 0 {
                return false;
            }
            match word.compare_exchange(old, old & !bit) {
                Ok(()) => return true,
                Err(found) => old = found,
            }
        }
    }

    /// Looks at some pages of the set, further ones each time, and takes out those that are not held.
    pub(crate) fn take(
        &self,
        pages: &[PageState<W>],
        is_held: impl Fn(u32) -> bool,
        mut give: impl FnMut(u32),
    ) {
        if self.count.load() == 0 {
            return;
        }
        let words = (pages.len() as u32).div_ceil(BITS);
        let mut looks = PAGES_AT_ONCE;
        let mut page = self.next.load() as u32;
        // The first word is looked at from its middle on, and the rest of it last.
        for _ in 0..WORDS_AT_ONCE.min(words.wrapping_add(1)) {
            if page / BITS >= words {
                page = 0;
            }
            let index = page / BITS;
            let Some((word, first)) = bit(pages, page) else {
                break;
            };
            let mut bits = word.load() & first.wrapping_neg();
            while bits != 0 && looks != 0 {
                page = index.wrapping_mul(BITS).wrapping_add(bits.trailing_zeros());
                bits &= bits.wrapping_sub(1);
                looks = looks.wrapping_sub(1);
                // What is seen of a page that somebody else may claim is a hint. It may have been taken out,
                // used and lent again since; but of whoever has claimed it, it is the truth.
                if !is_held(page) && self.claim(pages, page) {
                    if is_held(page) {
                        self.put(pages, page);
                    } else {
                        give(page);
                        self.count.fetch_add(u64::MAX);
                    }
                }
                page = page.wrapping_add(1);
            }
            if looks == 0 {
                break;
            }
            page = index.wrapping_add(1).wrapping_mul(BITS);
        }
        self.next.store(u64::from(page));
    }
}

impl<B: Backend> Channel<B> {
    /// Whether another page may be lent: of a pool only. In a ring, whoever comes to a page after one
    /// round must have it.
    pub(crate) fn may_lend(&self) -> bool {
        matches!(&self.pages, Pages::Pool(pool) if pool.lent().has_room())
    }

    /// Takes `page`, the oldest of a pool, out of the queue. Others refer to it, and it is free when they do
    /// no more.
    pub(crate) fn lend(&self, head: Head, page: u32) {
        // The head moves first, as where the page is freed.
        self.queue.head().store_release(head.next().0);
        if let Pages::Pool(pool) = &self.pages {
            pool.lent().add(self.backend().pages(), page);
        }
    }

    /// Frees pages that were lent and are not referred to any more, some at a time, and says whether there were
    /// any. In any context.
    #[cold]
    pub fn take_back(&self) -> bool {
        let Pages::Pool(pool) = &self.pages else {
            return false;
        };
        let (pages, memory) = (self.backend().pages(), self.backend().memory());
        let mut any = false;
        pool.lent().take(
            pages,
            |page| memory.is_held(page),
            |page| {
                let user = self.page_state(page).map_or(0, |state| state.user.load());
                if let Some(cpu) = self.cpu(user as usize) {
                    pool.give(pages, cpu, page);
                    any = true;
                }
            },
        );
        any
    }

    /// Pages that are lent.
    pub fn lent(&self) -> u64 {
        match &self.pages {
            Pages::Pool(pool) => pool.lent().count(),
            Pages::Ring(_) => 0,
        }
    }
}
