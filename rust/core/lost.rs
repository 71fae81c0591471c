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
    /// The page it was in was needed again before it was read.
    Overwritten = 3,
}

/// Losses of one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// How many.
    pub(crate) count: u64,
    /// Time of the first, not zero.
    pub(crate) begin: u64,
    /// Time of the last.
    pub(crate) end: u64,
}

impl Loss {
    /// A record that is lost at `time`.
    pub(crate) fn one(time: u64) -> Self {
        Self {
            count: 1,
            begin: time,
            end: time,
        }
    }
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
    /// Not zero when the page with the last report was overwritten. Stored by any CPU.
    again: W,
}

/// What was lost, and when since the report before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostReport {
    /// Losses since the channel began, by cause.
    pub lost: [u64; LOST_CAUSES],
    /// Time of the first since the report before, zero for none.
    pub begin: u64,
    /// Time of the last.
    pub end: u64,
}

impl LostReport {
    /// All losses since the channel began.
    pub fn discarded(&self) -> u64 {
        self.lost
            .iter()
            .fold(0, |sum: u64, lost| sum.wrapping_add(*lost))
    }
}

impl<W: Word> LostCounts<W> {
    pub(crate) fn new() -> Self {
        Self {
            total: core::array::from_fn(|_| W::new(0)),
            reported: core::array::from_fn(|_| W::new(0)),
            begin: W::new(0),
            end: W::new(0),
            again: W::new(0),
        }
    }

    /// The page with the last report was overwritten: it must be made again. From any CPU.
    pub(crate) fn report_again(&self) {
        self.again.store(1);
    }

    /// Counts losses.
    ///
    /// The times are set before the count, so whoever sees the count finds times that cover it.
    pub(crate) fn count(&self, cause: Cause, loss: Loss) {
        if loss.count == 0 {
            return;
        }
        self.begin_at(loss.begin);
        Self::replace(&self.end, loss.end, |end| end < loss.end);
        if let Some(total) = self.total.get(cause as usize) {
            total.local_add(loss.count);
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
        let mut words = self.total.iter().zip(&self.reported);
        self.again.load() != 0 || words.any(|(total, reported)| total.load() != reported.load())
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
        // Before the counts: what is overwritten from now on held less than they do.
        let again = self.again.load() != 0;
        if again {
            self.again.store(0);
        }
        let mut more = again;
        let words = self.total.iter().zip(&self.reported);
        for (lost, (total, reported)) in report.lost.iter_mut().zip(words) {
            *lost = total.load();
            more |= *lost != reported.load();
            reported.store(*lost);
        }
        if more {
            if report.begin == 0 {
                report.begin = self.begin.local_swap(0);
            }
            report.end = self.end.load();
            if report.begin == 0 {
                // Nothing new; the reader still needs to be told.
                report.begin = report.end;
            }
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
        }
        if self.pending() {
            report.end = self.end.load();
            report.begin = match self.begin.load() {
                // Only what was told before is to be told again.
                0 => report.end,
                begin => begin,
            };
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
        counts.count(Cause::Full, Loss::one(10));
        counts.count(Cause::Nested, Loss::one(12));
        counts.count(Cause::Full, Loss::one(15));
        assert!(counts.pending());
        assert_eq!(counts.snapshot().begin, 10);

        let first = counts.take_report();
        assert_eq!(first.lost, [2, 1, 0, 0]);
        assert_eq!(first.discarded(), 3);
        assert_eq!(first.begin, 10);
        assert_eq!(first.end, 15);
        assert!(!counts.pending());

        let page = Loss {
            count: 5,
            begin: 8,
            end: 20,
        };
        counts.count(Cause::Overwritten, page);
        let second = counts.take_report();
        assert_eq!(second.lost, [2, 1, 0, 5]);
        assert_eq!(second.discarded(), 8);
        assert_eq!(second.begin, 8);
        assert_eq!(second.end, 20);

        counts.count(Cause::Overwritten, Loss { count: 0, ..page });
        assert!(!counts.pending());
        assert_eq!(counts.take_report().begin, 0);
        assert_eq!(counts.snapshot().discarded(), 8);
        assert_eq!(counts.snapshot().begin, 0);
    }
}
