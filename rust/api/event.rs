// SPDX-License-Identifier: GPL-2.0

//! What can be counted.
//!
//! C header: `include/uapi/linux/perf_event.h`.

use core::ops::BitOr;
use kernel::{
    ffi::c_char,
    prelude::*, //
};

extern "C" {
    fn weir_tracepoint_id(system: *const c_char, name: *const c_char) -> c_int;
}

const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const TYPE_HW_CACHE: u32 = 3;
const TYPE_RAW: u32 = 4;
const TYPE_BREAKPOINT: u32 = 5;

/// Bits of [`Event::flags`], from the lowest.
const INHERIT: u32 = 1;
const PINNED: u32 = 2;
const EXCLUDE_USER: u32 = 4;
const EXCLUDE_KERNEL: u32 = 5;
const EXCLUDE_HV: u32 = 6;
const EXCLUDE_IDLE: u32 = 7;
const FREQ: u32 = 10;
const EXCLUDE_HOST: u32 = 19;
const EXCLUDE_GUEST: u32 = 20;

// The lowest bit of a word is the first of C's bit fields only so.
const _: () = assert!(cfg!(target_endian = "little"));

/// What to count, and how: `struct perf_event_attr`, which `kernel::bindings` does not show.
///
/// Weir takes one that is shorter or longer than the kernel's own, as the system call does.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Event {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
    aux_sample_size: u32,
    aux_action: u32,
    sig_data: u64,
    config3: u64,
    config4: u64,
}

// `PERF_ATTR_SIZE_VER9`.
const _: () = assert!(size_of::<Event>() == 144);

/// Generic events of the processor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hardware {
    CpuCycles,
    Instructions,
    CacheReferences,
    CacheMisses,
    BranchInstructions,
    BranchMisses,
    BusCycles,
    StalledCyclesFrontend,
    StalledCyclesBackend,
    RefCpuCycles,
}

/// Events of the kernel. The clocks count ns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Software {
    CpuClock,
    TaskClock,
    PageFaults,
    ContextSwitches,
    CpuMigrations,
    PageFaultsMin,
    PageFaultsMaj,
    AlignmentFaults,
    EmulationFaults,
    Dummy,
    BpfOutput,
    CgroupSwitches,
}

/// Caches, of [`Event::cache`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cache {
    L1d,
    L1i,
    /// The last level.
    Ll,
    Dtlb,
    Itlb,
    /// Branch prediction.
    Bpu,
    Node,
}

/// What is done to a cache.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Read,
    Write,
    Prefetch,
}

/// Whether it has it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    Access,
    Miss,
}

/// How much a breakpoint watches, from an address that is a multiple of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    One = 1,
    Two = 2,
    Four = 4,
    Eight = 8,
}

/// What a breakpoint watches for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    Read = 1,
    Write = 2,
    ReadWrite = 3,
    /// Its length is that of a `long`.
    Execute = 4,
}

/// Fields of a `PERF_RECORD_SAMPLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields(u64);

impl Fields {
    pub(crate) const IP: Self = Self(1 << 0);
    pub(crate) const TID: Self = Self(1 << 1);
    pub(crate) const TIME: Self = Self(1 << 2);
    pub(crate) const ADDR: Self = Self(1 << 3);
    pub(crate) const CALLCHAIN: Self = Self(1 << 5);
    pub(crate) const ID: Self = Self(1 << 6);
    pub(crate) const CPU: Self = Self(1 << 7);
    pub(crate) const PERIOD: Self = Self(1 << 8);
    pub(crate) const STREAM_ID: Self = Self(1 << 9);
}

impl BitOr for Fields {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Event {
    /// An event of a PMU, by the number in `/sys/bus/event_source/devices/PMU/type`, and the words that it calls
    /// `config`, `config1` and so on.
    pub(crate) const fn pmu(kind: u32, config: [u64; 5]) -> Self {
        Self {
            kind,
            size: size_of::<Self>() as u32,
            config: config[0],
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: 0,
            wakeup_events: 0,
            bp_type: 0,
            config1: config[1],
            config2: config[2],
            branch_sample_type: 0,
            sample_regs_user: 0,
            sample_stack_user: 0,
            clockid: 0,
            sample_regs_intr: 0,
            aux_watermark: 0,
            sample_max_stack: 0,
            reserved: 0,
            aux_sample_size: 0,
            aux_action: 0,
            sig_data: 0,
            config3: config[3],
            config4: config[4],
        }
    }

    const fn simple(kind: u32, config: u64) -> Self {
        Self::pmu(kind, [config, 0, 0, 0, 0])
    }

    /// A generic event of the processor.
    pub(crate) const fn hardware(event: Hardware) -> Self {
        Self::simple(TYPE_HARDWARE, event as u64)
    }

    /// An event of the kernel.
    pub(crate) const fn software(event: Software) -> Self {
        Self::simple(TYPE_SOFTWARE, event as u64)
    }

    /// A generic event of a cache.
    pub(crate) const fn cache(cache: Cache, op: Op, outcome: Outcome) -> Self {
        let config = cache as u64 | (op as u64) << 8 | (outcome as u64) << 16;
        Self::simple(TYPE_HW_CACHE, config)
    }

    /// An event of the processor, by the number in its manual.
    pub(crate) const fn raw(number: u64) -> Self {
        Self::simple(TYPE_RAW, number)
    }

    /// Accesses to an address.
    pub(crate) const fn breakpoint(address: usize, length: Length, access: Access) -> Self {
        let mut event = Self::simple(TYPE_BREAKPOINT, 0);
        event.bp_type = access as u32;
        event.config1 = address as u64;
        event.config2 = length as u64;
        event
    }

    /// How often a tracepoint is passed. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOENT` (no such tracepoint), `EBUSY` (its module is going away), `EOPNOTSUPP` (the kernel has no trace
    /// events).
    pub(crate) fn tracepoint(system: &CStr, name: &CStr) -> Result<Self> {
        // SAFETY: Both are strings.
        let id = unsafe { weir_tracepoint_id(system.as_char_ptr(), name.as_char_ptr()) };
        let id = u64::try_from(id).map_err(|_| Error::from_errno(id))?;
        Ok(Self::simple(TYPE_TRACEPOINT, id))
    }

    /// Overflows after every `events` events.
    pub(crate) const fn period(mut self, events: u64) -> Self {
        self.sample_period = events;
        self.flags &= !(1 << FREQ);
        self
    }

    /// Overflows about so many times a second.
    pub(crate) const fn frequency(self, hertz: u64) -> Self {
        self.period(hertz).flag(FREQ)
    }

    /// What a sample of it tells, where overflows go into a channel.
    pub(crate) const fn sample(mut self, fields: Fields) -> Self {
        self.sample_type = fields.0;
        self
    }

    /// At most so many frames in [`Fields::CALLCHAIN`].
    pub(crate) const fn max_stack(mut self, frames: u16) -> Self {
        self.sample_max_stack = frames;
        self
    }

    /// Always on its PMU, or an error: it takes no turns with others.
    pub(crate) const fn pinned(self) -> Self {
        self.flag(PINNED)
    }

    /// Also in the children of the task that are made from now on.
    pub(crate) const fn inherit(self) -> Self {
        self.flag(INHERIT)
    }

    /// Not in user space.
    pub(crate) const fn exclude_user(self) -> Self {
        self.flag(EXCLUDE_USER)
    }

    /// Not in the kernel.
    pub(crate) const fn exclude_kernel(self) -> Self {
        self.flag(EXCLUDE_KERNEL)
    }

    /// Not in the hypervisor.
    pub(crate) const fn exclude_hv(self) -> Self {
        self.flag(EXCLUDE_HV)
    }

    /// Not in the idle task.
    pub(crate) const fn exclude_idle(self) -> Self {
        self.flag(EXCLUDE_IDLE)
    }

    /// Only in virtual machines.
    pub(crate) const fn exclude_host(self) -> Self {
        self.flag(EXCLUDE_HOST)
    }

    /// Not in virtual machines.
    pub(crate) const fn exclude_guest(self) -> Self {
        self.flag(EXCLUDE_GUEST)
    }

    const fn flag(mut self, bit: u32) -> Self {
        self.flags |= 1 << bit;
        self
    }
}
