// SPDX-License-Identifier: GPL-2.0

//! Results in KTAP, the format of kernel self-tests.

use std::{
    error::Error,
    fmt,
    io::Write,
    process::ExitCode, //
};

/// Exit status of a program in which something failed.
const FAIL: u8 = 1;
/// Exit status of a program that could not run here.
const SKIP: u8 = 4;

/// What a test gives: nothing, an error, or [`Skip`] as an error.
pub type Verdict = anyhow::Result<()>;

/// The test cannot run here, for this reason.
#[derive(Debug)]
pub struct Skip(pub String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Skip {}

/// Makes the error that means that a test cannot run here.
pub fn skip(reason: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Skip(reason.into()))
}

/// One test: its name, and what it does with what all tests of the program share.
pub type Test<C> = (&'static str, fn(&mut C) -> Verdict);

/// Runs `tests` in order on what `setup` makes, and says how the program shall exit. Where `setup` says
/// [`Skip`], all of them are skipped.
pub fn main<C>(setup: impl FnOnce() -> anyhow::Result<C>, tests: &[Test<C>]) -> ExitCode {
    let mut report = Report::begin(std::io::stdout(), tests.len());
    match setup() {
        Ok(mut context) => {
            for (name, test) in tests {
                report.result(name, &test(&mut context));
            }
        }
        Err(error) => {
            let verdict = Err(error);
            for (name, _) in tests {
                report.result(name, &verdict);
            }
        }
    }
    ExitCode::from(report.end())
}

/// Prints text as a diagnostic, each line behind a `#`.
pub fn note(text: impl fmt::Display) {
    for line in text.to_string().lines() {
        println!("# {line}");
    }
}

/// The lines of one program.
struct Report<W> {
    out: W,
    planned: usize,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl<W: Write> Report<W> {
    fn begin(out: W, planned: usize) -> Self {
        let mut report = Report {
            out,
            planned,
            passed: 0,
            failed: 0,
            skipped: 0,
        };
        report.line(format_args!("KTAP version 1"));
        report.line(format_args!("1..{planned}"));
        report
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Flushed at once, so that a kernel that dies leaves the lines before it. A reader of
        // standard output that has gone away still gets the exit status.
        if let Err(error) = writeln!(self.out, "{line}").and_then(|()| self.out.flush()) {
            eprintln!("cannot print `{line}`: {error}");
            self.failed += 1;
        }
    }

    fn result(&mut self, name: &str, verdict: &Verdict) {
        let number = self.passed + self.failed + self.skipped + 1;
        match verdict {
            Ok(()) => {
                self.passed += 1;
                self.line(format_args!("ok {number} {name}"));
            }
            Err(error) => match error.downcast_ref::<Skip>() {
                Some(reason) => {
                    self.skipped += 1;
                    self.line(format_args!("ok {number} {name} # SKIP {reason}"));
                }
                None => {
                    self.failed += 1;
                    for (depth, cause) in error.chain().enumerate() {
                        let lead = if depth == 0 { "" } else { "because: " };
                        for line in format!("{lead}{cause}").lines() {
                            self.line(format_args!("# {line}"));
                        }
                    }
                    self.line(format_args!("not ok {number} {name}"));
                }
            },
        }
    }

    /// Prints the totals and gives the exit status.
    fn end(mut self) -> u8 {
        let (passed, failed, skipped) = (self.passed, self.failed, self.skipped);
        self.line(format_args!(
            "# Totals: pass:{passed} fail:{failed} xfail:0 xpass:0 skip:{skipped} error:0"
        ));
        if self.failed > 0 || self.planned != passed + skipped {
            FAIL
        } else if passed == 0 {
            SKIP
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{
        anyhow,
        Context, //
    };

    fn run(verdicts: &[Verdict], planned: usize) -> (String, u8) {
        let mut out = Vec::new();
        let mut report = Report::begin(&mut out, planned);
        for verdict in verdicts {
            report.result("name", verdict);
        }
        let status = report.end();
        (String::from_utf8(out).unwrap(), status)
    }

    #[test]
    fn results_are_numbered_and_counted() {
        let failure = Err(anyhow!("the cause")).context("what was done");
        let (text, status) = run(&[Ok(()), failure, Err(skip("not here"))], 3);
        assert_eq!(
            text,
            "KTAP version 1\n1..3\nok 1 name\n# what was done\n# because: the cause\n\
             not ok 2 name\nok 3 name # SKIP not here\n\
             # Totals: pass:1 fail:1 xfail:0 xpass:0 skip:1 error:0\n"
        );
        assert_eq!(status, FAIL);
    }

    #[test]
    fn the_status_is_that_of_kernel_self_tests() {
        assert_eq!(run(&[Ok(()), Err(skip("x"))], 2).1, 0);
        assert_eq!(run(&[Err(skip("x")), Err(skip("y"))], 2).1, SKIP);
        assert_eq!(run(&[Err(anyhow!("x"))], 1).1, FAIL);
    }

    #[test]
    fn a_test_that_was_not_run_fails_the_program() {
        assert_eq!(run(&[Ok(())], 2).1, FAIL);
    }

    #[test]
    fn a_skip_stays_one_with_context_around_it() {
        let verdict = Err(skip("no device")).context("opening");
        assert_eq!(run(&[verdict], 1).1, SKIP);
    }
}
