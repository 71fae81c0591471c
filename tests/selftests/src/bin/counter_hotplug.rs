// SPDX-License-Identifier: GPL-2.0

//! Counters while CPUs go and come back: what was counted stays, and what comes back is counted.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    Attr,
    Channel,
    Counter,
    CounterOptions,
    Errno,
    ReadOptions,
    Scope,
    Value, //
};
use std::{
    process::ExitCode,
    sync::{
        atomic::{
            AtomicBool,
            Ordering::Relaxed, //
        },
        Arc, //
    },
    thread,
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    affinity::on_cpu,
    beside,
    hotplug::Hotplug,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    work::{
        rename,
        task_rename,
        touch,
        watched,
        write_watched,
        CPU_CLOCK,
        PAGE_FAULTS, //
    },
};

/// How often the CPU goes.
const TIMES: u64 = 4;

/// How long events that are created late may take.
const PATIENCE: Duration = Duration::from_secs(10);

struct Context {
    channel: Channel,
    cpu: Hotplug,
}

impl Context {
    fn number(&self) -> u32 {
        self.cpu.number as u32
    }
}

fn setup() -> Result<Context> {
    Ok(Context {
        channel: beside::channel()?,
        cpu: Hotplug::find()?,
    })
}

/// Waits for the events of a CPU that came back.
fn wait(counter: &Counter<'_>) -> Verdict {
    let begin = Instant::now();
    while counter.read_first()?.missing {
        ensure!(begin.elapsed() < PATIENCE, "a CPU is missed for ever");
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// What a counter says of the CPU that goes; none where it never counted there.
fn of_cpu(counter: &Counter<'_>, cpu: u32) -> Result<Option<Value>> {
    let values = counter.read_per_cpu()?;
    Ok(values.into_iter().find(|value| value.cpu == Some(cpu)))
}

/// Work on the CPU that goes is counted before it goes and after it came back, and none is forgotten.
fn follow(context: &Context, attr: Attr, work: fn(u64) -> Result<()>) -> Verdict {
    const WORK: u64 = 25;
    let cpu = context.number();
    let options = CounterOptions::new(attr, Scope::All);
    let counter = context.channel.counter_create(&options)?;
    counter.enable()?;
    let here = |times| on_cpu(0, || work(times))?;
    let there = |times| on_cpu(cpu, || work(times))?;
    let check = |what: &str, sum: u64, away: u64| -> Result<Value> {
        let value = counter.read_first()?;
        ensure!(value.value == sum, "{what}: {sum} events are {value:?}");
        let of_cpu = of_cpu(&counter, cpu)?.context("it has counted there")?;
        ensure!(
            of_cpu.value == away,
            "{what}: {away} on CPU {cpu} are {of_cpu:?}"
        );
        Ok(of_cpu)
    };
    let mut sum = 0;
    let mut away = 0;
    for time in 1..=TIMES {
        here(WORK)?;
        there(WORK * time)?;
        sum += WORK + WORK * time;
        away += WORK * time;
        check("before it goes", sum, away)?;
        context.cpu.set(false)?;
        let gone = check("when it has gone", sum, away)?;
        thread::sleep(Duration::from_millis(3));
        let later = check("when it has gone", sum, away)?;
        ensure!(
            (gone.enabled, gone.running) == (later.enabled, later.running),
            "its time goes on: {gone:?}, {later:?}"
        );
        ensure!(!gone.missing, "an offline CPU is not missed: {gone:?}");
        here(WORK)?;
        sum += WORK;
        check("while it is away", sum, away)?;
        context.cpu.set(true)?;
        wait(&counter)?;
        let back = check("when it came back", sum, away)?;
        there(WORK)?;
        sum += WORK;
        away += WORK;
        let value = check("when it is back", sum, away)?;
        ensure!(
            value.enabled > back.enabled && value.running > back.running,
            "its time stands: {back:?}, {value:?}"
        );
    }
    Ok(())
}

fn breakpoint(context: &mut Context) -> Verdict {
    follow(context, watched(0), |times| {
        write_watched(times);
        Ok(())
    })
}

/// Events of tracepoints are created a moment after the CPU came.
fn tracepoint(context: &mut Context) -> Verdict {
    let attr = task_rename()?.ok_or_else(|| skip("this kernel has no tracepoints"))?;
    follow(context, attr, rename)
}

/// Page faults go on where they were; there are others than the known ones.
fn page_faults(context: &mut Context) -> Verdict {
    const PAGES: u64 = 200;
    let cpu = context.number();
    let options = CounterOptions::new(PAGE_FAULTS, Scope::All);
    let counter = context.channel.counter_create(&options)?;
    counter.enable()?;
    let mut before = 0;
    for _ in 0..TIMES {
        on_cpu(cpu, || touch(PAGES as usize))??;
        let counted = of_cpu(&counter, cpu)?.context("it has counted there")?;
        ensure!(
            (before + PAGES..before + PAGES + 100).contains(&counted.value),
            "{PAGES} after {before} are {counted:?}"
        );
        context.cpu.set(false)?;
        context.cpu.set(true)?;
        wait(&counter)?;
        before = counted.value;
    }
    Ok(())
}

/// A clock runs while its CPU is there, as long as the counter is enabled.
fn clock(context: &mut Context) -> Verdict {
    let cpu = context.number();
    let options = CounterOptions::new(CPU_CLOCK, Scope::All);
    let counter = context.channel.counter_create(&options)?;
    // Disabled, it stays so when the CPU is back.
    context.cpu.set(false)?;
    context.cpu.set(true)?;
    let value = of_cpu(&counter, cpu)?.context("it is there")?;
    ensure!((value.value, value.enabled) == (0, 0), "{value:?}");
    counter.enable()?;
    thread::sleep(Duration::from_millis(10));
    context.cpu.set(false)?;
    // Enabled and disabled while it is away.
    counter.disable()?;
    counter.enable()?;
    let gone = of_cpu(&counter, cpu)?.context("it is there")?;
    ensure!(gone.value >= 10_000_000, "{gone:?}");
    context.cpu.set(true)?;
    thread::sleep(Duration::from_millis(10));
    let back = of_cpu(&counter, cpu)?.context("it is there")?;
    ensure!(back.value >= gone.value + 10_000_000, "{gone:?}, {back:?}");
    counter.disable()?;
    let stopped = of_cpu(&counter, cpu)?;
    context.cpu.set(false)?;
    context.cpu.set(true)?;
    thread::sleep(Duration::from_millis(10));
    ensure!(
        of_cpu(&counter, cpu)? == stopped,
        "it is disabled, {stopped:?} no more"
    );
    Ok(())
}

/// What is created while a CPU is away counts there when it comes.
fn created_while_it_is_away(context: &mut Context) -> Verdict {
    let cpu = context.number();
    context.cpu.set(false)?;
    let one = CounterOptions::new(watched(0), Scope::Cpu(cpu));
    let result = context.channel.counter_create(&one).map(|c| c.id());
    let errno = result.as_ref().err().and_then(libweir::Error::errno);
    ensure!(
        errno == Some(Errno::NODEV),
        "a counter on a CPU that is away: {result:?}"
    );
    let options = CounterOptions::new(watched(0), Scope::All);
    let counter = context.channel.counter_create(&options)?;
    counter.enable()?;
    ensure!(
        of_cpu(&counter, cpu)?.is_none(),
        "it never counted on CPU {cpu}"
    );
    context.cpu.set(true)?;
    on_cpu(cpu, || write_watched(9))?;
    let (value, sum) = (of_cpu(&counter, cpu)?, counter.read_first()?);
    ensure!(
        value.is_some_and(|value| value.value == 9) && sum.value == 9 && !sum.missing,
        "{value:?}, in sum {sum:?}"
    );
    Ok(())
}

/// A counter of one CPU ends with it: what it has is read, but it counts no more.
fn of_one_cpu(context: &mut Context) -> Verdict {
    let cpu = context.number();
    let options = CounterOptions::new(watched(0), Scope::Cpu(cpu));
    let counter = context.channel.counter_create(&options)?;
    counter.enable()?;
    on_cpu(cpu, || write_watched(9))?;
    context.cpu.set(false)?;
    let check = |what| -> Verdict {
        let value = counter.read_first()?;
        ensure!(value.value == 9, "{what}: {value:?}");
        let errno = counter.enable().err().and_then(|error| error.errno());
        ensure!(
            errno == Some(Errno::NODEV),
            "{what}, enabling it: {errno:?}"
        );
        Ok(())
    };
    check("when its CPU has gone")?;
    context.cpu.set(true)?;
    on_cpu(cpu, || write_watched(9))?;
    check("when its CPU is back")?;
    counter.disable()?;
    counter.release()?;
    // A new one counts there.
    let counter = context.channel.counter_create(&options)?;
    counter.enable()?;
    on_cpu(cpu, || write_watched(3))?;
    ensure!(counter.read_first()?.value == 3, "{counter:?}");
    Ok(())
}

/// Counters are created, read and released while a CPU goes and comes.
fn meanwhile(context: &mut Context) -> Verdict {
    let end = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let end = end.clone();
            thread::spawn(move || -> Result<u64> {
                let channel = beside::channel()?;
                let mut events = vec![Attr::from(CPU_CLOCK), watched(number)];
                events.extend(task_rename()?);
                let mut times = 0;
                while !end.load(Relaxed) {
                    let options = CounterOptions {
                        attrs: events.clone(),
                        scope: Scope::All,
                        cached: times % 2 == 0,
                    };
                    let counter = channel.counter_create(&options)?;
                    counter.enable()?;
                    for _ in 0..10 {
                        let values = counter.read()?;
                        ensure!(values.len() == events.len(), "{values:?}");
                    }
                    counter.read_with(ReadOptions {
                        per_cpu: true,
                        cached: options.cached,
                    })?;
                    if times % 3 == 0 {
                        counter.disable()?;
                    }
                    times += 1;
                }
                Ok(times)
            })
        })
        .collect();
    for _ in 0..TIMES * 2 {
        context.cpu.set(false)?;
        context.cpu.set(true)?;
    }
    end.store(true, Relaxed);
    for thread in threads {
        let times = thread.join().expect("it does not panic")?;
        note(format_args!("{times} counters"));
        ensure!(times > 0, "nothing happened meanwhile");
    }
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(
        setup,
        &[
            ("breakpoint", breakpoint),
            ("tracepoint", tracepoint),
            ("page_faults", page_faults),
            ("clock", clock),
            ("created_while_it_is_away", created_while_it_is_away),
            ("of_one_cpu", of_one_cpu),
            ("meanwhile", meanwhile),
        ],
    )
}
