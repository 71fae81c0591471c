// SPDX-License-Identifier: GPL-2.0

//! `weir stat`: how often something happens, on each CPU and on all.

use crate::{
    cli::{
        NamedEvent,
        StatArgs, //
    },
    counters, output,
    table::{
        grouped,
        seconds,
        Align,
        Table, //
    },
    workload::{
        Wake,
        Workload, //
    },
};
use anyhow::{
    Context,
    Result, //
};
use libweir::{
    Channel,
    ChannelOptions,
    Counter,
    Errno,
    Sampling,
    Value, //
};
use serde::Serialize;
use std::{
    path::Path,
    process::ExitCode, //
};

/// What is counted where the user does not say; what a machine lacks of these is no error.
const DEFAULT: [&str; 6] = [
    "cpu-clock",
    "context-switches",
    "cpu-migrations",
    "page-faults",
    "cycles",
    "instructions",
];

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Stat {
    duration_ns: u64,
    events: Vec<EventStat>,
}

/// What was counted of one event.
#[derive(Debug, PartialEq, Serialize)]
struct EventStat {
    event: String,
    supported: bool,
    /// Sum of those CPUs on which it was counted; none where that is none.
    count: Option<u64>,
    /// CPUs on which it was not.
    not_counted: Vec<u32>,
    cpus: Vec<CpuStat>,
}

/// What was counted on one CPU.
#[derive(Debug, PartialEq, Serialize)]
struct CpuStat {
    cpu: u32,
    /// What the counter says.
    value: u64,
    enabled_ns: u64,
    /// How long it really counted.
    running_ns: u64,
    /// What it would say if it had counted all the time; none where it never counted.
    count: Option<u64>,
}

impl CpuStat {
    fn new(value: &Value) -> Self {
        CpuStat {
            cpu: value.cpu.unwrap_or(0),
            value: value.value,
            enabled_ns: value.enabled,
            running_ns: value.running,
            count: value.scaled(),
        }
    }
}

impl EventStat {
    fn new(event: &str, cpus: Vec<CpuStat>) -> Self {
        let counts = cpus.iter().filter_map(|cpu| cpu.count);
        let not_counted = cpus.iter().filter(|cpu| cpu.count.is_none());
        EventStat {
            event: event.to_owned(),
            supported: true,
            count: counts.reduce(u64::saturating_add),
            not_counted: not_counted.map(|cpu| cpu.cpu).collect(),
            cpus,
        }
    }

    fn unsupported(event: &str) -> Self {
        EventStat {
            event: event.to_owned(),
            supported: false,
            count: None,
            not_counted: Vec::new(),
            cpus: Vec::new(),
        }
    }
}

/// Runs `weir stat`.
pub(crate) fn run(device: &Path, args: &StatArgs) -> Result<ExitCode> {
    let channel = Channel::create(&ChannelOptions {
        path: device.to_owned(),
        ..Default::default()
    })?;
    let events = open(&channel, &args.events)?;
    for counter in events.iter().filter_map(|(_, opened)| opened.as_ref()) {
        match counter.enable() {
            // It waits for its turn, and if that never comes its line says so.
            Err(error) if error.errno() == Some(Errno::BUSY) => {
                output::message(&error.to_string());
            }
            result => result?,
        }
    }
    let workload = Workload::start(&args.workload)?;
    let end = loop {
        if let Wake::Over(end) = workload.wait(None)? {
            break end;
        }
    };
    let duration = workload.elapsed();
    for counter in events.iter().filter_map(|(_, opened)| opened.as_ref()) {
        counter.disable()?;
    }
    let code = workload.finish(end)?;
    let events = events.iter().map(|(event, opened)| match opened {
        None => Ok(EventStat::unsupported(&event.name)),
        Some(counter) => {
            let values = counter.read_per_cpu()?;
            let cpus = values.iter().map(CpuStat::new).collect();
            Ok(EventStat::new(&event.name, cpus))
        }
    });
    let stat = Stat {
        duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        events: events.collect::<Result<_>>()?,
    };
    if args.json {
        output::json(&stat)?;
    } else {
        output::result(&text(&stat))?;
    }
    Ok(ExitCode::from(code))
}

/// An event with its counters, or none where the machine lacks it.
type Opened<'a> = (NamedEvent, Option<Counter<'a>>);

/// Opens all counters. An event that the user named must be there.
fn open<'a>(channel: &'a Channel, named: &[NamedEvent]) -> Result<Vec<Opened<'a>>> {
    if !named.is_empty() {
        let open = |event: &NamedEvent| {
            let counters = counters::open(channel, event, Sampling::None)
                .with_context(|| format!("event {}", event.name))?;
            Ok((event.clone(), Some(counters)))
        };
        return named.iter().map(open).collect();
    }
    let mut opened = Vec::new();
    let mut refusal = None;
    for name in DEFAULT {
        let event: NamedEvent = name.parse().context("a default event")?;
        match counters::open(channel, &event, Sampling::None) {
            Ok(counters) => opened.push((event, Some(counters))),
            Err(error) if counters::is_unsupported(&error) => {
                opened.push((event, None));
                refusal = Some(error);
            }
            Err(error) => return Err(error).with_context(|| format!("event {name}")),
        }
    }
    match refusal {
        // Not one event: the kernel counts nothing at all.
        Some(error) if opened.iter().all(|(_, counters)| counters.is_none()) => Err(error.into()),
        _ => Ok(opened),
    }
}

fn text(stat: &Stat) -> String {
    let mut table = Table::new(&[
        ("EVENT", Align::Left),
        ("CPU", Align::Right),
        ("COUNT", Align::Right),
        ("ENABLED s", Align::Right),
        ("RUNNING s", Align::Right),
        ("", Align::Left),
    ]);
    for event in &stat.events {
        let count = match event.count {
            _ if !event.supported => "<not supported>".to_owned(),
            None => "<not counted>".to_owned(),
            Some(count) => grouped(count),
        };
        let sum = |time: fn(&CpuStat) -> u64| event.cpus.iter().map(time).sum::<u64>();
        let time = |ns| {
            if event.supported {
                seconds(ns)
            } else {
                String::new()
            }
        };
        let missing: Vec<String> = event.not_counted.iter().map(u32::to_string).collect();
        let remark = if missing.is_empty() || event.count.is_none() {
            String::new()
        } else {
            format!("without CPU {}", missing.join(", "))
        };
        table.row([
            event.event.clone(),
            "all".into(),
            count,
            time(sum(|cpu| cpu.enabled_ns)),
            time(sum(|cpu| cpu.running_ns)),
            remark,
        ]);
        for cpu in &event.cpus {
            table.row(cpu_row(cpu));
        }
    }
    format!(
        "{}in {} s\n",
        table.text(),
        seconds(stat.duration_ns) //
    )
}

fn cpu_row(cpu: &CpuStat) -> [String; 6] {
    let remark = if cpu.count.is_some() && cpu.running_ns < cpu.enabled_ns {
        let share = 100.0 * cpu.running_ns as f64 / cpu.enabled_ns as f64;
        format!("scaled from {}, {share:.2} %", grouped(cpu.value))
    } else {
        String::new()
    };
    [
        String::new(),
        cpu.cpu.to_string(),
        cpu.count.map_or("<not counted>".into(), grouped),
        seconds(cpu.enabled_ns),
        seconds(cpu.running_ns),
        remark,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(cpu: u32, value: u64, enabled: u64, running: u64) -> CpuStat {
        CpuStat::new(&Value {
            cpu: Some(cpu),
            value,
            enabled,
            running,
            ..Default::default()
        })
    }

    #[test]
    fn a_sum_says_what_it_lacks() {
        let part = EventStat::new("cycles", vec![value(0, 10, 100, 50), value(1, 0, 100, 0)]);
        assert_eq!(part.count, Some(20));
        assert_eq!(part.not_counted, [1]);
        let none = EventStat::new("cycles", vec![value(0, 0, 100, 0)]);
        assert_eq!(none.count, None);
        let text = text(&Stat {
            duration_ns: 1_500_000_000,
            events: vec![part, none, EventStat::unsupported("instructions")],
        });
        let expected = "  \
  EVENT         CPU            COUNT  ENABLED s  RUNNING s
  cycles        all               20   0.000000   0.000000  without CPU 1
                  0               20   0.000000   0.000000  scaled from 10, 50.00 %
                  1    <not counted>   0.000000   0.000000
  cycles        all    <not counted>   0.000000   0.000000
                  0    <not counted>   0.000000   0.000000
  instructions  all  <not supported>
in 1.500000 s
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_default_events_exist() {
        for name in DEFAULT {
            name.parse::<NamedEvent>().unwrap();
        }
    }
}
