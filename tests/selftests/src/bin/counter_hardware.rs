// SPDX-License-Identifier: GPL-2.0

//! The processor's own counters: instructions of a known loop, overflows at the period that was asked for, sets
//! that run together, and more events than there are counters.

use anyhow::{
    bail,
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    event::TYPE_HARDWARE,
    uapi::RECORD_THROTTLE,
    Attr,
    Channel,
    ChannelOptions,
    Counter,
    CounterOptions,
    Errno,
    Event,
    Record,
    Scope,
    Value, //
};
use std::{
    hint::black_box,
    process::ExitCode,
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    affinity::on_cpu,
    icount,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    session::Session,
};

/// `PERF_COUNT_HW_*`.
const CYCLES: Event = Event::new(TYPE_HARDWARE, 0);
const INSTRUCTIONS: Event = Event::new(TYPE_HARDWARE, 1);

/// More events than any processor has counters.
const MANY: usize = 40;

fn of_user(event: Event) -> Attr {
    Attr::new(event).exclude_kernel(true).exclude_hv(true)
}

fn create<'a>(channel: &'a Channel, attrs: &[Attr]) -> Result<Counter<'a>> {
    let options = CounterOptions {
        attrs: attrs.to_vec(),
        scope: Scope::Task(0),
        cached: false,
    };
    Ok(channel.counter_create(&options)?)
}

fn read(counter: &Counter<'_>) -> Result<Vec<Value>> {
    Ok(counter.read()?)
}

/// What one event counts while `f` runs.
fn during(counter: &Counter<'_>, f: impl FnOnce()) -> Result<u64> {
    let before = read(counter)?[0].value;
    counter.enable()?;
    f();
    counter.disable()?;
    Ok(read(counter)?[0].value - before)
}

/// A CPU whose processor has counters.
fn setup() -> Result<u32> {
    let session = Session::open(&ChannelOptions::default(), 64)?;
    let cpu = libweir::cpu::online()?[0];
    let options = CounterOptions::new(of_user(CYCLES), Scope::Cpu(cpu));
    let created = session.channel().counter_create(&options).map(drop);
    match created {
        Ok(()) => Ok(cpu),
        Err(error)
            if !icount::is_on()
                && matches!(
                    error.errno(),
                    Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV)
                ) =>
        {
            Err(skip(format!("this processor counts no cycles: {error}")))
        }
        Err(error) => Err(error).context("opening a counter of cycles"),
    }
}

/// So many times the same few instructions.
#[inline(never)]
fn rounds(count: u64) {
    for round in 0..count {
        black_box(round);
    }
}

/// Cycles are counted while the counter is enabled.
fn cycles(cpu: &mut u32) -> Verdict {
    let session = Session::open(&ChannelOptions::default(), 64)?;
    let counter = create(session.channel(), &[of_user(CYCLES)])?;
    on_cpu(*cpu, || {
        for count in [1_000_000, 10_000_000] {
            let value = during(&counter, || rounds(count))?;
            note(format_args!("{count} rounds took {value} cycles"));
            ensure!(value > 0, "{count} rounds took no cycles");
            let (before, ()) = (read(&counter)?, rounds(count));
            ensure!(
                read(&counter)? == before,
                "a disabled counter went on from {before:?}"
            );
        }
        Ok(())
    })?
}

/// Each round has as many instructions as every other, so as many are counted.
fn instructions(cpu: &mut u32) -> Verdict {
    icount::required()?;
    const ROUNDS: u64 = 100_000;
    let session = Session::open(&ChannelOptions::default(), 64)?;
    let counter = create(session.channel(), &[of_user(INSTRUCTIONS)])?;
    on_cpu(*cpu, || {
        let counted: Vec<u64> = (1..=5)
            .map(|times| during(&counter, || rounds(times * ROUNDS)))
            .collect::<Result<_>>()?;
        note(format_args!("{counted:?} instructions"));
        let more = counted[1].saturating_sub(counted[0]);
        ensure!(
            more > 0 && more % ROUNDS == 0,
            "{ROUNDS} rounds more took {more} instructions more"
        );
        for pair in counted.windows(2) {
            ensure!(
                pair[1] == pair[0] + more,
                "rounds of {} instructions each took {counted:?} instructions",
                more / ROUNDS
            );
        }
        Ok(())
    })?
}

/// An event overflows once in each period, and neither more nor less often. It is cycles, as the interrupts
/// of QEMU's other counters come with the next tick only.
fn overflows_at_the_period(cpu: &mut u32) -> Verdict {
    icount::required()?;
    let mut session = Session::open(&ChannelOptions::default(), 1024)?;
    for period in [100_000, 250_000, 1_000_000] {
        let values = {
            let attr = of_user(CYCLES).period(period);
            let counter = create(session.channel(), &[attr])?;
            on_cpu(*cpu, || {
                counter.enable()?;
                rounds(5_000_000);
                counter.disable()?;
                read(&counter)
            })??
        };
        let mut samples = 0;
        session.flush(|_, record| {
            match record {
                Record::Sample(sample) if sample.period == period => samples += 1,
                Record::Sample(sample) => bail!("{sample:?}, and the period was {period}"),
                record if record.header().type_ == RECORD_THROTTLE => bail!("{record:?}"),
                _ => {}
            }
            Ok(())
        })?;
        let wanted = values[0].value / period;
        note(format_args!(
            "{} cycles, a sample every {period}: {samples}",
            values[0].value
        ));
        // The last interrupt may come when the event is disabled already.
        ensure!(
            samples == wanted || samples + 1 == wanted,
            "{samples} samples where {wanted} periods have passed"
        );
    }
    Ok(())
}

/// A set of as many events as there are counters runs together, all the time.
fn sets_run_together(cpu: &mut u32) -> Verdict {
    let session = Session::open(&ChannelOptions::default(), 64)?;
    let mut attrs = vec![of_user(CYCLES)];
    if icount::is_on() {
        attrs.push(of_user(INSTRUCTIONS));
    }
    let counter = create(session.channel(), &attrs)?;
    on_cpu(*cpu, || {
        for _ in 0..5 {
            counter.enable()?;
            rounds(200_000);
            let values = read(&counter)?;
            counter.disable()?;
            ensure!(
                values.iter().all(|value| value.together && value.value > 0),
                "a set that fits did not run together: {values:?}"
            );
        }
        Ok(())
    })?
}

/// What does not fit takes turns, which times show; pinned, it is refused, and nothing of it counts.
fn more_than_there_are(cpu: &mut u32) -> Verdict {
    let session = Session::open(&ChannelOptions::default(), 64)?;
    let attrs = vec![of_user(CYCLES); MANY];
    let counter = create(session.channel(), &attrs)?;
    on_cpu(*cpu, || {
        counter.enable()?;
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(400) {
            rounds(10_000);
        }
        counter.disable()?;
        let values = read(&counter)?;
        let ran = values.iter().filter(|value| value.running > 0).count();
        note(format_args!("{ran} of {MANY} had a turn"));
        ensure!(
            values.iter().all(|value| value.running < value.enabled),
            "{MANY} events fit all the time: {values:?}"
        );
        ensure!(
            values.iter().all(|value| !value.together),
            "events that took turns ran together: {values:?}"
        );
        ensure!(ran > 1, "none but {ran} had a turn: {values:?}");
        ensure!(
            values
                .iter()
                .all(|value| value.scaled().is_some() == (value.running > 0)),
            "a value without a turn: {values:?}"
        );
        Ok(())
    })??;
    drop(counter);

    let pinned = vec![of_user(CYCLES).pinned(true); MANY];
    let counter = create(session.channel(), &pinned)?;
    on_cpu(*cpu, || {
        let error = match counter.enable() {
            Ok(()) => bail!("{MANY} pinned events were enabled"),
            Err(error) => error,
        };
        ensure!(error.errno() == Some(Errno::BUSY), "enabling gave {error}");
        let (before, ()) = (read(&counter)?, rounds(100_000));
        ensure!(
            read(&counter)? == before,
            "what could not be enabled as a whole counts in part"
        );
        Ok(())
    })?
}

fn main() -> ExitCode {
    ktap::main(
        setup,
        &[
            ("cycles", cycles),
            ("instructions", instructions),
            ("overflows_at_the_period", overflows_at_the_period),
            ("sets_run_together", sets_run_together),
            ("more_than_there_are", more_than_there_are),
        ],
    )
}
