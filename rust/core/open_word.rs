// SPDX-License-Identifier: GPL-2.0

//! The packed word that says which page is open and how far it is reserved.

use crate::slot::POSITION_MASK;

/// Most pages a channel may have.
pub const PAGES_MAX: usize = NO_PAGE as usize;

/// Stands for no page.
pub(crate) const NO_PAGE: u32 = (1 << PAGE_BITS) - 1;

const PAGE_BITS: u32 = 20;
const POSITION_BITS: u32 = POSITION_MASK.trailing_ones();
const UNIT_BITS: u32 = 14;
const COUNT_BITS: u32 = 13;
const UNIT_SHIFT: u32 = POSITION_BITS;
const COUNT_SHIFT: u32 = UNIT_SHIFT + UNIT_BITS;
const CLOSED_BIT: u64 = 1 << (COUNT_SHIFT + COUNT_BITS);
const EMPTY_BIT: u64 = CLOSED_BIT << 1;

/// Alignment of records, in bytes; offsets are kept in this unit.
pub const RECORD_ALIGN: usize = 8;

/// Position (35 bits), offset in units of [`RECORD_ALIGN`] (14), number of records (13), closed (1) and
/// empty (1).
///
/// The position names the page. In a ring it counts the pages that were opened; in a pool it is the page
/// with a generation of 15 bits above it. Either way a page that is opened again has another position, so
/// that a writer that was interrupted for long does not take an old word for the present one. (If it
/// did, after so many pages that they wrap, its record would stand where it should, but with the time at
/// which the writer was interrupted.)
///
/// The word is in one of three states, and one compare-exchange goes from each to the next:
///
/// - *open*: the page takes records from the offset on;
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

    /// Offset in bytes up to which the page is reserved.
    #[inline]
    pub(crate) fn offset(self) -> usize {
        ((self.0 >> UNIT_SHIFT) as usize & ((1 << UNIT_BITS) - 1)) * RECORD_ALIGN
    }

    /// Number of records that are reserved.
    #[inline]
    pub(crate) fn count(self) -> u64 {
        self.0 >> COUNT_SHIFT & ((1 << COUNT_BITS) - 1)
    }

    #[inline]
    pub(crate) fn is_open(self) -> bool {
        self.0 & CLOSED_BIT == 0
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 & EMPTY_BIT != 0
    }

    /// One record of `len` bytes more is reserved. `len` is a multiple of [`RECORD_ALIGN`] and fits.
    #[inline]
    pub(crate) fn advanced(self, len: usize) -> Self {
        const _: () = assert!(RECORD_ALIGN == 8 && UNIT_SHIFT > 3);
        let units = (len as u64) << (UNIT_SHIFT - 3);
        Self(self.0.wrapping_add(units).wrapping_add(1 << COUNT_SHIFT))
    }

    /// The page takes no more.
    #[inline]
    pub(crate) fn closed(self) -> Self {
        Self(self.0 | CLOSED_BIT)
    }

    /// There is no page any more.
    #[inline]
    pub(crate) fn emptied(self) -> Self {
        Self(self.position() | CLOSED_BIT | EMPTY_BIT)
    }

    /// The page at `position` is open, with `count` records up to `offset`.
    #[inline]
    pub(crate) fn opened(position: u64, offset: usize, count: u64) -> Self {
        Self(position | ((offset / RECORD_ALIGN) as u64) << UNIT_SHIFT | count << COUNT_SHIFT)
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
        let empty = OpenWord::EMPTY;
        assert!(empty.is_empty());
        assert!(!empty.is_open());
        assert_eq!(empty.next_position(), 0);

        let open = OpenWord::opened(3, 96, 0);
        assert!(open.is_open());
        assert!(!open.is_empty());
        assert_eq!(open.position(), 3);
        assert_eq!(open.offset(), 96);
        assert_eq!(open.count(), 0);

        let more = open.advanced(32);
        assert_eq!(more.position(), 3);
        assert_eq!(more.offset(), 128);
        assert_eq!(more.count(), 1);

        let closed = more.closed();
        assert!(!closed.is_open());
        assert!(!closed.is_empty());
        assert_eq!(closed.position(), 3);
        assert_eq!(closed.offset(), 128);
        assert_eq!(closed.count(), 1);

        let emptied = closed.emptied();
        assert!(emptied.is_empty());
        assert!(!emptied.is_open());
        assert_eq!(emptied.next_position(), 4);
    }

    #[test]
    fn the_largest_page_can_be_full() {
        let mut full = OpenWord::opened(POSITION_MASK, 96, 0);
        for _ in 0..(65536 - 96) / 8 {
            full = full.advanced(8);
        }
        assert_eq!(full.offset(), 65536);
        assert_eq!(full.count(), 8180);
        assert_eq!(full.position(), POSITION_MASK);
        assert!(full.is_open());
        assert_eq!(full.next_position(), 0);
    }

    #[test]
    fn a_page_of_a_pool_opened_again_has_another_position() {
        let first = OpenWord::opened(OpenWord::EMPTY.pool_position(1), 96, 1);
        let second = OpenWord::opened(first.closed().emptied().pool_position(1), 96, 1);
        assert!(first != second);
        assert_eq!(pool_page(first.position()), 1);
        assert_eq!(pool_page(second.position()), 1);
        let last = OpenWord::opened(POSITION_MASK, 96, 1).pool_position(NO_PAGE - 1);
        assert_eq!(last, u64::from(NO_PAGE - 1));
    }
}
