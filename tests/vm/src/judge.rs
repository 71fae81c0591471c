// SPDX-License-Identifier: GPL-2.0

//! What a step that has ended comes to.

use crate::ktap::Results;
use crate::report::Outcome;
use crate::verdict::Tally;

/// Exit status of a self-test that skips itself.
const SKIP: i32 = 4;

/// The judgement on one step.
#[derive(Debug, PartialEq, Eq)]
pub struct Judgement {
    /// What is counted for it.
    pub tally: Tally,
    /// Why it is not well.
    pub failure: Option<String>,
    /// Why nothing of it was run.
    pub skip: Option<String>,
}

/// Judges a program by how it ended and by the results that it printed.
///
/// A program without results counts as one. One that fails without a failed result, such as one
/// that crashed at its end, has one more that failed.
pub fn program(outcome: &Outcome, results: &Results) -> Judgement {
    let mut tally = results.tally;
    let mut skip = None;
    let mut failure = match outcome {
        Outcome::Exit(0) | Outcome::Well => None,
        Outcome::Exit(SKIP) if tally.failed == 0 => {
            skip = Some(String::new());
            None
        }
        Outcome::Exit(status) => Some(format!("exit status {status}")),
        Outcome::Signal(signal) => Some(format!("killed by signal {signal}")),
        Outcome::TimedOut(seconds) => Some(format!("timed out after {seconds} s")),
        Outcome::Error(why) => Some(why.clone()),
    };
    skip = results.skip_all.clone().or(skip);
    if tally.total() > 0 {
        skip = None;
    }
    if failure.is_some() && tally.failed == 0 {
        tally += Tally::FAILED;
    }
    if tally.failed > 0 {
        skip = None;
        failure.get_or_insert_with(|| format!("{} failed", tally.failed));
    }
    if tally.total() == 0 {
        tally = match skip {
            Some(_) => Tally::SKIPPED,
            None => Tally::PASSED,
        };
    }
    Judgement {
        tally,
        failure,
        skip,
    }
}

/// Judges the loading of modules by the results of the KUnit suites in them, which must be there
/// for each suite in `expected`.
pub fn load(outcome: &Outcome, results: &Results, expected: &[String]) -> Judgement {
    let mut judgement = program(outcome, results);
    let missing: Vec<_> = expected
        .iter()
        .filter(|suite| !results.outermost.iter().any(|(name, _)| name == *suite))
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        if results.tally.total() == 0 && judgement.failure.is_none() {
            judgement.tally = Tally::default();
        }
        judgement.tally.failed += missing.len() as u64;
        let text = format!("no result of the KUnit suite {}", missing.join(", "));
        judgement.failure = Some(match judgement.failure.take() {
            Some(failure) => format!("{failure}; {text}"),
            None => text,
        });
    }
    judgement
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ktap;

    fn judged(outcome: Outcome, output: &str) -> (Tally, Option<String>, Option<String>) {
        let Judgement {
            tally,
            failure,
            skip,
        } = program(&outcome, &ktap::read(output));
        (tally, failure, skip)
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_program_without_results_counts_as_one() {
        assert_eq!(
            judged(Outcome::Exit(0), "hello"),
            (Tally::PASSED, None, None)
        );
        assert_eq!(
            judged(Outcome::Exit(1), "hello"),
            (Tally::FAILED, text("exit status 1"), None)
        );
        assert_eq!(
            judged(Outcome::Exit(4), "no clock"),
            (Tally::SKIPPED, None, text(""))
        );
        assert_eq!(
            judged(Outcome::Signal(11), ""),
            (Tally::FAILED, text("killed by signal 11"), None)
        );
        assert_eq!(
            judged(Outcome::TimedOut(3), ""),
            (Tally::FAILED, text("timed out after 3 s"), None)
        );
        assert_eq!(
            judged(Outcome::Error("no such file".into()), ""),
            (Tally::FAILED, text("no such file"), None)
        );
    }

    #[test]
    fn results_count_each() {
        assert_eq!(
            judged(Outcome::Exit(0), "1..2\nok 1 a\nok 2 b\n"),
            (Tally::PASSED + Tally::PASSED, None, None)
        );
        assert_eq!(
            judged(Outcome::Exit(1), "1..2\nok 1 a\nnot ok 2 b\n"),
            (Tally::PASSED + Tally::FAILED, text("exit status 1"), None)
        );
    }

    #[test]
    fn status_and_results_must_agree() {
        assert_eq!(
            judged(Outcome::Exit(0), "1..1\nnot ok 1 a\n"),
            (Tally::FAILED, text("1 failed"), None)
        );
        assert_eq!(
            judged(Outcome::Signal(6), "1..1\nok 1 a\n"),
            (
                Tally::PASSED + Tally::FAILED,
                text("killed by signal 6"),
                None
            )
        );
        assert_eq!(
            judged(Outcome::Exit(4), "1..1\nnot ok 1 a\n"),
            (Tally::FAILED, text("exit status 4"), None)
        );
    }

    #[test]
    fn skipping_everything_has_its_reason() {
        assert_eq!(
            judged(Outcome::Exit(4), "1..0 # SKIP no device\n"),
            (Tally::SKIPPED, None, text("no device"))
        );
        assert_eq!(
            judged(Outcome::Exit(4), "1..1\nok 1 a # SKIP no clock\n"),
            (Tally::SKIPPED, None, None)
        );
    }

    #[test]
    fn an_expected_suite_must_be_there() {
        let suite = ["core".to_owned()];
        let there = ktap::read("    1..1\n    ok 1 a\nok 1 core\n");
        assert_eq!(load(&Outcome::Well, &there, &suite).tally, Tally::PASSED);

        let silent = load(&Outcome::Well, &Results::default(), &suite);
        assert_eq!(silent.tally, Tally::FAILED);
        assert_eq!(silent.failure, text("no result of the KUnit suite core"));

        let refused = load(
            &Outcome::Error("ENOEXEC".into()),
            &Results::default(),
            &suite,
        );
        assert_eq!(refused.tally, Tally::FAILED + Tally::FAILED);
        assert_eq!(
            refused.failure,
            text("ENOEXEC; no result of the KUnit suite core")
        );
    }
}
