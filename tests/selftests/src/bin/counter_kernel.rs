// SPDX-License-Identifier: GPL-2.0

//! Counters as kernel code uses them: known work, reading from every context, overflow callbacks, PMUs that
//! go away, and what is refused. The tests themselves are in `tests/module/counters_*.c`.

use anyhow::Result;
use clap::Parser;
use std::{
    hint::spin_loop,
    path::PathBuf,
    process::ExitCode,
    sync::{
        atomic::{
            AtomicBool,
            Ordering, //
        },
        mpsc, //
    },
    thread,
    time::Duration, //
};
use weir_selftests::{
    child,
    counters::Counters,
    counters_tests,
    ktap::{
        self,
        Test,
        Verdict, //
    },
    worker::{
        self,
        Worker, //
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

/// A child of the task is what overflows.
fn stop_inherited(counters: &mut Counters) -> Verdict {
    let mut worker = Worker::start()?;
    let pid = worker.pid();
    let (end, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        // Each of its children lives longer than the test needs one.
        let works = scope.spawn(move || -> Verdict {
            while let Err(mpsc::TryRecvError::Empty) = ended.try_recv() {
                worker.order("children 1 again 300 touch 20")?;
            }
            worker.end()
        });
        let verdict = counters.run_in("stop_inherited", pid);
        drop(end);
        let works = works.join().expect("it does not panic");
        verdict.and(works)
    })
}

fn setup(arguments: &Arguments) -> Result<Counters> {
    Counters::open(
        arguments.counters.as_deref(),
        Duration::from_secs_f64(arguments.seconds),
    )
}

fn main() -> ExitCode {
    if child::role().is_some() {
        return child::end(worker::obey());
    }
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
    tests.push(("stop_inherited", stop_inherited));
    ktap::main(|| setup(&arguments), &tests)
}
