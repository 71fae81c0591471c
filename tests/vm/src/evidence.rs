// SPDX-License-Identifier: GPL-2.0

//! All that the kernel said: its log, which `weir-init` sends step by step, and the console, which
//! has the last words of a kernel that runs no `weir-init` any more.
//!
//! What stands in both counts once. What user space wrote to the log (a facility other than the
//! kernel's) is no complaint of the kernel, on the console neither.

use std::collections::HashSet;

use crate::complaint::{
    self,
    Complaint, //
};
use crate::plan::Step;

/// Most lines shown of one complaint.
const EXCERPT_MAX: usize = 60;

/// A complaint, where it came up, and the lines that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The step that was under way.
    pub step: Step,
    /// What kind of complaint, and its line.
    pub complaint: Complaint,
    /// That line and those after it, as they were printed.
    pub excerpt: Vec<String>,
}

/// Collects findings.
#[derive(Debug, Default)]
pub struct Evidence {
    findings: Vec<Finding>,
    /// The last finding still takes lines.
    open: bool,
    /// Lines that look like a complaint and are dealt with.
    seen: HashSet<String>,
}

/// A line of the kernel's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// Whether the kernel itself wrote it.
    pub by_kernel: bool,
    /// The text.
    pub text: &'a str,
}

impl<'a> LogLine<'a> {
    /// Reads `<priority>text`; a line without a priority is the kernel's.
    pub fn parse(line: &'a str) -> Self {
        let parts = line.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        if let Some((priority, text)) = parts {
            if let Ok(priority) = priority.parse::<u32>() {
                return Self {
                    // The lowest three bits are the level, the others the facility; 0 is the kernel.
                    by_kernel: priority >> 3 == 0,
                    text,
                };
            }
        }
        Self {
            by_kernel: true,
            text: line,
        }
    }
}

impl Evidence {
    /// Takes a line of the kernel's log.
    pub fn log(&mut self, step: Step, line: LogLine<'_>) {
        if line.by_kernel {
            self.take(step, line.text);
        } else if complaint::find(line.text).is_some() {
            self.seen.insert(line.text.trim_end().to_owned());
        }
    }

    /// Looks through the console for what the log did not have. `step` is the one under way when
    /// the log ended.
    pub fn console<'a>(&mut self, step: Step, lines: impl Iterator<Item = &'a str>) {
        self.open = false;
        for line in lines {
            self.take(step, line);
        }
    }

    fn take(&mut self, step: Step, line: &str) {
        if let Some(last) = self.findings.last_mut().filter(|_| self.open) {
            last.excerpt.push(line.to_owned());
            self.open = last.excerpt.len() < EXCERPT_MAX && !complaint::is_end(line);
            // What a trace says about itself is no complaint of its own, but on the console it is
            // to be known again.
            if let Some(complaint) = complaint::find(line) {
                self.seen.insert(complaint.line);
            }
            return;
        }
        let Some(complaint) = complaint::find(line) else {
            return;
        };
        if self.seen.insert(complaint.line.clone()) {
            self.open = true;
            self.findings.push(Finding {
                step,
                complaint,
                excerpt: vec![line.to_owned()],
            });
        }
    }

    /// What shows a complaint: goes with the one of this class that the step has made already, or
    /// makes one of its own.
    pub fn add(&mut self, step: Step, complaint: Complaint, lines: impl Iterator<Item = String>) {
        self.open = false;
        let same = |finding: &&mut Finding| {
            finding.step == step && finding.complaint.class == complaint.class
        };
        match self.findings.iter_mut().find(same) {
            Some(finding) => finding.excerpt.extend(lines),
            None => self.findings.push(Finding {
                step,
                complaint,
                excerpt: lines.collect(),
            }),
        }
    }

    /// Ends the excerpt of the last finding: what follows belongs to another step.
    pub fn close(&mut self) {
        self.open = false;
    }

    /// All findings, the first first.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WARN: &str = "WARNING: at provoke_init+0x1/0x2 [provoke], CPU#0: insmod/40";

    fn log(lines: &[&str]) -> Evidence {
        let mut evidence = Evidence::default();
        for line in lines {
            evidence.log(Step::Program(1), LogLine::parse(line));
        }
        evidence
    }

    #[test]
    fn a_complaint_has_its_lines_up_to_the_end_of_the_trace() {
        let warn = format!("<4>{WARN}");
        let evidence = log(&[
            "<6>weir: loaded",
            &warn,
            "<4>Call Trace:",
            "<4>---[ end trace 0000000000000000 ]---",
            "<6>later",
        ]);
        let [finding] = evidence.findings() else {
            panic!("{evidence:?}");
        };
        assert_eq!(finding.step, Step::Program(1));
        assert_eq!(finding.complaint.class, "WARN");
        assert_eq!(finding.excerpt.len(), 3);
    }

    #[test]
    fn the_console_adds_only_what_the_log_had_not() {
        let mut evidence = log(&[&format!("<4>{WARN}"), "<4>---[ end trace 0 ]---"]);
        let stamped = format!("[    1.000001] {WARN}");
        let console = [
            stamped.as_str(),
            "[    1.000002] ---[ end trace 0 ]---",
            "[    2.000001] kernel BUG at mm/slub.c:1!",
            "[    2.000002] Kernel panic - not syncing: Fatal exception",
        ];
        evidence.console(Step::End, console.into_iter());
        let classes: Vec<_> = evidence
            .findings()
            .iter()
            .map(|finding| (finding.step, finding.complaint.class))
            .collect();
        assert_eq!(classes, [(Step::Program(1), "WARN"), (Step::End, "BUG")]);
    }

    #[test]
    fn what_user_space_writes_to_the_log_is_no_complaint() {
        let mut evidence = log(&["<12>BUG: says a test"]);
        evidence.console(Step::End, ["[    1.0] BUG: says a test"].into_iter());
        assert_eq!(evidence.findings(), []);
    }

    #[test]
    fn what_shows_a_complaint_goes_with_it() {
        let mut evidence = log(&["<6>kmemleak: 2 new suspected memory leaks (see there)"]);
        let leaks = || Complaint {
            class: "kmemleak",
            line: "2 leaked objects".into(),
        };
        let lines = || ["unreferenced object".to_owned()].into_iter();
        evidence.add(Step::Program(1), leaks(), lines());
        assert_eq!(evidence.findings().len(), 1);
        assert_eq!(evidence.findings()[0].excerpt[1], "unreferenced object");
        evidence.add(Step::Leaks, leaks(), lines());
        assert_eq!(evidence.findings().len(), 2);
    }

    #[test]
    fn a_step_that_ends_ends_the_excerpt() {
        let mut evidence = log(&["<4>BUG: sleeping function called from invalid context at a.c:1"]);
        evidence.close();
        evidence.log(Step::Program(2), LogLine::parse("<3>BUG: another"));
        assert_eq!(evidence.findings().len(), 2);
        assert_eq!(evidence.findings()[0].excerpt.len(), 1);
    }

    #[test]
    fn priorities_are_read() {
        let kernel = |text| LogLine {
            by_kernel: true,
            text,
        };
        assert_eq!(LogLine::parse("<4>a"), kernel("a"));
        assert_eq!(LogLine::parse("a <b>"), kernel("a <b>"));
        assert_eq!(LogLine::parse("<b>a"), kernel("<b>a"));
        assert!(!LogLine::parse("<14>a").by_kernel);
    }
}
