// SPDX-License-Identifier: GPL-2.0

//! Counting what was lost: how much, when and why, for each CPU.

use crate::{
    uapi::LOST_CAUSES,
    word::Word, //
};

/// Why a record was lost. The numbers are those of the user interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There was no free page.
    Full = 0,
    /// Interrupts nested deeper than a channel follows.
    Nested = 1,
    /// The record is larger than a page takes.
    TooLarge = 2,
}

/// The losses of one CPU. Any context of that CPU counts; the outermost writer reports.
pub(crate) struct LostCounts<W> {
    /// Since the channel began, by cause.
    total: [W; LOST_CAUSES],
    /// How many of `total` stand in a page; only the outermost writer touches it.
    reported: [W; LOST_CAUSES],
    /// Times of the first and last loss that no page reports; zero for none.
    begin: W,
    end: W,
}

/// What happened since the report before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostReport {
    /// Losses since the channel began.
    pub discarded: u64,
    /// Losses since the report before, by cause.
    pub lost: [u64; LOST_CAUSES],
    /// Time of the first of them, zero for none.
    pub begin: u64,
    /// Time of the last of them.
    pub end: u64,
}

impl<W: Word> LostCounts<W> {
    pub(crate) fn new() -> Self {
        Self {
            total: core::array::from_fn(|_| W::new(0)),
            reported: core::array::from_fn(|_| W::new(0)),
            begin: W::new(0),
            end: W::new(0),
        }
    }

    /// Counts a loss at `time`, which is not zero.
    ///
    /// The times are set before the count, so whoever sees the count finds times that cover it.
    pub(crate) fn count(&self, cause: Cause, time: u64) {
        self.begin_at(time);
        Self::replace(&self.end, time, |end| end < time);
        if let Some(total) = self.total.get(cause as usize) {
            total.local_add(1);
        }
    }

    /// The next report begins at `time` or before.
    fn begin_at(&self, time: u64) {
        Self::replace(&self.begin, time, |begin| begin == 0 || time < begin);
    }

    /// Stores `time` in `word` if what is there asks for it; interrupts do the same in between.
    fn replace(word: &W, time: u64, asks: impl Fn(u64) -> bool) {
        let mut old = word.load();
        while asks(old) {
            match word.local_compare_exchange(old, time) {
                Ok(()) => return,
                Err(found) => old = found,
            }
        }
    }

    /// Whether there are losses that no page reports.
    pub(crate) fn pending(&self) -> bool {
        self.total
            .iter()
            .zip(&self.reported)
            .any(|(total, reported)| total.load() != reported.load())
    }

    /// What happened since the report before, which this one follows. For the outermost writer.
    ///
    /// An interrupt may count in between. The range taken covers every loss that is counted here; it
    /// may begin too early in the next report, never too late.
    pub(crate) fn take_report(&self) -> LostReport {
        let mut report = LostReport {
            begin: self.begin.local_swap(0),
            ..LostReport::default()
        };
        let words = self.total.iter().zip(&self.reported);
        for (lost, (total, reported)) in report.lost.iter_mut().zip(words) {
            let count = total.load();
            *lost = count.wrapping_sub(reported.load());
            reported.store(count);
            report.discarded = report.discarded.wrapping_add(count);
        }
        if report.lost.iter().any(|&lost| lost != 0) {
            if report.begin == 0 {
                report.begin = self.begin.local_swap(0);
            }
            report.end = self.end.load();
            if self.pending() {
                // An interrupt counted since, and may have found the time that was taken above.
                self.begin_at(report.begin);
            }
        } else if report.begin != 0 {
            // It was left by an interrupt whose loss is in the report before.
            self.begin_at(report.begin);
            report.begin = 0;
        }
        report
    }

    /// The losses so far, for whoever asks from outside.
    pub(crate) fn snapshot(&self) -> LostReport {
        let mut report = LostReport::default();
        for (lost, total) in report.lost.iter_mut().zip(&self.total) {
            *lost = total.load();
            report.discarded = report.discarded.wrapping_add(*lost);
        }
        if self.pending() {
            report.begin = self.begin.load();
            report.end = self.end.load();
        }
        report
    }
}

#[cfg(any(test, weir_kunit))]
#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_lost))]
mod tests {
    use super::*;
    use crate::test_backend::TestWord;

    #[test]
    fn a_report_holds_what_came_since_the_one_before() {
        let counts = LostCounts::<TestWord>::new();
        assert!(!counts.pending());
        counts.count(Cause::Full, 10);
        counts.count(Cause::Nested, 12);
        counts.count(Cause::Full, 15);
        assert!(counts.pending());
        assert_eq!(counts.snapshot().begin, 10);

        let first = counts.take_report();
        assert_eq!(first.lost, [2, 1, 0, 0]);
        assert_eq!(first.discarded, 3);
        assert_eq!(first.begin, 10);
        assert_eq!(first.end, 15);
        assert!(!counts.pending());

        counts.count(Cause::TooLarge, 20);
        let second = counts.take_report();
        assert_eq!(second.lost, [0, 0, 1, 0]);
        assert_eq!(second.discarded, 4);
        assert_eq!(second.begin, 20);
        assert_eq!(second.end, 20);

        assert_eq!(counts.take_report().begin, 0);
        assert_eq!(counts.snapshot().discarded, 4);
        assert_eq!(counts.snapshot().begin, 0);
    }
}
