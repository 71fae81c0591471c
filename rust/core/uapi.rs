// SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note

//! The structures of `rust/include/uapi/linux/weir.h`, for Rust on both sides of the system call.
//!
//! A file that needs nothing else: `weir_core` has it for the module, and `libweir` for programs, which
//! so need not be compiled again when the engine changes.
//!
//! The C header is the truth. The module checks every size and offset against what bindgen makes of
//! it when it is compiled, and `libweir` has a test that asks a C compiler.

use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout, //
};

/// What the first word of every page is: the magic number of a CTF 1.8 packet.
pub const PAGE_MAGIC: u32 = 0xC1FC_1FC1;

/// In [`PageHeader::flags`]: the page is still open; what it gets later follows in another page.
pub const PAGE_PARTIAL: u32 = 1 << 0;

/// `WEIR_PAGE_SHARED`: all CPUs wrote it; its number counts the pages of the channel.
pub const PAGE_SHARED: u32 = 1 << 1;

/// `WEIR_PAGE_OVERWRITE`: the channel overwrites; its number is greater by more than one where pages
/// were overwritten before they were read.
pub const PAGE_OVERWRITE: u32 = 1 << 2;

/// `WEIR_CPU_NONE`: of [`PageHeader::cpu_id`], no CPU.
pub const CPU_NONE: u32 = u32::MAX;

/// Number of causes for which a record is lost.
pub const LOST_CAUSES: usize = 4;

/// The head of a page: at the same time a CTF packet header and its context.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct PageHeader {
    /// [`PAGE_MAGIC`].
    pub magic: u32,
    /// Zero.
    pub stream_id: u32,
    /// Time in ns of the channel's clock that is not after the first record.
    pub timestamp_begin: u64,
    /// Time that is not before the last record and not after the next page of this CPU.
    pub timestamp_end: u64,
    /// Bits of the header and the records, without the NOP.
    pub content_size: u64,
    /// Bits of the whole page.
    pub packet_size: u64,
    /// Counts the pages of this CPU, or of all, from zero, without a gap but for pages that were
    /// overwritten.
    pub packet_seq_num: u64,
    /// Records this CPU has lost since the channel began.
    pub events_discarded: u64,
    /// Number of the CPU that wrote the page. If all do, that whose losses are told here, or [`CPU_NONE`].
    pub cpu_id: u32,
    /// `PAGE_*`.
    pub flags: u32,
    /// Time of the first record lost since the page before this one; zero where none was.
    pub lost_begin: u64,
    /// Time of the last of them.
    pub lost_end: u64,
    /// The records of `events_discarded` by cause, modulo 2^32.
    pub lost: [u32; LOST_CAUSES],
}

/// First type number of weir's own records; smaller ones are perf's.
pub const RECORD_FIRST: u32 = 0x10000;
/// Fills a page to its edge.
pub const RECORD_NOP: u32 = RECORD_FIRST;
/// Bytes that kernel code wrote.
pub const RECORD_RAW: u32 = RECORD_FIRST + 1;
/// An event that kernel code wrote in place.
pub const RECORD_EVENT: u32 = RECORD_FIRST + 2;

/// The stream is complete up to a time. It is written by who reads a channel, into a capture.
pub const RECORD_MARK: u32 = RECORD_FIRST + 3;

/// A [`RECORD_MARK`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Mark {
    /// What every record begins with.
    pub header: RecordHeader,
    /// No page behind this one has an older record.
    pub time: u64,
}

/// The head of a [`RECORD_EVENT`]: words of the writer's own follow. [`RecordHeader::misc`] is the CPU.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct EventHead {
    /// What every record begins with.
    pub header: RecordHeader,
    /// Time of the channel's clock.
    pub time: u64,
}
/// `PERF_RECORD_COMM`.
pub const RECORD_COMM: u32 = 3;
/// `PERF_RECORD_FORK`.
pub const RECORD_FORK: u32 = 7;
/// `PERF_RECORD_SAMPLE`.
pub const RECORD_SAMPLE: u32 = 9;

/// `PERF_SAMPLE_IDENTIFIER | _IP | _TID | _TIME | _CPU | _PERIOD`.
pub const SAMPLE_TYPE: u64 = 0x10187;

/// `PERF_RECORD_MISC_CPUMODE_MASK` and its values: where a sample's instruction pointer points.
pub const MISC_CPUMODE_MASK: u16 = 7;
/// `PERF_RECORD_MISC_KERNEL`.
pub const MISC_KERNEL: u16 = 1;
/// `PERF_RECORD_MISC_USER`.
pub const MISC_USER: u16 = 2;

/// What every record begins with: `struct perf_event_header`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct RecordHeader {
    /// `RECORD_*`.
    pub type_: u32,
    /// `PERF_RECORD_MISC_*`.
    pub misc: u16,
    /// Bytes, this header included; a multiple of 8.
    pub size: u16,
}

/// What ends every record but samples.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SampleId {
    /// Process that wrote the record.
    pub pid: u32,
    /// Thread that wrote it.
    pub tid: u32,
    /// Time in ns of the channel's clock.
    pub time: u64,
    /// CPU it was written on.
    pub cpu: u32,
    /// Zero.
    pub reserved: u32,
    /// Counter, or zero.
    pub id: u64,
}

/// `PERF_RECORD_THROTTLE`.
pub const RECORD_THROTTLE: u32 = 5;
/// `PERF_RECORD_UNTHROTTLE`.
pub const RECORD_UNTHROTTLE: u32 = 6;

/// Perf stopped an event for too many samples, or started it again.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Throttle {
    /// Type [`RECORD_THROTTLE`] or [`RECORD_UNTHROTTLE`].
    pub header: RecordHeader,
    /// The channel's clock.
    pub time: u64,
    /// Which event.
    pub id: u64,
    /// The same.
    pub stream_id: u64,
    /// Who wrote the record, and when.
    pub sample_id: SampleId,
}

/// `PERF_RECORD_SAMPLE` with [`SAMPLE_TYPE`]: a counter overflowed. The id stands first in every one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Sample {
    /// Type [`RECORD_SAMPLE`].
    pub header: RecordHeader,
    /// [`CounterReq::id`] of the counter.
    pub id: u64,
    /// Instruction pointer; [`RecordHeader::misc`] says whose.
    pub ip: u64,
    /// Process that was interrupted.
    pub pid: u32,
    /// Thread that was interrupted.
    pub tid: u32,
    /// Time in ns of the channel's clock.
    pub time: u64,
    /// CPU it happened on.
    pub cpu: u32,
    /// Zero.
    pub reserved: u32,
    /// Events since the sample before.
    pub period: u64,
}

/// `PERF_RECORD_FORK`: a task exists.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Fork {
    /// Type [`RECORD_FORK`].
    pub header: RecordHeader,
    /// Process.
    pub pid: u32,
    /// Process of the parent.
    pub ppid: u32,
    /// Thread.
    pub tid: u32,
    /// Thread of the parent.
    pub ptid: u32,
    /// When it started, in ns of the channel's clock.
    pub time: u64,
    /// Who wrote the record, and when.
    pub sample_id: SampleId,
}

/// Bytes of a task's name, the closing zero included.
pub const COMM_LEN: usize = 16;

/// `PERF_RECORD_COMM`: the name of a task.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Comm {
    /// Type [`RECORD_COMM`].
    pub header: RecordHeader,
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Name, filled with zeros.
    pub comm: [u8; COMM_LEN],
    /// Who wrote the record, and when.
    pub sample_id: SampleId,
}

/// [`RECORD_RAW`]: `len` bytes follow, filled with zeros to a multiple of 8.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Raw {
    /// Type [`RECORD_RAW`].
    pub header: RecordHeader,
    /// Bytes that follow this structure and are meant.
    pub len: u32,
    /// Zero.
    pub reserved: u32,
    /// Who wrote the record, and when.
    pub sample_id: SampleId,
}

/// `WEIR_MODEL_*`: an open page for each CPU, and a queue for each.
pub const MODEL_PER_CPU: u32 = 0;
/// One open page and one queue for all CPUs.
pub const MODEL_SHARED: u32 = 1;
/// An open page for each CPU, one queue for all.
pub const MODEL_PAGED: u32 = 2;

/// `WEIR_MODE_*`: a full channel loses new records.
pub const MODE_DISCARD: u32 = 0;
/// A full channel loses its oldest pages.
pub const MODE_OVERWRITE: u32 = 1;

/// `CLOCK_MONOTONIC`.
pub const CLOCK_MONOTONIC: u32 = 0;

/// `WEIR_CLOCK_*`: `CLOCK_MONOTONIC_RAW`.
pub const CLOCK_MONOTONIC_RAW: u32 = 1;
/// `CLOCK_BOOTTIME`.
pub const CLOCK_BOOTTIME: u32 = 2;
/// perf's own.
pub const CLOCK_PERF: u32 = 3;
/// The processor's time stamp counter, in cycles.
pub const CLOCK_TSC: u32 = 4;

/// Most bytes of a channel's name, the zero at its end included.
pub const NAME_LEN: usize = 32;

/// Takes `WEIR_IOC_CHANNEL_ATTACH`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct AttachReq {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub flags: u32,
    /// Name of the channel, filled with zeros, of which there is one at least.
    pub name: [u8; NAME_LEN],
}

/// Takes `WEIR_IOC_CHANNEL_MARK`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct MarkReq {
    /// Size of this structure.
    pub size: u32,
    /// Zero.
    pub flags: u32,
    /// No record is older than this which is in no finished page and was not read.
    pub time: u64,
}

/// Takes `WEIR_IOC_CHANNEL_CLOCK`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ClockReq {
    /// Size of this structure.
    pub size: u32,
    /// `CLOCK_*`.
    pub clock: u32,
    /// A time `t` of the channel is `ns + ((t - base) * mult >> shift)` of `CLOCK_MONOTONIC_RAW`. Zero where
    /// times are in ns of their own clock.
    pub mult: u32,
    /// See `mult`.
    pub shift: u32,
    /// See `mult`.
    pub base: u64,
    /// See `mult`.
    pub ns: u64,
}

/// Takes `WEIR_IOC_CHANNEL_CREATE`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ChannelReq {
    /// Bytes of this structure.
    pub size: u32,
    /// Zero.
    pub flags: u32,
    /// `MODEL_*`.
    pub model: u32,
    /// `MODE_*`.
    pub mode: u32,
    /// `CLOCK_*`.
    pub clock: u32,
    /// Bytes of a page; zero for the kernel's page.
    pub page_size: u32,
    /// Pages of the pool; zero for the default.
    pub pages: u32,
    /// Finished pages that make `poll` return; zero for one.
    pub watermark: u32,
    /// Time after which records of a quiet CPU are readable; zero for 100 ms.
    pub max_latency_ns: u64,
}

/// Takes `WEIR_IOC_CHANNEL_STATUS`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct StatusReq {
    /// Bytes of this structure.
    pub size: u32,
    /// CPU that is asked for.
    pub cpu: u32,
    /// Pages it published.
    pub pages: u64,
    /// Records it wrote inside another's write.
    pub nested: u64,
    /// Records it lost, by cause.
    pub lost: [u64; LOST_CAUSES],
    /// Time of the first loss that no page has reported yet, or zero.
    pub lost_begin: u64,
    /// Time of the last of them.
    pub lost_end: u64,
}

/// `WEIR_COLLECTION_TASK`: every thread as [`Fork`] and [`Comm`].
pub const COLLECTION_TASK: u32 = 0;

/// In [`InjectReq::flags`]: thread group leaders only.
pub const INJECT_PROCESS: u32 = 1 << 0;

/// In [`InjectReq::stop`]: nothing is left.
pub const STOP_END: u32 = 0;
/// `len` objects were written.
pub const STOP_LEN: u32 = 1;
/// The channel is filled to the mark that injection keeps.
pub const STOP_FULL: u32 = 2;
/// A signal came.
pub const STOP_INTERRUPTED: u32 = 3;

/// Where an injection goes on; zero begins.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Cursor {
    /// The key of the next object is at least this.
    pub major: u64,
    /// The same within objects of one `major`.
    pub minor: u64,
}

/// Offset of what a reader who maps a channel writes.
pub const MMAP_POSITIONS: u64 = 0x1_0000_0000;
/// Offset of the slots.
pub const MMAP_SLOTS: u64 = 0x2_0000_0000;
/// Offset of the pages.
pub const MMAP_PAGES: u64 = 0x4_0000_0000;

/// Takes `WEIR_IOC_CHANNEL_LAYOUT`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct LayoutReq {
    /// Size of this structure.
    pub size: u32,
    /// Number of queues.
    pub queues: u32,
    /// Pages of each queue; zero if there is one pool.
    pub share: u32,
    /// Number of slots.
    pub slots: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Bytes at [`MMAP_POSITIONS`].
    pub positions_size: u64,
    /// Bytes at [`MMAP_SLOTS`].
    pub slots_size: u64,
    /// Bytes at [`MMAP_PAGES`].
    pub pages_size: u64,
}

/// Takes `WEIR_IOC_CHANNEL_FREEZE`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct FreezeReq {
    /// Size of this structure.
    pub size: u32,
    /// One to keep every page that is not read, zero to overwrite again.
    pub frozen: u32,
}

/// Takes `WEIR_IOC_INJECT`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct InjectReq {
    /// Bytes of this structure.
    pub size: u32,
    /// `COLLECTION_*`.
    pub collection: u32,
    /// `INJECT_*`.
    pub flags: u32,
    /// Out: `STOP_*`.
    pub stop: u32,
    /// Where to begin.
    pub start: Cursor,
    /// At most so many objects; zero for no limit.
    pub len: u64,
    /// Out: objects written.
    pub read: u64,
    /// Out: where to go on.
    pub next: Cursor,
    /// Out: objects left out for lack of rights.
    pub skipped: u64,
}

/// In [`CounterReq::scope`]: on every CPU.
pub const SCOPE_ALL: u32 = 0;
/// On one CPU.
pub const SCOPE_CPU: u32 = 1;
/// In one task.
pub const SCOPE_TASK: u32 = 2;

/// In [`CounterReq::flags`]: keep a copy of the values on each CPU.
pub const COUNTER_CACHED: u32 = 1 << 0;

/// Most events of one counter.
pub const COUNTER_EVENTS: u32 = 64;

/// Takes `WEIR_IOC_COUNTER_CREATE`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct CounterReq {
    /// Bytes of this structure.
    pub size: u32,
    /// `COUNTER_*`.
    pub flags: u32,
    /// `SCOPE_*`.
    pub scope: u32,
    /// Zero, the number of the CPU, or a descriptor of `perf_event_open()` for the task.
    pub target: i32,
    /// Address of `count` addresses of `struct perf_event_attr`.
    pub attrs: u64,
    /// Number of events.
    pub count: u32,
    /// Out: names the counter and its first event; the next has the number that follows.
    pub id: u32,
}

/// Takes `WEIR_IOC_COUNTER_ENABLE`, `_DISABLE`, `_RESET`, `_RELEASE`, `_PERIOD` and `_REFRESH`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct CounterCtl {
    /// Bytes of this structure.
    pub size: u32,
    /// Which counter, or event.
    pub id: u32,
    /// Period, or number of overflows; else zero.
    pub value: u64,
}

/// In [`CounterRead::flags`]: a value for each CPU instead of their sum.
pub const READ_PER_CPU: u32 = 1 << 0;
/// No interrupt anywhere.
pub const READ_CACHED: u32 = 1 << 1;

/// In [`CounterValue::flags`]: all events of the counter ran, all the time.
pub const VALUE_TOGETHER: u32 = 1 << 0;
/// Its PMU has gone.
pub const VALUE_REVOKED: u32 = 1 << 1;
/// A CPU is online and not counted.
pub const VALUE_MISSING: u32 = 1 << 2;

/// What an event counted.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct CounterValue {
    /// Which event.
    pub id: u32,
    /// The CPU; -1 for a task, or the sum.
    pub cpu: i32,
    /// Events.
    pub value: u64,
    /// ns for which it was enabled.
    pub enabled: u64,
    /// ns for which it really counted.
    pub running: u64,
    /// ns since the oldest of these was read from its CPU.
    pub age: u64,
    /// Samples that the channel had no room for.
    pub lost: u64,
    /// Times that perf stopped it for too many samples.
    pub throttled: u64,
    /// `VALUE_*`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// Takes `WEIR_IOC_COUNTER_READ`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct CounterRead {
    /// Bytes of this structure.
    pub size: u32,
    /// `READ_*`.
    pub flags: u32,
    /// Which counter; zero for all.
    pub id: u32,
    /// In: room for values; out: how many there are.
    pub count: u32,
    /// Address of [`CounterValue`].
    pub values: u64,
}

/// The ioctl type of all requests.
pub const IOC_MAGIC: u32 = 0xBB;
/// Number of `WEIR_IOC_CHANNEL_CREATE`.
pub const IOC_CHANNEL_CREATE: u32 = 0;
/// Number of `WEIR_IOC_CHANNEL_STATUS`.
pub const IOC_CHANNEL_STATUS: u32 = 1;
/// Number of `WEIR_IOC_CHANNEL_FLUSH`.
pub const IOC_CHANNEL_FLUSH: u32 = 2;
/// Number of `WEIR_IOC_INJECT`.
pub const IOC_INJECT: u32 = 3;
/// Number of `WEIR_IOC_COUNTER_CREATE`.
pub const IOC_COUNTER_CREATE: u32 = 4;
/// Number of `WEIR_IOC_COUNTER_ENABLE`.
pub const IOC_COUNTER_ENABLE: u32 = 5;
/// Number of `WEIR_IOC_COUNTER_DISABLE`.
pub const IOC_COUNTER_DISABLE: u32 = 6;
/// Number of `WEIR_IOC_COUNTER_RELEASE`.
pub const IOC_COUNTER_RELEASE: u32 = 7;
/// Number of `WEIR_IOC_COUNTER_READ`.
pub const IOC_COUNTER_READ: u32 = 8;
/// Number of `WEIR_IOC_CHANNEL_FREEZE`.
pub const IOC_CHANNEL_FREEZE: u32 = 9;
/// Number of `WEIR_IOC_CHANNEL_CLOCK`.
pub const IOC_CHANNEL_CLOCK: u32 = 11;
/// Number of `WEIR_IOC_CHANNEL_ATTACH`.
pub const IOC_CHANNEL_ATTACH: u32 = 12;
/// Number of `WEIR_IOC_CHANNEL_MARK`.
pub const IOC_CHANNEL_MARK: u32 = 13;
/// Number of `WEIR_IOC_CHANNEL_LAYOUT`.
pub const IOC_CHANNEL_LAYOUT: u32 = 10;
/// Number of `WEIR_IOC_COUNTER_PERIOD`.
pub const IOC_COUNTER_PERIOD: u32 = 14;
/// Number of `WEIR_IOC_COUNTER_REFRESH`.
pub const IOC_COUNTER_REFRESH: u32 = 15;
/// Number of `WEIR_IOC_COUNTER_RESET`.
pub const IOC_COUNTER_RESET: u32 = 16;
