// SPDX-License-Identifier: GPL-2.0

//! What is wrong with a request for a counter is said as `perf_event_open()` says it, which is asked for
//! the same.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    ioctl::counter_create,
    perf,
    Attr,
    ChannelOptions,
    CounterOptions,
    Errno,
    Event,
    Scope, //
};
use std::process::ExitCode;
use weir_selftests::{
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    session::Session,
};

fn session() -> Result<Session> {
    Session::open(&ChannelOptions::default(), 4)
}

/// A right one, of `cpu-clock`.
fn attr() -> Attr {
    Attr::default().period(1_000_000)
}

/// Asks weir for a counter on a CPU.
fn create(session: &Session, attr: Attr, cpu: i32) -> Result<(), Errno> {
    let mut request = CounterOptions::new(attr, Scope::Cpu(cpu as u32)).request(None);
    counter_create(session.channel(), &mut request, &mut [attr])
}

/// Tests nothing where the kernel has no perf events.
fn setup() -> Result<()> {
    match create(&session()?, attr(), 0) {
        Err(Errno::OPNOTSUPP) => Err(skip("this kernel has no perf events")),
        result => result.context("creating a counter"),
    }
}

/// An event with something wrong, and the CPU.
struct Wrong {
    what: &'static str,
    attr: fn() -> Attr,
    cpu: i32,
}

const fn on_cpu_0(what: &'static str, attr: fn() -> Attr) -> Wrong {
    Wrong { what, attr, cpu: 0 }
}

const fn on_cpu(what: &'static str, cpu: i32) -> Wrong {
    Wrong { what, attr, cpu }
}

/// An event that has a period.
fn event(type_: u32, config: u64) -> Attr {
    Attr::new(Event::new(type_, config)).period(1_000_000)
}

const WRONG: &[Wrong] = &[
    on_cpu_0("a type that no PMU has", || event(0xffff_fff0, 0)),
    on_cpu_0("a software event that there is not", || event(1, 999)),
    on_cpu("a CPU that there cannot be", 1 << 20),
    on_cpu("no CPU", -1),
    on_cpu("the least CPU number", i32::MIN),
    on_cpu_0("a period with its highest bit set", || {
        attr().period(1 << 63)
    }),
    on_cpu_0("a frequency above the limit", || attr().frequency(1 << 40)),
    on_cpu_0("a tracepoint that there is not", || event(2, u64::MAX)),
    on_cpu_0("a cache event that there cannot be", || {
        event(3, 0xff_ff_ff)
    }),
    on_cpu_0("a hardware event that there cannot be", || event(0, 999)),
    on_cpu_0("a breakpoint nowhere", || event(5, 0)),
];

fn errors_are_perfs(_: &mut ()) -> Verdict {
    let session = session()?;
    let mut differ = 0;
    for wrong in WRONG {
        let attr = (wrong.attr)();
        let theirs = perf::open(&attr, -1, wrong.cpu, None).map(drop);
        let ours = create(&session, attr, wrong.cpu);
        if ours == theirs {
            note(format_args!("{}: {theirs:?}", wrong.what));
        } else {
            differ += 1;
            note(format_args!(
                "{}: {ours:?}, but perf_event_open() gives {theirs:?}: {attr:?}",
                wrong.what
            ));
        }
    }
    ensure!(
        differ == 0,
        "{differ} of {} wrong requests give something else",
        WRONG.len()
    );
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(setup, &[("errors_are_perfs", errors_are_perfs)])
}
