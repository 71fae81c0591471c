// SPDX-License-Identifier: GPL-2.0

//! What is wrong with an event is said as `perf_event_open()` says it, which is asked for the same in the same run.

use anyhow::{
    ensure,
    Result, //
};
use libweir::{
    ioctl::{
        counter_create,
        COUNTER_CREATE, //
    },
    perf,
    sample_type::{
        CALLCHAIN,
        IP,
        TID, //
    },
    uapi::{
        CounterReq,
        SCOPE_CPU, //
    },
    Attr,
    Channel,
    CounterOptions,
    Errno,
    Event,
    Scope, //
};
use std::process::ExitCode;
use weir_selftests::{
    beside::channel,
    ktap::{
        self,
        note,
        Verdict, //
    },
    syscall::{
        ioctl,
        lend_addresses,
        lend_bytes,
        lent_word,
        perf_event_open,
        Argument, //
    },
    work::{
        watched,
        CPU_CLOCK,
        PAGE_FAULTS, //
    },
};
use zerocopy::IntoBytes;

/// A right one.
fn attr() -> Attr {
    Attr::new(CPU_CLOCK).period(1_000_000)
}

/// A right one with something changed.
macro_rules! changed {
    ($($field:ident = $value:expr),+) => {{
        let mut attr = attr();
        $(attr.raw_mut().$field = $value;)+
        attr
    }};
}

/// A right one with a bit set, of those that have a function each.
macro_rules! bits {
    ($($set:ident),+) => {{
        let mut attr = attr();
        $(attr.raw_mut().$set(1);)+
        attr
    }};
}

const SAMPLE_READ: u64 = 1 << 4;
const SAMPLE_BRANCH_STACK: u64 = 1 << 11;
const SAMPLE_STACK_USER: u64 = 1 << 13;
const SAMPLE_WEIGHT: u64 = 1 << 14;
const SAMPLE_WEIGHT_STRUCT: u64 = 1 << 24;

/// Asks weir for a counter.
fn create(channel: &Channel, attr: Attr, scope: Scope, cpu: i32) -> Result<(), Errno> {
    let task = match scope {
        Scope::Task(pid) => Some(perf::open_task(pid)?),
        _ => None,
    };
    let options = CounterOptions::new(attr, scope);
    let mut request = options.request(task.as_ref().map(std::os::fd::AsFd::as_fd));
    if scope == Scope::Cpu(0) {
        request.target = cpu;
    }
    counter_create(channel, &mut request, &mut [attr])
}

fn event(type_: u32, config: u64) -> Attr {
    Attr::new(Event::new(type_, config)).period(1_000_000)
}

/// What is wrong, in a task and on a CPU.
fn wrong_events() -> Vec<(&'static str, Attr)> {
    let sampling = |fields| attr().sample_type(fields);
    let branches = |mask| {
        let mut attr = sampling(SAMPLE_BRANCH_STACK);
        attr.raw_mut().branch_sample_type = mask;
        attr
    };
    let stack = |size| {
        let mut attr = sampling(SAMPLE_STACK_USER);
        attr.raw_mut().sample_stack_user = size;
        attr
    };
    let counting = |attr: Attr| Attr::new(attr.event());
    vec![
        ("a type that no PMU has", event(0xffff_fff0, 0)),
        ("a software event that there is not", event(1, 999)),
        ("a tracepoint that there is not", event(2, u64::MAX)),
        ("a cache event that there cannot be", event(3, 0xff_ff_ff)),
        ("a hardware event that there cannot be", event(0, 999)),
        ("a breakpoint nowhere", event(5, 0)),
        ("a breakpoint of a length", watched(0).breakpoint(2, 64, 3)),
        ("a breakpoint of a kind", watched(0).breakpoint(64, 64, 8)),
        (
            "a breakpoint between words",
            watched(0).breakpoint(2, 61, 8),
        ),
        ("a period with its highest bit", attr().period(1 << 63)),
        ("a frequency above the limit", attr().frequency(1 << 40)),
        ("the highest frequency", attr().frequency(u64::MAX)),
        ("a reserved bit", {
            let mut attr = attr();
            attr.raw_mut().set___reserved_1(1 << 25);
            attr
        }),
        ("a reserved field", changed!(__reserved_2 = 1)),
        ("another reserved field", changed!(__reserved_3 = 1 << 31)),
        ("an unknown field of samples", sampling(1 << 25)),
        ("the last field of samples", sampling(1 << 63)),
        ("an unknown format", changed!(read_format = 1 << 5)),
        ("the last format", changed!(read_format = 1 << 63)),
        ("no kind of branches", branches(0)),
        ("unknown kinds of branches", branches(1 << 40)),
        ("only levels of branches", branches(7)),
        ("a stack that is not of words", stack(12)),
        ("a stack that is too large", stack(0xffff)),
        (
            "two weights",
            sampling(SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT),
        ),
        ("threads without children", bits!(set_inherit_thread)),
        (
            "gone and enabled by a program",
            bits!(set_remove_on_exec, set_enable_on_exec),
        ),
        ("a signal that stays", bits!(set_sigtrap)),
        (
            "values of children without their numbers",
            sampling(SAMPLE_READ).inherit(true),
        ),
        ("more callers than there may be", {
            sampling(CALLCHAIN | IP | TID).sample_max_stack(1000)
        }),
        ("an exact clock", attr().precise_ip(3)),
        ("the same without samples", counting(event(1, 999))),
        ("no clock of hardware", counting(event(0, 999))),
    ]
}

/// Errors of both calls for `cases` that differ, as lines.
fn differences(
    cases: impl Iterator<Item = (String, Result<(), Errno>, Result<(), Errno>)>,
) -> Verdict {
    let (mut all, mut differ) = (0, 0);
    for (what, ours, theirs) in cases {
        all += 1;
        if ours == theirs {
            note(format_args!("{what}: {theirs:?}"));
        } else {
            differ += 1;
            note(format_args!(
                "{what}: {ours:?}, but perf_event_open() gives {theirs:?}"
            ));
        }
    }
    ensure!(
        differ == 0,
        "{differ} of {all} requests give something else"
    );
    Ok(())
}

fn errors_are_perfs(channel: &mut Channel) -> Verdict {
    let events = wrong_events();
    let of_events = events.iter().flat_map(|(what, attr)| {
        [(Scope::Task(0), 0, -1), (Scope::Cpu(0), -1, 0)].map(|(scope, pid, cpu)| {
            (
                format!("{what}, {scope:?}"),
                create(channel, *attr, scope, cpu),
                perf::open(attr, pid, cpu, None).map(drop),
            )
        })
    });
    let of_cpus = [1 << 20, i32::MAX, -1, i32::MIN].into_iter().map(|cpu| {
        (
            format!("CPU {cpu}"),
            create(channel, attr(), Scope::Cpu(0), cpu),
            perf::open(&attr(), -1, cpu, None).map(drop),
        )
    });
    differences(of_events.chain(of_cpus))
}

/// What perf does for its own buffers only is refused as such, as long as it is right.
fn unsupported(channel: &mut Channel) -> Verdict {
    let cases = [
        ("mmap", bits!(set_mmap)),
        ("mmap2", bits!(set_mmap, set_mmap2)),
        ("mmap_data", bits!(set_mmap_data)),
        ("comm", bits!(set_comm)),
        ("comm_exec", bits!(set_comm, set_comm_exec)),
        ("task", bits!(set_task)),
        ("context_switch", bits!(set_context_switch)),
        ("namespaces", bits!(set_namespaces)),
        ("ksymbol", bits!(set_ksymbol)),
        ("bpf_event", bits!(set_bpf_event)),
        ("cgroup", bits!(set_cgroup)),
        ("text_poke", bits!(set_text_poke)),
        ("build_id", bits!(set_mmap, set_mmap2, set_build_id)),
        ("use_clockid", bits!(set_use_clockid)),
        ("write_backward", bits!(set_write_backward)),
        ("watermark", bits!(set_watermark)),
        ("wakeup_events", changed!(wakeup_events = 1)),
        ("sigtrap", bits!(set_sigtrap, set_remove_on_exec)),
        // What these bits were reserved for.
        ("defer_callchain", {
            let mut attr = attr();
            attr.raw_mut().set___reserved_1(1);
            attr
        }),
        ("defer_output", {
            let mut attr = attr();
            attr.raw_mut().set___reserved_1(2);
            attr
        }),
        ("aux_start_paused", changed!(__reserved_3 = 1)),
        ("aux_output", bits!(set_aux_output)),
        ("aux_watermark", changed!(aux_watermark = 4096)),
        ("aux_sample_size", changed!(aux_sample_size = 4096)),
    ];
    let supported = IP | TID | CALLCHAIN | 0x1034a | libweir::uapi::SAMPLE_TYPE;
    let fields = (0..25)
        .map(|bit| 1u64 << bit)
        .filter(|field| supported & field == 0);
    let mut wrong = Vec::new();
    let mut check = |what: String, attr: Attr| {
        let result = create(channel, attr, Scope::Task(0), -1);
        if result != Err(Errno::OPNOTSUPP) {
            wrong.push(format!("{what}: {result:?}"));
        }
    };
    for (what, attr) in cases {
        check(what.to_owned(), attr);
    }
    for field in fields {
        let mut attr = attr().sample_type(field | TID);
        // Right for those that have more to say.
        attr.raw_mut().branch_sample_type = 1 << 3;
        attr.raw_mut().sample_stack_user = 8;
        check(format!("samples with {field:#x}"), attr);
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// An attr may be shorter than this kernel's, or longer as long as nothing stands there; of another one, its size
/// becomes what is known.
fn sizes(channel: &mut Channel) -> Verdict {
    let channel: &Channel = channel;
    let known = size_of_val(attr().raw()) as u32;
    let page = rustix::param::page_size() as u32;
    // By the kernel's rule, so that it is the same for both.
    let bytes = |size: u32, tail: Option<usize>| -> Vec<u8> {
        let counting = Attr::new(PAGE_FAULTS);
        let mut bytes = vec![0; page as usize + 64];
        bytes[..4].copy_from_slice(&counting.event().type_.to_ne_bytes());
        bytes[4..8].copy_from_slice(&size.to_ne_bytes());
        bytes[8..16].copy_from_slice(&counting.event().config.to_ne_bytes());
        if let Some(tail) = tail {
            bytes[tail] = 1;
        }
        bytes
    };
    let create = |address: u64| {
        let mut request = CounterReq {
            size: size_of::<CounterReq>() as u32,
            scope: SCOPE_CPU,
            attrs: lend_addresses(&[address]),
            count: 1,
            ..Default::default()
        };
        ioctl(
            channel,
            COUNTER_CREATE,
            Argument::Bytes(request.as_mut_bytes()),
        )
    };
    let mut cases = Vec::new();
    for size in [0, 1, 8, 63, 64, 65, 72, 80, 96, 104, 112, 120, 128, 136] {
        cases.push((size, None));
    }
    for size in [known, known + 1, known + 8, 512, page - 1, page] {
        cases.push((size, None));
        cases.push((size, Some(known as usize)));
        cases.push((size, Some(size as usize - 1)));
    }
    for size in [page + 1, page + 8, 1 << 30, u32::MAX] {
        cases.push((size, None));
    }
    // Beyond what it says it has, nothing is looked at.
    cases.push((64, Some(64)));
    cases.push((0, Some(64)));
    let results = cases.into_iter().map(|(size, tail)| {
        let (mine, perfs) = (
            lend_bytes(&bytes(size, tail)),
            lend_bytes(&bytes(size, tail)),
        );
        let ours = create(mine);
        let theirs = perf_event_open(perfs, -1, 0).map(drop);
        let (written, perfs) = (lent_word(mine, 1), lent_word(perfs, 1));
        let what = format!("{size} bytes, {tail:?}: the size is {written}, perf's is {perfs}");
        // A size that was written otherwise is an error of its own.
        let ours = match written == perfs {
            true => ours,
            false => Err(Errno::XDEV),
        };
        (what, ours, theirs)
    });
    differences(results)
}

/// Where no attr can be, there is none.
fn addresses(channel: &mut Channel) -> Verdict {
    let channel: &Channel = channel;
    const KERNEL: u64 = 0xffff_8000_0000_0000;
    let good = lend_bytes(&[1, 0, 0, 0, 64, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    let create = |attrs: u64, count: u32| {
        let mut request = CounterReq {
            size: size_of::<CounterReq>() as u32,
            scope: SCOPE_CPU,
            attrs,
            count,
            ..Default::default()
        };
        let result = ioctl(
            channel,
            COUNTER_CREATE,
            Argument::Bytes(request.as_mut_bytes()),
        );
        (result, request.id)
    };
    let (result, id) = create(lend_addresses(&[good]), 1);
    ensure!(result.is_ok() && id > 0, "{result:?}");
    for (what, attrs, count, expected) in [
        ("no list", 0, 1, Errno::FAULT),
        ("the kernel's", KERNEL, 1, Errno::FAULT),
        ("no address", u64::MAX - 7, 1, Errno::FAULT),
        ("nothing in it", lend_addresses(&[0]), 1, Errno::FAULT),
        (
            "the kernel's in it",
            lend_addresses(&[KERNEL]),
            1,
            Errno::FAULT,
        ),
        (
            "nothing behind the first",
            lend_addresses(&[good]),
            2,
            Errno::FAULT,
        ),
        ("none", lend_addresses(&[good]), 0, Errno::INVAL),
        ("too many", lend_addresses(&[good; 65]), 65, Errno::TOOBIG),
        (
            "far too many",
            lend_addresses(&[good]),
            u32::MAX,
            Errno::TOOBIG,
        ),
    ] {
        let (result, _) = create(attrs, count);
        ensure!(
            result == Err(expected),
            "{what}: {result:?} instead of {expected:?}"
        );
        ensure!(
            perf_event_open(0, -1, 0).map(drop) == Err(Errno::FAULT),
            "perf says so, too"
        );
    }
    let (result, most) = create(lend_addresses(&[good; 64]), 64);
    ensure!(result.is_ok() && most > id, "{result:?}");
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(
        channel,
        &[
            ("errors_are_perfs", errors_are_perfs),
            ("unsupported", unsupported),
            ("sizes", sizes),
            ("addresses", addresses),
        ],
    )
}
