// SPDX-License-Identifier: GPL-2.0

//! The packed word that says which page is open and how far it is reserved.

use crate::{
    record_len::{
        RecordLen,
        LEN_MAX,
        RECORD_ALIGN, //
    },
    slot::POSITION_MASK, //
};

/// Most pages a channel may have.
pub const PAGES_MAX: usize = NO_PAGE as usize;

/// Stands for no page.
pub(crate) const NO_PAGE: u32 = (1 << PAGE_BITS) - 1;

const PAGE_BITS: u32 = 20;
const POSITION_BITS: u32 = POSITION_MASK.trailing_ones();
const COUNT_BITS: u32 = 13;
const UNIT_BITS: u32 = 14;
const POSITION_SHIFT: u32 = COUNT_BITS;
const EMPTY_SHIFT: u32 = POSITION_SHIFT + POSITION_BITS;
const EMPTY_BIT: u64 = 1 << EMPTY_SHIFT;
const UNIT_SHIFT: u32 = EMPTY_SHIFT + 1;
const CLOSED_BIT: u64 = 1 << (UNIT_SHIFT + UNIT_BITS);
const UNITS: u64 = (1 << UNIT_BITS) - 1;

/// Where the end of every page is, whatever its size, as [`OpenWord::fill`] counts.
pub(crate) const PAGE_SPAN: usize = UNITS as usize * RECORD_ALIGN;

const _: () = assert!(CLOSED_BIT == 1 << 63 && RECORD_ALIGN == 8 && UNIT_SHIFT > 3);
// What is added to the units of an open word goes over into the closed bit, and not beyond.
const _: () = assert!(LEN_MAX <= PAGE_SPAN);
// Nor do the records of a page go over into the position.
const _: () = assert!(LEN_MAX / RECORD_ALIGN <= 1 << COUNT_BITS);

/// Number of records (13 bits), position (35), empty (1), room that is used (14) and closed (1).
///
/// The position names the page. In a ring it counts the pages that were opened; in a pool it is the page
/// with a generation of 15 bits above it. Either way a page that is opened again has another position, so
/// that a writer that was interrupted for long does not take an old word for the present one. (If it
/// did, after so many pages that they wrap, its record would stand where it should, but with the time at
/// which the writer was interrupted.)
///
/// The room is counted in units of [`RECORD_ALIGN`], so that it is all ones when the page is full,
/// whatever the size of the page: what does not fit closes the word by the carry of the addition that
/// reserves. So a writer finds out by one look at the sign of the sum whether there is an open page with
/// enough room in it.
///
/// The word is in one of three states, and one compare-exchange goes from each to the next:
///
/// - *open*: the page takes records;
/// - *closed*: it takes none any more and has no successor yet;
/// - *empty*: there is no page; the last one was published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpenWord(pub(crate) u64);

impl OpenWord {
    /// The state before the first page, which is at position zero.
    pub(crate) const EMPTY: Self = Self(POSITION_MASK << POSITION_SHIFT | CLOSED_BIT | EMPTY_BIT);

    #[inline]
    pub(crate) fn position(self) -> u64 {
        self.0 >> POSITION_SHIFT & POSITION_MASK
    }

    /// The position that follows in a ring.
    #[inline]
    pub(crate) fn next_position(self) -> u64 {
        self.position().wrapping_add(1) & POSITION_MASK
    }

    /// The position that `page` of a pool has next.
    #[inline]
    pub(crate) fn pool_position(self, page: u32) -> u64 {
        let generation = (self.position() >> PAGE_BITS).wrapping_add(1);
        (generation << PAGE_BITS & POSITION_MASK) | u64::from(page)
    }

    /// How far the page is reserved, in bytes, where its end is at [`PAGE_SPAN`]. It is open.
    #[inline(always)]
    pub(crate) fn fill(self) -> usize {
        (self.0 >> (UNIT_SHIFT - 3)) as usize & PAGE_SPAN
    }

    /// Offset in bytes up to which a page of `page_size` bytes is reserved. It is open.
    #[inline]
    pub(crate) fn offset(self, page_size: usize) -> usize {
        self.fill().wrapping_add(page_size.wrapping_sub(PAGE_SPAN))
    }

    /// Number of records that are reserved. It is open.
    #[inline]
    pub(crate) fn count(self) -> u64 {
        self.0 & ((1 << COUNT_BITS) - 1)
    }

    #[inline(always)]
    pub(crate) fn is_open(self) -> bool {
        self.0 & CLOSED_BIT == 0
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 & EMPTY_BIT != 0
    }

    /// One record of `len` bytes more is reserved, or [`None`] if the page is not open or lacks the room.
    #[inline(always)]
    pub(crate) fn advanced(self, len: RecordLen) -> Option<Advance> {
        let units = (len.get() as u64) << (UNIT_SHIFT - 3);
        let end = Self(self.0.wrapping_add(units).wrapping_add(1));
        // INVARIANT: The units were at most all ones before, as they are of any word, those of `len` are too, and
        // the sum has not gone over into the closed bit.
        end.is_open().then_some(Advance {
            old: self,
            end,
            len,
        })
    }

    /// The page takes no more.
    #[inline]
    pub(crate) fn closed(self) -> Self {
        // Without units, so that no addition opens it.
        Self(self.position() << POSITION_SHIFT | CLOSED_BIT)
    }

    /// There is no page any more.
    #[inline]
    pub(crate) fn emptied(self) -> Self {
        Self(self.position() << POSITION_SHIFT | CLOSED_BIT | EMPTY_BIT)
    }

    /// The page at `position`, of `page_size` bytes, is open, with `count` records up to `offset`.
    #[inline]
    pub(crate) fn opened(position: u64, page_size: usize, offset: usize, count: u64) -> Self {
        let left = (page_size.wrapping_sub(offset) / RECORD_ALIGN) as u64;
        Self(count | position << POSITION_SHIFT | UNITS.wrapping_sub(left) << UNIT_SHIFT)
    }

    /// A word that never is one of an open page, and tells the same position and room.
    #[inline]
    pub(crate) fn marked(self) -> Self {
        Self(self.0 | EMPTY_BIT)
    }
}

/// A record that fits an open page.
///
/// # Invariants
///
/// `old` is open; `old.fill() + len.get()` is `end.fill()`, and at most [`PAGE_SPAN`].
pub(crate) struct Advance {
    old: OpenWord,
    end: OpenWord,
    len: RecordLen,
}

impl Advance {
    /// The word behind it.
    #[inline(always)]
    pub(crate) fn end(&self) -> OpenWord {
        self.end
    }

    /// Where it is: see [`OpenWord::fill`].
    #[inline(always)]
    pub(crate) fn fill(&self) -> usize {
        self.old.fill()
    }

    /// Its bytes.
    #[inline(always)]
    pub(crate) fn len(&self) -> RecordLen {
        self.len
    }
}

/// The page of a pool that is at `position`.
#[inline]
pub(crate) fn pool_page(position: u64) -> u32 {
    position as u32 & NO_PAGE
}

#[cfg(any(test, weir_kunit))]
#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_open_word))]
mod tests {
    use super::*;

    #[test]
    fn states_follow_each_other() {
        const SIZE: usize = 256;
        let empty = OpenWord::EMPTY;
        assert!(empty.is_empty());
        assert!(!empty.is_open());
        assert_eq!(empty.next_position(), 0);
        let advanced = |word: OpenWord, len| word.advanced(RecordLen::new(len)?);
        let fits = |word, len| advanced(word, len).is_some();
        assert!(!fits(empty, 8));

        let open = OpenWord::opened(3, SIZE, 96, 0);
        assert!(open.is_open());
        assert!(!open.is_empty());
        assert_eq!(open.position(), 3);
        assert_eq!(open.offset(SIZE), 96);
        assert_eq!(open.fill(), PAGE_SPAN - (SIZE - 96));
        assert_eq!(open.count(), 0);

        let more = advanced(open, 32).map_or(empty, |advance| advance.end());
        assert_eq!(more.position(), 3);
        assert_eq!(more.offset(SIZE), 128);
        assert_eq!(more.count(), 1);
        assert!(!fits(more, 136));
        assert!(!fits(more, LEN_MAX));
        assert!(more.marked() != more);
        assert_eq!(more.marked().position(), 3);
        assert_eq!(more.marked().offset(SIZE), 128);

        let closed = more.closed();
        assert!(!closed.is_open());
        assert!(!closed.is_empty());
        assert_eq!(closed.position(), 3);
        assert!(!fits(closed, 8));
        assert!(!fits(closed, LEN_MAX));

        let emptied = closed.emptied();
        assert!(emptied.is_empty());
        assert!(!emptied.is_open());
        assert_eq!(emptied.next_position(), 4);
        assert!(!fits(emptied, LEN_MAX));
    }

    #[test]
    fn the_largest_page_can_be_full() {
        let advanced = |word: OpenWord, len| word.advanced(RecordLen::new(len)?);
        let mut full = OpenWord::opened(POSITION_MASK, LEN_MAX, 96, 0);
        for _ in 0..(LEN_MAX - 96) / 8 {
            full = advanced(full, 8).map_or(OpenWord::EMPTY, |advance| advance.end());
        }
        assert_eq!(full.offset(LEN_MAX), LEN_MAX);
        assert_eq!(full.count(), 8180);
        assert_eq!(full.position(), POSITION_MASK);
        assert!(full.is_open());
        assert_eq!(full.next_position(), 0);
        assert!(advanced(full, 8).is_none());
        assert!(advanced(full, LEN_MAX).is_none());
    }

    #[test]
    fn a_page_of_a_pool_opened_again_has_another_position() {
        let first = OpenWord::opened(OpenWord::EMPTY.pool_position(1), 256, 96, 1);
        let second = OpenWord::opened(first.closed().emptied().pool_position(1), 256, 96, 1);
        assert!(first != second);
        assert_eq!(pool_page(first.position()), 1);
        assert_eq!(pool_page(second.position()), 1);
        let last = OpenWord::opened(POSITION_MASK, 256, 96, 1).pool_position(NO_PAGE - 1);
        assert_eq!(last, u64::from(NO_PAGE - 1));
    }
}
