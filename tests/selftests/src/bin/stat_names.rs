// SPDX-License-Identifier: GPL-2.0

//! `weir stat` knows the names of events that `perf stat` of the same kernel knows, and ends as it does.

use anyhow::ensure;
use std::process::ExitCode;
use weir_selftests::{
    ktap::{
        self,
        Verdict, //
    },
    stat::{
        self,
        Counts,
        TOOLS, //
    },
    stat_work::{
        arguments,
        work, //
    },
};

/// Nothing more than to be executed, and to end.
const NOTHING: &str = "touch 0";

/// Whether a command succeeded, failed, or was killed is what both pass on.
fn exit_status(_: &mut ()) -> Verdict {
    for (work, expected) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("die 9", 137),
        ("die 15", 143),
    ] {
        for tool in TOOLS {
            let output = tool.run(&arguments(&["-e", "cs"], work)?)?;
            ensure!(
                output.status.code() == Some(expected),
                "{tool} of `{work}` ended with {}",
                output.status
            );
        }
    }
    for tool in TOOLS {
        let output = tool.run(&["-e", "cs", "--", "/nonexistent/command"])?;
        ensure!(
            output.status.code().is_some_and(|code| code != 0),
            "{tool} of a command that is not there ended with {}",
            output.status
        );
    }
    Ok(())
}

/// Which events were counted. Modifiers are left out: perf does not tell those of tracepoints and of sets.
fn supported(counts: &Counts) -> Vec<(String, bool)> {
    let mut events: Vec<_> = (counts.iter())
        .map(|(event, count)| {
            let name = match event.rsplit_once(':') {
                Some((name, letters)) if letters.bytes().all(|letter| b"ukh".contains(&letter)) => {
                    name
                }
                _ => event,
            };
            (name.to_owned(), count.is_some())
        })
        .collect();
    events.sort();
    events
}

/// Both know the same names, say the same of what the machine lacks, and refuse the same.
fn names(_: &mut ()) -> Verdict {
    const KNOWN: &[&str] = &[
        "cpu-clock",
        "task-clock",
        "page-faults",
        "faults",
        "minor-faults",
        "major-faults",
        "context-switches",
        "cs",
        "cpu-migrations",
        "migrations",
        "alignment-faults",
        "emulation-faults",
        "cgroup-switches",
        "dummy",
        "bpf-output",
        "cs:u",
        "page-faults:k",
        "page-faults:uk",
        "page-faults:ukh",
        "{cs,faults}",
        "{cs,faults}:u",
        "cs,{faults,dummy},task-clock",
        "software/config=3/",
        "software/config=0x2/u",
        "software/config=0x2,name=mine/",
        "sched:sched_switch",
        "sched:sched_switch:k",
        "sched:sched_process_*",
        "task:task_rename",
        "cs,cycles",
        "cs,instructions:u",
        "cs,cache-misses",
        "cs,L1-dcache-load-misses",
        "cs,r1a8",
    ];
    const UNKNOWN: &[&str] = &[
        "no-such-event",
        "sched:no_such_event",
        "no_such_system:sched_switch",
        "cs:y",
        "software/no_such_term=1/",
        "no_such_pmu/config=1/",
    ];
    let mut wrong = Vec::new();
    for list in KNOWN {
        let arguments = arguments(&["-e", list], NOTHING)?;
        let said = TOOLS.map(|tool| tool.count(&arguments).map(|counts| supported(&counts)));
        match said {
            [Ok(perf), Ok(weir)] if perf == weir => {}
            [perf, weir] => wrong.push(format!("{list}: perf says {perf:?}, weir {weir:?}")),
        }
    }
    for list in UNKNOWN {
        let arguments = arguments(&["-e", list], NOTHING)?;
        for tool in TOOLS {
            if tool.run(&arguments)?.status.success() {
                wrong.push(format!("{tool} counts `{list}`"));
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn main() -> ExitCode {
    if let Some(status) = work() {
        return status;
    }
    ktap::main(
        stat::setup,
        &[("exit_status", exit_status), ("names", names)],
    )
}
