// SPDX-License-Identifier: GPL-2.0

//! Several events in one counter: all or none, of one instant, and whether they ran together.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    cpu,
    event::TYPE_HARDWARE,
    perf,
    Attr,
    Channel,
    CounterOptions,
    Errno,
    Event,
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
        mpsc, //
    },
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
        Perf, //
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
        task_rename,
        touch,
        watched,
        write_watched,
        CPU_CLOCK,
        PAGE_FAULTS,
        TASK_CLOCK, //
    },
};

fn set(attrs: &[Attr], scope: Scope) -> CounterOptions {
    CounterOptions {
        attrs: attrs.to_vec(),
        scope,
        cached: false,
    }
}

/// Calls `f` while another thread, with the number that it gets, calls `work` over and over on `cpu`.
fn while_another(
    cpu: u32,
    work: impl Fn() + Send + 'static,
    f: impl FnOnce(u32) -> Verdict,
) -> Verdict {
    static END: AtomicBool = AtomicBool::new(false);
    END.store(false, Relaxed);
    let (send, receive) = mpsc::channel();
    let thread = thread::spawn(move || -> Verdict {
        bind(cpu)?;
        send.send(tid())?;
        while !END.load(Relaxed) {
            work();
        }
        Ok(())
    });
    let verdict = receive.recv().context("it ended at once").and_then(f);
    END.store(true, Relaxed);
    thread.join().expect("it does not panic")?;
    verdict
}

/// Each event gets what it counts, in the order in which they were given.
fn in_order(channel: &mut Channel) -> Verdict {
    let rename_attr = task_rename()?.ok_or_else(|| skip("this kernel has no tracepoints"))?;
    for scope in [Scope::Task(0), Scope::All] {
        let attrs = [watched(0), rename_attr, watched(1), rename_attr];
        let counter = channel.counter_create(&set(&attrs, scope))?;
        let perf = Perf::open(&rename_attr, scope)?;
        counter.enable()?;
        let before = perf.read()?;
        write_watched(12);
        rename(34)?;
        let perfs = perf.read()?.value - before.value;
        let values = counter.read()?;
        let found: Vec<_> = values.iter().map(|value| value.value).collect();
        ensure!(found == [12, 34, 12, perfs], "{scope:?}: {values:?}");
        let ids: Vec<_> = values.iter().map(|value| value.id).collect();
        ensure!(
            ids == counter.event_ids().collect::<Vec<_>>(),
            "{:?}: {values:?}",
            counter.event_ids()
        );
    }
    Ok(())
}

/// Whether all values are of one instant. The kernel gives an event to who counts it one after the other, in which
/// an interrupt may come.
fn is_one_instant(values: &[Value]) -> bool {
    let all = || values.iter().map(|value| value.value);
    all().max() <= all().min().map(|least| least + 1)
}

/// The same event several times says the same several times, while it happens at full speed elsewhere, or on the same
/// CPU whenever this thread does not run; or of clocks, about the same.
fn of_one_instant(channel: &mut Channel) -> Verdict {
    const READS: u64 = 2000;
    /// For a kernel that checks itself.
    const ENOUGH: Duration = Duration::from_millis(600);
    let cpus = cpu::online()?;
    let last = *cpus.last().context("there is a CPU")?;
    let work = || {
        // It does not fail where it did not before.
        let _ = touch(16);
    };
    let compare = |task: u32| -> Verdict {
        let of_task = Scope::Task(task as i32);
        // In the end, the two take turns.
        let places = [of_task, Scope::Cpu(last), Scope::All, of_task];
        for (number, scope) in places.into_iter().enumerate() {
            bind(if number < 3 { cpus[0] } else { last })?;
            let counter = channel.counter_create(&set(&[PAGE_FAULTS.into(); 3], scope))?;
            counter.enable()?;
            let (mut before, mut changed, mut reads) = (0, 0, 0);
            let begin = Instant::now();
            while reads < READS && begin.elapsed() < ENOUGH {
                reads += 1;
                let values = counter.read()?;
                let first = values[0].value;
                ensure!(
                    is_one_instant(&values),
                    "{scope:?} says of one event: {values:?}"
                );
                ensure!(first >= before, "{scope:?} goes back from {before}");
                changed += u64::from(first != before);
                before = first;
            }
            note(format_args!(
                "{scope:?}: {changed} different values in {reads} reads, {:?}",
                begin.elapsed()
            ));
            let least = if number < 3 { reads / 20 } else { 0 };
            ensure!(changed > least, "{scope:?}: {changed} different values");
            // What is disabled stops at one instant, and so does what is reset begin.
            let begin = Instant::now();
            for _ in 0..100 {
                if begin.elapsed() >= ENOUGH {
                    break;
                }
                counter.disable()?;
                let values = counter.read()?;
                ensure!(is_one_instant(&values), "{scope:?} stopped with {values:?}");
                counter.enable()?;
                counter.reset()?;
            }
            note(format_args!("stopped and started in {:?}", begin.elapsed()));
        }
        Ok(())
    };
    on_cpu(cpus[0], || while_another(last, work, compare))??;
    let counter = channel.counter_create(&set(&[CPU_CLOCK.into(); 2], Scope::Cpu(last)))?;
    counter.enable()?;
    let mut apart = Vec::new();
    for _ in 0..READS {
        let values = counter.read()?;
        let (a, b) = (values[0].value, values[1].value);
        apart.push(a.abs_diff(b));
    }
    // The machine below may stop this one between the two, but not most times.
    apart.sort_unstable();
    let (usual, most) = (apart[apart.len() / 2], apart[apart.len() - 1]);
    note(format_args!(
        "two clocks differ by {usual} ns, and {most} ns at most"
    ));
    ensure!(
        usual < 1_000_000,
        "two clocks of one CPU differ by {usual} ns"
    );
    Ok(())
}

/// Events of perf's own software are counted whenever they are enabled.
fn together(channel: &mut Channel) -> Verdict {
    let attrs = [TASK_CLOCK.into(), PAGE_FAULTS.into(), watched(0)];
    let of = |scope, attrs: &[Attr]| channel.counter_create(&set(attrs, scope));
    for (scope, attrs) in [
        (Scope::Task(0), &attrs[..]),
        (Scope::All, &attrs[1..]),
        (Scope::Cpu(0), &attrs[1..]),
    ] {
        let counter = of(scope, attrs)?;
        let values = counter.read()?;
        ensure!(
            values
                .iter()
                .all(|value| !value.together && value.enabled == 0),
            "{scope:?} before it is enabled: {values:?}"
        );
        for _ in 0..3 {
            counter.enable()?;
            spin(Duration::from_millis(5));
            let values = counter.read()?;
            ensure!(values.iter().all(ran_always), "{scope:?}: {values:?}");
            counter.disable()?;
            let values = counter.read()?;
            ensure!(values.iter().all(ran_always), "{scope:?}: {values:?}");
        }
    }
    Ok(())
}

fn ran_always(value: &Value) -> bool {
    value.together && value.running == value.enabled && value.enabled > 0
}

/// Where there are more events than the PMU has counters, each is counted for a part of the time only, and no value
/// says that they were together.
fn more_than_there_is_room_for(channel: &mut Channel) -> Verdict {
    /// More than any PMU has.
    const EVENTS: usize = 40;
    let instructions = Attr::new(Event::new(TYPE_HARDWARE, 1));
    match perf::open(&instructions, 0, -1, None) {
        Err(Errno::NOENT | Errno::OPNOTSUPP) => {
            return Err(skip("this machine has no hardware counters"))
        }
        opened => drop(opened.context("opening perf's own event")?),
    }
    let counter = channel.counter_create(&set(&[instructions; EVENTS], Scope::Task(0)))?;
    counter.enable()?;
    spin(Duration::from_millis(500));
    counter.disable()?;
    let values = counter.read()?;
    let some = |value: &Value| value.running > 0 && value.running < value.enabled;
    ensure!(
        values.iter().any(some),
        "there was room for all: {values:?}"
    );
    ensure!(
        values.iter().all(|value| !value.together),
        "they were together: {values:?}"
    );
    for value in values.iter().filter(|value| value.running > 0) {
        ensure!(
            value.scaled() >= Some(value.value),
            "scaled up, it is less: {value:?}"
        );
    }
    // One alone has room.
    let counter = channel.counter_create(&set(&[instructions], Scope::Task(0)))?;
    counter.enable()?;
    spin(Duration::from_millis(20));
    let value = counter.read_first()?;
    ensure!(ran_always(&value) && value.value > 0, "{value:?}");
    Ok(())
}

/// One event that there is not, and there is no counter; not even a number is gone.
fn all_or_none(channel: &mut Channel) -> Verdict {
    let before = channel.read_counters(Default::default())?;
    let first = channel.counter_create(&CounterOptions::new(PAGE_FAULTS, Scope::All))?;
    let bad = Attr::new(Event::new(libweir::event::TYPE_SOFTWARE, 999));
    let good = Attr::from(PAGE_FAULTS);
    for attrs in [
        vec![bad],
        vec![good, bad],
        vec![bad, good],
        [vec![good; 63], vec![bad]].concat(),
        // The fifth of four breakpoints finds no room.
        (0..5).map(|word| watched(word % 4)).collect(),
    ] {
        for scope in [Scope::All, Scope::Cpu(0), Scope::Task(0)] {
            let result = channel.counter_create(&set(&attrs, scope));
            let errno = result.as_ref().err().and_then(libweir::Error::errno);
            ensure!(
                matches!(errno, Some(Errno::NOENT | Errno::NOSPC)),
                "{} events of which one cannot be gave {result:?}",
                attrs.len()
            );
        }
    }
    let values = channel.read_counters(Default::default())?;
    ensure!(
        values.len() == before.len() + 1,
        "there were {before:?}, now there are {values:?}"
    );
    // The breakpoints that were made have been given back.
    let all: Vec<_> = (0..4).map(watched).collect();
    let counter = channel.counter_create(&set(&all, Scope::All))?;
    ensure!(
        counter.id() > first.id() && counter.event_ids().len() == 4,
        "{counter:?} after {first:?}"
    );
    Ok(())
}

/// A counter that is disabled keeps what it has, and one that is reset forgets it.
fn keeps_and_forgets(channel: &mut Channel) -> Verdict {
    for scope in [Scope::Task(0), Scope::Cpu(0), Scope::All] {
        let counter = channel.counter_create(&set(&[watched(0), watched(1)], scope))?;
        let check = |known: u64| -> Result<Vec<Value>> {
            let values = counter.read()?;
            ensure!(
                values.iter().all(|value| value.value == known),
                "{known} events of {scope:?} are {values:?}"
            );
            Ok(values)
        };
        on_cpu(0, || -> Verdict {
            write_watched(5);
            check(0)?;
            counter.enable()?;
            write_watched(5);
            check(5)?;
            counter.disable()?;
            let stopped = check(5)?;
            write_watched(5);
            spin(Duration::from_millis(2));
            ensure!(check(5)? == stopped, "{stopped:?} is not the last");
            // Enabled twice is once.
            counter.enable()?;
            counter.enable()?;
            write_watched(6);
            check(11)?;
            counter.reset()?;
            check(0)?;
            write_watched(7);
            check(7)?;
            counter.disable()?;
            counter.disable()?;
            counter.reset()?;
            let values = check(0)?;
            ensure!(
                values.iter().all(|v| (v.enabled, v.running) == (0, 0)),
                "{values:?} after a reset"
            );
            write_watched(7);
            check(0)?;
            counter.enable()?;
            write_watched(8);
            check(8)?;
            Ok(())
        })??;
    }
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(
        channel,
        &[
            ("in_order", in_order),
            ("of_one_instant", of_one_instant),
            ("together", together),
            ("more_than_there_is_room_for", more_than_there_is_room_for),
            ("all_or_none", all_or_none),
            ("keeps_and_forgets", keeps_and_forgets),
        ],
    )
}
