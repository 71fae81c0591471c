// SPDX-License-Identifier: GPL-2.0

//! Reading counters: many at once, each CPU, and copies that wake nobody.

use anyhow::{
    bail,
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    cpu,
    ioctl::counter_read,
    uapi::CounterValue,
    Channel,
    CounterOptions,
    Errno,
    ReadOptions,
    Scope,
    Value, //
};
use std::{
    fs,
    process::ExitCode,
    thread::sleep,
    time::Duration, //
};
use weir_selftests::{
    affinity::on_cpu,
    beside::channel,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    work::{
        spin,
        watched,
        write_watched,
        CONTEXT_SWITCHES,
        CPU_CLOCK,
        PAGE_FAULTS, //
    },
};

const MS: u64 = 1_000_000;

/// Reads with room for so many values: how many there are then.
fn read_into(
    channel: &Channel,
    options: ReadOptions,
    id: u32,
    room: usize,
) -> Result<Vec<CounterValue>, Errno> {
    let mut values = vec![CounterValue::default(); room];
    let mut request = options.request(id);
    counter_read(channel, &mut request, &mut values)?;
    values.truncate(request.count as usize);
    Ok(values)
}

/// All counters of a channel in one call, in the order of their numbers.
fn all_at_once(channel: &mut Channel) -> Verdict {
    const COUNTERS: usize = 60;
    let mut counters = Vec::new();
    let mut ids = Vec::new();
    for number in 0..COUNTERS {
        let scope = match number % 3 {
            0 => Scope::Task(0),
            1 => Scope::Cpu(0),
            _ => Scope::All,
        };
        let options = CounterOptions {
            attrs: vec![PAGE_FAULTS.into(); number % 4 + 1],
            scope,
            cached: false,
        };
        let counter = channel.counter_create(&options)?;
        counter.enable()?;
        ids.extend(counter.event_ids());
        counters.push(counter);
    }
    let values = channel.read_counters(ReadOptions::default())?;
    let found: Vec<_> = values.iter().map(|value| value.id).collect();
    ensure!(found == ids, "events {ids:?} are {found:?}");
    // Those that count the same say the same, of one instant.
    for scope in 0..3 {
        let mut same = Vec::new();
        for (number, counter) in counters.iter().enumerate().filter(|(n, _)| n % 3 == scope) {
            let of = |id| values.iter().find(|value| value.id == id);
            let value = of(counter.id()).context("it was read")?;
            // Each was enabled a moment after the one before.
            same.push((number, value.value));
        }
        ensure!(
            same.is_sorted_by(|a, b| a.1 >= b.1),
            "the first counts for the longest time: {same:?}"
        );
    }
    // With a room that is too small, nothing is told but that.
    for room in [0, 1, ids.len() - 1] {
        let result = read_into(channel, ReadOptions::default(), 0, room);
        ensure!(result == Err(Errno::NOSPC), "room for {room}: {result:?}");
    }
    let result = read_into(channel, ReadOptions::default(), 0, ids.len());
    ensure!(
        result
            .as_ref()
            .is_ok_and(|values| values.len() == ids.len()),
        "{result:?}"
    );
    // Numbers of counters that have gone are not used again.
    let last = ids.last().copied();
    drop(counters);
    ensure!(
        channel.read_counters(ReadOptions::default())?.is_empty(),
        "all have gone"
    );
    let counter = channel.counter_create(&CounterOptions::default())?;
    ensure!(Some(counter.id()) > last, "{counter:?} after {last:?}");
    Ok(())
}

/// Each CPU, of one event after the other.
fn each_cpu(channel: &mut Channel) -> Verdict {
    let cpus = cpu::online()?;
    let per_cpu = ReadOptions {
        per_cpu: true,
        cached: false,
    };
    let options = CounterOptions {
        attrs: vec![watched(0), watched(1)],
        scope: Scope::All,
        cached: false,
    };
    let counter = channel.counter_create(&options)?;
    counter.enable()?;
    for cpu in &cpus {
        on_cpu(*cpu, || write_watched(u64::from(*cpu) + 3))?;
    }
    let values = counter.read_per_cpu()?;
    for value in &values {
        let cpu = value.cpu.context("it is of a CPU")?;
        ensure!(value.value == u64::from(cpu) + 3, "{values:?}");
    }
    let mut found: Vec<_> = values.iter().map(|value| (value.id, value.cpu)).collect();
    found.sort_unstable();
    let expected: Vec<_> = counter
        .event_ids()
        .flat_map(|id| cpus.iter().map(move |cpu| (id, Some(*cpu))))
        .collect();
    ensure!(found == expected, "{found:?} instead of {expected:?}");
    let sums = counter.read()?;
    let sum: u64 = cpus.iter().map(|cpu| u64::from(*cpu) + 3).sum();
    ensure!(sums.iter().all(|value| value.value == sum), "{sums:?}");
    let result = read_into(channel, per_cpu, counter.id(), 2 * cpus.len() - 1);
    ensure!(result == Err(Errno::NOSPC), "{result:?}");

    // Of one CPU there is one value, and of a task one of no CPU.
    for (scope, cpu) in [(Scope::Cpu(cpus[0]), Some(cpus[0])), (Scope::Task(0), None)] {
        let counter = channel.counter_create(&CounterOptions::new(PAGE_FAULTS, scope))?;
        let values = counter.read_per_cpu()?;
        ensure!(
            values.len() == 1 && values[0].cpu == cpu,
            "{scope:?}: {values:?}"
        );
    }
    Ok(())
}

/// What is not kept cannot be read.
fn only_copies_that_are_kept(channel: &mut Channel) -> Verdict {
    let plain = channel.counter_create(&CounterOptions::default())?;
    let errno = plain.read_cached().err().and_then(|error| error.errno());
    ensure!(errno == Some(Errno::INVAL), "without copies: {errno:?}");
    let cached = CounterOptions {
        cached: true,
        ..Default::default()
    };
    let kept = channel.counter_create(&cached)?;
    kept.read_cached()?;
    // All of them are asked for, and one has none.
    let options = ReadOptions {
        per_cpu: false,
        cached: true,
    };
    let errno = channel.read_counters(options).err().and_then(|e| e.errno());
    ensure!(errno == Some(Errno::INVAL), "one without copies: {errno:?}");
    drop(plain);
    channel.read_counters(options)?;
    // Tasks have none.
    let task = CounterOptions {
        scope: Scope::Task(0),
        ..cached
    };
    let errno = channel.counter_create(&task).err().and_then(|e| e.errno());
    ensure!(errno == Some(Errno::INVAL), "of a task: {errno:?}");
    Ok(())
}

/// Interrupts that other CPUs have had for function calls, of one of them.
fn calls(cpu: u32) -> Result<u64> {
    const INTERRUPTS: &str = "/proc/interrupts";
    let text = fs::read_to_string(INTERRUPTS).context(INTERRUPTS)?;
    let mut lines = text.lines();
    let head = lines.next().context("it has a head")?;
    let column = head
        .split_ascii_whitespace()
        .position(|name| name == format!("CPU{cpu}"))
        .with_context(|| format!("CPU {cpu} is not in {head}"))?;
    // x86 names them; others number them, and tell what they are for.
    let line = lines
        .find(|line| line.to_lowercase().contains("function call int"))
        .ok_or_else(|| skip("this kernel does not count function call interrupts"))?;
    let count = line.split_ascii_whitespace().nth(column + 1);
    Ok(count.context("a column for each CPU")?.parse()?)
}

/// A CPU that sleeps is not woken; its copy gets older, and says what it was when the CPU went to sleep.
fn an_idle_cpu_is_left_alone(channel: &mut Channel) -> Verdict {
    const ROUNDS: u64 = 200;
    const TRIES: usize = 300;
    let cpus = cpu::online()?;
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    if first == last {
        return Err(skip("there is one CPU only"));
    }
    let options = CounterOptions {
        attrs: vec![watched(0), CPU_CLOCK.into(), CONTEXT_SWITCHES.into()],
        scope: Scope::All,
        cached: true,
    };
    let counter = channel.counter_create(&options)?;
    counter.enable()?;
    on_cpu(last, || write_watched(31))?;
    // Whether that CPU was called meanwhile. Others call it too, now and then.
    let is_called_by = |read: &dyn Fn() -> Result<()>| -> Result<bool> {
        sleep(Duration::from_micros(500));
        let before = calls(last)?;
        read()?;
        Ok(calls(last)? != before)
    };
    let read = |cached: bool| -> Result<()> {
        let options = ReadOptions {
            per_cpu: false,
            cached,
        };
        let values = counter.read_with(options)?;
        ensure!(values[0].value == 31, "{values:?}");
        Ok(())
    };
    let of_last = || -> Result<Value> {
        let values = counter.read_cached_per_cpu()?;
        let mine = values.into_iter().find(|value| value.cpu == Some(last));
        mine.context("it is there")
    };
    on_cpu(first, || -> Verdict {
        let (mut none, mut copies, mut now) = (0, 0, 0);
        for _ in 0..ROUNDS {
            none += u64::from(is_called_by(&|| Ok(()))?);
            copies += u64::from(is_called_by(&|| read(true))?);
            now += u64::from(is_called_by(&|| read(false))?);
        }
        note(format_args!(
            "{copies} of {ROUNDS} reads of copies with a call, {now} of others, {none} times without a read"
        ));
        ensure!(
            copies <= none + ROUNDS / 5,
            "reads of copies call CPU {last}"
        );
        ensure!(now >= ROUNDS - ROUNDS / 10, "others do not: what is seen?");
        // If it sleeps all the time, there is no newer copy.
        for _ in 0..TRIES {
            let old = of_last()?;
            spin(Duration::from_millis(3));
            let new = of_last()?;
            ensure!((old.value, new.value) == (31, 31), "{old:?}, {new:?}");
            if new.age >= old.age + 3 * MS {
                return Ok(());
            }
        }
        bail!("its copy does not get older")
    })?
}

/// Copies follow: of this CPU at once, of one that works in a while, of one that went to sleep when it did.
fn copies_follow(channel: &mut Channel) -> Verdict {
    let cpus = cpu::online()?;
    for scope in [Scope::All, Scope::Cpu(cpus[0])] {
        let options = CounterOptions {
            attrs: vec![watched(0)],
            scope,
            cached: true,
        };
        let counter = channel.counter_create(&options)?;
        counter.enable()?;
        on_cpu(cpus[0], || -> Verdict {
            for known in 1..50 {
                write_watched(1);
                let value = counter.read_cached()?[0];
                ensure!(value.value == known, "{known} on this CPU are {value:?}");
            }
            // It stands, and that is known.
            counter.disable()?;
            write_watched(1);
            let value = counter.read_cached()?[0];
            ensure!(value.value == 49, "disabled: {value:?}");
            counter.reset()?;
            let value = counter.read_cached()?[0];
            ensure!(value.value == 0, "reset: {value:?}");
            counter.enable()?;
            write_watched(2);
            let value = counter.read_cached()?[0];
            ensure!(value.value == 2, "enabled again: {value:?}");
            Ok(())
        })??;
    }
    let options = CounterOptions {
        attrs: vec![CPU_CLOCK.into()],
        scope: Scope::All,
        cached: true,
    };
    let counter = channel.counter_create(&options)?;
    counter.enable()?;
    for cpu in &cpus {
        // It goes to sleep after this, or to others who work.
        on_cpu(*cpu, || spin(Duration::from_millis(20)))?;
        sleep(Duration::from_millis(20));
        let values = counter.read_cached_per_cpu()?;
        let now = counter.read_per_cpu()?;
        for (copy, now) in values.iter().zip(&now) {
            ensure!(
                copy.value <= now.value && now.value - copy.value <= copy.age + 20 * MS,
                "{copy:?}, but {now:?}"
            );
        }
        let copy = values.iter().find(|value| value.cpu == Some(*cpu));
        let copy = copy.context("it is there")?;
        ensure!(copy.value >= 15 * MS, "20 ms of CPU {cpu} are {copy:?}");
    }
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(
        channel,
        &[
            ("all_at_once", all_at_once),
            ("each_cpu", each_cpu),
            ("only_copies_that_are_kept", only_copies_that_are_kept),
            ("an_idle_cpu_is_left_alone", an_idle_cpu_is_left_alone),
            ("copies_follow", copies_follow),
        ],
    )
}
