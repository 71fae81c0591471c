// SPDX-License-Identifier: GPL-2.0

//! How much can be written, while another processor reads, before something is lost.

use crate::{
    arrived::PAYLOAD,
    drain::{
        self,
        RECORD, //
    },
    meter::{
        Fired,
        Meter, //
    },
    way::Way,
    weir, //
};
use anyhow::{
    ensure,
    Context,
    Result, //
};
use std::{
    sync::atomic::{
        AtomicBool,
        Ordering, //
    },
    thread,
    time::Duration, //
};
use weir_bench::measurement::{
    Measurement,
    State, //
};

/// How near to the highest rate the search comes: 1/64 of what can be written.
const STEPS: u32 = 6;

/// Finds the highest rate at which nothing is lost.
///
/// # Errors
///
/// Where it cannot be measured.
pub fn measure(meter: &Meter, name: &str, make: Way, milliseconds: u32) -> Result<Measurement> {
    // As fast as it goes, first.
    let (fired, lost) = run_beside(meter, make, 0, milliseconds)?;
    let fastest = rate(&fired);
    let (mut good, mut bad) = (if lost == 0 { fastest } else { 0 }, fastest);
    let steps = if lost == 0 { 0 } else { STEPS };
    for _ in 0..steps {
        let middle = good + (bad - good) / 2;
        let (fired, lost) = run_beside(meter, make, middle, milliseconds)?;
        if lost == 0 {
            // Where the writer cannot keep the rate, what it made counts.
            good = rate(&fired).min(middle);
        } else {
            bad = middle;
        }
    }
    Ok(Measurement {
        part: if lost == 0 { "unlimited" } else { "sustained" }.into(),
        name: format!("weir, {name}"),
        payload: PAYLOAD as u64,
        per: 1,
        bytes: RECORD,
        state: match good {
            0 => State::Invalid("something was lost at every rate".into()),
            _ => State::Valid,
        },
        samples: vec![good],
    })
}

fn rate(fired: &Fired) -> u64 {
    (u128::from(fired.made) * 1_000_000_000 / u128::from(fired.elapsed.max(1))) as u64
}

/// Writes at a rate on one processor while another reads. Gives what was written, and how many were lost.
fn run_beside(meter: &Meter, make: Way, rate: u64, milliseconds: u32) -> Result<(Fired, u64)> {
    let cpu = drain::writer_cpu()?;
    let mut opened = meter.open(drain::KIND)?.context("no such channel")?;
    let channel = weir::attach()?;
    let mut reader = make(&channel)?;
    let done = AtomicBool::new(false);
    let fired = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let fired = opened.pace(rate, milliseconds, cpu);
            done.store(true, Ordering::Release);
            fired
        });
        while !done.load(Ordering::Acquire) {
            if reader()? == 0 {
                channel.poll(Some(Duration::from_millis(10)))?;
            }
        }
        writer.join().expect("the writer does not panic")
    })?;
    channel.flush()?;
    while reader()? != 0 {}
    let (_, lost) = drain::status(&channel)?;
    ensure!(
        lost == fired.failed,
        "{lost} records count as lost, and {} calls failed",
        fired.failed
    );
    Ok((fired, lost))
}
