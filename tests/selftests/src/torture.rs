// SPDX-License-Identifier: GPL-2.0

//! Driving `weir_torture.ko`, whose interface is `tests/module/weir_torture.h`.

use crate::{
    ktap::{
        skip,
        Skip, //
    },
    syscall::{
        ioctl,
        Argument, //
    },
};
use anyhow::{
    bail,
    Context,
    Result, //
};
use libweir::{
    Channel,
    ChannelOptions, //
};
use rustix::{
    fd::{
        AsFd,
        AsRawFd,
        OwnedFd, //
    },
    fs::{
        Mode,
        OFlags, //
    },
    io::Errno,
    ioctl::{
        opcode,
        Opcode, //
    },
};
use std::{
    cell::Cell,
    time::{
        Duration,
        Instant, //
    },
};
use zerocopy::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout, //
};

const DEVICE: &str = "/dev/weir_torture";

const MAGIC: u8 = 0xBC;
const SOURCES: usize = 4;
const CPU_WORDS: usize = 4;

/// Number of kinds of refusals; the last one is for those that weir is not to give.
pub const REFUSED: usize = 4;

/// Bytes of the head of a payload: the least that one can have.
pub const PAYLOAD_MIN: u32 = size_of::<crate::payload::Payload>() as u32;

/// `WEIR_TORTURE_IOC_START`.
pub const START: Opcode = opcode::read_write::<Start>(MAGIC, 0);
const STOP: Opcode = opcode::none(MAGIC, 1);
const STATUS: Opcode = opcode::read_write::<Status>(MAGIC, 2);

const CREATE: Opcode = opcode::read_write::<Create>(MAGIC, 3);
const DESTROY: Opcode = opcode::none(MAGIC, 4);

/// Reserve and commit, and now and then discard, instead of writing.
pub const IN_PLACE: u32 = 1 << 0;

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
    /// [`IN_PLACE`] or zero.
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
            flags: IN_PLACE,
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
    /// The last error that is not to be, negative.
    pub other_errno: i32,
    /// Zero.
    pub reserved: u32,
}

/// The device of the torture module.
#[derive(Debug)]
pub struct Torture {
    fd: OwnedFd,
}

/// Writers that were started, and perhaps still run.
#[derive(Debug)]
pub struct Run<'a> {
    torture: &'a Torture,
    request: Start,
    stopped: Cell<bool>,
}

impl Torture {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// That of the call; a skip where the module is not loaded.
    pub fn open() -> Result<Self> {
        match rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => Ok(Torture { fd }),
            Err(Errno::NOENT) => Err(skip("weir_torture.ko is not loaded")),
            Err(errno) => Err(errno).with_context(|| format!("opening {DEVICE}")),
        }
    }

    /// Starts writers into `channel`.
    ///
    /// # Errors
    ///
    /// Those of `WEIR_TORTURE_IOC_START`; a skip where this machine has no NMI.
    pub fn start<Fd: AsFd>(&self, channel: Fd, request: Start) -> Result<Run<'_>> {
        let mut request = Start {
            channel: channel.as_fd().as_raw_fd(),
            ..request
        };
        match ioctl(&self.fd, START, Argument::Bytes(request.as_mut_bytes())) {
            Ok(()) => Ok(Run {
                torture: self,
                request,
                stopped: Cell::new(false),
            }),
            Err(Errno::OPNOTSUPP) => Err(skip("there is no NMI that could be sent here")),
            Err(errno) => Err(errno).context("starting the torture writers"),
        }
    }

    /// Creates a channel of the module's own.
    ///
    /// # Errors
    ///
    /// Those of `WEIR_TORTURE_IOC_CREATE`.
    pub fn create(&self, name: &str, model: u32, mode: u32, pages: u32) -> Result<Create, Errno> {
        let mut request = Create {
            size: size_of::<Create>() as u32,
            model,
            mode,
            pages,
            ..Default::default()
        };
        let room = request.name.get_mut(..name.len()).ok_or(Errno::INVAL)?;
        room.copy_from_slice(name.as_bytes());
        ioctl(&self.fd, CREATE, Argument::Bytes(request.as_mut_bytes()))?;
        Ok(request)
    }

    /// Destroys it.
    ///
    /// # Errors
    ///
    /// None that are known.
    pub fn destroy(&self) -> Result<(), Errno> {
        ioctl(&self.fd, DESTROY, Argument::Null)
    }

    /// The sources that this machine has.
    ///
    /// # Errors
    ///
    /// Those of a channel, and of [`Torture::start`].
    pub fn sources(&self) -> Result<Vec<Source>> {
        let channel = Channel::create(&ChannelOptions::default())?;
        let request = Start::new(&[Source::Nmi], PAYLOAD_MIN..=PAYLOAD_MIN).records(1);
        match self.start(&channel, request) {
            Ok(run) => {
                run.stop()?;
                Ok(Source::ALL.to_vec())
            }
            Err(error) if error.is::<Skip>() => Ok(Source::ALL
                .into_iter()
                .filter(|source| *source != Source::Nmi)
                .collect()),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Torture {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Run<'_> {
    /// The CPUs that it runs on.
    pub fn cpus(&self) -> Vec<u32> {
        (0..64 * CPU_WORDS as u32)
            .filter(|cpu| self.request.cpus[*cpu as usize / 64] & 1 << (cpu % 64) != 0)
            .collect()
    }

    /// The counts of one writer.
    ///
    /// # Errors
    ///
    /// Those of `WEIR_TORTURE_IOC_STATUS`.
    pub fn status(&self, cpu: u32, source: Source) -> Result<Status> {
        let mut status = Status {
            size: size_of::<Status>() as u32,
            cpu,
            source: source as u32,
            ..Default::default()
        };
        ioctl(
            &self.torture.fd,
            STATUS,
            Argument::Bytes(status.as_mut_bytes()),
        )
        .with_context(|| format!("the status of {source:?} on CPU {cpu}"))?;
        Ok(status)
    }

    /// The counts of all writers.
    ///
    /// # Errors
    ///
    /// As [`Run::status`].
    pub fn statuses(&self) -> Result<Vec<Status>> {
        let mut statuses = Vec::new();
        for cpu in self.cpus() {
            for source in Source::ALL {
                if self.request.sources & 1 << source as u32 != 0 {
                    statuses.push(self.status(cpu, source)?);
                }
            }
        }
        Ok(statuses)
    }

    /// Stops all writers. The counts stay.
    ///
    /// # Errors
    ///
    /// Those of `WEIR_TORTURE_IOC_STOP`.
    pub fn stop(&self) -> Result<()> {
        // Another run may be there by the time this one is dropped.
        self.stopped.set(true);
        ioctl(&self.torture.fd, STOP, Argument::Null).context("stopping the torture writers")
    }

    /// Waits until all writers have ended by themselves, then stops them.
    ///
    /// # Errors
    ///
    /// As [`Run::status`] and [`Run::stop`], or they go on after `patience`.
    pub fn wait(&self, patience: Duration) -> Result<()> {
        let begin = Instant::now();
        loop {
            let statuses = self.statuses()?;
            let running = statuses.first().map_or(0, |status| status.running);
            if running == 0 {
                return self.stop();
            }
            if begin.elapsed() > patience {
                self.stop()?;
                bail!("{running} writers have not ended after {patience:?}: {statuses:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if !self.stopped.get() {
            // A test that failed left them running; the failure it reports is the first one.
            let _ = self.stop();
        }
    }
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
                "offsetof(struct weir_torture_status, other_errno)",
                offset_of!(Status, other_errno),
            ),
            ("sizeof(struct weir_torture_create)", size_of::<Create>()),
            (
                "offsetof(struct weir_torture_create, name)",
                offset_of!(Create, name),
            ),
            ("WEIR_TORTURE_IN_PLACE", IN_PLACE as usize),
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
