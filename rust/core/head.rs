// SPDX-License-Identifier: GPL-2.0

//! How far the reader of a queue is.

use crate::slot::POSITION_MASK;

const RECORD_BITS: u32 = 13;

/// The ticket or position of the oldest page that was not read (51 bits), and how many of its records
/// were read while it was open (13 bits, of channels that overwrite only).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head(pub(crate) u64);

impl Head {
    pub(crate) fn position(self) -> u64 {
        self.0 >> RECORD_BITS
    }

    pub(crate) fn records(self) -> u64 {
        self.0 & ((1 << RECORD_BITS) - 1)
    }

    /// The page after this one.
    pub(crate) fn next(self) -> Self {
        Self(self.position().wrapping_add(1) << RECORD_BITS)
    }

    /// So many records of it were read.
    pub(crate) fn with_records(self, records: u64) -> Self {
        Self(self.position() << RECORD_BITS | records)
    }

    /// How many positions `position` is ahead.
    pub(crate) fn ahead(self, position: u64) -> u64 {
        position.wrapping_sub(self.position()) & POSITION_MASK
    }
}

#[cfg(any(test, weir_kunit))]
#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_head))]
mod tests {
    use super::*;

    #[test]
    fn a_head_counts_pages_and_records() {
        let head = Head(0).next().next().with_records(8180);
        assert_eq!(head.position(), 2);
        assert_eq!(head.records(), 8180);
        assert_eq!(head.next().position(), 3);
        assert_eq!(head.next().records(), 0);
        assert_eq!(head.ahead(5), 3);
        // Positions are counted modulo less than heads.
        let late = Head((POSITION_MASK + 2) << RECORD_BITS);
        assert_eq!(late.ahead(3), 2);
    }
}
