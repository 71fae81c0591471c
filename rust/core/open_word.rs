// SPDX-License-Identifier: GPL-2.0

//! The packed word that says which page is open and how far it is reserved.

use crate::slot::POSITION_MASK;

/// Most pages a channel may have.
pub const PAGES_MAX: usize = NO_PAGE as usize;

/// Stands for no page.
pub(crate) const NO_PAGE: u32 = (1 << PAGE_BITS) - 1;

const PAGE_BITS: u32 = 20;
const POSITION_BITS: u32 = POSITION_MASK.trailing_ones();
const COUNT_BITS: u32 = 13;
const UNIT_BITS: u32 = 14;
const EMPTY_BIT: u64 = 1 << POSITION_BITS;
const COUNT_SHIFT: u32 = POSITION_BITS + 1;
const UNIT_SHIFT: u32 = COUNT_SHIFT + COUNT_BITS;
const CLOSED_BIT: u64 = 1 << (UNIT_SHIFT + UNIT_BITS);
const UNITS: u64 = (1 << UNIT_BITS) - 1;

/// Alignment of records, in bytes; room is counted in this unit.
pub const RECORD_ALIGN: usize = 8;

/// The largest page, in bytes; no record is larger.
pub const LEN_MAX: usize = 65536;

const _: () = assert!(CLOSED_BIT == 1 << 63 && RECORD_ALIGN == 8 && UNIT_SHIFT > 3);
// What is added to the units of an open word goes over into the closed bit, and not beyond.
const _: () = assert!(LEN_MAX / RECORD_ALIGN <= UNITS as usize);

/// Position (35 bits), empty (1), number of records (13), room that is used (14) and closed (1).
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
    pub(crate) const EMPTY: Self = Self(POSITION_MASK | CLOSED_BIT | EMPTY_BIT);

    #[inline]
    pub(crate) fn position(self) -> u64 {
        self.0 & POSITION_MASK
    }

    /// The position that follows in a ring.
    #[inline]
    pub(crate) fn next_position(self) -> u64 {
        self.0.wrapping_add(1) & POSITION_MASK
    }

    /// The position that `page` of a pool has next.
    #[inline]
    pub(crate) fn pool_position(self, page: u32) -> u64 {
        let generation = (self.position() >> PAGE_BITS).wrapping_add(1);
        (generation << PAGE_BITS & POSITION_MASK) | u64::from(page)
    }

    /// Offset in bytes up to which a page of `page_size` bytes is reserved. It is open.
    #[inline(always)]
    pub(crate) fn offset(self, page_size: usize) -> usize {
        const FULL: usize = UNITS as usize * RECORD_ALIGN;
        let used = (self.0 >> (UNIT_SHIFT - 3)) as usize & FULL;
        used.wrapping_add(page_size.wrapping_sub(FULL))
    }

    /// Number of records that are reserved. It is open.
    #[inline]
    pub(crate) fn count(self) -> u64 {
        self.0 >> COUNT_SHIFT & ((1 << COUNT_BITS) - 1)
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
    /// `len` is a multiple of [`RECORD_ALIGN`], and at most [`LEN_MAX`].
    #[inline(always)]
    pub(crate) fn advanced(self, len: usize) -> Option<Self> {
        let units = (len as u64) << (UNIT_SHIFT - 3);
        let new = Self(self.0.wrapping_add(units).wrapping_add(1 << COUNT_SHIFT));
        new.is_open().then_some(new)
    }

    /// The page takes no more.
    #[inline]
    pub(crate) fn closed(self) -> Self {
        // Without units, so that no addition opens it.
        Self(self.position() | CLOSED_BIT)
    }

    /// There is no page any more.
    #[inline]
    pub(crate) fn emptied(self) -> Self {
        Self(self.position() | CLOSED_BIT | EMPTY_BIT)
    }

    /// The page at `position`, of `page_size` bytes, is open, with `count` records up to `offset`.
    #[inline]
    pub(crate) fn opened(position: u64, page_size: usize, offset: usize, count: u64) -> Self {
        let left = (page_size.wrapping_sub(offset) / RECORD_ALIGN) as u64;
        Self(position | count << COUNT_SHIFT | UNITS.wrapping_sub(left) << UNIT_SHIFT)
    }

    /// A word that never is one of an open page, and tells the same position and room.
    #[inline]
    pub(crate) fn marked(self) -> Self {
        Self(self.0 | EMPTY_BIT)
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
        assert_eq!(empty.advanced(8), None);

        let open = OpenWord::opened(3, SIZE, 96, 0);
        assert!(open.is_open());
        assert!(!open.is_empty());
        assert_eq!(open.position(), 3);
        assert_eq!(open.offset(SIZE), 96);
        assert_eq!(open.count(), 0);

        let more = open.advanced(32).unwrap_or(empty);
        assert_eq!(more.position(), 3);
        assert_eq!(more.offset(SIZE), 128);
        assert_eq!(more.count(), 1);
        assert_eq!(more.advanced(136), None);
        assert_eq!(more.advanced(LEN_MAX), None);
        assert!(more.marked() != more);
        assert_eq!(more.marked().position(), 3);
        assert_eq!(more.marked().offset(SIZE), 128);

        let closed = more.closed();
        assert!(!closed.is_open());
        assert!(!closed.is_empty());
        assert_eq!(closed.position(), 3);
        assert_eq!(closed.advanced(8), None);
        assert_eq!(closed.advanced(LEN_MAX), None);

        let emptied = closed.emptied();
        assert!(emptied.is_empty());
        assert!(!emptied.is_open());
        assert_eq!(emptied.next_position(), 4);
        assert_eq!(emptied.advanced(LEN_MAX), None);
    }

    #[test]
    fn the_largest_page_can_be_full() {
        let mut full = OpenWord::opened(POSITION_MASK, LEN_MAX, 96, 0);
        for _ in 0..(LEN_MAX - 96) / 8 {
            full = full.advanced(8).unwrap_or(OpenWord::EMPTY);
        }
        assert_eq!(full.offset(LEN_MAX), LEN_MAX);
        assert_eq!(full.count(), 8180);
        assert_eq!(full.position(), POSITION_MASK);
        assert!(full.is_open());
        assert_eq!(full.next_position(), 0);
        assert_eq!(full.advanced(8), None);
        assert_eq!(full.advanced(LEN_MAX), None);
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
