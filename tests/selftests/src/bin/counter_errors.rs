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
    uapi::{
        CounterReq,
        COUNTER_EXCLUDE_KERNEL,
        COUNTER_FREQ, //
    },
    ChannelOptions,
    CounterOptions,
    Errno,
    Sampling, //
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
    syscall::{
        perf_event_open,
        PerfAttr, //
    },
};

fn session() -> Result<Session> {
    Session::open(&ChannelOptions::default(), 4)
}

/// A right one, for `cpu-clock` on CPU 0.
fn request() -> CounterReq {
    CounterOptions {
        sampling: Sampling::Period(1_000_000),
        ..Default::default()
    }
    .request()
}

/// Tests nothing where the kernel has no perf events.
fn setup() -> Result<()> {
    match counter_create(session()?.channel(), &mut request()) {
        Err(Errno::OPNOTSUPP) => Err(skip("this kernel has no perf events")),
        result => result.context("creating a counter"),
    }
}

/// A request with something wrong, and the same for `perf_event_open()`.
struct Wrong {
    what: &'static str,
    request: fn(&mut CounterReq),
}

const WRONG: &[Wrong] = &[
    Wrong {
        what: "a type that no PMU has",
        request: |req| req.type_ = 0xffff_fff0,
    },
    Wrong {
        what: "a software event that there is not",
        request: |req| req.config = 999,
    },
    Wrong {
        what: "a CPU that there cannot be",
        request: |req| req.cpu = 1 << 20,
    },
    Wrong {
        what: "no CPU",
        request: |req| req.cpu = -1,
    },
    Wrong {
        what: "the least CPU number",
        request: |req| req.cpu = i32::MIN,
    },
    Wrong {
        what: "a period with its highest bit set",
        request: |req| req.sample_period = 1 << 63,
    },
    Wrong {
        what: "a frequency above the limit",
        request: |req| {
            req.flags = COUNTER_FREQ;
            req.sample_period = 1 << 40;
        },
    },
    Wrong {
        what: "a tracepoint that there is not",
        request: |req| {
            req.type_ = 2;
            req.config = u64::MAX;
        },
    },
    Wrong {
        what: "a cache event that there cannot be",
        request: |req| {
            req.type_ = 3;
            req.config = 0xff_ff_ff;
        },
    },
    Wrong {
        what: "a hardware event that there cannot be",
        request: |req| {
            req.type_ = 0;
            req.config = 999;
        },
    },
    Wrong {
        what: "a breakpoint nowhere",
        request: |req| req.type_ = 5,
    },
];

fn errors_are_perfs(_: &mut ()) -> Verdict {
    let session = session()?;
    let mut differ = 0;
    for wrong in WRONG {
        let mut req = request();
        (wrong.request)(&mut req);
        let theirs = perf_event_open(&attr(&req), req.cpu).map(drop);
        let ours = counter_create(session.channel(), &mut req);
        if ours == theirs {
            note(format_args!("{}: {theirs:?}", wrong.what));
        } else {
            differ += 1;
            note(format_args!(
                "{}: {ours:?}, but perf_event_open() gives {theirs:?}: {req:?}",
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

/// What `perf_event_open()` is asked for the same.
fn attr(req: &CounterReq) -> PerfAttr {
    // Bits of the flags, as linux/perf_event.h has them.
    const DISABLED: u64 = 1 << 0;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const FREQ: u64 = 1 << 10;
    let flag = |ours: u32, theirs: u64| if req.flags & ours != 0 { theirs } else { 0 };
    PerfAttr {
        type_: req.type_,
        config: req.config,
        config1: req.config1,
        config2: req.config2,
        sample_period: req.sample_period,
        flags: DISABLED | flag(COUNTER_FREQ, FREQ) | flag(COUNTER_EXCLUDE_KERNEL, EXCLUDE_KERNEL),
        ..Default::default()
    }
}

fn main() -> ExitCode {
    ktap::main(setup, &[("errors_are_perfs", errors_are_perfs)])
}
