// SPDX-License-Identifier: GPL-2.0

//! The length of a record.

/// Alignment of records, in bytes; room is counted in this unit.
pub const RECORD_ALIGN: usize = 8;

/// The largest page, in bytes; no record is larger.
pub(crate) const LEN_MAX: usize = 65536;

/// Bytes of a record.
///
/// # Invariants
///
/// A multiple of [`RECORD_ALIGN`], not zero, and at most `LEN_MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLen(usize);

impl RecordLen {
    /// More than any page has room for, as it has a header.
    // INVARIANT: It is the most.
    pub const TOO_LARGE: Self = Self(LEN_MAX);

    /// A head of `HEAD` bytes, and `len` bytes behind it, rounded up.
    #[inline(always)]
    pub fn behind<const HEAD: usize>(len: usize) -> Option<Self> {
        const {
            assert!(HEAD % RECORD_ALIGN == 0 && HEAD != 0 && HEAD < LEN_MAX);
        };
        if len > LEN_MAX - HEAD {
            return None;
        }
        // INVARIANT: There is no carry, and what is rounded up is not zero.
        Some(Self(
            len.wrapping_add(HEAD + RECORD_ALIGN - 1) & !(RECORD_ALIGN - 1),
        ))
    }

    /// `len` bytes, rounded up.
    #[inline(always)]
    pub fn new(len: usize) -> Option<Self> {
        if len == 0 {
            return None;
        }
        // A head of one unit is what is there at least.
        Self::behind::<RECORD_ALIGN>(len.saturating_sub(RECORD_ALIGN))
    }

    /// So many bytes.
    #[inline(always)]
    pub fn get(self) -> usize {
        self.0
    }
}

#[cfg(any(test, weir_kunit))]
#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_record_len))]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_rounded_up() {
        let len = |len| RecordLen::new(len).map_or(0, RecordLen::get);
        assert_eq!(len(0), 0);
        assert_eq!(len(1), 8);
        assert_eq!(len(8), 8);
        assert_eq!(len(9), 16);
        assert_eq!(len(LEN_MAX - 7), LEN_MAX);
        assert_eq!(len(LEN_MAX), LEN_MAX);
        assert_eq!(len(LEN_MAX + 1), 0);
        assert_eq!(len(usize::MAX), 0);
    }

    #[test]
    fn heads_count() {
        let len = |len| RecordLen::behind::<16>(len).map_or(0, RecordLen::get);
        assert_eq!(len(0), 16);
        assert_eq!(len(1), 24);
        assert_eq!(len(LEN_MAX - 16), LEN_MAX);
        assert_eq!(len(LEN_MAX - 15), 0);
        assert_eq!(len(usize::MAX), 0);
    }
}
