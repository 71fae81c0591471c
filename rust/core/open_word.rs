// SPDX-License-Identifier: GPL-2.0

//! The packed word that says which page is open and how far it is reserved.

/// Most pages a channel may have.
pub const PAGES_MAX: usize = NO_PAGE as usize;

/// Stands for no page.
pub(crate) const NO_PAGE: u32 = (1 << PAGE_BITS) - 1;

const PAGE_BITS: u32 = 20;
const UNIT_BITS: u32 = 14;
const CLOSED_BIT: u64 = 1 << (PAGE_BITS + UNIT_BITS);
const GENERATION_SHIFT: u32 = PAGE_BITS + UNIT_BITS + 1;

/// Alignment of records, in bytes; offsets are kept in this unit.
pub const RECORD_ALIGN: usize = 8;

/// Page (20 bits), offset in units of [`RECORD_ALIGN`] (14), closed (1) and generation (29).
///
/// It is in one of three states, and one compare-exchange goes from each to the next:
///
/// - *open*: `page` takes records from `offset` on;
/// - *closed*: `page` takes none any more and has no successor yet, and it is not published;
/// - *empty*: there is no page.
///
/// The generation counts up whenever a page is opened or the word becomes empty, so that a writer
/// that was interrupted for long does not take an old word for the present one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpenWord(pub(crate) u64);

impl OpenWord {
    /// The state before the first page.
    pub(crate) const EMPTY: Self = Self(NO_PAGE as u64 | CLOSED_BIT);

    #[inline]
    pub(crate) fn page(self) -> u32 {
        (self.0 as u32) & NO_PAGE
    }

    /// Offset in bytes up to which the page is reserved.
    #[inline]
    pub(crate) fn offset(self) -> usize {
        ((self.0 >> PAGE_BITS) as usize & ((1 << UNIT_BITS) - 1)) * RECORD_ALIGN
    }

    #[inline]
    pub(crate) fn is_open(self) -> bool {
        self.0 & CLOSED_BIT == 0
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.page() == NO_PAGE
    }

    /// `len` bytes more are reserved. `len` is a multiple of [`RECORD_ALIGN`] and fits the page.
    #[inline]
    pub(crate) fn advanced(self, len: usize) -> Self {
        Self(
            self.0
                .wrapping_add(((len / RECORD_ALIGN) as u64) << PAGE_BITS),
        )
    }

    /// The page takes no more.
    #[inline]
    pub(crate) fn closed(self) -> Self {
        Self(self.0 | CLOSED_BIT)
    }

    /// There is no page any more.
    #[inline]
    pub(crate) fn emptied(self) -> Self {
        Self(Self::EMPTY.0 | self.next_generation())
    }

    /// `page` follows, reserved up to `offset` bytes.
    #[inline]
    pub(crate) fn opened(self, page: u32, offset: usize) -> Self {
        Self(
            u64::from(page)
                | ((offset / RECORD_ALIGN) as u64) << PAGE_BITS
                | self.next_generation(),
        )
    }

    #[inline]
    fn next_generation(self) -> u64 {
        (self.0 >> GENERATION_SHIFT).wrapping_add(1) << GENERATION_SHIFT
    }
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

        let open = empty.opened(3, 96);
        assert!(open.is_open());
        assert!(!open.is_empty());
        assert_eq!(open.page(), 3);
        assert_eq!(open.offset(), 96);

        let more = open.advanced(32);
        assert_eq!(more.page(), 3);
        assert_eq!(more.offset(), 128);

        let closed = more.closed();
        assert!(!closed.is_open());
        assert!(!closed.is_empty());
        assert_eq!(closed.page(), 3);
        assert_eq!(closed.offset(), 128);

        assert!(closed.emptied().is_empty());
    }

    #[test]
    fn the_largest_page_can_be_full() {
        let full = OpenWord::EMPTY.opened(NO_PAGE - 1, 65536);
        assert_eq!(full.offset(), 65536);
        assert_eq!(full.page(), NO_PAGE - 1);
        assert!(full.is_open());
    }

    #[test]
    fn a_page_opened_again_is_another_word() {
        let first = OpenWord::EMPTY.opened(1, 96);
        let second = first.closed().emptied().opened(1, 96);
        assert!(first != second);
        assert_eq!(first.page(), second.page());
        assert_eq!(first.offset(), second.offset());
    }
}
