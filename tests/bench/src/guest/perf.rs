// SPDX-License-Identifier: GPL-2.0

//! A perf event on the tracepoint, with its mapped ring.

use crate::arrived::{
    Arrived,
    PAYLOAD, //
};
use anyhow::{
    bail,
    Context,
    Result, //
};
use perf_event::{
    events::Tracepoint,
    Builder,
    SampleFlag,
    Sampler, //
};
use std::path::Path;
use weir_selftests::ktap::skip;

/// Bytes of the ring: more than is written between two reads.
const RING: usize = 16 << 20;
/// What stands before the fields of every event: type, flags, process.
const COMMON: usize = 8;

/// `PERF_RECORD_LOST` and `PERF_RECORD_SAMPLE` of linux/perf_event.h.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// When who waits for the ring is woken.
#[derive(Clone, Copy, Debug)]
pub enum Wake {
    /// When half of it is full.
    Half,
    /// By each event.
    Each,
}

/// Records the tracepoint on a CPU.
///
/// # Errors
///
/// Where it cannot be opened; a skip where this kernel has no perf events.
pub fn open(cpu: u32, wake: Wake) -> Result<Sampler> {
    if !Path::new("/proc/sys/kernel/perf_event_paranoid").exists() {
        return Err(skip("this kernel has no perf events"));
    }
    let id = std::fs::read_to_string("/sys/kernel/tracing/events/weir_bench/weir_bench/id")
        .context("the tracepoint has no number")?;
    let mut builder = Builder::new(Tracepoint::with_id(id.trim().parse()?));
    builder
        .any_pid()
        .one_cpu(cpu as usize)
        .include_kernel()
        .sample(SampleFlag::TIME | SampleFlag::RAW)
        .sample_period(1);
    match wake {
        Wake::Half => builder.wakeup_watermark(RING / 2),
        Wake::Each => builder.wakeup_events(1),
    };
    let mut counter = builder.build().context("cannot open the perf event")?;
    counter.enable()?;
    counter.sampled(RING).context("cannot map the ring")
}

/// Reads all that was written.
///
/// # Errors
///
/// Where it is no event.
pub fn drain(sampler: &mut Sampler) -> Result<Arrived> {
    let mut arrived = Arrived::default();
    sampler.disable()?;
    while let Some(record) = sampler.next_record() {
        let data = record.to_contiguous();
        match record.ty() {
            SAMPLE => {
                // The time, the length of what the tracepoint recorded, and that.
                let start = 8 + 4 + COMMON;
                let payload = data.get(start..start + PAYLOAD);
                arrived.record(payload.context("a short event")?, 8 + data.len());
            }
            LOST => {
                let lost = data.get(8..16).context("a short notice")?;
                arrived.lost += u64::from_ne_bytes(lost.try_into()?);
            }
            other => bail!("a record of type {other}"),
        }
    }
    Ok(arrived)
}
