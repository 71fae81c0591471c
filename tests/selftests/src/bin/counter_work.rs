// SPDX-License-Identifier: GPL-2.0

//! Counters of known work, in a task, on a CPU and on all: exact, and equal to perf's own beside them.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    cpu,
    Attr,
    Channel,
    CounterOptions,
    Scope, //
};
use std::{
    process::ExitCode,
    sync::mpsc,
    thread,
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    affinity::{
        bind,
        on_cpu, //
    },
    beside::{
        channel,
        Beside, //
    },
    child::tid,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    work::{
        rename,
        spin,
        switches,
        task_rename,
        touch,
        watched,
        write_watched,
        PingPong,
        CONTEXT_SWITCHES,
        CPU_CLOCK,
        PAGE_FAULTS,
        TASK_CLOCK, //
    },
};

/// Compares in this task, and on each CPU and on all while the work is done on it.
fn everywhere(
    channel: &Channel,
    attr: Attr,
    perfs: Attr,
    known: u64,
    work: &mut dyn FnMut() -> Result<()>,
) -> Verdict {
    Beside::unlike(channel, attr, perfs, Scope::Task(0))?.exactly(known, work)?;
    for cpu in cpu::online()? {
        for scope in [Scope::Cpu(cpu), Scope::All] {
            let beside = Beside::unlike(channel, attr, perfs, scope)?;
            on_cpu(cpu, || beside.exactly(known, work))??;
        }
    }
    Ok(())
}

fn page_faults(channel: &mut Channel) -> Verdict {
    for pages in [1, 100, 1000] {
        let attr = PAGE_FAULTS.into();
        everywhere(channel, attr, attr, pages as u64, &mut || touch(pages))?;
    }
    Ok(())
}

fn context_switches(channel: &mut Channel) -> Verdict {
    const EXCHANGES: u64 = 100;
    let beside = Beside::new(channel, CONTEXT_SWITCHES.into(), Scope::Task(0))?;
    for cpu in cpu::online()? {
        on_cpu(cpu, || -> Verdict {
            let mut thread = PingPong::start(cpu)?;
            beside.exactly(EXCHANGES, &mut || thread.exchange(EXCHANGES))?;
            // What the scheduler itself has counted.
            let mut told = 0;
            let compared = beside.during(&mut || {
                let before = switches()?;
                thread.exchange(EXCHANGES)?;
                told = switches()? - before;
                Ok(())
            })?;
            ensure!(
                (EXCHANGES..=compared.value).contains(&told),
                "the scheduler has counted {told}: {compared:?}"
            );
            // Both threads are switched out here.
            let here = Beside::new(channel, CONTEXT_SWITCHES.into(), Scope::Cpu(cpu))?;
            let compared = here.during(&mut || thread.exchange(EXCHANGES))?;
            ensure!(compared.value >= 2 * EXCHANGES, "{compared:?}");
            Ok(())
        })??;
    }
    Ok(())
}

fn breakpoint(channel: &mut Channel) -> Verdict {
    for times in [1, 333] {
        everywhere(channel, watched(0), watched(1), times, &mut || {
            write_watched(times);
            Ok(())
        })?;
    }
    Ok(())
}

fn tracepoint(channel: &mut Channel) -> Verdict {
    let attr = task_rename()?.ok_or_else(|| skip("this kernel has no tracepoints"))?;
    everywhere(channel, attr, attr, 77, &mut || rename(77))
}

/// What one CPU did is counted there, and nowhere else.
fn on_its_cpu_only(channel: &mut Channel) -> Verdict {
    const TIMES: u64 = 50;
    let cpus = cpu::online()?;
    let all = channel.counter_create(&CounterOptions::new(watched(0), Scope::All))?;
    all.enable()?;
    let mut expected = vec![0; cpus.len()];
    for (index, cpu) in cpus.iter().enumerate() {
        let times = TIMES * (index as u64 + 1);
        on_cpu(*cpu, || write_watched(times))?;
        expected[index] += times;
        let values = all.read_per_cpu()?;
        let found: Vec<_> = values.iter().map(|value| value.value).collect();
        let on: Vec<_> = values.iter().filter_map(|value| value.cpu).collect();
        ensure!(on == cpus, "there are CPUs {cpus:?}: {values:?}");
        ensure!(found == expected, "{found:?} is not {expected:?}");
    }
    let sum = all.read_first()?;
    ensure!(
        sum.value == expected.iter().sum::<u64>() && sum.cpu.is_none(),
        "{expected:?} in sum are {sum:?}"
    );
    Ok(())
}

/// Whatever CPU it is read from, and whatever the task does meanwhile, nothing is counted twice or missed.
fn reads_from_another_cpu(channel: &mut Channel) -> Verdict {
    let attr = task_rename()?.ok_or_else(|| skip("this kernel has no tracepoints"))?;
    const TIMES: u64 = 20_000;
    const PART: u64 = 100;
    const PATIENCE: Duration = Duration::from_secs(60);
    let cpus = cpu::online()?;
    let (first, last) = (cpus[0], *cpus.last().context("there is a CPU")?);
    if first == last {
        return Err(skip("there is one CPU only"));
    }
    let (send_tid, receive_tid) = mpsc::channel();
    let (begin, begins) = mpsc::channel();
    let worker = thread::spawn(move || -> Verdict {
        bind(last)?;
        send_tid.send(tid())?;
        begins.recv()?;
        for _ in 0..TIMES / PART {
            rename(PART)?;
        }
        // It stays in its task while that sleeps.
        begins.recv()?;
        Ok(())
    });
    let task = receive_tid.recv()?;
    let scopes = [Scope::Task(task as i32), Scope::Cpu(last), Scope::All];
    let mut counters = Vec::new();
    for scope in scopes {
        let counter = channel.counter_create(&CounterOptions::new(attr, scope))?;
        counter.enable()?;
        counters.push(counter);
    }
    let reads = on_cpu(first, || -> Result<u64> {
        begin.send(())?;
        let begun = Instant::now();
        let mut before = [0; 3];
        let mut reads = 0;
        while before != [TIMES; 3] {
            for (counter, before) in counters.iter().zip(&mut before) {
                let value = counter.read_first()?.value;
                ensure!(
                    (*before..=TIMES).contains(&value),
                    "from {before} to {value} of {TIMES}: {:?}",
                    counter.scope()
                );
                *before = value;
            }
            reads += 1;
            ensure!(begun.elapsed() < PATIENCE, "it ends at {before:?}");
        }
        Ok(reads)
    })??;
    note(format_args!("{reads} reads meanwhile"));
    ensure!(reads > 2, "it was read {reads} times only");
    begin.send(())?;
    worker.join().expect("it does not panic")?;
    // The task has gone; what it counted has not.
    let value = counters[0].read_first()?;
    ensure!(value.value == TIMES, "after the end of the task: {value:?}");
    Ok(())
}

/// Clocks go with the task, and with the CPU.
fn clocks(channel: &mut Channel) -> Verdict {
    const WORK: Duration = Duration::from_millis(50);
    let wall = WORK.as_nanos() as u64;
    let cpus = cpu::online()?;
    for cpu in cpus {
        for (event, scope) in [
            (TASK_CLOCK, Scope::Task(0)),
            (CPU_CLOCK, Scope::Task(0)),
            (CPU_CLOCK, Scope::Cpu(cpu)),
        ] {
            let options = CounterOptions::new(event, scope);
            let counter = channel.counter_create(&options)?;
            counter.enable()?;
            on_cpu(cpu, || spin(WORK))?;
            let busy = counter.read_first()?;
            // Somebody else may have had the CPU for a part of it.
            ensure!(
                busy.value >= wall / 2 && busy.value <= busy.enabled + wall / 50,
                "{options:?} of {WORK:?} is {busy:?}"
            );
            ensure!(
                busy.running <= busy.enabled && busy.together,
                "{options:?}: {busy:?}"
            );
            thread::sleep(WORK);
            let slept = counter.read_first()?;
            let more = slept.value - busy.value;
            let is_expected = match scope {
                Scope::Task(_) => more < wall / 2,
                _ => more >= wall * 9 / 10,
            };
            ensure!(is_expected, "{options:?}: {more} ns more while it slept");
        }
    }
    // On all, it is as much as there are CPUs.
    let beside = Beside::new(channel, CPU_CLOCK.into(), Scope::All)?;
    let compared = beside.during(&mut || {
        thread::sleep(WORK);
        Ok(())
    })?;
    let least = wall * cpu::online()?.len() as u64;
    ensure!(compared.value >= least, "{compared:?} in {WORK:?}");
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(
        channel,
        &[
            ("page_faults", page_faults),
            ("context_switches", context_switches),
            ("breakpoint", breakpoint),
            ("tracepoint", tracepoint),
            ("on_its_cpu_only", on_its_cpu_only),
            ("reads_from_another_cpu", reads_from_another_cpu),
            ("clocks", clocks),
        ],
    )
}
