// SPDX-License-Identifier: GPL-2.0

//! Counters that children of a task inherit: what is done to such a counter is done to all of them.

use anyhow::{
    ensure,
    Result, //
};
use libweir::{
    attr::sample_type,
    Attr,
    Channel,
    CounterOptions,
    Errno,
    SampleLayouts,
    Scope, //
};
use std::{
    process::ExitCode,
    sync::mpsc,
    thread, //
};
use weir_selftests::{
    beside::{
        channel,
        Perf, //
    },
    child::{
        self,
        tid, //
    },
    ktap::{
        self,
        skip,
        Verdict, //
    },
    sampled::Sampled,
    work::{
        task_rename,
        PAGE_FAULTS,
        TASK_CLOCK, //
    },
    worker::{
        self,
        Worker, //
    },
};

fn counter<'a>(channel: &'a Channel, attr: Attr, pid: i32) -> Result<libweir::Counter<'a>> {
    let options = CounterOptions::new(attr.inherit(true), Scope::Task(pid));
    Ok(channel.counter_create(&options)?)
}

/// Children that were there before the counter was enabled, while it was, and while it was not.
fn enabled_and_disabled(channel: &mut Channel) -> Verdict {
    let Some(rename) = task_rename()? else {
        return Err(skip("this kernel has no tracepoints"));
    };
    let mut worker = Worker::start()?;
    let renames = counter(channel, rename, worker.pid())?;
    let clock = counter(channel, TASK_CLOCK.into(), worker.pid())?;
    let value = || Ok::<_, anyhow::Error>(renames.read_first()?.value);
    worker.order("keep")?;
    worker.order("kept rename 7")?;
    ensure!(value()? == 0, "{} before it was enabled", value()?);
    let mut known = 0;
    for children in 1..=4 {
        renames.enable()?;
        clock.enable()?;
        worker.order("kept rename 100")?;
        worker.order("rename 10")?;
        known += children * 100 + 10;
        ensure!(value()? == known, "{known} are {}", value()?);
        renames.disable()?;
        clock.disable()?;
        let before = (renames.read_first()?, clock.read_first()?);
        worker.order("kept rename 3000")?;
        worker.order("rename 3")?;
        // It has the name of its program then, which counts as well.
        worker.order("keep")?;
        let after = (renames.read_first()?, clock.read_first()?);
        ensure!(before == after, "disabled: {before:?}, then {after:?}");
        ensure!(
            before.0.value == known && before.0.enabled > 0 && before.1.value > 0,
            "{known} are {before:?}"
        );
    }
    renames.reset()?;
    ensure!(value()? == 0, "{} after a reset", value()?);
    renames.enable()?;
    worker.order("kept rename 2")?;
    ensure!(value()? == 5 * 2, "5 * 2 are {}", value()?);
    // What children counted stays when they end, and so does what they did not.
    worker.end()?;
    ensure!(value()? == 5 * 2, "5 * 2 are {}", value()?);
    Ok(())
}

/// Each event of a set is enabled and disabled in all children.
fn set(channel: &mut Channel) -> Verdict {
    let Some(rename) = task_rename()? else {
        return Err(skip("this kernel has no tracepoints"));
    };
    let mut worker = Worker::start()?;
    let options = CounterOptions {
        attrs: vec![rename.inherit(true), rename, rename.inherit(true)],
        scope: Scope::Task(worker.pid()),
        cached: false,
    };
    let counter = channel.counter_create(&options)?;
    worker.order("keep")?;
    for round in 1..=3 {
        counter.enable()?;
        worker.order("kept rename 20")?;
        worker.order("rename 1")?;
        counter.disable()?;
        worker.order("kept rename 5")?;
        worker.order("rename 5")?;
        let values: Vec<u64> = counter.read()?.iter().map(|value| value.value).collect();
        ensure!(
            values == [21 * round, round, 21 * round],
            "round {round}: {values:?}"
        );
    }
    Ok(())
}

/// Samples are of the children, and there are none while it is disabled.
fn samples(channel: &mut Channel) -> Verdict {
    const PAGES: u64 = 300;
    let mut worker = Worker::start()?;
    let attr = Attr::new(PAGE_FAULTS)
        .period(1)
        .sample_type(sample_type::TID | sample_type::ID);
    let faults = counter(channel, attr, worker.pid())?;
    let mut layouts = SampleLayouts::new();
    layouts.add(&faults);
    let take = || -> Result<Vec<u32>> {
        let sampled = Sampled::take(channel, &layouts)?;
        ensure!(sampled.lost == 0, "{} were lost", sampled.lost);
        let tasks = sampled.samples.iter().filter_map(|sample| sample.task);
        Ok(tasks.map(|(pid, _)| pid).collect())
    };
    worker.order("keep")?;
    worker.order(&format!("kept touch {PAGES}"))?;
    ensure!(take()?.is_empty(), "samples before it was enabled");
    for _ in 0..3 {
        let before = faults.read_first()?.value;
        faults.enable()?;
        worker.order(&format!("kept touch {PAGES}"))?;
        faults.disable()?;
        let (pids, counted) = (take()?, faults.read_first()?.value - before);
        let of_child = pids.iter().filter(|pid| **pid as i32 != worker.pid());
        let of_child = of_child.count() as u64;
        ensure!(
            of_child >= PAGES && pids.len() as u64 == counted,
            "{} samples of {counted} page faults, {of_child} of the child",
            pids.len()
        );
        worker.order(&format!("kept touch {PAGES}"))?;
        ensure!(take()?.is_empty(), "samples while it was disabled");
    }
    Ok(())
}

/// A child that executes a program begins to count, if the task was to begin so; perf says the same.
fn waits_for_program(channel: &mut Channel) -> Verdict {
    let Some(rename) = task_rename()? else {
        return Err(skip("this kernel has no tracepoints"));
    };
    let mut worker = Worker::start()?;
    let attr = rename.inherit(true).enable_on_exec(true);
    let counter = counter(channel, attr, worker.pid())?;
    let perf = Perf::open(&attr, Scope::Task(worker.pid()))?;
    let ours_and_perfs =
        || Ok::<_, anyhow::Error>((counter.read_first()?.value, perf.read()?.value));
    // Nothing to disable yet: it goes on waiting.
    counter.disable()?;
    worker.order("rename 5")?;
    ensure!(ours_and_perfs()? == (0, 0), "{:?}", ours_and_perfs()?);
    worker.order("exec")?;
    worker.order("keep")?;
    worker.order("rename 10")?;
    worker.order("kept rename 10")?;
    let (ours, perfs) = ours_and_perfs()?;
    ensure!(ours == perfs && ours >= 20, "{ours}, but perf has {perfs}");
    counter.disable()?;
    worker.order("kept rename 10")?;
    worker.order("rename 10")?;
    ensure!(
        ours_and_perfs()? == (ours, perfs + 20),
        "{:?}",
        ours_and_perfs()?
    );
    counter.enable()?;
    worker.order("kept rename 10")?;
    ensure!(
        ours_and_perfs()? == (ours + 10, perfs + 30),
        "{:?}",
        ours_and_perfs()?
    );
    Ok(())
}

/// Children count on when the task that had them has gone, and can be told to.
fn task_ended(channel: &mut Channel) -> Verdict {
    let Some(rename) = task_rename()? else {
        return Err(skip("this kernel has no tracepoints"));
    };
    let (tell, told) = mpsc::channel::<()>();
    let (name, named) = mpsc::channel();
    let thread = thread::spawn(move || -> Result<Worker> {
        name.send(tid())?;
        told.recv()?;
        Worker::start()
    });
    let renames = counter(channel, rename, named.recv()? as i32)?;
    tell.send(())?;
    let mut worker = thread.join().expect("it does not panic")?;
    for round in 1..=3 {
        renames.enable()?;
        worker.order("rename 6")?;
        renames.disable()?;
        worker.order("rename 1")?;
        let value = renames.read_first()?.value;
        ensure!(value == 6 * round, "round {round}: {value}");
    }
    worker.end()?;
    let errno = renames.enable().err().and_then(|error| error.errno());
    ensure!(errno == Some(Errno::SRCH), "with nobody left: {errno:?}");
    let value = renames.read_first()?.value;
    ensure!(value == 6 * 3, "{value}");
    Ok(())
}

fn main() -> ExitCode {
    if child::role().is_some() {
        return child::end(worker::obey());
    }
    ktap::main(
        channel,
        &[
            ("enabled_and_disabled", enabled_and_disabled),
            ("set", set),
            ("samples", samples),
            ("waits_for_program", waits_for_program),
            ("task_ended", task_ended),
        ],
    )
}
