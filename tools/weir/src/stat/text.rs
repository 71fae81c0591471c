// SPDX-License-Identifier: GPL-2.0

//! What `weir stat` tells, as lines for a person: columns that stay where they are, within 80 characters but for long
//! names.

use super::report::{
    Count,
    EventReport,
    Numbers,
    Report, //
};
use crate::table::{
    grouped,
    printable,
    seconds, //
};

/// The columns of a table, which all of its lines have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Characters of the longest name.
    name: usize,
    /// Each line has the end of its interval.
    time: bool,
    /// Each line is of one CPU.
    cpu: bool,
}

/// Characters of the column of counts.
const COUNT: usize = 17;
/// Of what follows from them: a number and a unit.
const DERIVED: usize = 22;
/// Of how far a mean is to be trusted.
const SPREAD: usize = 7;

impl Layout {
    /// For the events of a report, and of all that have the same.
    pub(crate) fn new(report: &Report, time: bool, cpu: bool) -> Self {
        let names = report
            .events
            .iter()
            .map(|event| name(event).chars().count());
        Layout {
            name: names.max().unwrap_or(0).max("EVENT".len()),
            time,
            cpu,
        }
    }

    /// The titles of the columns.
    pub(crate) fn header(&self) -> String {
        let mut line = self.front("TIME s", "CPU");
        line.push_str(&format!("{:>COUNT$}  EVENT\n", "COUNT"));
        line
    }

    /// One line for each event, or for each event on each CPU.
    pub(crate) fn rows(&self, report: &Report) -> String {
        let time = report.time_ns.map(seconds).unwrap_or_default();
        let mut text = String::new();
        if !self.cpu {
            for event in &report.events {
                self.row(&mut text, &self.front(&time, ""), event, &event.numbers);
            }
            return text;
        }
        for cpu in report.cpus() {
            for event in &report.events {
                if let Some(part) = event.cpus.iter().find(|part| part.cpu == cpu) {
                    let front = self.front(&time, &cpu.to_string());
                    self.row(&mut text, &front, event, &part.numbers);
                }
            }
        }
        // What has no line on any CPU.
        for event in report.events.iter().filter(|event| event.cpus.is_empty()) {
            self.row(&mut text, &self.front(&time, "-"), event, &event.numbers);
        }
        text
    }

    /// All that there is to say.
    pub(crate) fn whole(&self, report: &Report) -> String {
        let runs = match report.runs {
            1 => String::new(),
            runs => format!(", {runs} runs"),
        };
        let spread = report.duration_spread_percent;
        format!(
            "Counted in {}{runs}:\n\n{}{}\n{:>COUNT$}  seconds{}\n{}",
            printable(&report.target),
            self.header(),
            self.rows(report),
            seconds(report.duration_ns),
            spread.map_or_else(String::new, |spread| format!(" {}", percent_spread(spread))),
            notes(report),
        )
    }

    fn front(&self, time: &str, cpu: &str) -> String {
        let mut front = String::new();
        if self.time {
            front.push_str(&format!("{time:>12}"));
        }
        if self.cpu {
            front.push_str(&format!("{cpu:>5}"));
        }
        front
    }

    fn row(&self, text: &mut String, front: &str, event: &EventReport, numbers: &Numbers) {
        let derived = match &numbers.derived {
            Some(derived) => {
                let unit = derived.unit;
                let digits = if unit.starts_with('%') { 2 } else { 3 };
                // A percent sign stands right behind its number.
                let space = if unit.starts_with('%') { "" } else { " " };
                format!("{:>7.digits$}{space}{unit}", derived.value)
            }
            None => String::new(),
        };
        let spread = numbers
            .spread_percent
            .map(percent_spread)
            .unwrap_or_default();
        let state = match (numbers.share(), event.together) {
            _ if numbers.count.is_none() => String::new(),
            (Some(share), _) => format!("({share:.2}%)"),
            (None, Some(true)) => "together".to_owned(),
            (None, Some(false)) => "apart".to_owned(),
            (None, None) => String::new(),
        };
        let line = format!(
            "{front}{:>COUNT$}  {:<width$}  {derived:<DERIVED$} {spread:>SPREAD$} {state}",
            count(event, numbers),
            name(event),
            width = self.name,
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// The name of an event, with its unit.
fn name(event: &EventReport) -> String {
    let name = printable(&event.event);
    match event.numbers.unit.as_deref() {
        None | Some("") => name,
        Some(unit) => format!("{name} ({})", printable(unit)),
    }
}

/// A count as it is shown: of a clock, in milliseconds.
fn count(event: &EventReport, numbers: &Numbers) -> String {
    if !event.supported {
        return "<not supported>".to_owned();
    }
    let Some(count) = numbers.count else {
        return "<not counted>".to_owned();
    };
    if event.clock {
        return format!("{} ms", with_fraction(count.number() / 1e6));
    }
    match (numbers.scaled, count) {
        (Some(scaled), _) => with_fraction(scaled),
        (None, Count::Exact(count)) => grouped(count),
        (None, Count::Mean(mean)) => grouped(mean.round() as u64),
    }
}

/// A number with two digits behind the point.
fn with_fraction(number: f64) -> String {
    let hundredths = (number * 100.0).round();
    if !(0.0..1e18).contains(&hundredths) {
        return format!("{number:e}");
    }
    let hundredths = hundredths as u64;
    format!("{}.{:02}", grouped(hundredths / 100), hundredths % 100)
}

fn percent_spread(percent: f64) -> String {
    format!("±{percent:.2}%")
}

/// What the columns leave open.
fn notes(report: &Report) -> String {
    let mut text = String::new();
    let mut note = |what: &str, which: &dyn Fn(&EventReport) -> bool| {
        let names: Vec<String> = (report.events.iter())
            .filter(|event| which(event))
            .map(|event| printable(&event.event))
            .collect();
        if !names.is_empty() {
            text.push_str(&format!("\n{}: {what}\n", names.join(", ")));
        }
    };
    note(
        "this set was not counted together all the time, so what follows from it is an estimate",
        &|event| event.together == Some(false) && event.numbers.count.is_some(),
    );
    note(
        "a part is missing: a CPU that was not counted, or where there was no turn for it",
        &|event| event.incomplete && !event.revoked && event.numbers.count.is_some(),
    );
    note(
        "its PMU has gone; this is what was counted before",
        &|event| event.revoked,
    );
    note(
        "perf stopped it now and then, for too many samples",
        &|event| event.throttled > 0,
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::{
        report::{
            tests::{
                measured,
                watched, //
            },
            Measured,
        },
        tally::tests::part,
    };
    use libweir::Value;

    const EVENTS: &str =
        "task-clock,cs,{cycles,instructions},branches,LLC-load-misses,cgroup-switches";

    /// Two CPUs, on which all was counted, half of the time, or not.
    fn measurement(factor: u64) -> Measured {
        let ms = 1_000_000 * factor;
        let all = |count: u64| {
            [
                part(0, count * factor, 50 * ms, 50 * ms),
                part(1, 0, ms, ms),
            ]
        };
        let half = |count: u64| [part(0, count * factor, 50 * ms, 25 * ms)];
        let together = |parts: [Value; 2]| {
            parts.map(|part| Value {
                together: true,
                ..part
            })
        };
        measured(
            100 * factor,
            EVENTS,
            &[
                Some(&all(50_000_000)),
                Some(&all(1234)),
                Some(&together(all(100_000_000))),
                Some(&together(all(150_000_000))),
                Some(&half(1_000_000)),
                None,
                Some(&[]),
            ],
        )
    }

    #[test]
    fn a_table_has_its_columns() {
        let report = Report::new(&watched(), &[measurement(1)]);
        let expected = "\
Counted in `true`:

            COUNT  EVENT
         50.00 ms  task-clock         0.500 CPUs utilized
            1,234  cs                24.680 K/sec
      100,000,000  cycles             2.000 GHz                    together
      150,000,000  instructions       1.500 insn per cycle         together
        2,000,000  branches          40.000 M/sec                  (50.00%)
  <not supported>  LLC-load-misses
    <not counted>  cgroup-switches

         0.100000  seconds
";
        assert_eq!(Layout::new(&report, false, false).whole(&report), expected);
    }

    #[test]
    fn several_runs_have_a_spread() {
        let report = Report::new(&watched(), &[measurement(1), measurement(3)]);
        let text = Layout::new(&report, false, false).whole(&report);
        for line in [
            "Counted in `true`, 2 runs:",
            "            2,468  cs                24.680 K/sec          ±50.00%",
            "        4,000,000  branches          40.000 M/sec          ±50.00% (50.00%)",
            "         0.200000  seconds ±50.00%",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn an_interval_has_its_time_in_front() {
        let report = Report::interval(&watched(), &measurement(1), &measurement(3));
        let layout = Layout::new(&report, true, false);
        let text = layout.header() + &layout.rows(&report);
        for line in [
            "      TIME s            COUNT  EVENT",
            "    0.300000            2,468  cs                24.680 K/sec",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn each_cpu_has_its_lines() {
        let report = Report::new(&watched(), &[measurement(1)]);
        let layout = Layout::new(&report, false, true);
        let text = layout.header() + &layout.rows(&report);
        let expected = "  \
  CPU            COUNT  EVENT
    0         50.00 ms  task-clock         0.500 CPUs utilized
    0            1,234  cs                24.680 K/sec
    0      100,000,000  cycles             2.000 GHz                    together
    0      150,000,000  instructions       1.500 insn per cycle         together
    0        2,000,000  branches          40.000 M/sec                  (50.00%)
    1          0.00 ms  task-clock         0.000 CPUs utilized
    1                0  cs
    1                0  cycles                                          together
    1                0  instructions                                    together
    -  <not supported>  LLC-load-misses
    -    <not counted>  cgroup-switches
";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_the_columns_leave_open_is_told_below() {
        let (all, half) = (part(0, 1, 100, 100), part(0, 1, 100, 50));
        let unseen = part(1, 0, 100, 0);
        let gone = Value {
            revoked: true,
            throttled: 2,
            ..all
        };
        let run = measured(
            1,
            "{cs,faults},migrations,minor-faults",
            &[
                Some(&[all]),
                Some(&[half]),
                Some(&[all, unseen]),
                Some(&[gone]),
            ],
        );
        let report = Report::new(&watched(), &[run]);
        let text = Layout::new(&report, false, false).whole(&report);
        for part in [
            "cs            \u{20}",
            "apart\n",
            "\ncs, faults: this set was not counted together",
            "\nmigrations: a part is missing",
            "\nminor-faults: its PMU has gone",
            "\nminor-faults: perf stopped it",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn units_stand_with_the_name() {
        let mut run = measured(1, "cs", &[Some(&[part(0, 3, 1, 1)])]);
        run.rows[0].event.unit = Some(libweir::event::Unit {
            scale: 0.5,
            name: "Joules".to_owned(),
        });
        let report = Report::new(&watched(), &[run]);
        let text = Layout::new(&report, false, false).rows(&report);
        assert_eq!(text, "             1.50  cs (Joules)\n");
        assert_eq!(with_fraction(1234.567), "1,234.57");
        assert_eq!(with_fraction(1e30), "1e30");
    }
}
