// SPDX-License-Identifier: GPL-2.0

//! One machine's life as the host sees it: takes what the guest reports and what the console shows,
//! tells people of it while it happens, and comes to a verdict.

use std::collections::BTreeSet;
use std::io::Write;
use std::mem;
use std::path::PathBuf;

use anyhow::{
    bail,
    Context,
    Result, //
};

use crate::collect::Incoming;
use crate::complaint::Complaint;
use crate::evidence::{
    Evidence,
    Finding,
    LogLine, //
};
use crate::judge::{
    self,
    Judgement, //
};
use crate::ktap;
use crate::lines::{
    Splitter,
    Tail, //
};
use crate::plan::{
    Plan,
    Step,
    PROTOCOL, //
};
use crate::report::{
    Event,
    Outcome, //
};
use crate::verdict::{
    Tally,
    Verdict, //
};

/// Lines shown of what a failed step wrote, of the kernel's log during it, and of the console of a
/// lost machine.
const OUTPUT_LINES: usize = 200;
const LOG_LINES: usize = 40;
const CONSOLE_LINES: usize = 40;

/// What people want to see.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// Everything that programs write, as it comes.
    pub verbose: bool,
    /// What programs write, as it is, and no results but bad ones.
    pub passthrough: bool,
}

/// What the run is to bring besides the plan's own results.
#[derive(Clone, Debug, Default)]
pub struct Expectations {
    /// KUnit suites that must have a result when the modules are loaded.
    pub kunit: Vec<String>,
    /// Where the plan's collected files go, in the same order.
    pub targets: Vec<PathBuf>,
}

/// How the machine went away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself; whether that was in order, and how to say it.
    Gone(bool, String),
    /// It was stopped after this many seconds.
    OutOfTime(u64),
}

/// What it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Counted results.
    pub tally: Tally,
    /// The verdict.
    pub verdict: Verdict,
}

/// See the module's documentation.
pub struct Session<'a> {
    plan: &'a Plan,
    expectations: &'a Expectations,
    style: Style,
    /// Results.
    out: &'a mut dyn Write,
    /// What programs write, in the style that asks for it.
    raw: &'a mut dyn Write,
    greeted: bool,
    done: bool,
    /// The step begun last.
    step: Step,
    running: bool,
    ended: BTreeSet<Step>,
    failed: BTreeSet<Step>,
    tally: Tally,
    evidence: Evidence,
    /// Findings that people were told of.
    told: usize,
    ktap: ktap::Reader,
    splitter: Splitter,
    output: Tail,
    log: Tail,
    incoming: Option<Incoming>,
    console: Splitter,
    console_lines: Vec<String>,
    /// Since which line the console shows what the host did to the kernel.
    autopsy: Option<usize>,
    /// What was wrong with the report itself.
    broken: Option<String>,
}

impl<'a> Session<'a> {
    /// Before anything was heard.
    pub fn new(
        plan: &'a Plan,
        expectations: &'a Expectations,
        style: Style,
        out: &'a mut dyn Write,
        raw: &'a mut dyn Write,
    ) -> Self {
        Self {
            plan,
            expectations,
            style,
            out,
            raw,
            greeted: false,
            done: false,
            step: Step::Boot,
            running: false,
            ended: BTreeSet::new(),
            failed: BTreeSet::new(),
            tally: Tally::default(),
            evidence: Evidence::default(),
            told: 0,
            ktap: ktap::Reader::default(),
            splitter: Splitter::default(),
            output: Tail::new(OUTPUT_LINES),
            log: Tail::new(LOG_LINES),
            incoming: None,
            console: Splitter::default(),
            console_lines: Vec::new(),
            autopsy: None,
            broken: None,
        }
    }

    /// Whether the guest's init has said anything.
    pub fn greeted(&self) -> bool {
        self.greeted
    }

    /// Whether it has said all.
    pub fn done(&self) -> bool {
        self.done
    }

    /// Takes a frame of the report.
    ///
    /// # Errors
    ///
    /// Where the guest's init is of another version, and where results or collected files cannot be
    /// written.
    pub fn event(&mut self, event: Event, body: &[u8]) -> Result<()> {
        if self.autopsy.is_some() {
            return Ok(());
        }
        match event {
            Event::Hello { protocol, .. } => {
                if protocol != PROTOCOL {
                    bail!("weir-init speaks version {protocol} of the report, and this program version {PROTOCOL}: build both from one tree");
                }
                self.greeted = true;
            }
            Event::Begin { step } => {
                self.evidence.close();
                self.step = step;
                self.running = true;
                self.ktap = ktap::Reader::default();
                self.splitter = Splitter::default();
                self.output = Tail::new(OUTPUT_LINES);
                self.log = Tail::new(LOG_LINES);
                if let Step::Collect(index) = step {
                    let target = self.expectations.targets.get(index);
                    let target = target.context("the guest sends a file that nobody asked for")?;
                    let incoming = Incoming::new(target)
                        .with_context(|| format!("cannot write {}", target.display()))?;
                    self.incoming = Some(incoming);
                }
            }
            Event::Output => match &mut self.incoming {
                Some(incoming) => incoming
                    .write(body)
                    .context("cannot write collected file")?,
                None => self.output(body)?,
            },
            Event::Log { gap } => {
                if gap {
                    self.log
                        .push("(lines are missing: the log was faster than its reader)");
                }
                for line in String::from_utf8_lossy(body).lines() {
                    self.log_line(LogLine::parse(line));
                }
            }
            Event::End {
                step,
                outcome,
                milliseconds,
            } => self.end(step, &outcome, milliseconds)?,
            Event::Done => {
                self.evidence.close();
                self.done = true;
                self.step = Step::End;
            }
        }
        Ok(())
    }

    /// The report can be read no further; `Some` where that is not because it ended.
    pub fn report_ended(&mut self, problem: Option<String>) {
        self.broken = problem;
    }

    /// Takes what the console shows.
    pub fn console(&mut self, bytes: &[u8]) {
        let lines = self.console.feed(bytes);
        self.console_lines.extend(lines);
    }

    fn output(&mut self, bytes: &[u8]) -> Result<()> {
        if self.style.passthrough {
            self.raw.write_all(bytes)?;
            self.raw.flush()?;
        }
        for line in self.splitter.feed(bytes) {
            self.output_line(line)?;
        }
        Ok(())
    }

    fn output_line(&mut self, line: String) -> Result<()> {
        self.ktap.line(&line);
        if self.style.verbose {
            writeln!(self.out, "# {line}")?;
        }
        self.output.push(line);
        Ok(())
    }

    fn log_line(&mut self, line: LogLine<'_>) {
        if self.step == Step::Load && line.by_kernel {
            self.ktap.line(line.text);
        }
        self.log.push(line.text);
        self.evidence.log(self.step, line);
    }

    fn end(&mut self, step: Step, outcome: &Outcome, milliseconds: u64) -> Result<()> {
        if let Some(line) = self.splitter.finish() {
            self.output_line(line)?;
        }
        self.running = false;
        self.ended.insert(step);
        let results = mem::take(&mut self.ktap).finish();
        let kunit = results.tally.total() > 0;
        let took = Some(milliseconds);
        match step {
            Step::Program(_) => {
                let judgement = judge::program(outcome, &results);
                self.result(step, &self.plan.step_name(step), took, judgement)?;
            }
            Step::Load if !self.plan.modules.is_empty() => {
                let judgement = judge::load(outcome, &results, &self.expectations.kunit);
                let name = if kunit { "kunit" } else { "modules" };
                self.result(step, name, took, judgement)?;
            }
            Step::Leaks => {
                if let Outcome::Error(why) = outcome {
                    let complaint = Complaint {
                        class: "kmemleak",
                        line: why.clone(),
                    };
                    let lines = self.output.iter().map(str::to_owned);
                    self.evidence.add(step, complaint, lines);
                }
            }
            Step::Collect(_) => {
                let incoming = self.incoming.take();
                match (outcome, incoming) {
                    (Outcome::Well, Some(incoming)) => {
                        incoming.finish().context("cannot write collected file")?;
                    }
                    _ => self.failed_alone(step, took, outcome)?,
                }
            }
            Step::Boot | Step::Load | Step::Shell | Step::Unload | Step::End => {
                if *outcome != Outcome::Well {
                    self.failed_alone(step, took, outcome)?;
                }
            }
        }
        self.tell_findings()
    }

    /// A step that only counts when it fails has.
    fn failed_alone(&mut self, step: Step, took: Option<u64>, outcome: &Outcome) -> Result<()> {
        let judgement = judge::program(outcome, &ktap::Results::default());
        self.result(step, &self.plan.step_name(step), took, judgement)
    }

    fn result(
        &mut self,
        step: Step,
        name: &str,
        took: Option<u64>,
        judgement: Judgement,
    ) -> Result<()> {
        let Judgement {
            tally,
            failure,
            skip,
        } = judgement;
        self.tally += tally;
        if tally.failed > 0 {
            self.failed.insert(step);
        }
        let kernel = &self.plan.kernel;
        let took = took.map_or(String::new(), |took| {
            format!(" ({:.1} s)", took as f64 / 1000.0)
        });
        let count = match tally.total() {
            1 => String::new(),
            _ => format!(" # {tally}"),
        };
        if let Some(failure) = failure {
            writeln!(self.out, "not ok {kernel} {name}{took}: {failure}{count}")?;
            self.show_step()?;
        } else if !self.style.passthrough {
            let skip = skip.map_or(String::new(), |reason| format!(" # SKIP {reason}"));
            let line = format!("ok {kernel} {name}{took}{count}{skip}");
            writeln!(self.out, "{}", line.trim_end())?;
        }
        self.out.flush()?;
        Ok(())
    }

    /// Shows what the step wrote and what the kernel logged meanwhile.
    fn show_step(&mut self) -> Result<()> {
        if !self.style.verbose && !self.style.passthrough {
            show(self.out, "", &self.output)?;
        }
        show(self.out, "kernel log:", &self.log)
    }

    fn tell_findings(&mut self) -> Result<()> {
        for finding in &self.evidence.findings()[self.told..] {
            let Finding {
                step,
                complaint: Complaint { class, line },
                excerpt,
            } = finding;
            let kernel = &self.plan.kernel;
            let name = self.plan.step_name(*step);
            // Some lines say it themselves.
            let class = match line.strip_prefix(class) {
                Some(rest) if rest.starts_with(": ") => String::new(),
                _ => format!("{class}: "),
            };
            writeln!(
                self.out,
                "not ok {kernel} kernel complained in {name}: {class}{line}"
            )?;
            for line in excerpt {
                writeln!(self.out, "# {line}")?;
            }
            // A step counts as failed once.
            if self.failed.insert(*step) {
                self.tally += Tally::FAILED;
            }
        }
        self.told = self.evidence.findings().len();
        self.out.flush()?;
        Ok(())
    }

    /// Whether a machine that went away now may be replaced by another: it has said nothing, so that
    /// no module and no test can be at fault. Emulated processors do crash a kernel now and then.
    pub fn is_replaceable(&self) -> bool {
        !self.greeted
    }

    /// Whether the console never showed anything.
    pub fn console_is_empty(&self) -> bool {
        self.console_lines.is_empty()
    }

    /// Tells people that the machine is replaced, and what is known of its death.
    ///
    /// # Errors
    ///
    /// Where that cannot be written.
    pub fn tell_replaced(&mut self, ending: &Ending) -> Result<()> {
        let fate = fate(ending);
        writeln!(
            self.out,
            "# {fate}, before its init said anything; trying once more"
        )?;
        self.show_console()
    }

    /// The machine's time is over; what its kernel says from now on is the host's doing.
    pub fn out_of_time(&mut self) {
        self.look_at_console();
        self.autopsy = Some(self.console_lines.len());
    }

    fn look_at_console(&mut self) {
        self.console_lines.extend(self.console.finish());
        if self.autopsy.is_some() {
            return;
        }
        let lines = self.console_lines.iter().map(String::as_str);
        self.evidence.console(self.step, lines);
    }

    /// The last lines of the console, for people.
    fn show_console(&mut self) -> Result<()> {
        // All that was said after that, and some before.
        let said_after = self
            .autopsy
            .map_or(0, |since| self.console_lines.len() - since);
        let mut tail = Tail::new(CONSOLE_LINES + said_after);
        self.console_lines.iter().for_each(|line| tail.push(line));
        if tail.is_empty() {
            writeln!(self.out, "# the console stayed empty")?;
        }
        show(self.out, "console:", &tail)
    }

    /// The machine is gone: tells the rest and comes to the verdict.
    ///
    /// # Errors
    ///
    /// Where results cannot be written.
    pub fn finish(mut self, ending: &Ending) -> Result<Summary> {
        self.look_at_console();
        let fate = fate(ending);
        if self.running {
            if let Some(line) = self.splitter.finish() {
                self.output_line(line)?;
            }
            self.missing(self.step, &fate)?;
        }
        self.tell_findings()?;
        for index in 0..self.plan.programs.len() {
            let step = Step::Program(index);
            let interactive = self.plan.shell;
            if !interactive && !self.ended.contains(&step) && !self.failed.contains(&step) {
                self.output = Tail::new(OUTPUT_LINES);
                self.log = Tail::new(LOG_LINES);
                self.missing(step, "not run")?;
            }
        }
        let verdict = self.verdict(ending);
        if verdict == Verdict::Lost || verdict == Verdict::Hung {
            if let Some(problem) = &self.broken {
                writeln!(self.out, "# {problem}")?;
            }
            writeln!(self.out, "# {fate}")?;
            self.show_console()?;
            // Where no step was to blame, the machine itself is what failed.
            if self.tally.failed == 0 {
                self.tally += Tally::FAILED;
            }
        }
        Ok(Summary {
            tally: self.tally,
            verdict,
        })
    }

    /// A step without a result.
    fn missing(&mut self, step: Step, why: &str) -> Result<()> {
        let judgement = Judgement {
            tally: Tally::FAILED,
            failure: Some(why.to_owned()),
            skip: None,
        };
        self.result(step, &self.plan.step_name(step), None, judgement)
    }

    fn verdict(&self, ending: &Ending) -> Verdict {
        if !self.evidence.findings().is_empty() {
            return Verdict::Complained;
        }
        match ending {
            Ending::OutOfTime(_) => Verdict::Hung,
            Ending::Gone(in_order, _) if !in_order || !self.done => Verdict::Lost,
            Ending::Gone(..) if self.tally.failed > 0 => Verdict::Failed,
            Ending::Gone(..) => Verdict::Passed,
        }
    }
}

fn fate(ending: &Ending) -> String {
    match ending {
        Ending::Gone(_, how) => format!("the VM was lost ({how})"),
        Ending::OutOfTime(seconds) => format!("the VM hung, and was stopped after {seconds} s"),
    }
}

fn show(out: &mut dyn Write, title: &str, tail: &Tail) -> Result<()> {
    if tail.is_empty() {
        return Ok(());
    }
    if !title.is_empty() {
        writeln!(out, "# {title}")?;
    }
    if tail.dropped() > 0 {
        writeln!(out, "# ({} lines before)", tail.dropped())?;
    }
    for line in tail.iter() {
        writeln!(out, "# {line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
