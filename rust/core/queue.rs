// SPDX-License-Identifier: GPL-2.0

//! Where pages come from, and where finished ones go: the one queue of all, or a queue each.
//!
//! *Pool*: any page may be anybody's. Whoever needs one takes a free one; a finished one draws a ticket
//! of the one queue, and its number goes into the ticket's slot. The reader gives it back.
//!
//! *Ring*: every owner has pages of its own and uses them in turn, so that a page's position says which it
//! is. They are the queue themselves: a finished page stays where it is, its slot says that it is finished,
//! and it is free again when the head has passed it.

use crate::{
    channel::{
        Backend,
        Channel,
        Class, //
    },
    head::Head,
    lost::Loss,
    open_word::{
        pool_page,
        OpenWord, //
    },
    owner::Owner,
    page_state::PageState,
    pool::Pool,
    slot::{
        Slots,
        POSITION_MASK, //
    },
    word::Word,
    Cause, //
};

/// What the reader is at, and, of a pool, what was drawn.
pub(crate) struct Queue<W> {
    tail: Line<W>,
    head: Line<W>,
}

/// In a line of its own.
#[repr(align(64))]
struct Line<W>(W);

impl<W: Word> Queue<W> {
    pub(crate) fn new() -> Self {
        Self {
            tail: Line(W::new(0)),
            head: Line(W::new(0)),
        }
    }

    /// Next ticket; of pools only.
    pub(crate) fn tail(&self) -> &W {
        &self.tail.0
    }

    /// A [`Head`]. Moved by the reader, and by a writer that overwrites.
    pub(crate) fn head(&self) -> &W {
        &self.head.0
    }
}

/// Which of both.
pub(crate) enum Pages<W> {
    /// Every page may be anybody's.
    Pool(Pool<W>),
    /// So many pages, a power of two, are each owner's.
    Ring(u32),
}

impl<B: Backend> Channel<B> {
    /// Index of the page at `position`, of an owner whose number is `owner`.
    #[inline]
    pub(crate) fn page_at(&self, owner: u32, position: u64) -> u32 {
        match self.pages {
            Pages::Pool(_) => pool_page(position),
            Pages::Ring(share) => owner
                .wrapping_mul(share)
                .wrapping_add(position as u32 & share.wrapping_sub(1)),
        }
    }

    /// The words of a page.
    #[inline]
    pub(crate) fn page_state(&self, page: u32) -> Option<&PageState<B::Word>> {
        self.backend().pages().get(page as usize)
    }

    /// Finds a page to follow `old`, and returns its position. Unless `overwrite`, it is one that nothing
    /// is lost by. A page of a pool must be opened or [given back](Self::put_back).
    pub(crate) fn take_page<O: Owner<B::Word>>(
        &self,
        owner: O,
        old: OpenWord,
        class: Class,
        overwrite: bool,
    ) -> Option<u64> {
        match &self.pages {
            Pages::Pool(pool) => {
                let take = || pool.take(self.backend().pages(), owner.cpu(), class);
                let page = take()
                    .or_else(|| self.reclaim(0).then(take).flatten())
                    .or_else(|| self.take_back().then(take).flatten())?;
                Some(old.pool_position(page))
            }
            Pages::Ring(share) => {
                let share = u64::from(*share);
                // Injected records leave half of the pages to live ones.
                let (limit, overwrite) = match class {
                    Class::Live => (share, overwrite && self.overwrite.load() != 0),
                    Class::Injected => (share / 2, false),
                };
                self.take_of_ring(owner, old, limit, overwrite.then_some(share))
            }
        }
    }

    /// Whether every owner has its own pages.
    pub(crate) fn is_ring(&self) -> bool {
        matches!(self.pages, Pages::Ring(_))
    }

    /// The position of a page of a pool that was taken to follow another word than `old`.
    pub(crate) fn renewed(&self, old: OpenWord, position: u64) -> u64 {
        old.pool_position(pool_page(position))
    }

    /// Gives back what [`take_page`](Self::take_page) gave and nobody opened.
    pub(crate) fn put_back<O: Owner<B::Word>>(&self, owner: O, position: u64) {
        if let Pages::Pool(pool) = &self.pages {
            pool.give(self.backend().pages(), owner.cpu(), pool_page(position));
        }
    }

    /// The next page of the ring, if less than `limit` are in use, or, with a `share` of pages that may be
    /// overwritten, if the oldest is finished.
    ///
    /// `old` may be out of date. Then a position comes out that cannot be opened, or none.
    fn take_of_ring<O: Owner<B::Word>>(
        &self,
        owner: O,
        old: OpenWord,
        limit: u64,
        share: Option<u64>,
    ) -> Option<u64> {
        let next = old.next_position();
        loop {
            let head = Head(owner.queue().head().load_acquire());
            let used = head.ahead(next);
            if used < limit {
                return Some(next);
            }
            if self.reclaim(owner.number() as usize) {
                continue;
            }
            // The oldest page is that at the head. It may be one that is still written.
            let page = self.page_at(owner.number(), next);
            if share != Some(used) || self.finished(page, head) != Some(page) {
                return None;
            }
            let state = self.page_state(page)?;
            let loss = Loss {
                count: state.records.load().wrapping_sub(head.records()),
                begin: state.begin.load(),
                end: state.end.load(),
            };
            let reporter = state.reporter.load();
            // Whoever moves the head has the page: the reader has read it, or it is overwritten.
            let moved = owner
                .queue()
                .head()
                .compare_exchange(head.0, head.next().0)
                .is_ok();
            if moved {
                // Nothing is written into the page before the reader can see that.
                B::Word::fence();
                owner.cpu().lost().count(Cause::Overwritten, loss);
                if let Some(cpu) = self.cpu((reporter as usize).wrapping_sub(1)) {
                    cpu.lost().report_again();
                }
                return Some(next);
            }
        }
    }

    /// The page in slot `index`, if it is finished and the one at `head`.
    pub(crate) fn finished(&self, index: u32, head: Head) -> Option<u32> {
        let value = self.backend().ring().get(index as usize)?.load_acquire();
        self.slots().page(index, value, head.position())
    }

    /// Puts a finished page into its slot. Returns how many pages wait for the reader, roughly.
    pub(crate) fn enqueue<O: Owner<B::Word>>(&self, owner: O, position: u64) -> u64 {
        let page = self.page_at(owner.number(), position);
        match self.pages {
            Pages::Pool(_) => {
                // There are at least as many slots as pages, so this one is free.
                let ticket = self.queue.tail().fetch_add(1);
                self.fill_slot(0, ticket, page);
                B::Word::fence();
                let head = Head(self.queue.head().load());
                ticket.wrapping_add(1).wrapping_sub(head.position())
            }
            Pages::Ring(_) => {
                self.fill_slot(owner.number(), position, page);
                B::Word::fence();
                // All that are closed: where pages finish out of order the last of them counts all.
                let open = OpenWord(owner.open().load());
                let head = Head(owner.queue().head().load());
                let first_open = if open.is_open() {
                    open.position()
                } else {
                    open.next_position()
                };
                head.ahead(first_open)
            }
        }
    }

    fn fill_slot(&self, queue: u32, position: u64, page: u32) {
        let slots = self.slots();
        let index = slots.index(queue, position);
        if let Some(slot) = self.backend().ring().get(index as usize) {
            slot.store_release(slots.value(position, page));
        }
    }

    /// How finished pages are found.
    pub fn slots(&self) -> Slots {
        match self.pages {
            Pages::Pool(_) => Slots::Pool(self.backend().ring().len() as u32),
            Pages::Ring(share) => Slots::Ring(share),
        }
    }

    /// Number of queues.
    pub fn queues(&self) -> usize {
        match self.pages {
            Pages::Ring(_) if !self.is_shared() => self.backend().cpus().len(),
            _ => 1,
        }
    }

    /// One of the queues.
    pub(crate) fn queue(&self, index: usize) -> Option<&Queue<B::Word>> {
        match self.pages {
            Pages::Ring(_) if !self.is_shared() => Some(self.cpu(index)?.queue()),
            _ => Some(&self.queue),
        }
    }

    /// The oldest finished page of a queue, and the head that says so. A page that is not finished holds
    /// up those behind it: its writer was interrupted.
    pub(crate) fn oldest(&self, index: usize) -> Option<(u32, Head)> {
        let head = Head(self.queue(index)?.head().load_acquire());
        let slot = self.slots().index(index as u32, head.position());
        Some((self.finished(slot, head)?, head))
    }

    /// Frees `page`, the oldest of a queue, which CPU `cpu` wrote. [`false`] if it was overwritten before.
    pub(crate) fn dequeue(&self, index: usize, head: Head, page: u32, cpu: usize) -> bool {
        let Some(queue) = self.queue(index) else {
            return false;
        };
        if self.may_overwrite {
            return queue.head().compare_exchange(head.0, head.next().0).is_ok();
        }
        // The head moves first: a page that is free may come to the queue again, and finds a slot.
        queue.head().store_release(head.next().0);
        if let (Pages::Pool(pool), Some(cpu)) = (&self.pages, self.cpu(cpu)) {
            pool.give(self.backend().pages(), cpu, page);
        }
        true
    }

    /// The reader maps the channel from now on: it says in [`Backend::positions`] how far it is, and
    /// [`crate::Reader`] is not used any more.
    ///
    /// Only for channels that do not overwrite.
    pub fn set_mapped(&self) {
        for (index, position) in self.backend().positions().iter().enumerate() {
            if let Some(queue) = self.queue(index) {
                position.store(Head(queue.head().load()).position());
            }
        }
        self.mapped.store_release(1);
    }

    /// Whether the reader maps the channel.
    pub fn is_mapped(&self) -> bool {
        self.mapped.load_acquire() != 0
    }

    /// Frees pages of a queue that a reader says it has had, some at a time, and says whether there were
    /// any. In any context.
    ///
    /// What it says is not believed beyond pages that are finished: it can only have its own pages written
    /// over while it reads them.
    pub fn reclaim(&self, index: usize) -> bool {
        const AT_ONCE: usize = 16;
        if !self.is_mapped() {
            return false;
        }
        let (Some(queue), Some(position)) =
            (self.queue(index), self.backend().positions().get(index))
        else {
            return false;
        };
        // What was read of the pages was read before.
        let position = position.load_acquire();
        let mut any = false;
        for _ in 0..AT_ONCE {
            let Some((page, head)) = self.oldest(index) else {
                break;
            };
            if (position.wrapping_sub(head.position()) as i64) <= 0 {
                break;
            }
            let user = self.page_state(page).map_or(0, |state| state.user.load());
            // Several may do this at the same time; who moves the head has the page.
            if queue.head().compare_exchange(head.0, head.next().0).is_ok() {
                any = true;
                if let (Pages::Pool(pool), Some(cpu)) = (&self.pages, self.cpu(user as usize)) {
                    pool.give(self.backend().pages(), cpu, page);
                }
            }
        }
        any
    }

    /// Whether at least `pages` finished pages are in one queue.
    pub fn is_readable(&self, pages: u64) -> bool {
        (0..self.queues()).any(|index| {
            self.waiting(index)
                .is_some_and(|waiting| waiting >= pages && self.oldest(index).is_some())
        })
    }

    /// How many pages are in a queue, those included that are only about to be.
    fn waiting(&self, index: usize) -> Option<u64> {
        let queue = self.queue(index)?;
        let head = Head(queue.head().load());
        Some(match self.pages {
            Pages::Pool(_) => queue.tail().load_acquire().wrapping_sub(head.position()),
            Pages::Ring(_) => {
                let open = if self.is_shared() {
                    self.shared.open().load_acquire()
                } else {
                    self.cpu(index)?.open.load_acquire()
                };
                let open = OpenWord(open);
                head.ahead(if open.is_open() {
                    open.position()
                } else {
                    open.next_position()
                })
            }
        })
    }

    /// Says how far a queue is, for [`is_settled`](Self::is_settled).
    pub fn drawn(&self) -> u64 {
        match self.pages {
            Pages::Pool(_) => self.queue.tail().load_acquire(),
            Pages::Ring(_) if self.is_shared() => {
                let open = OpenWord(self.shared.open().load_acquire());
                if open.is_open() {
                    open.position()
                } else {
                    open.next_position()
                }
            }
            // Whoever closed a page has published it.
            Pages::Ring(_) => 0,
        }
    }

    /// Whether every page up to `drawn` is finished, or gone.
    pub fn is_settled(&self, drawn: u64) -> bool {
        let mut head = Head(self.queue.head().load_acquire());
        match self.pages {
            Pages::Pool(_) => {
                while (drawn.wrapping_sub(head.position()) as i64) > 0 {
                    let index = self.slots().index(0, head.position());
                    let Some(slot) = self.backend().ring().get(index as usize) else {
                        return true;
                    };
                    // A later one may stand in the slot, if the reader went on meanwhile.
                    if !Slots::has_passed(slot.load_acquire(), head.position()) {
                        return false;
                    }
                    head = head.next();
                }
                true
            }
            Pages::Ring(share) if self.is_shared() => {
                // Beyond the ring the head has passed it.
                while (1..=u64::from(share)).contains(&head.ahead(drawn)) {
                    let page = self.page_at(0, head.position() & POSITION_MASK);
                    if self.finished(page, head).is_none()
                        && Head(self.queue.head().load_acquire()).position() <= head.position()
                    {
                        return false;
                    }
                    head = head.next();
                }
                true
            }
            Pages::Ring(_) => true,
        }
    }
}

#[cfg(any(test, weir_kunit))]
#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_queue))]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_valid_for_its_position_only() {
        let pool = Slots::Pool(8);
        assert_eq!(pool.page(0, 0, 0), None);
        let value = pool.value(5, 7);
        assert_eq!(pool.page(5, value, 5), Some(7));
        assert_eq!(pool.page(5, value, 4), None);
        assert_eq!(pool.page(5, value, 5 + 8), None);
        assert_eq!(pool.page(0, pool.value(0, 0), 0), Some(0));
        assert!(Slots::has_passed(value, 5) && Slots::has_passed(value, 4));
        assert!(!Slots::has_passed(value, 6) && !Slots::has_passed(0, 0));

        let ring = Slots::Ring(4);
        assert_eq!(ring.index(2, 9), 9);
        assert_eq!(ring.page(9, 0, 9), None);
        assert_eq!(ring.page(9, ring.value(9, 9), 9), Some(9));
        assert_eq!(ring.page(9, ring.value(9, 9), 13), None);
        assert_eq!(
            ring.page(3, ring.value(POSITION_MASK, 3), POSITION_MASK),
            Some(3)
        );
    }
}
