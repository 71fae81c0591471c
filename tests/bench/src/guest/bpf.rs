// SPDX-License-Identifier: GPL-2.0

//! A BPF program on the tracepoint, with its ring buffer.

use crate::arrived::{
    Arrived,
    PAYLOAD, //
};
use anyhow::{
    Context,
    Result, //
};
use aya::{
    maps::{
        MapData,
        RingBuf, //
    },
    programs::RawTracePoint,
    Ebpf, //
};

/// What stands before every record.
const HEADER: usize = 8;

/// A program that is attached until this is dropped.
pub struct Attached {
    ring: RingBuf<MapData>,
    _programs: Ebpf,
}

impl Attached {
    /// Loads one of the programs of an object, and attaches it.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn new(object: &[u8], name: &str) -> Result<Self> {
        let mut programs = Ebpf::load(object).context("cannot load the object")?;
        let ring = programs.take_map("ring").context("no map")?;
        let ring = RingBuf::try_from(ring).context("cannot map the ring")?;
        let program = programs.program_mut(name).context("no such program")?;
        let program: &mut RawTracePoint = program.try_into()?;
        program.load().context("cannot load the program")?;
        program
            .attach("weir_bench")
            .context("cannot attach the program")?;
        Ok(Self {
            ring,
            _programs: programs,
        })
    }

    /// Reads all that was written.
    pub fn drain(&mut self) -> Arrived {
        let mut arrived = Arrived::default();
        while let Some(record) = self.ring.next() {
            // Some have the time before it.
            let payload = record.len().saturating_sub(PAYLOAD);
            arrived.record(
                &record[payload..],
                HEADER + record.len().next_multiple_of(8),
            );
        }
        arrived
    }
}
