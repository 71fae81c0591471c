// SPDX-License-Identifier: GPL-2.0

//! The interface of `weir_torture.ko`, as `tests/module/weir_torture.h` has it.

use crate::payload::Payload;
use rustix::ioctl::{
    opcode,
    Opcode, //
};
use std::time::Duration;
use zerocopy::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout, //
};

const MAGIC: u8 = 0xBC;
const SOURCES: usize = 4;
pub(super) const CPU_WORDS: usize = 4;

/// Number of kinds of refusals; the last one is for those that weir is not to give.
pub const REFUSED: usize = 4;

/// Bytes of the head of a payload: the least that one can have.
pub const PAYLOAD_MIN: u32 = size_of::<Payload>() as u32;

/// `WEIR_TORTURE_IOC_START`.
pub const START: Opcode = opcode::read_write::<Start>(MAGIC, 0);
pub(super) const STOP: Opcode = opcode::none(MAGIC, 1);
pub(super) const STATUS: Opcode = opcode::read_write::<Status>(MAGIC, 2);

pub(super) const CREATE: Opcode = opcode::read_write::<Create>(MAGIC, 3);
pub(super) const DESTROY: Opcode = opcode::none(MAGIC, 4);

/// Reserve and commit, and now and then discard, instead of writing.
pub const IN_PLACE: u32 = 1 << 0;

/// Writers that end because a CPU goes go on when it is back.
pub const COME_BACK: u32 = 1 << 1;

/// `struct weir_torture_create`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Create {
    /// Bytes of this structure.
    pub size: u32,
    /// `MODEL_*`.
    pub model: u32,
    /// `MODE_*`.
    pub mode: u32,
    /// Pages: what is wanted, and what was taken.
    pub pages: u32,
    /// Name, filled with zeros.
    pub name: [u8; 32],
    /// Bytes of a page.
    pub page_size: u32,
    /// Finished pages that make `poll()` return.
    pub watermark: u32,
    /// Ns after which records of a quiet CPU are readable.
    pub max_latency_ns: u64,
    /// `CLOCK_*`.
    pub clock: u32,
    /// Zero.
    pub reserved: u32,
}

/// Where a writer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Source {
    /// A kernel thread.
    Task,
    /// A timer in softirq context.
    Softirq,
    /// A timer in hard interrupt context.
    Irq,
    /// A non-maskable interrupt.
    Nmi,
}

impl Source {
    /// All of them.
    pub const ALL: [Source; SOURCES] = [Source::Task, Source::Softirq, Source::Irq, Source::Nmi];

    /// The source with this number.
    pub fn from_number(number: u32) -> Option<Source> {
        Self::ALL
            .into_iter()
            .find(|source| *source as u32 == number)
    }
}

/// `struct weir_torture_start`. All zero but the size, the sources and the lengths is a good beginning.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Start {
    /// Bytes of this structure.
    pub size: u32,
    /// [`IN_PLACE`] and [`COME_BACK`], or zero.
    pub flags: u32,
    /// Descriptor of the channel.
    pub channel: i32,
    /// A bit for each source.
    pub sources: u32,
    /// Least bytes of a payload.
    pub payload_min: u32,
    /// Most bytes of a payload.
    pub payload_max: u32,
    /// Attempts of each writer, zero for no limit.
    pub records: u64,
    /// Ns after which each writer ends, zero for never.
    pub duration_ns: u64,
    /// Ns between two records of each source.
    pub interval_ns: [u64; SOURCES],
    /// A bit for each CPU; none for all that are online. Out: which are used.
    pub cpus: [u64; CPU_WORDS],
    /// Of the lengths of payloads and of the timers' intervals.
    pub seed: u64,
}

impl Start {
    /// Writers of `sources` on every CPU that is online, with payloads of the lengths given, until they
    /// are stopped.
    pub fn new(sources: &[Source], payload: std::ops::RangeInclusive<u32>) -> Self {
        Start {
            size: size_of::<Start>() as u32,
            sources: sources
                .iter()
                .fold(0, |bits, source| bits | 1 << *source as u32),
            payload_min: *payload.start(),
            payload_max: *payload.end(),
            ..Default::default()
        }
    }

    /// Writes in place.
    pub fn in_place(self) -> Self {
        Start {
            flags: self.flags | IN_PLACE,
            ..self
        }
    }

    /// Writes again on a CPU that went and came back.
    pub fn come_back(self) -> Self {
        Start {
            flags: self.flags | COME_BACK,
            ..self
        }
    }

    /// Ends each writer after so many attempts.
    pub fn records(self, records: u64) -> Self {
        Start { records, ..self }
    }

    /// Writes on one CPU alone.
    pub fn on(self, cpu: u32) -> Self {
        let mut cpus = [0; CPU_WORDS];
        cpus[cpu as usize / 64] = 1 << (cpu % 64);
        Start { cpus, ..self }
    }

    /// Waits so long between two records of a source.
    pub fn interval(mut self, source: Source, interval: Duration) -> Self {
        self.interval_ns[source as usize] = interval.as_nanos() as u64;
        self
    }
}

/// `struct weir_torture_status`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Status {
    /// Bytes of this structure.
    pub size: u32,
    /// In: which CPU.
    pub cpu: u32,
    /// In: which source.
    pub source: u32,
    /// Writers of the whole run that have not ended.
    pub running: u32,
    /// Calls of `weir_channel_write()`.
    pub attempted: u64,
    /// Those that wrote.
    pub written: u64,
    /// Those that were refused: `ENOSPC`, `EDEADLK`, `EMSGSIZE`, and what is not to be.
    pub refused: [u64; REFUSED],
    /// Those written inside of another write.
    pub inside: u64,
    /// Reservations that were discarded, besides those.
    pub given_up: u64,
    /// The last error that is not to be, negative.
    pub other_errno: i32,
    /// Zero.
    pub reserved: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::Write,
        mem::offset_of,
        process::Command, //
    };

    /// Asks a C compiler what the header makes of what stands here.
    #[test]
    fn the_header_agrees() {
        let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../module/weir_torture.h");
        let facts = [
            ("sizeof(struct weir_torture_start)", size_of::<Start>()),
            (
                "offsetof(struct weir_torture_start, channel)",
                offset_of!(Start, channel),
            ),
            (
                "offsetof(struct weir_torture_start, sources)",
                offset_of!(Start, sources),
            ),
            (
                "offsetof(struct weir_torture_start, payload_max)",
                offset_of!(Start, payload_max),
            ),
            (
                "offsetof(struct weir_torture_start, records)",
                offset_of!(Start, records),
            ),
            (
                "offsetof(struct weir_torture_start, duration_ns)",
                offset_of!(Start, duration_ns),
            ),
            (
                "offsetof(struct weir_torture_start, interval_ns)",
                offset_of!(Start, interval_ns),
            ),
            (
                "offsetof(struct weir_torture_start, cpus)",
                offset_of!(Start, cpus),
            ),
            (
                "offsetof(struct weir_torture_start, seed)",
                offset_of!(Start, seed),
            ),
            ("sizeof(struct weir_torture_status)", size_of::<Status>()),
            (
                "offsetof(struct weir_torture_status, source)",
                offset_of!(Status, source),
            ),
            (
                "offsetof(struct weir_torture_status, running)",
                offset_of!(Status, running),
            ),
            (
                "offsetof(struct weir_torture_status, attempted)",
                offset_of!(Status, attempted),
            ),
            (
                "offsetof(struct weir_torture_status, refused)",
                offset_of!(Status, refused),
            ),
            (
                "offsetof(struct weir_torture_status, inside)",
                offset_of!(Status, inside),
            ),
            (
                "offsetof(struct weir_torture_status, given_up)",
                offset_of!(Status, given_up),
            ),
            (
                "offsetof(struct weir_torture_status, other_errno)",
                offset_of!(Status, other_errno),
            ),
            ("sizeof(struct weir_torture_create)", size_of::<Create>()),
            (
                "offsetof(struct weir_torture_create, name)",
                offset_of!(Create, name),
            ),
            (
                "offsetof(struct weir_torture_create, page_size)",
                offset_of!(Create, page_size),
            ),
            (
                "offsetof(struct weir_torture_create, max_latency_ns)",
                offset_of!(Create, max_latency_ns),
            ),
            (
                "offsetof(struct weir_torture_create, clock)",
                offset_of!(Create, clock),
            ),
            ("WEIR_TORTURE_IN_PLACE", IN_PLACE as usize),
            ("WEIR_TORTURE_COME_BACK", COME_BACK as usize),
            ("WEIR_TORTURE_IOC_CREATE", CREATE as usize),
            ("WEIR_TORTURE_IOC_DESTROY", DESTROY as usize),
            ("sizeof(struct weir_torture_record)", PAYLOAD_MIN as usize),
            ("WEIR_TORTURE_SOURCES", SOURCES),
            ("WEIR_TORTURE_CPU_WORDS", CPU_WORDS),
            ("WEIR_TORTURE_ERRORS", REFUSED),
            ("WEIR_TORTURE_NMI", Source::Nmi as usize),
            ("WEIR_TORTURE_IRQ", Source::Irq as usize),
            ("WEIR_TORTURE_SOFTIRQ", Source::Softirq as usize),
            ("WEIR_TORTURE_IOC_START", START as usize),
            ("WEIR_TORTURE_IOC_STOP", STOP as usize),
            ("WEIR_TORTURE_IOC_STATUS", STATUS as usize),
        ];
        let mut source = tempfile::Builder::new().suffix(".c").tempfile().unwrap();
        writeln!(source, "#include <stddef.h>\n#include \"{header}\"").unwrap();
        for (number, (expression, value)) in facts.iter().enumerate() {
            writeln!(
                source,
                "typedef char fact{number}[({expression}) == {value}UL ? 1 : -1];"
            )
            .unwrap();
        }
        let output = Command::new("cc")
            .args(["-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror"])
            .arg(source.path())
            .output()
            .expect("a C compiler is there");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
