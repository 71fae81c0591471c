// SPDX-License-Identifier: GPL-2.0

//! Buffers that kernel code calls directly, and the clocks.

use crate::{
    meter::{
        Kind,
        Meter, //
    },
    outcome::{
        self,
        CALLS, //
    },
    weir,
    Batches, //
};
use anyhow::Result;
use weir_bench::measurement::Measurement;

const CPU: u32 = 0;

/// Measures all kinds, round by round, so that whatever else the machine does meets all of them.
///
/// # Errors
///
/// Where one cannot be measured. What does not arrive makes a result invalid instead.
pub fn measure(meter: &Meter, batches: Batches) -> Result<Vec<Measurement>> {
    let kinds = meter.kinds("direct")?;
    let mut measurements = Vec::new();
    for _ in 0..batches.rounds {
        for kind in &kinds {
            let result = once(meter, kind, batches)?;
            outcome::add(&mut measurements, batches.counted(result));
        }
    }
    Ok(measurements)
}

/// Measures one kind once, of whatever the module itself calls.
///
/// # Errors
///
/// As of [`measure`].
pub fn once(meter: &Meter, kind: &Kind, batches: Batches) -> Result<Measurement> {
    let Some(mut opened) = meter.open(&kind.name)? else {
        return Ok(outcome::skipped(kind, "this kernel does not have it"));
    };
    let fired = opened.fire(batches.batches, CALLS, CPU)?;
    let arrived = match kind.name.contains("/weir") {
        true => Some(weir::drain(&weir::attach()?, kind.payload)?),
        false => opened.count()?,
    };
    Ok(outcome::measurement(kind, &fired, arrived.as_ref()))
}
