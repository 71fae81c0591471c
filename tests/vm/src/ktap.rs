// SPDX-License-Identifier: GPL-2.0

//! Reads results in KTAP, the format of kernel self-tests and of KUnit, out of a program's output
//! or the kernel's log.
//!
//! A test may have subtests, which stand before its own result, further to the right. What counts is
//! the innermost result. A plan (`1..N`) that is not fulfilled makes what is missing a failure.

use crate::verdict::Tally;

/// Reads line by line and counts.
#[derive(Debug, Default)]
pub struct Reader {
    /// The levels that are open, the outermost first; each is further to the right than that before.
    levels: Vec<Level>,
    /// Results that are under no level that is open.
    closed: Tally,
    /// The results that are not indented: what suites are called, and whether all of each is well.
    outermost: Vec<(String, bool)>,
    /// Reason of a plan for no test at all.
    skip_all: Option<String>,
    bailed_out: bool,
}

/// Results that are equally far to the right and under one test.
#[derive(Debug, Default)]
struct Level {
    indent: usize,
    planned: Option<u64>,
    seen: u64,
    tally: Tally,
}

/// One line that means something.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Version,
    Plan(u64, Option<&'a str>),
    Result { ok: bool, skip: bool, name: &'a str },
    BailOut,
}

/// All that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// The innermost results.
    pub tally: Tally,
    /// The results that are not indented: name, and whether it was `ok`.
    pub outermost: Vec<(String, bool)>,
    /// Reason where the program said that it skips everything.
    pub skip_all: Option<String>,
}

impl Reader {
    /// Takes one line, without its end.
    pub fn line(&mut self, text: &str) {
        let text = text.trim_end();
        let indent = text.len() - text.trim_start_matches(' ').len();
        match parse(&text[indent..]) {
            None => (),
            Some(Line::Version) => {
                // A document after another one, or the next test's subtests where the result of
                // the test before is missing.
                let orphaned = self.close(indent);
                self.closed += orphaned;
                self.level(indent);
            }
            Some(Line::Plan(0, Some(reason))) if indent == 0 => {
                self.skip_all = Some(reason.to_owned());
            }
            Some(Line::Plan(planned, _)) => {
                let orphaned = self.close(indent + 1);
                self.closed += orphaned;
                self.level(indent).planned = Some(planned);
            }
            Some(Line::Result { ok, skip, name }) => {
                let within = self.close(indent + 1);
                let level = self.level(indent);
                level.seen += 1;
                level.tally += match within.total() {
                    0 if !ok => Tally::FAILED,
                    0 if skip => Tally::SKIPPED,
                    0 => Tally::PASSED,
                    // Something about the test itself, such as its clean-up.
                    _ if !ok && within.failed == 0 => within + Tally::FAILED,
                    _ => within,
                };
                if indent == 0 {
                    self.outermost.push((name.to_owned(), ok));
                }
            }
            Some(Line::BailOut) => self.bailed_out = true,
        }
    }

    /// Closes the levels that are at `indent` or further to the right, and gives their results.
    fn close(&mut self, indent: usize) -> Tally {
        let mut within = Tally::default();
        while self.levels.last().is_some_and(|top| top.indent >= indent) {
            if let Some(level) = self.levels.pop() {
                within += level.tally;
                // A plan of more than there is: the rest was never run.
                within.failed += level.planned.unwrap_or(0).saturating_sub(level.seen);
            }
        }
        within
    }

    /// The level at `indent`, opened where it is not.
    fn level(&mut self, indent: usize) -> &mut Level {
        if self.levels.last().is_none_or(|top| top.indent < indent) {
            self.levels.push(Level {
                indent,
                ..Level::default()
            });
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// Ends the input.
    pub fn finish(mut self) -> Results {
        let rest = self.close(0);
        self.closed += rest;
        if self.bailed_out {
            self.closed += Tally::FAILED;
        }
        Results {
            tally: self.closed,
            outermost: self.outermost,
            skip_all: self.skip_all,
        }
    }
}

fn parse(text: &str) -> Option<Line<'_>> {
    if text.starts_with("KTAP version ") || text.starts_with("TAP version ") {
        return Some(Line::Version);
    }
    if text.starts_with("Bail out!") {
        return Some(Line::BailOut);
    }
    if let Some(plan) = text.strip_prefix("1..") {
        let (count, rest) = plan.split_once(' ').unwrap_or((plan, ""));
        let reason = directive(rest).map(|(_, reason)| reason);
        return Some(Line::Plan(count.parse().ok()?, reason));
    }
    let (ok, rest) = match text.strip_prefix("not ok ") {
        Some(rest) => (false, rest),
        None => (true, text.strip_prefix("ok ")?),
    };
    // Without a number it is prose.
    let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    number.parse::<u64>().ok()?;
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let (name, skip) = match directive(rest) {
        Some((name, _)) => (name, true),
        None => (rest, false),
    };
    Some(Line::Result {
        ok,
        skip,
        name: name.trim(),
    })
}

/// Splits at `# SKIP`: what stands before, and the reason after.
fn directive(text: &str) -> Option<(&str, &str)> {
    let (before, after) = text.split_once('#')?;
    let after = after.trim_start();
    let word = after.get(..4)?;
    word.eq_ignore_ascii_case("SKIP")
        .then(|| (before, after[4..].trim()))
}

/// Reads a whole text.
pub fn read(text: &str) -> Results {
    let mut reader = Reader::default();
    text.lines().for_each(|line| reader.line(line));
    reader.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(text: &str) -> (u64, u64, u64) {
        let tally = read(text).tally;
        (tally.passed, tally.failed, tally.skipped)
    }

    #[test]
    fn flat_results_are_counted() {
        let text = "TAP version 13\n1..4\nok 1 one\n# words\nok 2 - two\nnot ok 3 three\nok 4 four # SKIP no clock\n";
        assert_eq!(tally(text), (2, 1, 1));
    }

    #[test]
    fn prose_is_not_a_result() {
        assert_eq!(
            tally("ok then\nok\nnot ok at all\n1..many\nnotok 1 x\n"),
            (0, 0, 0)
        );
    }

    #[test]
    fn what_kunit_logs_for_a_module_is_counted_by_test() {
        let results = read(
            "weir: loading out-of-tree module taints kernel.\n\
             \u{20}   KTAP version 1\n\
             \u{20}   # Subtest: weir_core\n\
             \u{20}   # module: weir\n\
             \u{20}   1..3\n\
             \u{20}   ok 1 reserve\n\
             \u{20}       KTAP version 1\n\
             \u{20}       # Subtest: sizes\n\
             \u{20}       ok 1 8\n\
             \u{20}       ok 2 16\n\
             \u{20}   # sizes: pass:2 fail:0 skip:0 total:2\n\
             \u{20}   ok 2 sizes\n\
             \u{20}   ok 3 nested # SKIP no irq\n\
             # weir_core: pass:2 fail:0 skip:1 total:3\n\
             # Totals: pass:3 fail:0 skip:1 total:4\n\
             ok 1 weir_core\n\
             \u{20}   KTAP version 1\n\
             \u{20}   # Subtest: weir_merge\n\
             \u{20}   1..1\n\
             \u{20}   # merge: EXPECTATION FAILED at rust/core/merge.rs:12\n\
             \u{20}   not ok 1 merge\n\
             not ok 2 weir_merge\n",
        );
        assert_eq!(
            results.tally,
            Tally {
                passed: 3,
                failed: 1,
                skipped: 1
            }
        );
        assert_eq!(
            results.outermost,
            [("weir_core".into(), true), ("weir_merge".into(), false)]
        );
    }

    #[test]
    fn a_plan_that_is_not_fulfilled_fails() {
        assert_eq!(tally("1..5\nok 1 a\nok 2 b\n"), (2, 3, 0));
        // The suite's own result is missing: its test hung.
        assert_eq!(
            tally("    KTAP version 1\n    1..2\n    ok 1 a\n"),
            (1, 1, 0)
        );
        assert_eq!(tally("1..2\n"), (0, 2, 0));
    }

    #[test]
    fn a_suite_that_fails_by_itself_fails() {
        assert_eq!(tally("    1..1\n    ok 1 a\nnot ok 1 suite\n"), (1, 1, 0));
        assert_eq!(tally("not ok 1 suite\n"), (0, 1, 0));
    }

    #[test]
    fn documents_may_follow_each_other() {
        assert_eq!(
            tally("TAP version 13\n1..1\nok 1 a\nTAP version 13\n1..2\nok 1 b\n"),
            (2, 1, 0)
        );
    }

    #[test]
    fn a_suite_without_a_result_leaves_its_tests_to_be_counted() {
        let text = "KTAP version 1\n1..2\n    KTAP version 1\n    1..1\n    ok 1 a\n    KTAP version 1\n    1..1\n    ok 1 b\nok 2 second\n";
        // Both tests, and the first suite's own missing result.
        assert_eq!(tally(text), (2, 1, 0));
    }

    #[test]
    fn a_plan_for_nothing_skips_all() {
        let results = read("TAP version 13\n1..0 # SKIP no /dev/weir\n");
        assert_eq!(results.skip_all.as_deref(), Some("no /dev/weir"));
        assert_eq!(results.tally.total(), 0);
    }

    #[test]
    fn bailing_out_fails() {
        assert_eq!(
            tally("1..1\nok 1 a\nBail out! the device is gone\n"),
            (1, 1, 0)
        );
    }

    #[test]
    fn an_expected_failure_passes() {
        assert_eq!(tally("ok 1 a # XFAIL not on this kernel\n"), (1, 0, 0));
    }
}
