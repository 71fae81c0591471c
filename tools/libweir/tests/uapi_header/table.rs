// SPDX-License-Identifier: GPL-2.0

//! What the Rust side has: every structure with its fields, every constant.

use libweir::{
    event,
    ioctl,
    page,
    uapi, //
};
use std::mem::offset_of;

/// A structure as the Rust compiler lays it out.
#[derive(Debug)]
pub(crate) struct Struct {
    /// Its name in Rust.
    pub(crate) rust: &'static str,
    /// Its name in C, without the prefix `weir_`.
    pub(crate) c: &'static str,
    /// Bytes.
    pub(crate) size: usize,
    /// Name in C, offset and size of each field.
    pub(crate) fields: Vec<(&'static str, usize, usize)>,
}

fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

macro_rules! structs {
    ($($rust:ident = $c:literal { $($field:ident),* $(,)? })*) => {
        vec![$(Struct {
            rust: stringify!($rust),
            c: $c,
            size: size_of::<uapi::$rust>(),
            fields: vec![$((
                // A keyword of Rust has an underscore behind it.
                stringify!($field).trim_end_matches('_'),
                offset_of!(uapi::$rust, $field),
                size_of_field(|s: &uapi::$rust| &s.$field),
            )),*],
        }),*]
    };
}

/// All structures.
pub(crate) fn structs() -> Vec<Struct> {
    structs! {
        PageHeader = "page_header" {
            magic, stream_id, timestamp_begin, timestamp_end, content_size, packet_size,
            packet_seq_num, events_discarded, cpu_id, flags, lost_begin, lost_end, lost,
        }
        RecordHeader = "record_header" { type_, misc, size }
        SampleId = "sample_id" { pid, tid, time, cpu, reserved, id }
        Sample = "sample" { header, id, ip, pid, tid, time, cpu, reserved, period }
        Fork = "fork" { header, pid, ppid, tid, ptid, time, sample_id }
        Comm = "comm" { header, pid, tid, comm, sample_id }
        Raw = "raw" { header, len, reserved, sample_id }
        ChannelReq = "channel_req" {
            size, flags, model, mode, clock, page_size, pages, watermark, max_latency_ns,
        }
        StatusReq = "status_req" { size, cpu, pages, nested, lost, lost_begin, lost_end }
        FreezeReq = "freeze_req" { size, frozen }
        ClockReq = "clock_req" { size, clock, mult, shift, base, ns }
        AttachReq = "attach_req" { size, flags, name }
        EventHead = "event" { header, time }
        MarkReq = "mark_req" { size, flags, time }
        Mark = "mark" { header, time }
        LayoutReq = "layout_req" {
            size, queues, share, slots, page_size, reserved, positions_size, slots_size, pages_size,
        }
        Cursor = "cursor" { major, minor }
        InjectReq = "inject_req" {
            size, collection, flags, stop, start, len, read, next, skipped,
        }
        CounterReq = "counter_req" { size, flags, scope, target, attrs, count, id }
        CounterCtl = "counter_ctl" { size, id, value }
        CounterValue = "counter_value" {
            id, cpu, value, enabled, running, age, lost, throttled, flags, reserved,
        }
        CounterRead = "counter_read" { size, flags, id, count, values }
        Throttle = "throttle" { header, time, id, stream_id, sample_id }
    }
}

/// A constant on both sides.
#[derive(Debug)]
pub(crate) struct Constant {
    /// Its name in `uapi.rs`; none for what this library has itself.
    pub(crate) rust: Option<&'static str>,
    /// An expression in C.
    pub(crate) c: String,
    /// Its value in Rust.
    pub(crate) value: u64,
}

macro_rules! uapi_constants {
    ($prefix:literal: $($name:ident),* $(,)?) => {
        [$(Constant {
            rust: Some(stringify!($name)),
            c: concat!($prefix, stringify!($name)).to_owned(),
            value: u64::from(uapi::$name),
        }),*]
    };
}

/// All constants.
pub(crate) fn constants() -> Vec<Constant> {
    let mut constants = Vec::new();
    constants.extend(uapi_constants!("WEIR_":
        PAGE_MAGIC, PAGE_PARTIAL, PAGE_SHARED, PAGE_OVERWRITE, CPU_NONE, MMAP_POSITIONS, MMAP_SLOTS,
        MMAP_PAGES, RECORD_FIRST, RECORD_NOP, RECORD_RAW,
        RECORD_EVENT, RECORD_MARK, SAMPLE_TYPE,
        MODEL_PER_CPU, MODEL_SHARED, MODEL_PAGED, MODE_DISCARD, MODE_OVERWRITE, CLOCK_MONOTONIC,
        CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME, CLOCK_PERF, CLOCK_TSC,
        COLLECTION_TASK, INJECT_PROCESS, STOP_END, STOP_LEN, STOP_FULL, STOP_INTERRUPTED,
        SCOPE_ALL, SCOPE_CPU, SCOPE_TASK, COUNTER_CACHED, COUNTER_EVENTS, READ_PER_CPU, READ_CACHED,
        VALUE_TOGETHER, VALUE_REVOKED, VALUE_MISSING, IOC_MAGIC,
    ));
    constants.extend(uapi_constants!("PERF_":
        RECORD_COMM, RECORD_FORK, RECORD_SAMPLE, RECORD_THROTTLE, RECORD_UNTHROTTLE,
    ));
    constants.extend(uapi_constants!("PERF_RECORD_":
        MISC_CPUMODE_MASK, MISC_KERNEL, MISC_USER,
    ));
    // Whole opcodes, of which uapi.rs has the numbers.
    macro_rules! opcodes {
        ($($rust:ident $name:ident),*) => {
            [$(
                own(concat!("WEIR_", stringify!($rust)), u64::from(ioctl::$name)),
                Constant {
                    rust: Some(stringify!($rust)),
                    c: format!("_IOC_NR(WEIR_{})", stringify!($rust)),
                    value: u64::from(uapi::$rust),
                }
            ),*]
        };
    }
    constants.extend(opcodes!(
        IOC_CHANNEL_CREATE CHANNEL_CREATE, IOC_CHANNEL_STATUS CHANNEL_STATUS,
        IOC_CHANNEL_FLUSH CHANNEL_FLUSH, IOC_INJECT INJECT, IOC_COUNTER_CREATE COUNTER_CREATE,
        IOC_COUNTER_ENABLE COUNTER_ENABLE, IOC_COUNTER_DISABLE COUNTER_DISABLE,
        IOC_COUNTER_RELEASE COUNTER_RELEASE, IOC_COUNTER_READ COUNTER_READ,
        IOC_CHANNEL_FREEZE CHANNEL_FREEZE, IOC_CHANNEL_LAYOUT CHANNEL_LAYOUT,
        IOC_CHANNEL_CLOCK CHANNEL_CLOCK, IOC_CHANNEL_ATTACH CHANNEL_ATTACH,
        IOC_CHANNEL_MARK CHANNEL_MARK, IOC_COUNTER_PERIOD COUNTER_PERIOD,
        IOC_COUNTER_REFRESH COUNTER_REFRESH, IOC_COUNTER_RESET COUNTER_RESET
    ));
    for (rust, c, value) in [
        ("LOST_CAUSES", "WEIR_LOST_CAUSES", uapi::LOST_CAUSES),
        ("NAME_LEN", "WEIR_NAME_LEN", uapi::NAME_LEN),
        (
            "COMM_LEN",
            "sizeof(((struct weir_comm *)0)->comm)",
            uapi::COMM_LEN,
        ),
    ] {
        constants.push(Constant {
            rust: Some(rust),
            c: c.to_owned(),
            value: value as u64,
        });
    }
    constants.extend(page::LOST_CAUSES.iter().enumerate().map(|(index, name)| {
        let name = name.to_uppercase().replace('-', "_");
        own(&format!("WEIR_LOST_{name}"), index as u64)
    }));
    constants.extend(perf());
    constants
}

/// What perf's own header has.
fn perf() -> Vec<Constant> {
    let mut constants = vec![
        own("PERF_TYPE_HARDWARE", event::TYPE_HARDWARE.into()),
        own("PERF_TYPE_SOFTWARE", event::TYPE_SOFTWARE.into()),
        own("PERF_TYPE_RAW", event::TYPE_RAW.into()),
        own(
            "PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME \
             | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD",
            uapi::SAMPLE_TYPE,
        ),
    ];
    for (name, c) in [
        ("cpu-clock", "PERF_COUNT_SW_CPU_CLOCK"),
        ("task-clock", "PERF_COUNT_SW_TASK_CLOCK"),
        ("page-faults", "PERF_COUNT_SW_PAGE_FAULTS"),
        ("context-switches", "PERF_COUNT_SW_CONTEXT_SWITCHES"),
        ("cpu-migrations", "PERF_COUNT_SW_CPU_MIGRATIONS"),
        ("minor-faults", "PERF_COUNT_SW_PAGE_FAULTS_MIN"),
        ("major-faults", "PERF_COUNT_SW_PAGE_FAULTS_MAJ"),
        ("alignment-faults", "PERF_COUNT_SW_ALIGNMENT_FAULTS"),
        ("emulation-faults", "PERF_COUNT_SW_EMULATION_FAULTS"),
        ("dummy", "PERF_COUNT_SW_DUMMY"),
        ("bpf-output", "PERF_COUNT_SW_BPF_OUTPUT"),
        ("cgroup-switches", "PERF_COUNT_SW_CGROUP_SWITCHES"),
        ("cycles", "PERF_COUNT_HW_CPU_CYCLES"),
        ("instructions", "PERF_COUNT_HW_INSTRUCTIONS"),
        ("cache-references", "PERF_COUNT_HW_CACHE_REFERENCES"),
        ("cache-misses", "PERF_COUNT_HW_CACHE_MISSES"),
        ("branches", "PERF_COUNT_HW_BRANCH_INSTRUCTIONS"),
        ("branch-misses", "PERF_COUNT_HW_BRANCH_MISSES"),
        ("bus-cycles", "PERF_COUNT_HW_BUS_CYCLES"),
        (
            "stalled-cycles-frontend",
            "PERF_COUNT_HW_STALLED_CYCLES_FRONTEND",
        ),
        (
            "stalled-cycles-backend",
            "PERF_COUNT_HW_STALLED_CYCLES_BACKEND",
        ),
        ("ref-cycles", "PERF_COUNT_HW_REF_CPU_CYCLES"),
    ] {
        let event: event::Event = name.parse().expect("it is an event");
        constants.push(own(c, event.config));
    }
    constants
}

fn own(c: &str, value: u64) -> Constant {
    Constant {
        rust: None,
        c: c.to_owned(),
        value,
    }
}
