// SPDX-License-Identifier: GPL-2.0

//! `weir stat`: how often something happens, in a command, in processes, or on CPUs.

mod counting;
mod derive;
mod report;
mod spread;
mod tally;
mod target;
mod text;

use crate::{
    cli::StatArgs,
    output,
    workload::{
        End,
        Wake,
        Workload, //
    },
};
use anyhow::Result;
use counting::Counting;
use libweir::{
    parse_events,
    Channel,
    ChannelOptions,
    EventPaths,
    EventSet, //
};
use report::{
    Measured,
    Report, //
};
use std::{
    path::Path,
    process::ExitCode,
    time::{
        Duration,
        Instant, //
    },
};
use target::Watched;
use text::Layout;

/// What is counted where the user does not say, as `perf stat` does; what a machine lacks of these is no error.
const DEFAULT: &str = "task-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,\
                       branches,branch-misses";

/// The same for whole CPUs, where a clock of tasks is one of all that runs.
const DEFAULT_CPUS: &str =
    "cpu-clock,context-switches,cpu-migrations,page-faults,cycles,instructions,\
                            branches,branch-misses";

/// Runs `weir stat`.
pub(crate) fn run(device: &Path, args: &StatArgs) -> Result<ExitCode> {
    let channel = Channel::create(&ChannelOptions {
        path: device.to_owned(),
        ..Default::default()
    })?;
    let mut watched = Watched::new(args)?;
    let mut sets: Vec<EventSet> = args.events.iter().flat_map(|list| list.0.clone()).collect();
    let named = !sets.is_empty();
    if !named {
        let default = if watched.target.is_tasks() {
            DEFAULT
        } else {
            DEFAULT_CPUS
        };
        sets = parse_events(default, &EventPaths::default())?;
    }
    let mut workload = Workload::prepare(args.duration)?;
    workload.watch(std::mem::take(&mut watched.ends));
    let mut stat = Stat {
        channel: &channel,
        args,
        watched: &watched,
        sets: &sets,
        named,
    };
    stat.all(&mut workload)
}

/// All that one call of `weir stat` is about.
struct Stat<'a> {
    channel: &'a Channel,
    args: &'a StatArgs,
    watched: &'a Watched,
    sets: &'a [EventSet],
    /// The user named the events.
    named: bool,
}

impl Stat<'_> {
    /// Makes all runs, and prints what came out.
    fn all(&mut self, workload: &mut Workload) -> Result<ExitCode> {
        let mut runs = Vec::new();
        let mut code = 0;
        for run in 0..self.args.repeat {
            // What the machine lacks need not be said again.
            let tell = self.named && run == 0;
            let (measured, end, status) = self.one(workload, tell)?;
            code = status;
            let interrupted = matches!(end, End::Signalled(_));
            // A run that was cut short says something only where it is the only one.
            if !interrupted || runs.is_empty() {
                runs.push(measured);
            }
            if interrupted {
                break;
            }
        }
        if self.args.interval.is_none() {
            let report = Report::new(self.watched, &runs);
            if self.args.json {
                output::json(&report)?;
            } else {
                let layout = Layout::new(&report, false, self.args.per_cpu);
                output::result(&layout.whole(&report))?;
            }
        }
        Ok(ExitCode::from(code))
    }

    /// Counts once: until the command ends, or whatever else is waited for. Gives the status of the command.
    fn one(&self, workload: &mut Workload, tell: bool) -> Result<(Measured, End, u8)> {
        let pid = match &self.args.command[..] {
            [program, arguments @ ..] => Some(workload.hold(program, arguments)?),
            [] => None,
        };
        let counting = Counting::open(self.channel, self.sets, &self.watched.target, pid, tell)?;
        counting.enable(&self.watched.target)?;
        workload.begin()?;
        let result = self.count(&counting, workload);
        match result {
            Ok((measured, end)) => {
                let status = workload.finish(end)?;
                Ok((measured, end, status))
            }
            Err(error) => {
                // The command must not stay behind; what went wrong before is what matters.
                workload.finish(End::TimeUp)?;
                Err(error)
            }
        }
    }

    /// Waits for the end, and prints each interval where that is asked for.
    fn count(&self, counting: &Counting<'_>, workload: &mut Workload) -> Result<(Measured, End)> {
        let end = match self.args.interval {
            Some(interval) => self.intervals(counting, workload, interval)?,
            None => loop {
                if let Wake::Over(end) = workload.wait(None)? {
                    break end;
                }
            },
        };
        let duration = workload.elapsed();
        counting.disable()?;
        let measured = Measured {
            duration,
            rows: counting.read()?,
        };
        Ok((measured, end))
    }

    fn intervals(
        &self,
        counting: &Counting<'_>,
        workload: &mut Workload,
        interval: Duration,
    ) -> Result<End> {
        let begin = Instant::now();
        // The command may have done a lot before it could be read for the first time.
        let mut before = Measured {
            duration: Duration::ZERO,
            rows: counting.nothing(),
        };
        let mut layout = None;
        for number in 1u32.. {
            // As many whole intervals after the beginning, so that what each takes does not add up.
            let time = begin.checked_add(interval.saturating_mul(number));
            let wake = workload.wait_until(None, time)?;
            let now = Measured {
                duration: workload.elapsed(),
                rows: counting.read()?,
            };
            let report = Report::interval(self.watched, &before, &now);
            before = now;
            let text = if self.args.json {
                format!("{}\n", serde_json::to_string(&report)?)
            } else {
                let first = layout.is_none();
                let layout =
                    layout.get_or_insert_with(|| Layout::new(&report, true, self.args.per_cpu));
                let header = if first {
                    layout.header()
                } else {
                    String::new()
                };
                header + &layout.rows(&report)
            };
            let seen_enough = !output::stream(&text)?;
            if let Some(Wake::Over(end)) = wake {
                return Ok(end);
            }
            if seen_enough || self.args.interval_count == Some(number) {
                return Ok(End::TimeUp);
            }
        }
        Ok(End::TimeUp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_events_exist() {
        for list in [DEFAULT, DEFAULT_CPUS] {
            let sets = parse_events(list, &EventPaths::default()).unwrap();
            assert_eq!(sets.len(), 8);
        }
    }
}
