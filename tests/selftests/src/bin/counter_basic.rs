// SPDX-License-Identifier: GPL-2.0

//! Counters: they count and sample while they are enabled, on their CPU, under their number, and not
//! after.

use anyhow::{
    bail,
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    ioctl::{
        counter_control,
        counter_create,
        counter_read,
        COUNTER_DISABLE,
        COUNTER_ENABLE,
        COUNTER_RELEASE, //
    },
    uapi::{
        CounterValue,
        Sample,
        MISC_CPUMODE_MASK,
        MISC_KERNEL,
        MISC_USER, //
    },
    Attr,
    ChannelOptions,
    CounterOptions,
    Errno,
    Event,
    ReadOptions,
    Record,
    Scope, //
};
use std::{
    process::ExitCode,
    thread::sleep,
    time::Duration, //
};
use weir_selftests::{
    affinity::on_cpu,
    child::tid,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    session::Session,
    syscall::Guarded,
    work::{
        spin,
        CONTEXT_SWITCHES,
        PAGE_FAULTS, //
    },
};

const MS: u64 = 1_000_000;

/// Every counter of a test is on this channel.
fn session() -> Result<Session> {
    Session::open(&ChannelOptions::default(), 64)
}

/// Tests nothing where the kernel has no perf events.
fn setup() -> Result<()> {
    let session = session()?;
    let options = options(Event::CPU_CLOCK, 0, 0);
    let result = counter_create(
        session.channel(),
        &mut options.request(None),
        &mut options.attrs.clone(),
    );
    match result {
        Err(Errno::OPNOTSUPP) => Err(skip("this kernel has no perf events")),
        result => result.context("creating a counter"),
    }
}

/// All samples that are there now.
fn samples(session: &mut Session) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    session.flush(|_, record| match record {
        Record::Sample(sample) => {
            samples.push(*sample);
            Ok(())
        }
        _ => bail!("{record:?} where only counters write"),
    })?;
    Ok(samples)
}

/// `cpu-clock` samples whoever runs, every millisecond, on the CPU asked for.
fn samples_of_each_cpu(_: &mut ()) -> Verdict {
    let period = MS;
    for cpu in libweir::cpu::online()? {
        let mut session = session()?;
        let options = options(Event::CPU_CLOCK, cpu, period);
        let counter = session.channel().counter_create(&options)?;
        let id = counter.id();
        ensure!(
            counter.read_first()?.value == 0,
            "it counts before it is enabled"
        );
        counter.enable()?;
        on_cpu(cpu, || spin(Duration::from_millis(200)))?;
        counter.disable()?;
        let value = counter.read_first()?;
        drop(counter);

        let samples = samples(&mut session)?;
        ensure!(
            value.value >= 100 * MS,
            "200 ms on CPU {cpu} count as {value:?}"
        );
        ensure!(
            0 < value.running && value.running <= value.enabled,
            "{value:?}"
        );
        let mine = samples.iter().filter(|sample| sample.tid == tid()).count();
        note(format_args!(
            "CPU {cpu}: {} samples, {mine} of them of this thread",
            samples.len()
        ));
        ensure!(
            mine > 0,
            "none of {} samples is of the thread that ran on CPU {cpu}",
            samples.len()
        );
        for sample in &samples {
            let mode = sample.header.misc & MISC_CPUMODE_MASK;
            ensure!(
                sample.id == u64::from(id) && sample.cpu == cpu && sample.period == period,
                "counter {id} on CPU {cpu} with a period of {period} ns gave {sample:?}"
            );
            ensure!(
                mode == MISC_KERNEL || mode == MISC_USER,
                "neither kernel nor user: {sample:?}"
            );
            ensure!(sample.ip != 0, "no instruction pointer: {sample:?}");
            ensure!(
                sample.tid != tid() || sample.pid == std::process::id(),
                "this thread is of process {}: {sample:?}",
                std::process::id()
            );
        }
    }
    Ok(())
}

/// Counters of the same event on one channel are told apart by their numbers.
fn several_counters(_: &mut ()) -> Verdict {
    let mut session = session()?;
    let cpus = libweir::cpu::online()?;
    let mut ids: Vec<(u32, u32, u64)> = Vec::new();
    let mut counters = Vec::new();
    for period in [MS, 3 * MS] {
        for cpu in &cpus {
            let options = options(Event::CPU_CLOCK, *cpu, period);
            let counter = session.channel().counter_create(&options)?;
            counter.enable()?;
            ensure!(
                !ids.iter().any(|(id, ..)| *id == counter.id()),
                "number {} twice",
                counter.id()
            );
            ids.push((counter.id(), *cpu, period));
            counters.push(counter);
        }
    }
    for cpu in &cpus {
        on_cpu(*cpu, || spin(Duration::from_millis(60)))?;
    }
    for counter in counters {
        counter.disable()?;
        counter.release()?;
    }
    let samples = samples(&mut session)?;
    for sample in &samples {
        let known = (sample.id as u32, sample.cpu, sample.period);
        ensure!(
            ids.contains(&known),
            "none of {ids:?} has written {sample:?}"
        );
    }
    for (id, ..) in ids {
        let count = samples
            .iter()
            .filter(|sample| sample.id == u64::from(id))
            .count();
        ensure!(count > 0, "counter {id} has written nothing");
    }
    Ok(())
}

/// A counter that was disabled counts and writes no more, until it is enabled again.
fn disable(_: &mut ()) -> Verdict {
    let mut session = session()?;
    let cpu = libweir::cpu::online()?[0];
    // The number is enough, so that the session can be read in between.
    let id = create(&session, Event::CPU_CLOCK, cpu, MS)?;
    let mut last = 0;
    for _ in 0..3 {
        counter_control(session.channel(), COUNTER_ENABLE, id, 0)?;
        on_cpu(cpu, || spin(Duration::from_millis(30)))?;
        counter_control(session.channel(), COUNTER_DISABLE, id, 0)?;
        let value = read(&session, id)?;
        ensure!(value.value > last, "nothing was counted: {value:?}");
        last = value.value;
        ensure!(!samples(&mut session)?.is_empty(), "nothing was sampled");

        on_cpu(cpu, || spin(Duration::from_millis(30)))?;
        let later = read(&session, id)?;
        ensure!(
            (later.value, later.enabled, later.running)
                == (value.value, value.enabled, value.running),
            "a disabled counter went from {value:?} to {later:?}"
        );
        let samples = samples(&mut session)?;
        ensure!(samples.is_empty(), "a disabled counter wrote {samples:?}");
    }
    Ok(())
}

/// A counter that was released is gone.
fn release(_: &mut ()) -> Verdict {
    let mut session = session()?;
    let cpu = libweir::cpu::online()?[0];
    let id = create(&session, Event::CPU_CLOCK, cpu, MS)?;
    counter_control(session.channel(), COUNTER_ENABLE, id, 0)?;
    on_cpu(cpu, || spin(Duration::from_millis(30)))?;
    counter_control(session.channel(), COUNTER_RELEASE, id, 0)?;
    ensure!(
        !samples(&mut session)?.is_empty(),
        "nothing was sampled before"
    );
    on_cpu(cpu, || spin(Duration::from_millis(30)))?;
    let samples = samples(&mut session)?;
    ensure!(samples.is_empty(), "a released counter wrote {samples:?}");

    for opcode in [COUNTER_ENABLE, COUNTER_DISABLE, COUNTER_RELEASE] {
        let result = counter_control(session.channel(), opcode, id, 0);
        ensure!(
            result == Err(Errno::NOENT),
            "operation {opcode:#x} on it gave {result:?}"
        );
    }
    let errno = read(&session, id)
        .err()
        .and_then(|error| error.downcast::<Errno>().ok());
    ensure!(errno == Some(Errno::NOENT), "reading it gave {errno:?}");
    Ok(())
}

/// Closing a channel releases counters that are enabled.
fn close_while_enabled(_: &mut ()) -> Verdict {
    for _ in 0..20 {
        let session = session()?;
        for cpu in libweir::cpu::online()? {
            let id = create(&session, Event::CPU_CLOCK, cpu, MS / 5)?;
            counter_control(session.channel(), COUNTER_ENABLE, id, 0)?;
        }
        spin(Duration::from_millis(5));
    }
    Ok(())
}

/// A counter without a period counts exactly and writes nothing.
fn counts_without_samples(_: &mut ()) -> Verdict {
    let mut session = session()?;
    let cpu = libweir::cpu::online()?[0];
    let switches = create(&session, CONTEXT_SWITCHES, cpu, 0)?;
    let faults = create(&session, PAGE_FAULTS, cpu, 0)?;
    for id in [switches, faults] {
        counter_control(session.channel(), COUNTER_ENABLE, id, 0)?;
    }
    let (sleeps, pages) = (20, 100);
    on_cpu(cpu, || {
        for _ in 0..sleeps {
            sleep(Duration::from_millis(1));
        }
        // Memory that nobody has touched faults at every page.
        let page = rustix::param::page_size();
        let memory = Guarded::new(pages);
        memory.map(|mut memory| {
            for at in memory.bytes().iter_mut().step_by(page) {
                *at = 1;
            }
        })
    })??;
    for (id, least) in [(switches, sleeps), (faults, pages as u64)] {
        counter_control(session.channel(), COUNTER_DISABLE, id, 0)?;
        let value = read(&session, id)?;
        ensure!(
            value.value >= least,
            "at least {least} events count as {value:?}"
        );
        ensure!(
            0 < value.running && value.running <= value.enabled,
            "{value:?}"
        );
    }
    let samples = samples(&mut session)?;
    ensure!(
        samples.is_empty(),
        "counters without a period wrote {samples:?}"
    );
    Ok(())
}

/// A frequency makes about so many samples a second; the kernel looks for the period that does.
fn frequency(_: &mut ()) -> Verdict {
    let mut session = session()?;
    let cpu = libweir::cpu::online()?[0];
    let options = CounterOptions::new(Attr::default().frequency(500), Scope::Cpu(cpu));
    let counter = session.channel().counter_create(&options)?;
    counter.enable()?;
    on_cpu(cpu, || spin(Duration::from_millis(300)))?;
    counter.release()?;
    let samples = samples(&mut session)?;
    note(format_args!(
        "{} samples in 300 ms at 500 Hz",
        samples.len()
    ));
    ensure!(!samples.is_empty(), "nothing was sampled");
    ensure!(
        samples.iter().all(|sample| sample.period > 0),
        "a period of nothing: {samples:?}"
    );
    Ok(())
}

/// Where the kernel is left out, no sample is of it.
fn exclude_kernel(_: &mut ()) -> Verdict {
    let mut session = session()?;
    let cpu = libweir::cpu::online()?[0];
    let attr = Attr::new(PAGE_FAULTS).period(1).exclude_kernel(true);
    let options = CounterOptions::new(attr, Scope::Cpu(cpu));
    let counter = session.channel().counter_create(&options)?;
    counter.enable()?;
    let touched = on_cpu(cpu, || {
        Guarded::new(50).map(|mut memory| memory.bytes().fill(1))
    })?;
    counter.release()?;
    touched?;
    let samples = samples(&mut session)?;
    ensure!(
        !samples.is_empty(),
        "50 faults of user space gave no sample"
    );
    for sample in &samples {
        ensure!(
            sample.header.misc & MISC_CPUMODE_MASK == MISC_USER,
            "the kernel was left out: {sample:?}"
        );
    }
    Ok(())
}

fn options(event: Event, cpu: u32, sample_period: u64) -> CounterOptions {
    CounterOptions::new(Attr::new(event).period(sample_period), Scope::Cpu(cpu))
}

fn create(session: &Session, event: Event, cpu: u32, sample_period: u64) -> Result<u32> {
    let mut options = options(event, cpu, sample_period);
    let mut req = options.request(None);
    counter_create(session.channel(), &mut req, &mut options.attrs)
        .with_context(|| format!("creating {options:?}"))?;
    Ok(req.id)
}

fn read(session: &Session, id: u32) -> Result<CounterValue> {
    let mut values = [CounterValue::default()];
    let mut request = ReadOptions::default().request(id);
    counter_read(session.channel(), &mut request, &mut values)?;
    Ok(values[0])
}

fn main() -> ExitCode {
    ktap::main(
        setup,
        &[
            ("samples_of_each_cpu", samples_of_each_cpu),
            ("several_counters", several_counters),
            ("disable", disable),
            ("release", release),
            ("close_while_enabled", close_while_enabled),
            ("counts_without_samples", counts_without_samples),
            ("frequency", frequency),
            ("exclude_kernel", exclude_kernel),
        ],
    )
}
