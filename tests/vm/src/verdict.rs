// SPDX-License-Identifier: GPL-2.0

//! What a run comes to: the counted results, and the one word that the exit status says.

use std::fmt;
use std::iter::Sum;
use std::ops::{
    Add,
    AddAssign, //
};
use std::str::FromStr;

use serde::{
    Deserialize,
    Serialize, //
};

/// Counted results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Those that are well.
    pub passed: u64,
    /// Those that are not, and those that are missing.
    pub failed: u64,
    /// Those that could not be had here.
    pub skipped: u64,
}

impl Tally {
    /// One that passed.
    pub const PASSED: Self = Self {
        passed: 1,
        failed: 0,
        skipped: 0,
    };
    /// One that failed.
    pub const FAILED: Self = Self {
        passed: 0,
        failed: 1,
        skipped: 0,
    };
    /// One that was skipped.
    pub const SKIPPED: Self = Self {
        passed: 0,
        failed: 0,
        skipped: 1,
    };

    /// All of them.
    pub fn total(&self) -> u64 {
        self.passed + self.failed + self.skipped
    }
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), Self::add)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        match self.skipped {
            0 => Ok(()),
            skipped => write!(f, ", {skipped} skipped"),
        }
    }
}

/// What a run comes to, the worst last.
///
/// A kernel that complained outweighs what came of it: a machine that panicked is lost as well, but
/// the complaint says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All is well.
    Passed,
    /// A test failed.
    Failed,
    /// The machine was gone before its last word, and nothing says why.
    Lost,
    /// The machine did not come to its end in the time that it had.
    Hung,
    /// The kernel complained, whatever the tests say.
    Complained,
}

/// Exit status for whatever keeps a run from beginning: a missing file, a wrong option.
pub const SETUP_STATUS: u8 = 2;

impl Verdict {
    /// The exit status that says it.
    pub fn status(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::Complained => 3,
            Self::Lost => 4,
            Self::Hung => 5,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Complained => "complained",
            Self::Lost => "lost",
            Self::Hung => "hung",
        }
    }
}

/// A line of the file that several runs add up in: `PASSED FAILED SKIPPED RETRIED VERDICT KERNEL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryLine {
    /// Results of the run.
    pub tally: Tally,
    /// Machines that died before their first word and were replaced.
    pub retried: u32,
    /// [`Verdict::word`].
    pub verdict: String,
    /// `release`, `debug` or `um`.
    pub kernel: String,
}

impl fmt::Display for SummaryLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            passed,
            failed,
            skipped,
        } = self.tally;
        let Self {
            retried,
            verdict,
            kernel,
            ..
        } = self;
        write!(
            f,
            "{passed} {failed} {skipped} {retried} {verdict} {kernel}"
        )
    }
}

impl FromStr for SummaryLine {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let malformed = || format!("'{line}' is no summary line");
        let words: Vec<_> = line.split_whitespace().collect();
        let [passed, failed, skipped, retried, verdict, kernel] = words[..] else {
            return Err(malformed());
        };
        let number = |word: &str| word.parse::<u64>().map_err(|_| malformed());
        Ok(Self {
            tally: Tally {
                passed: number(passed)?,
                failed: number(failed)?,
                skipped: number(skipped)?,
            },
            retried: retried.parse().map_err(|_| malformed())?,
            verdict: verdict.to_owned(),
            kernel: kernel.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_names_skipped_ones_only_where_there_are_some() {
        let tally = Tally::PASSED + Tally::PASSED + Tally::FAILED;
        assert_eq!(tally.to_string(), "2 passed, 1 failed");
        assert_eq!(
            (tally + Tally::SKIPPED).to_string(),
            "2 passed, 1 failed, 1 skipped"
        );
    }

    #[test]
    fn every_verdict_has_a_status_of_its_own() {
        let verdicts = [
            Verdict::Passed,
            Verdict::Failed,
            Verdict::Complained,
            Verdict::Lost,
            Verdict::Hung,
        ];
        let mut statuses: Vec<_> = verdicts.iter().map(|verdict| verdict.status()).collect();
        statuses.push(SETUP_STATUS);
        statuses.sort_unstable();
        assert_eq!(statuses, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_complaint_outweighs_the_rest() {
        use Verdict::*;
        assert_eq!(
            [Failed, Complained, Lost].into_iter().max(),
            Some(Complained)
        );
        assert_eq!([Hung, Complained].into_iter().max(), Some(Complained));
        assert_eq!([Failed, Lost, Passed].into_iter().max(), Some(Lost));
    }

    #[test]
    fn a_summary_line_is_read_as_written() {
        let line = SummaryLine {
            tally: Tally {
                passed: 3,
                failed: 0,
                skipped: 2,
            },
            retried: 1,
            verdict: "passed".into(),
            kernel: "um".into(),
        };
        assert_eq!(line.to_string(), "3 0 2 1 passed um");
        assert_eq!(line.to_string().parse(), Ok(line));
        assert!("3 0 x 1 passed um".parse::<SummaryLine>().is_err());
        assert!("3 0".parse::<SummaryLine>().is_err());
    }
}
