// SPDX-License-Identifier: GPL-2.0

//! What `weir stat` tells, as `--json` prints it: names of fields stay what they are.

use super::{
    counting::Row,
    derive::{
        derive,
        is_clock,
        Counted,
        Derived, //
    },
    spread::Spread,
    tally::Tally,
    target::Watched,
};
use serde::Serialize;
use std::time::Duration;

/// What was counted in a run, or since its beginning.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) duration: Duration,
    pub(crate) rows: Vec<Row>,
}

/// One table, or one interval.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// What was watched.
    pub(crate) target: String,
    /// How often the command ran.
    pub(crate) runs: usize,
    /// Of an interval: its end, since the beginning.
    pub(crate) time_ns: Option<u64>,
    /// How long it took; the mean of all runs.
    pub(crate) duration_ns: u64,
    /// The standard error of that mean.
    pub(crate) duration_spread_percent: Option<f64>,
    pub(crate) events: Vec<EventReport>,
}

/// A count: of one run, or the mean of several.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Count {
    Exact(u64),
    Mean(f64),
}

impl Count {
    pub(crate) fn number(self) -> f64 {
        match self {
            Count::Exact(count) => count as f64,
            Count::Mean(mean) => mean,
        }
    }
}

/// One event.
#[derive(Debug, Serialize)]
pub(crate) struct EventReport {
    pub(crate) event: String,
    /// Events with the same number are a set.
    pub(crate) set: Option<usize>,
    /// Whether this machine has it.
    pub(crate) supported: bool,
    #[serde(flatten)]
    pub(crate) numbers: Numbers,
    /// Of a set: whether all its events were counted all the time.
    pub(crate) together: Option<bool>,
    /// Parts are not in the sum: CPUs that came and were not counted, or had no turn.
    pub(crate) incomplete: bool,
    /// Its PMU has gone: this is what was counted before.
    pub(crate) revoked: bool,
    /// How often perf stopped it for too many samples.
    pub(crate) throttled: u64,
    /// With `--per-cpu`.
    pub(crate) cpus: Vec<CpuReport>,
    #[serde(skip)]
    pub(crate) clock: bool,
}

/// One event on one CPU.
#[derive(Debug, Serialize)]
pub(crate) struct CpuReport {
    pub(crate) cpu: u32,
    #[serde(flatten)]
    pub(crate) numbers: Numbers,
}

/// What was counted.
#[derive(Debug, Serialize)]
pub(crate) struct Numbers {
    /// How often it happened, brought up to all of the time; none where it was not counted.
    pub(crate) count: Option<Count>,
    /// That, in a unit, where the event has one.
    pub(crate) scaled: Option<f64>,
    pub(crate) unit: Option<String>,
    /// The standard error of the mean of several runs.
    pub(crate) spread_percent: Option<f64>,
    /// What was really counted; the sum of all runs, as are the next two.
    pub(crate) value: u64,
    /// Time for which it was to be counted, on all CPUs or in all tasks together.
    pub(crate) enabled_ns: u64,
    /// Time for which it was.
    pub(crate) running_ns: u64,
    /// What follows from this and others.
    pub(crate) derived: Option<Derived>,
}

impl Numbers {
    /// The share of the time for which it was counted, in percent; none where that is all.
    pub(crate) fn share(&self) -> Option<f64> {
        (self.running_ns < self.enabled_ns)
            .then(|| 100.0 * self.running_ns as f64 / self.enabled_ns as f64)
    }
}

impl Report {
    /// Of all runs, of which there is one at least.
    pub(crate) fn new(watched: &Watched, runs: &[Measured]) -> Self {
        let durations: Vec<f64> = runs
            .iter()
            .map(|run| run.duration.as_nanos() as f64)
            .collect();
        let duration = Spread::of(&durations);
        let runs_rows: Vec<&[Row]> = runs.iter().map(|run| &run.rows[..]).collect();
        let duration_ns = duration.map_or(0.0, |duration| duration.mean);
        Report {
            target: watched.what.clone(),
            runs: runs.len(),
            time_ns: None,
            duration_ns: duration_ns as u64,
            duration_spread_percent: duration.and_then(|duration| duration.percent),
            events: events(&runs_rows, duration_ns, watched.per_cpu),
        }
    }

    /// Of what came between two moments.
    pub(crate) fn interval(watched: &Watched, before: &Measured, now: &Measured) -> Self {
        let rows = now.rows.iter().zip(&before.rows).map(|(now, before)| Row {
            tally: (now.tally.as_ref().zip(before.tally.as_ref()))
                .map(|(now, before)| now.since(before)),
            ..now.clone()
        });
        let measured = Measured {
            duration: now.duration.saturating_sub(before.duration),
            rows: rows.collect(),
        };
        Report {
            time_ns: Some(u64::try_from(now.duration.as_nanos()).unwrap_or(u64::MAX)),
            ..Report::new(watched, &[measured])
        }
    }

    /// The CPUs of all events, in order.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        let cpus = self.events.iter().flat_map(|event| &event.cpus);
        let mut cpus: Vec<u32> = cpus.map(|cpu| cpu.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }
}

/// Each event of all runs. All have the same ones.
fn events(runs: &[&[Row]], duration_ns: f64, per_cpu: bool) -> Vec<EventReport> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let mut cpus: Vec<u32> = (runs.iter().flat_map(|rows| rows.iter()))
        .filter(|_| per_cpu)
        .flat_map(|row| row.tally.as_ref().map(Tally::cpus).unwrap_or_default())
        .collect();
    cpus.sort_unstable();
    cpus.dedup();
    let whole = numbers(runs, None, duration_ns);
    let mut parts: Vec<(u32, std::vec::IntoIter<Numbers>)> = cpus
        .iter()
        .map(|cpu| (*cpu, numbers(runs, Some(*cpu), duration_ns).into_iter()))
        .collect();
    first
        .iter()
        .zip(whole)
        .enumerate()
        .map(|(index, (row, numbers))| {
            let tallies = || {
                runs.iter()
                    .filter_map(|rows| rows.get(index)?.tally.as_ref())
            };
            let mut of_cpus = Vec::new();
            for (cpu, numbers) in &mut parts {
                // An event that is not on this CPU has no line there.
                let there = tallies().any(|tally| tally.cpus().contains(cpu));
                of_cpus.extend(
                    (numbers.next().filter(|_| there))
                        .map(|numbers| CpuReport { cpu: *cpu, numbers }),
                );
            }
            EventReport {
                event: row.event.name.clone(),
                set: row.set,
                supported: row.tally.is_some(),
                together: row
                    .set
                    .filter(|_| row.tally.is_some())
                    .map(|set| is_together(runs, set)),
                incomplete: tallies().any(Tally::is_incomplete),
                revoked: tallies().any(Tally::is_revoked),
                throttled: (tallies().flat_map(|tally| &tally.parts))
                    .map(|part| part.throttled)
                    .sum(),
                cpus: of_cpus,
                clock: is_clock(&row.event.attr),
                numbers,
            }
        })
        .collect()
}

/// Whether all events of a set were counted all the time, in every run.
fn is_together(runs: &[&[Row]], set: usize) -> bool {
    let rows = runs.iter().flat_map(|rows| rows.iter());
    rows.filter(|row| row.set == Some(set))
        .all(|row| row.tally.as_ref().is_some_and(Tally::is_together))
}

/// The numbers of each event, on one CPU or on all.
fn numbers(runs: &[&[Row]], cpu: Option<u32>, duration_ns: f64) -> Vec<Numbers> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let mut all: Vec<Numbers> = (0..first.len())
        .map(|index| {
            let tallies = runs
                .iter()
                .filter_map(|rows| rows.get(index)?.tally.as_ref());
            let tallies: Vec<Tally> = tallies
                .map(|tally| cpu.map_or_else(|| tally.clone(), |cpu| tally.on(cpu)))
                .collect();
            let counts: Vec<u64> = tallies.iter().filter_map(Tally::count).collect();
            let unit = first[index].event.unit.as_ref();
            let spread = Spread::of(&counts.iter().map(|count| *count as f64).collect::<Vec<_>>());
            let count = match (&counts[..], spread) {
                ([], _) | (_, None) => None,
                ([one], _) if runs.len() == 1 => Some(Count::Exact(*one)),
                (_, Some(spread)) => Some(Count::Mean(spread.mean)),
            };
            let sum =
                |field: fn(&Tally) -> u64| tallies.iter().map(field).fold(0, u64::saturating_add);
            Numbers {
                count,
                scaled: unit.and_then(|unit| Some(count?.number() * unit.scale)),
                unit: unit.map(|unit| unit.name.clone()),
                spread_percent: spread.and_then(|spread| spread.percent),
                value: sum(Tally::value),
                enabled_ns: sum(Tally::enabled),
                running_ns: sum(Tally::running),
                derived: None,
            }
        })
        .collect();
    let counted: Vec<Counted<'_>> = (first.iter().zip(&all))
        .map(|(row, numbers)| Counted {
            attr: &row.event.attr,
            set: row.set,
            count: numbers.count.map(Count::number),
        })
        .collect();
    let derived: Vec<Option<Derived>> = (0..counted.len())
        // What has a unit of its own is no count.
        .map(|index| match first[index].event.unit {
            Some(_) => None,
            None => derive(index, &counted, duration_ns),
        })
        .collect();
    for (numbers, derived) in all.iter_mut().zip(derived) {
        numbers.derived = derived;
    }
    all
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::stat::{
        tally::tests::{
            part,
            tally, //
        },
        target::Target,
    };
    use libweir::{
        parse_events,
        EventPaths,
        Value, //
    };

    pub(crate) fn watched() -> Watched {
        Watched {
            target: Target::Command,
            what: "`true`".to_owned(),
            per_cpu: true,
            ends: Vec::new(),
        }
    }

    /// What was counted of each event of a list; of `None`, the machine does not have it.
    pub(crate) fn measured(ms: u64, events: &str, parts: &[Option<&[Value]>]) -> Measured {
        let sets = parse_events(events, &EventPaths::default()).unwrap();
        let mut braces = 0;
        let mut rows = Vec::new();
        for set in sets {
            let number = set.braces.then_some(braces);
            braces += usize::from(set.braces);
            for event in set.events {
                let parts = parts[rows.len()];
                rows.push(Row {
                    event,
                    set: number,
                    tally: parts.map(tally),
                });
            }
        }
        Measured {
            duration: Duration::from_millis(ms),
            rows,
        }
    }

    #[test]
    fn one_run_is_exact_and_several_have_a_mean() {
        let run = |count| {
            let part = part(0, count, 100, 100);
            measured(count, "cs,cycles", &[Some(&[part]), None])
        };
        let report = Report::new(&watched(), &[run(9)]);
        assert_eq!(report.events[0].numbers.count, Some(Count::Exact(9)));
        assert_eq!(report.events[0].numbers.spread_percent, None);
        assert_eq!(report.duration_spread_percent, None);
        assert!(report.events[0].supported && !report.events[1].supported);
        let report = Report::new(&watched(), &[run(9), run(11)]);
        assert_eq!((report.runs, report.duration_ns), (2, 10_000_000));
        assert_eq!(report.events[0].numbers.count, Some(Count::Mean(10.0)));
        assert_eq!(report.events[0].numbers.value, 20);
        let spread = report.events[0].numbers.spread_percent.unwrap();
        assert!((spread - 10.0).abs() < 1e-9);
    }

    #[test]
    fn an_interval_has_its_end_and_what_was_added() {
        let at = |ms, count| {
            let part = part(0, count, ms * 1_000_000, ms * 1_000_000);
            measured(ms, "cs,task-clock", &[Some(&[part]), Some(&[part])])
        };
        let report = Report::interval(&watched(), &at(100, 5), &at(300, 12));
        assert_eq!(report.time_ns, Some(300_000_000));
        assert_eq!(report.duration_ns, 200_000_000);
        assert_eq!(report.events[0].numbers.count, Some(Count::Exact(7)));
        assert_eq!(report.events[0].numbers.enabled_ns, 200_000_000);
    }

    #[test]
    fn each_cpu_has_its_numbers() {
        let parts = [part(0, 6, 100, 100), part(2, 8, 100, 50)];
        let clock = [part(0, 3, 100, 100)];
        let run = measured(1, "cs,task-clock", &[Some(&parts), Some(&clock)]);
        let report = Report::new(&watched(), &[run]);
        let cpus: Vec<(u32, Option<Count>)> = (report.events[0].cpus.iter())
            .map(|cpu| (cpu.cpu, cpu.numbers.count))
            .collect();
        assert_eq!(
            cpus,
            [(0, Some(Count::Exact(6))), (2, Some(Count::Exact(16)))]
        );
        assert_eq!(report.events[1].cpus.len(), 1);
        assert_eq!(report.cpus(), [0, 2]);
        // 6 within 3 ns of the clock of that CPU.
        let rate = report.events[0].cpus[0].numbers.derived.clone().unwrap();
        assert_eq!((rate.value, rate.unit), (2.0, "G/sec"));
        assert_eq!(report.events[0].cpus[1].numbers.derived, None);
    }

    #[test]
    fn a_set_says_whether_it_ran_together() {
        let (all, half) = (part(0, 1, 100, 100), part(0, 1, 100, 50));
        let run = measured(
            1,
            "{cs,faults},cs",
            &[Some(&[all]), Some(&[half]), Some(&[all])],
        );
        let report = Report::new(&watched(), &[run]);
        let together: Vec<_> = report.events.iter().map(|event| event.together).collect();
        assert_eq!(together, [Some(false), Some(false), None]);
        let sets: Vec<_> = report.events.iter().map(|event| event.set).collect();
        assert_eq!(sets, [Some(0), Some(0), None]);
    }

    #[test]
    fn the_names_of_fields_stay_what_they_are() {
        let run = measured(1, "{cs}", &[Some(&[part(3, 5, 100, 100)])]);
        let report = Report::new(&watched(), &[run]);
        let json = serde_json::to_value(&report).unwrap();
        let numbers = |more: serde_json::Value| {
            let mut all = serde_json::json!({
                "count": 5, "scaled": null, "unit": null, "spread_percent": null, "value": 5,
                "enabled_ns": 100, "running_ns": 100, "derived": null,
            });
            let map = all.as_object_mut().unwrap();
            map.extend(more.as_object().unwrap().clone());
            all
        };
        let expected = serde_json::json!({
            "target": "`true`", "runs": 1, "time_ns": null, "duration_ns": 1_000_000,
            "duration_spread_percent": null,
            "events": [numbers(serde_json::json!({
                "event": "cs", "set": 0, "supported": true, "together": true,
                "incomplete": false, "revoked": false, "throttled": 0,
                "cpus": [numbers(serde_json::json!({"cpu": 3}))],
            }))],
        });
        assert_eq!(json, expected);
    }
}
