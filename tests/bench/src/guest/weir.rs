// SPDX-License-Identifier: GPL-2.0

//! The channel of weir that the module writes to.

use crate::arrived::Arrived;
use anyhow::{
    Context,
    Result, //
};
use libweir::{
    Channel,
    Page,
    Record, //
};

/// `WEIR_LOST_OVERWRITTEN`.
const OVERWRITTEN: usize = 3;

/// Attaches it.
///
/// # Errors
///
/// Where there is none.
pub fn attach() -> Result<Channel> {
    Channel::attach(libweir::DEVICE.as_ref(), "weir_bench", true)
        .context("cannot attach the module's channel")
}

/// Reads all that was written, in records that end with a payload of so many bytes.
///
/// # Errors
///
/// Where it cannot be read, or is no record.
pub fn drain(channel: &Channel, payload: usize) -> Result<Arrived> {
    let mut arrived = Arrived::default();
    channel.flush()?;
    channel.drain(&mut channel.buffer(64), |bytes| {
        for record in Page::parse(bytes)?.records() {
            let record = record?;
            let (Record::Event { data, .. } | Record::Raw { data, .. }) = record else {
                continue;
            };
            let start = data.len().checked_sub(payload).context("a short record")?;
            arrived.record(&data[start..], usize::from(record.header().size));
        }
        Ok::<_, anyhow::Error>(())
    })?;
    for cpu in libweir::cpu::possible()? {
        let lost = channel.status(cpu)?.lost;
        let overwritten = lost[OVERWRITTEN];
        arrived.overwritten += overwritten;
        arrived.lost += lost.iter().sum::<u64>() - overwritten;
    }
    Ok(arrived)
}
