// SPDX-License-Identifier: GPL-2.0

//! Counters as kernel code uses them: known work, reading from every context, overflow callbacks, PMUs that
//! go away, and what is refused. The tests themselves are in `tests/module/counters_*.c`.

use anyhow::Result;
use clap::Parser;
use std::{
    hint::spin_loop,
    path::PathBuf,
    process::ExitCode,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    },
    thread,
    time::Duration, //
};
use weir_selftests::{
    counters::Counters,
    counters_tests,
    ktap::{
        self,
        Test,
        Verdict, //
    },
};

/// Tests the interface of counters for other modules.
///
/// Needs weir.ko, and weir_counters.ko or its file, and root.
#[derive(Parser)]
struct Arguments {
    /// File of weir_counters.ko, to load it where it is not there.
    #[arg(long, env = "WEIR_COUNTERS_KO", value_name = "FILE")]
    counters: Option<PathBuf>,
    /// How long each test runs that does something again and again.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.25)]
    seconds: f64,
}

/// Overflows in user space, where something computes.
fn overflow_user(counters: &mut Counters) -> Verdict {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                spin_loop();
            }
        });
        let verdict = counters.run("overflow_user");
        stop.store(true, Ordering::Relaxed);
        verdict
    })
}

fn setup(arguments: &Arguments) -> Result<Counters> {
    Counters::open(
        arguments.counters.as_deref(),
        Duration::from_secs_f64(arguments.seconds),
    )
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut tests: Vec<Test<Counters>> = counters_tests!(
        count_on_cpu,
        count_on_all,
        count_in_task,
        count_set,
        count_faults,
        count_switches,
        read_local_on_cpu,
        read_local_in_task,
        read_local_elsewhere,
        read_while_counting,
        read_many,
        read_cached,
        overflow_exact,
        overflow_reads,
        overflow_places,
        overflow_contexts,
        overflow_throttled,
        stop_breakpoint,
        stop_in_nmi,
        refresh_breakpoint,
        change_period,
        release_while_hit,
        pmu_slots,
        revoke_hardware,
        revoke_software,
        revoke_while_used,
        misuse_create,
        misuse_call,
        misuse_release,
    )
    .into();
    tests.push(("overflow_user", overflow_user));
    ktap::main(|| setup(&arguments), &tests)
}
