// SPDX-License-Identifier: GPL-2.0

//! Injection of tasks, a few at a time: whatever the length of a call, the tasks that come out are those
//! that `/proc` shows.

use anyhow::{
    bail,
    ensure,
    Context as _,
    Result, //
};
use clap::Parser;
use libweir::{
    uapi::{
        Cursor,
        INJECT_PROCESS,
        STOP_END,
        STOP_LEN, //
    },
    ChannelOptions,
    Errno, //
};
use nix::sched::CloneFlags;
use std::{
    collections::BTreeSet,
    process::ExitCode,
    time::Duration, //
};
use weir_selftests::{
    child::{
        self,
        Standing,
        Threads, //
    },
    dump::{
        compare,
        dump,
        request,
        Collector,
        Dumped, //
    },
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    session::Session,
    tasks::{
        self,
        Task, //
    },
};

/// Roles of other processes of this program.
const STANDING: &str = "standing";
const NAMESPACE: &str = "namespace";

/// Tests that a dump of tasks gives what `/proc` shows, however long its calls are.
///
/// Needs weir.ko, and root.
#[derive(Parser)]
struct Arguments {
    /// Tries every length up to ten, and of the longer ones each so many.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    stride: usize,
}

/// Tasks that are there throughout, so that there is something to find on any machine.
struct Context {
    threads: Threads,
    processes: Vec<Standing>,
    stride: usize,
}

fn setup(arguments: &Arguments) -> Result<Context> {
    Ok(Context {
        stride: arguments.stride,
        threads: Threads::start(10)?,
        processes: (0..3)
            .map(|_| Standing::start(child::command(STANDING)?))
            .collect::<Result<_>>()?,
    })
}

/// A channel that holds any number of tasks, and gives nothing before it is flushed.
fn session() -> Result<Session> {
    let options = ChannelOptions {
        max_latency: Duration::from_secs(3600),
        ..Default::default()
    };
    Session::open(&options, 64)
}

/// Every length from 1 to more than there are tasks.
fn every_length(context: &mut Context) -> Verdict {
    let mut session = session()?;
    let count = tasks::all()?.len() as u64;
    let longer = (11..=count + 3).step_by(context.stride);
    let lengths: Vec<u64> = (1..=10).chain(longer).collect();
    let mut before = tasks::all()?;
    // Looking into /proc takes longer than a dump, so it is done for several.
    for lengths in lengths.chunks(8) {
        let mut dumps = Vec::new();
        for len in lengths {
            let dumped = dump(&mut session, *len, 0);
            let (dumped, calls) = dumped.with_context(|| format!("with a length of {len}"))?;
            ensure!(
                calls.interrupted == 0,
                "no signal met a call, but: {calls:?}"
            );
            dumps.push((len, dumped));
        }
        let after = tasks::all()?;
        for (len, dumped) in dumps {
            compare(&dumped, &before, &after).with_context(|| format!("with a length of {len}"))?;
        }
        before = after;
    }
    note(format_args!(
        "{} lengths from 1 to {}",
        lengths.len(),
        count + 3
    ));
    // What was compared was there to be compared.
    let (dumped, _) = dump(&mut session, 0, 0)?;
    for tid in context.threads.tids() {
        ensure!(
            dumped.iter().any(|task| task.fork.tid == *tid),
            "thread {tid} is not in the dump"
        );
    }
    for process in &context.processes {
        let of = |task: &&Dumped| task.fork.pid == process.pid();
        ensure!(
            dumped.iter().filter(of).count() == 3,
            "process {} has 3 threads",
            process.pid()
        );
    }
    Ok(())
}

/// The sum of all calls is what one call without a limit gives, and the end comes where it must.
fn one_call(_: &mut Context) -> Verdict {
    let mut session = session()?;
    let before = tasks::all()?;
    let mut collector = Collector::default();
    let mut call = request(Cursor::default(), 0, 0);
    session.channel().inject(&mut call)?;
    ensure!(
        call.stop == STOP_END,
        "a call without a limit stopped early: {call:?}"
    );
    session.flush(|cpu, record| collector.record(cpu, record))?;
    let dumped = collector.finish()?;
    ensure!(
        call.read == dumped.len() as u64,
        "{} tasks came out: {call:?}",
        dumped.len()
    );
    compare(&dumped, &before, &tasks::all()?)?;

    // Behind the end there is nothing, as often as it is asked for.
    for _ in 0..2 {
        let mut behind = request(call.next, 5, 0);
        session.channel().inject(&mut behind)?;
        ensure!(
            behind.read == 0 && behind.stop == STOP_END,
            "behind the end: {behind:?}"
        );
    }
    Ok(())
}

/// A dump that begins anew in the middle gives the rest, and a call with the same cursor the same.
fn same_cursor(_: &mut Context) -> Verdict {
    let mut session = session()?;
    let mut first = request(Cursor::default(), 5, 0);
    session.channel().inject(&mut first)?;
    ensure!(
        first.read == 5 && first.stop == STOP_LEN,
        "there are not 5 tasks: {first:?}"
    );
    let mut rests = Vec::new();
    for _ in 0..2 {
        let mut collector = Collector::default();
        session.flush(|_, _| Ok(()))?;
        let mut rest = request(first.next, 5, 0);
        session.channel().inject(&mut rest)?;
        session.flush(|cpu, record| collector.record(cpu, record))?;
        let dumped = collector.finish()?;
        rests.push(dumped.iter().map(|task| task.fork.tid).collect::<Vec<_>>());
    }
    ensure!(
        rests[0] == rests[1] && rests[0].len() == 5,
        "not the same: {rests:?}"
    );
    Ok(())
}

/// A pool so small that the channel is full again and again.
fn full(_: &mut Context) -> Verdict {
    let cpus = libweir::cpu::possible()?.len();
    // Twice as many as fit into half of the pool.
    let many = Threads::start(64 * cpus)?;
    let options = ChannelOptions {
        pages: 4 * cpus as u32,
        max_latency: Duration::from_secs(3600),
        ..Default::default()
    };
    let mut session = Session::open(&options, 64)?;
    let mut before = tasks::all()?;
    for len in [0, 7, 1000] {
        let (dumped, calls) = dump(&mut session, len, 0)?;
        let after = tasks::all()?;
        compare(&dumped, &before, &after).with_context(|| format!("with a length of {len}"))?;
        before = after;
        note(format_args!(
            "{} tasks in {} calls of length {len}, {} of which stopped at a full channel",
            dumped.len(),
            calls.total,
            calls.full
        ));
        ensure!(
            calls.full > 0,
            "the channel was never full, so this has shown nothing"
        );
    }
    // Injected records are never lost: they are still there to be injected.
    for cpu in libweir::cpu::possible()? {
        let status = session.channel().status(cpu)?;
        ensure!(
            status.lost.iter().all(|lost| *lost == 0),
            "injection counts as lost: {status:?}"
        );
    }
    drop(many);
    Ok(())
}

/// Only processes are asked for.
fn processes(_: &mut Context) -> Verdict {
    let mut session = session()?;
    let leaders = || -> Result<_> {
        Ok(tasks::all()?
            .into_iter()
            .filter(|(_, task)| task.pid == task.tid)
            .collect())
    };
    for len in [0, 1, 3] {
        let before = leaders()?;
        let (dumped, _) = dump(&mut session, len, INJECT_PROCESS)?;
        compare(&dumped, &before, &leaders()?)?;
        if let Some(thread) = dumped.iter().find(|task| task.fork.pid != task.fork.tid) {
            bail!("{thread:?} is no process");
        }
    }
    Ok(())
}

/// A cursor that no task has reached gives the end at once; one that cannot be is refused.
fn cursor_beyond_the_end(_: &mut Context) -> Verdict {
    let mut session = session()?;
    let beyond = Cursor {
        major: i32::MAX as u64,
        minor: 0,
    };
    let mut call = request(beyond, 0, 0);
    session.channel().inject(&mut call)?;
    ensure!(
        call.read == 0 && call.stop == STOP_END,
        "beyond the end: {call:?}"
    );
    for (major, minor) in [(u64::MAX, 0), (1, 1), (0, u64::MAX)] {
        let mut call = request(Cursor { major, minor }, 1, 0);
        let errno = session
            .channel()
            .inject(&mut call)
            .err()
            .and_then(|error| error.errno());
        ensure!(
            errno == Some(Errno::INVAL),
            "a cursor that none was gave {errno:?}: {call:?}"
        );
    }
    session.channel().flush()?;
    ensure!(session.drain(|_, _| Ok(()))? == 0, "something was written");
    Ok(())
}

/// Whoever is in a pid namespace learns of its tasks alone, by the numbers they have there.
fn pid_namespace(_: &mut Context) -> Verdict {
    // What is started from here on is in a new one; so nothing else may be started afterwards.
    match nix::sched::unshare(CloneFlags::CLONE_NEWPID) {
        Ok(()) => child::run(child::command(NAMESPACE)?),
        Err(nix::Error::EINVAL) => Err(skip("this kernel has no pid namespaces")),
        Err(errno) => Err(errno).context("making a pid namespace"),
    }
}

/// The first process of a namespace.
fn inside_namespace() -> Verdict {
    ensure!(
        std::process::id() == 1,
        "the first process of a namespace has number 1"
    );
    let threads = Threads::start(4)?;
    let standing = Standing::start(child::command(STANDING)?)?;
    let mut session = session()?;
    let (dumped, _) = dump(&mut session, 2, 0)?;

    let found: BTreeSet<_> = dumped.iter().map(|task| task.fork.tid).collect();
    ensure!(found.len() == dumped.len(), "tasks came twice: {dumped:?}");
    let own: BTreeSet<_> = threads.tids().iter().copied().chain([1]).collect();
    let others: BTreeSet<_> = found.difference(&own).copied().collect();
    ensure!(own.is_subset(&found), "of {own:?} only {found:?} came");
    // The process that was started, with its two threads, and nothing of the world outside.
    ensure!(
        others.len() == 3 && others.contains(&standing.pid()),
        "besides {own:?} came {others:?}"
    );
    for task in &dumped {
        let (pid, ppid) = if own.contains(&task.fork.tid) {
            // The parent of the first process is not in the namespace.
            (1, 0)
        } else {
            (standing.pid(), 1)
        };
        ensure!(
            (task.fork.pid, task.fork.ppid) == (pid, ppid),
            "not {pid}, child of {ppid}: {task:?}"
        );
        let writer = &task.fork.sample_id;
        ensure!(
            (writer.pid, writer.tid) == (1, 1),
            "process 1 has written {task:?}"
        );
    }
    Ok(())
}

/// A task has one number in each namespace around its own: from outside, all of them are seen.
fn stands_in_proc(context: &mut Context) -> Verdict {
    let mut session = session()?;
    let before = tasks::all()?;
    let standing: Vec<&Task> = before
        .values()
        .filter(|task| {
            context
                .processes
                .iter()
                .any(|process| process.pid() == task.pid)
        })
        .collect();
    ensure!(
        standing.len() == 9,
        "3 processes of 3 threads each: {standing:?}"
    );
    let (dumped, _) = dump(&mut session, 0, 0)?;
    for task in standing {
        let found = dumped
            .iter()
            .find(|found| found.fork.tid == task.tid)
            .with_context(|| format!("{task:?} is not in the dump"))?;
        ensure!(
            task.has_started_at(found.fork.time),
            "{found:?} has not started with {task:?}"
        );
        ensure!(
            found.fork.ppid == std::process::id(),
            "{found:?} is a child of this process"
        );
    }
    Ok(())
}

/// Two threads beside the first one, until the test is over.
fn standing_process() -> Verdict {
    let _threads = Threads::start(2)?;
    child::stay()
}

fn main() -> ExitCode {
    let verdict = match child::role().as_deref() {
        Some(STANDING) => standing_process(),
        Some(NAMESPACE) => inside_namespace(),
        _ => {
            let arguments = Arguments::parse();
            return ktap::main(
                || setup(&arguments),
                &[
                    ("every_length", every_length),
                    ("one_call", one_call),
                    ("same_cursor", same_cursor),
                    ("full", full),
                    ("processes", processes),
                    ("cursor_beyond_the_end", cursor_beyond_the_end),
                    ("stands_in_proc", stands_in_proc),
                    ("pid_namespace", pid_namespace),
                ],
            );
        }
    };
    child::end(verdict)
}
