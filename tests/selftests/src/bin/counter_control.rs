// SPDX-License-Identifier: GPL-2.0

//! Periods that change, counters that stop by themselves, and samples that are too many.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    cpu,
    ioctl::{
        counter_control,
        COUNTER_PERIOD,
        COUNTER_REFRESH, //
    },
    sample_type::{
        IP,
        TID,
        TIME, //
    },
    Attr,
    Channel,
    ChannelOptions,
    Counter,
    CounterOptions,
    Errno,
    SampleLayouts,
    Scope, //
};
use std::{
    fs,
    process::ExitCode,
    thread,
    time::{
        Duration,
        Instant, //
    }, //
};
use weir_selftests::{
    affinity::on_cpu,
    beside::channel,
    ktap::{
        self,
        note,
        Verdict, //
    },
    sampled::Sampled,
    work::{
        breakpoints_overflow,
        rename,
        spin,
        task_rename,
        watched,
        write_watched,
        CPU_CLOCK,
        PAGE_FAULTS, //
    },
};

const RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// With [`PERIOD`](libweir::sample_type::PERIOD), perf writes a sample for each event of its own software and of
/// breakpoints, whatever the period is.
const FIELDS: u64 = IP | TID | TIME;

/// A breakpoint that writes samples.
fn sampled(word: usize, period: u64) -> Attr {
    watched(word).sample_type(FIELDS).period(period)
}

/// Samples that are in the channel now.
fn samples(channel: &Channel, counter: &Counter<'_>) -> Result<u64> {
    let mut layouts = SampleLayouts::new();
    layouts.add(counter);
    let sampled = Sampled::take(channel, &layouts)?;
    ensure!(sampled.lost == 0, "{} were lost", sampled.lost);
    Ok(sampled.samples.len() as u64)
}

/// A sample comes every so many events, and the value has nothing to do with it.
fn period(channel: &mut Channel) -> Verdict {
    breakpoints_overflow()?;
    const WRITES: u64 = 1000;
    for scope in [Scope::Task(0), Scope::All] {
        let attr = sampled(0, 10);
        let counter = channel.counter_create(&CounterOptions::new(attr, scope))?;
        counter.enable()?;
        let (mut sum, mut before) = (0, 0);
        for period in [10, 25, 1, 500, 7] {
            // The first is what it was created with.
            if period != 10 {
                counter.period(0, period)?;
            }
            on_cpu(0, || write_watched(WRITES))?;
            sum += WRITES;
            let found = samples(channel, &counter)?;
            // Perf ends the old period before.
            let least = (WRITES - before) / period;
            ensure!(
                (least..=WRITES / period + 2).contains(&found),
                "{WRITES} events with a period of {period} after {before} gave {found} samples"
            );
            before = period;
            let value = counter.read_first()?;
            ensure!(value.value == sum, "{sum} are {value:?}");
        }
    }
    Ok(())
}

/// Each event of a counter has a period of its own, and those without none.
fn period_of_one_event(channel: &mut Channel) -> Verdict {
    breakpoints_overflow()?;
    let options = CounterOptions {
        attrs: vec![
            sampled(0, 10),
            watched(1),
            sampled(2, 10),
            Attr::new(CPU_CLOCK).frequency(100),
        ],
        scope: Scope::Task(0),
        cached: false,
    };
    let counter = channel.counter_create(&options)?;
    counter.period(2, 2)?;
    let errno = |index, period| counter.period(index, period).err().and_then(|e| e.errno());
    for (index, period, expected) in [
        (0, 0, Errno::INVAL),
        (0, 1 << 63, Errno::INVAL),
        (0, u64::MAX, Errno::INVAL),
        (1, 10, Errno::INVAL),
        (3, 1 << 40, Errno::INVAL),
        (4, 10, Errno::NOENT),
    ] {
        let errno = errno(index, period);
        ensure!(
            errno == Some(expected),
            "event {index}, period {period}: {errno:?}"
        );
    }
    // The frequency of a clock stays one.
    counter.period(3, 200)?;
    let unknown = counter_control(&*channel, COUNTER_PERIOD, counter.id() + 4, 10);
    ensure!(unknown == Err(Errno::NOENT), "the next number: {unknown:?}");
    counter.enable()?;
    write_watched(100);
    spin(Duration::from_millis(100));
    counter.disable()?;
    let mut layouts = SampleLayouts::new();
    layouts.add(&counter);
    let sampled = Sampled::take(channel, &layouts)?;
    let of = |index: u32| {
        let id = u64::from(counter.id() + index);
        sampled.samples.iter().filter(|s| s.id == id).count()
    };
    let found = [of(0), of(1), of(2)];
    ensure!(found == [10, 0, 50], "{found:?}");
    ensure!(
        (2..=100).contains(&of(3)),
        "{} of 200 a second in 100 ms",
        of(3)
    );
    Ok(())
}

/// So many overflows, and it stops by itself; it may be given more.
fn refresh(channel: &mut Channel) -> Verdict {
    breakpoints_overflow()?;
    const WRITES: u64 = 50;
    let mut cases = vec![
        (sampled(0, 1), Scope::Task(0), 1),
        (sampled(0, 4), Scope::Task(0), 4),
        (sampled(0, 1), Scope::Cpu(0), 1),
        (sampled(0, 2), Scope::All, 2),
    ];
    if let Some(attr) = task_rename()? {
        let attr = attr.sample_type(FIELDS);
        cases.push((attr.period(1), Scope::Task(0), 1));
        cases.push((attr.period(5), Scope::All, 5));
    }
    let work = || {
        write_watched(WRITES);
        rename(WRITES)
    };
    for (attr, scope, period) in cases {
        let counter = channel.counter_create(&CounterOptions::new(attr, scope))?;
        let mut sum = 0;
        for overflows in [1, 3, 10] {
            counter.refresh(overflows)?;
            on_cpu(0, work)??;
            let found = samples(channel, &counter)?;
            ensure!(
                found == overflows,
                "{overflows} of {attr:?} {scope:?} are {found}"
            );
            sum += overflows * period;
            let value = counter.read_first()?;
            ensure!(value.value == sum, "{sum} events are {value:?}");
        }
        // Without a number of them, it goes on.
        counter.enable()?;
        on_cpu(0, work)??;
        let found = samples(channel, &counter)?;
        ensure!(found.abs_diff(WRITES / period) <= 1, "{found} samples");
        counter.disable()?;
        counter.release()?;
    }
    Ok(())
}

fn refresh_refused(channel: &mut Channel) -> Verdict {
    breakpoints_overflow()?;
    let plain = channel.counter_create(&CounterOptions::new(watched(0), Scope::Task(0)))?;
    let inherited = watched(0).period(1).inherit(true);
    let inherited = channel.counter_create(&CounterOptions::new(inherited, Scope::Task(0)))?;
    let good =
        channel.counter_create(&CounterOptions::new(watched(0).period(1), Scope::Task(0)))?;
    for (counter, overflows) in [
        (&plain, 1),
        (&inherited, 1),
        (&good, 0),
        (&good, 1 << 31),
        (&good, u64::from(u32::MAX)),
        (&good, u64::MAX),
    ] {
        let errno = counter.refresh(overflows).err().and_then(|e| e.errno());
        ensure!(
            errno == Some(Errno::INVAL),
            "{overflows} overflows of {:?}: {errno:?}",
            counter.attrs()
        );
    }
    let unknown = counter_control(&*channel, COUNTER_REFRESH, good.id() + 1, 1);
    ensure!(unknown == Err(Errno::NOENT), "{unknown:?}");
    // None of them was enabled by it.
    write_watched(5);
    for counter in [&plain, &inherited, &good] {
        let value = counter.read_first()?;
        ensure!((value.value, value.enabled) == (0, 0), "{value:?}");
    }
    Ok(())
}

/// Restores the system's limit in the end.
struct Rate {
    before: String,
}

impl Rate {
    fn set(hertz: u64) -> Result<Self> {
        let before = fs::read_to_string(RATE).context(RATE)?;
        fs::write(RATE, hertz.to_string()).with_context(|| format!("{hertz} to {RATE}"))?;
        Ok(Self { before })
    }
}

impl Drop for Rate {
    fn drop(&mut self) {
        if let Err(error) = fs::write(RATE, self.before.trim()) {
            note(format_args!("{RATE}: {error}: it was {}", self.before));
        }
    }
}

/// The limit of the system is that of counters, when they are created and afterwards.
fn frequency(channel: &mut Channel) -> Verdict {
    const LIMIT: u64 = 3000;
    let _rate = Rate::set(LIMIT)?;
    let create = |hertz| {
        let attr = Attr::new(PAGE_FAULTS).frequency(hertz);
        channel.counter_create(&CounterOptions::new(attr, Scope::Task(0)))
    };
    let errno = create(LIMIT + 1).err().and_then(|error| error.errno());
    ensure!(errno == Some(Errno::INVAL), "above the limit: {errno:?}");
    let counter = create(LIMIT)?;
    counter.period(0, LIMIT - 1)?;
    let errno = counter.period(0, LIMIT + 1).err().and_then(|e| e.errno());
    ensure!(errno == Some(Errno::INVAL), "above the limit: {errno:?}");
    // A period has no limit.
    let attr = Attr::new(PAGE_FAULTS).period(LIMIT + 1);
    channel.counter_create(&CounterOptions::new(attr, Scope::Task(0)))?;
    Ok(())
}

/// What the channel has no room for is lost, and the counter tells how much.
fn lost(_: &mut Channel) -> Verdict {
    breakpoints_overflow()?;
    const WRITES: u64 = 5000;
    let options = ChannelOptions {
        pages: 4 * cpu::possible()?.len() as u32,
        ..Default::default()
    };
    let channel = Channel::create(&options)?;
    let create = |word: usize| {
        let attr = watched(word).period(1);
        channel.counter_create(&CounterOptions::new(attr, Scope::Task(0)))
    };
    let (first, second) = (create(0)?, create(1)?);
    first.enable()?;
    second.enable()?;
    on_cpu(0, || write_watched(WRITES))?;
    let (one, other) = (first.read_first()?, second.read_first()?);
    let mut layouts = SampleLayouts::new();
    layouts.add(&first).add(&second);
    let sampled = Sampled::take(&channel, &layouts)?;
    for (counter, value) in [(&first, one), (&second, other)] {
        let id = u64::from(counter.id());
        let found = sampled.samples.iter().filter(|s| s.id == id).count() as u64;
        note(format_args!("{found} samples, {} lost", value.lost));
        ensure!(value.value == WRITES, "{value:?}");
        ensure!(found > 0 && value.lost > 0, "{found} samples, {value:?}");
        ensure!(found + value.lost == WRITES, "{found} samples, {value:?}");
    }
    ensure!(
        sampled.lost == one.lost + other.lost,
        "the channel lost {}, but the counters {one:?} and {other:?}",
        sampled.lost
    );
    first.reset()?;
    let value = first.read_first()?;
    ensure!((value.lost, value.value) == (0, 0), "{value:?}");
    ensure!(
        second.read_first()?.lost == other.lost,
        "of another counter"
    );
    Ok(())
}

/// Perf stops an event that has too many, until the next tick; both are told.
fn throttled(channel: &mut Channel) -> Verdict {
    const PATIENCE: Duration = Duration::from_secs(20);
    // A few in each tick.
    let _rate = Rate::set(1000)?;
    let attr = Attr::new(CPU_CLOCK).period(50_000);
    let counter = channel.counter_create(&CounterOptions::new(attr, Scope::Cpu(0)))?;
    let mut layouts = SampleLayouts::new();
    layouts.add(&counter);
    counter.enable()?;
    let begin = Instant::now();
    while counter.read_first()?.throttled < 3 {
        ensure!(
            begin.elapsed() < PATIENCE,
            "it is never stopped: {:?}",
            counter.read_first()?
        );
        on_cpu(0, || spin(Duration::from_millis(10)))?;
    }
    counter.disable()?;
    let value = counter.read_first()?;
    let sampled = Sampled::take(channel, &layouts)?;
    note(format_args!(
        "stopped {} times, {} samples",
        value.throttled,
        sampled.samples.len()
    ));
    ensure!(sampled.lost == 0, "{} were lost", sampled.lost);
    ensure!(
        sampled.throttled == value.throttled,
        "{} records, {value:?}",
        sampled.throttled
    );
    ensure!(
        sampled.throttled - sampled.unthrottled <= 1,
        "stopped {} times, and started {}",
        sampled.throttled,
        sampled.unthrottled
    );
    counter.reset()?;
    ensure!(counter.read_first()?.throttled == 0, "after a reset");
    Ok(())
}

/// A counter that is released from its own samples' side of things is gone at once, whatever it has asked for.
fn released_while_it_stops(channel: &mut Channel) -> Verdict {
    breakpoints_overflow()?;
    for _ in 0..50 {
        let attr = watched(0).period(1);
        let counter = channel.counter_create(&CounterOptions::new(attr, Scope::All))?;
        counter.refresh(1)?;
        let writer = thread::spawn(|| write_watched(3));
        counter.release()?;
        writer.join().expect("it does not panic");
    }
    Sampled::take(channel, &SampleLayouts::new())?;
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(
        channel,
        &[
            ("period", period),
            ("period_of_one_event", period_of_one_event),
            ("refresh", refresh),
            ("refresh_refused", refresh_refused),
            ("frequency", frequency),
            ("lost", lost),
            ("throttled", throttled),
            ("released_while_it_stops", released_while_it_stops),
        ],
    )
}
