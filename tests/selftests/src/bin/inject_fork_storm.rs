// SPDX-License-Identifier: GPL-2.0

//! Dumps of tasks while others are born and die all the time: whoever lives throughout is in every dump
//! exactly once, and nobody is in one twice.

use anyhow::{
    ensure,
    Result, //
};
use clap::Parser;
use libweir::ChannelOptions;
use std::{
    process::{
        ExitCode,
        Stdio, //
    },
    sync::atomic::{
        AtomicBool,
        AtomicU64,
        Ordering, //
    },
    thread,
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    child::{
        self,
        Standing,
        Threads, //
    },
    dump::{
        compare,
        dump, //
    },
    ktap::{
        self,
        note,
        Verdict, //
    },
    session::Session,
    tasks,
};

const STANDING: &str = "standing";
const SHORT: &str = "short";

/// Tests that a dump of tasks misses none and repeats none while tasks are born and die.
///
/// Needs weir.ko, and root.
#[derive(Parser)]
struct Arguments {
    /// How long each test dumps.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    seconds: f64,
}

/// Most objects of a call, for one dump after the other.
const LENGTHS: [u64; 3] = [1, 7, 0];

struct Context {
    threads: Threads,
    processes: Vec<Standing>,
    duration: Duration,
}

/// Dumps over and over while `storm` runs in `workers` threads.
///
/// `storm` gives birth to some tasks, sees them die, and says how many they were.
fn storm(context: &Context, workers: usize, storm: fn() -> Result<u64>) -> Verdict {
    let born = AtomicU64::new(0);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let blowing: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        born.fetch_add(storm()?, Ordering::Relaxed);
                    }
                    Ok::<_, anyhow::Error>(())
                })
            })
            .collect();
        let verdict = dump_all_the_time(context);
        ended.store(true, Ordering::Relaxed);
        for worker in blowing {
            worker
                .join()
                .map_err(|_| anyhow::anyhow!("a worker panicked"))??;
        }
        verdict
    })?;
    let born = born.into_inner();
    note(format_args!("{born} tasks were born and have died"));
    ensure!(born > 0, "no task was born, so this has shown nothing");
    Ok(())
}

fn dump_all_the_time(context: &Context) -> Verdict {
    let options = ChannelOptions {
        max_latency: Duration::from_secs(3600),
        ..Default::default()
    };
    let mut session = Session::open(&options, 64)?;
    let begin = Instant::now();
    let (mut dumps, mut most, mut interrupted) = (0, 0, 0);
    let mut before = tasks::all()?;
    // A call each for few tasks gives others the most time to come and go in between. Every length has
    // its turn, however slow the machine is.
    for len in LENGTHS.into_iter().cycle() {
        let (dumped, calls) = dump(&mut session, len, 0)?;
        let after = tasks::all()?;
        compare(&dumped, &before, &after)?;
        before = after;
        let standing = context.threads.tids().iter().copied();
        for tid in standing.chain(context.processes.iter().map(Standing::pid)) {
            let count = dumped.iter().filter(|task| task.fork.tid == tid).count();
            ensure!(
                count == 1,
                "task {tid}, which stands, came {count} times with a length of {len}"
            );
        }
        dumps += 1;
        most = most.max(dumped.len());
        // A thread that starts a process blocks signals for a moment; when a child of it ends just then,
        // the kernel gives the signal, which everybody ignores, to another thread, such as this one.
        interrupted += calls.interrupted;
        if begin.elapsed() >= context.duration && dumps >= LENGTHS.len() {
            break;
        }
    }
    note(format_args!(
        "{dumps} dumps, the largest of {most} tasks; signals met {interrupted} calls"
    ));
    Ok(())
}

fn threads(context: &mut Context) -> Verdict {
    storm(context, 4, || {
        let brothers: Vec<_> = (0..4)
            .map(|_| {
                thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn(thread::yield_now)
            })
            .collect();
        for brother in brothers {
            brother?
                .join()
                .map_err(|_| anyhow::anyhow!("a thread of the storm panicked"))?;
        }
        Ok(4)
    })
}

fn processes(context: &mut Context) -> Verdict {
    storm(context, 3, || {
        let mut command = child::command(SHORT)?;
        let status = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()?;
        ensure!(status.success(), "a process of the storm gave {status}");
        Ok(1)
    })
}

fn setup(arguments: &Arguments) -> Result<Context> {
    Ok(Context {
        threads: Threads::start(20)?,
        processes: (0..4)
            .map(|_| Standing::start(child::command(STANDING)?))
            .collect::<Result<_>>()?,
        duration: Duration::try_from_secs_f64(arguments.seconds)?,
    })
}

fn main() -> ExitCode {
    match child::role().as_deref() {
        Some(STANDING) => child::end(child::stay()),
        Some(SHORT) => ExitCode::SUCCESS,
        _ => {
            let arguments = Arguments::parse();
            ktap::main(
                || setup(&arguments),
                &[("threads", threads), ("processes", processes)],
            )
        }
    }
}
