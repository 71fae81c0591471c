// SPDX-License-Identifier: GPL-2.0

//! Every tracer on the same tracepoint, one after the other.

use crate::{
    arrived::{
        Arrived,
        PAYLOAD, //
    },
    bpf,
    direct,
    ftrace,
    meter::{
        Fired,
        Kind,
        Meter, //
    },
    outcome::{
        self,
        CALLS, //
    },
    perf,
    Batches, //
};
use anyhow::{
    Context,
    Result, //
};
use std::path::Path;
use weir_bench::measurement::Measurement;
use weir_selftests::ktap::{
    skip,
    Skip, //
};

/// What the tracepoint is called by the module while somebody else has a probe on it.
pub const BARE: &str = "tracepoint/no probe";

/// Where it fires.
const CPU: u32 = 0;

/// Fires the tracepoint and reads what a tracer made of it; a [`Skip`] where the kernel does not have that tracer.
type Run<'a> = Box<dyn Fn(&Meter, Batches) -> Result<(Fired, Arrived)> + 'a>;

/// A tracer that user space sets up.
type Peer<'a> = (Kind, Run<'a>);

fn peer<'a>(
    name: String,
    run: impl Fn(&Meter, Batches) -> Result<(Fired, Arrived)> + 'a,
) -> Peer<'a> {
    let kind = Kind {
        name: format!("tracepoint/{name}"),
        payload: PAYLOAD,
    };
    (kind, Box::new(run))
}

fn ftrace_peer<'a>(clock: &'static str) -> Peer<'a> {
    peer(
        format!("ftrace instance, overwrite, {clock} clock"),
        move |meter, batches| {
            let instance = ftrace::Instance::new(clock, ftrace::Full::Overwrite)?;
            let fired = fire(meter, batches)?;
            Ok((fired, instance.drain(CPU)?))
        },
    )
}

fn perf_peer<'a>(name: &str, wake: perf::Wake) -> Peer<'a> {
    peer(
        format!("perf, local clock, {name}"),
        move |meter, batches| {
            let mut sampler = perf::open(CPU, wake)?;
            let fired = fire(meter, batches)?;
            Ok((fired, perf::drain(&mut sampler)?))
        },
    )
}

fn bpf_peer<'a>(name: &str, object: Option<&'a [u8]>, program: &'static str) -> Peer<'a> {
    peer(format!("BPF ring buffer, {name}"), move |meter, batches| {
        let object = object.ok_or_else(|| skip("no BPF object was given"))?;
        let mut attached = bpf::Attached::new(object, program)?;
        let fired = fire(meter, batches)?;
        Ok((fired, attached.drain()))
    })
}

fn peers(object: Option<&[u8]>) -> Vec<Peer<'_>> {
    vec![
        ftrace_peer("local"),
        ftrace_peer("x86-tsc"),
        perf_peer("wake-up at half", perf::Wake::Half),
        perf_peer("wake-up each", perf::Wake::Each),
        bpf_peer("no time, no wake-up", object, "submit_quiet"),
        bpf_peer("no time, no wake-up, output()", object, "output_quiet"),
        bpf_peer("monotonic, no wake-up", object, "submit_quiet_timed"),
        bpf_peer("monotonic, default wake-up", object, "submit_default_timed"),
        bpf_peer("monotonic, wake-up each", object, "submit_wake_timed"),
    ]
}

fn fire(meter: &Meter, batches: Batches) -> Result<Fired> {
    let mut opened = meter.open(BARE)?.context("the tracepoint is not there")?;
    opened.fire(batches.batches, CALLS, CPU)
}

/// Measures all of them, round by round.
///
/// # Errors
///
/// Where one cannot be measured. What does not arrive makes a result invalid instead.
pub fn measure(meter: &Meter, batches: Batches, object: Option<&Path>) -> Result<Vec<Measurement>> {
    let object = object
        .map(|path| std::fs::read(path).with_context(|| format!("no {}", path.display())))
        .transpose()?;
    let peers = peers(object.as_deref());
    let kinds = meter.kinds("tracepoint")?;
    let mut measurements = Vec::new();
    for _ in 0..batches.rounds {
        for kind in &kinds {
            let result = direct::once(meter, kind, batches)?;
            outcome::add(&mut measurements, batches.counted(result));
        }
        for (kind, run) in &peers {
            let result = peer_once(meter, kind, run, batches)?;
            outcome::add(&mut measurements, batches.counted(result));
        }
    }
    Ok(measurements)
}

fn peer_once(meter: &Meter, kind: &Kind, run: &Run<'_>, batches: Batches) -> Result<Measurement> {
    match run(meter, batches) {
        Ok((fired, arrived)) => Ok(outcome::measurement(kind, &fired, Some(&arrived))),
        Err(error) => match error.downcast::<Skip>() {
            Ok(Skip(why)) => Ok(outcome::skipped(kind, &why)),
            Err(error) => Err(error.context(kind.name.clone())),
        },
    }
}
