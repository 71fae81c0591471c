// SPDX-License-Identifier: GPL-2.0

//! Requests with a field that is wrong: each gives its error number, and the module goes on working.

use anyhow::{
    ensure,
    Context as _, //
};
use libweir::{
    ioctl::{
        channel_create,
        CHANNEL_CREATE,
        CHANNEL_STATUS,
        COUNTER_CREATE,
        COUNTER_DISABLE,
        COUNTER_ENABLE,
        COUNTER_READ,
        COUNTER_RELEASE,
        COUNTER_RESET,
        INJECT, //
    },
    uapi::{
        self,
        ChannelReq,
        CounterCtl,
        CounterReq,
        Cursor,
        InjectReq,
        StatusReq, //
    },
    Errno,
    ReadOptions, //
};
use std::process::ExitCode;
use weir_selftests::{
    dump,
    ktap::{
        self,
        skip,
        Verdict, //
    },
    requests::{
        bytes,
        call,
        counter,
        create,
        expect_bytes,
        status,
        still_works,
        INVAL, //
    },
    session::open_device,
    syscall::{
        lend_values,
        Argument, //
    },
};

fn create_fields(_: &mut ()) -> Verdict {
    let refused = |what: &str, change: fn(&mut ChannelReq), wanted: &[Result<(), Errno>]| {
        let mut request = create();
        change(&mut request);
        expect_bytes(what, CHANNEL_CREATE, &request, wanted)
    };
    // What no version has may be called either.
    let unknown: &[_] = &[Err(Errno::INVAL), Err(Errno::OPNOTSUPP)];
    refused("a flag", |req| req.flags = 1, INVAL)?;
    refused("the highest flag", |req| req.flags = 1 << 31, INVAL)?;
    refused("an unknown model", |req| req.model = 3, unknown)?;
    refused("an unknown mode", |req| req.mode = u32::MAX, unknown)?;
    refused("an unknown clock", |req| req.clock = 99, unknown)?;
    refused("pages of 1000 bytes", |req| req.page_size = 1000, INVAL)?;
    refused("pages of 16 bytes", |req| req.page_size = 16, INVAL)?;
    refused("pages of 12 KiB", |req| req.page_size = 12 << 10, INVAL)?;
    refused("pages of 128 KiB", |req| req.page_size = 128 << 10, INVAL)?;
    refused("pages of 2 GiB", |req| req.page_size = 1 << 31, INVAL)?;
    refused("a pool of one page", |req| req.pages = 1, INVAL)?;
    let memory: &[_] = &[Err(Errno::INVAL), Err(Errno::NOMEM)];
    refused(
        "a pool of 4 billion pages",
        |req| req.pages = u32::MAX,
        memory,
    )?;
    refused(
        "a watermark above the pool",
        |req| req.watermark = u32::MAX,
        INVAL,
    )?;
    // The default pool has 64 pages a CPU.
    refused(
        "a watermark above half of a CPU's queue",
        |req| {
            req.model = uapi::MODEL_PER_CPU;
            req.pages = 0;
            req.watermark = 33;
        },
        INVAL,
    )?;
    Ok(())
}

/// What was taken is written back, and the smallest and the largest pages are taken.
fn granted(_: &mut ()) -> Verdict {
    for page_size in [0, 4096, 8192, 64 << 10] {
        if page_size != 0 && (page_size as usize) < rustix::param::page_size() {
            continue;
        }
        let fd = open_device()?;
        let mut request = ChannelReq {
            page_size,
            ..create()
        };
        channel_create(&fd, &mut request).with_context(|| format!("pages of {page_size} bytes"))?;
        ensure!(
            page_size == 0 || request.page_size == page_size,
            "{request:?}"
        );
        ensure!(
            request.page_size.is_power_of_two() && request.page_size >= 4096,
            "{request:?}"
        );
        ensure!(request.pages > 0 && request.watermark == 1, "{request:?}");
        ensure!(request.max_latency_ns == 100_000_000, "{request:?}");
        ensure!(
            request.size as usize == size_of::<ChannelReq>(),
            "{request:?}"
        );
    }
    Ok(())
}

fn status_fields(_: &mut ()) -> Verdict {
    let possible = libweir::cpu::possible()?;
    let beyond = possible.last().map_or(0, |cpu| cpu + 1);
    for cpu in [beyond, 1 << 20, u32::MAX] {
        let request = StatusReq { cpu, ..status() };
        expect_bytes(
            &format!("status of CPU {cpu}"),
            CHANNEL_STATUS,
            &request,
            INVAL,
        )?;
    }
    for cpu in possible {
        let request = StatusReq { cpu, ..status() };
        expect_bytes(
            &format!("status of CPU {cpu}"),
            CHANNEL_STATUS,
            &request,
            &[Ok(())],
        )?;
    }
    Ok(())
}

fn inject_fields(_: &mut ()) -> Verdict {
    let refused = |what: &str, change: fn(&mut InjectReq)| {
        let mut request = dump::request(Cursor::default(), 1, 0);
        change(&mut request);
        expect_bytes(what, INJECT, &request, INVAL)
    };
    refused("a collection that there is not", |req| req.collection = 1)?;
    refused("the last collection", |req| req.collection = u32::MAX)?;
    refused("an unknown flag", |req| req.flags = 2)?;
    refused("an unknown flag beside a known one", |req| {
        req.flags = 1 << 31 | uapi::INJECT_PROCESS
    })?;
    // What goes out does not matter coming in.
    let request = InjectReq {
        stop: u32::MAX,
        read: u64::MAX,
        skipped: u64::MAX,
        next: Cursor {
            major: u64::MAX,
            minor: u64::MAX,
        },
        ..dump::request(Cursor::default(), 1, 0)
    };
    expect_bytes("rubbish in what goes out", INJECT, &request, &[Ok(())])
}

fn counter_fields(_: &mut ()) -> Verdict {
    let right = counter();
    if call(COUNTER_CREATE, Argument::Bytes(&mut bytes(&right)))? == Err(Errno::OPNOTSUPP) {
        return Err(skip("this kernel has no perf events"));
    }
    let refused = |what: &str, change: fn(&mut CounterReq), wanted: &[Result<(), Errno>]| {
        let mut request = right;
        change(&mut request);
        expect_bytes(what, COUNTER_CREATE, &request, wanted)
    };
    refused("an unknown flag", |req| req.flags = 1 << 1, INVAL)?;
    refused("the highest flag", |req| req.flags = 1 << 31, INVAL)?;
    refused("an unknown scope", |req| req.scope = 3, INVAL)?;
    refused("a target of all CPUs", |req| req.target = 1, INVAL)?;
    refused("no event", |req| req.count = 0, INVAL)?;
    refused(
        "more events than can be",
        |req| req.count = uapi::COUNTER_EVENTS + 1,
        &[Err(Errno::TOOBIG)],
    )?;
    let fault = &[Err(Errno::FAULT)];
    refused("an event at no address", |req| req.count = 2, fault)?;
    refused("events at no address", |req| req.attrs = 0, fault)?;
    refused(
        "a task without a descriptor",
        |req| (req.scope, req.target) = (uapi::SCOPE_TASK, -1),
        &[Err(Errno::BADF)],
    )?;
    refused("a number that goes out", |req| req.id = 77, &[Ok(())])?;
    Ok(())
}

/// A counter that there is not.
fn counter_numbers(_: &mut ()) -> Verdict {
    let wanted = &[Err(Errno::NOENT)];
    let (values, room) = lend_values();
    for id in [0, 1, u32::MAX] {
        let ctl = CounterCtl {
            size: size_of::<CounterCtl>() as u32,
            id,
            value: 0,
        };
        for opcode in [
            COUNTER_ENABLE,
            COUNTER_DISABLE,
            COUNTER_RELEASE,
            COUNTER_RESET,
        ] {
            expect_bytes(
                &format!("operation {opcode:#x} on counter {id}"),
                opcode,
                &ctl,
                wanted,
            )?;
        }
        let mut read = ReadOptions::default().request(id);
        (read.values, read.count) = (values, room);
        expect_bytes(
            &format!("reading counter {id}"),
            COUNTER_READ,
            &read,
            // All counters, of which there is none.
            if id == 0 { &[Ok(())] } else { wanted },
        )?;
    }
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(
        still_works,
        &[
            ("create_fields", create_fields),
            ("granted", granted),
            ("status_fields", status_fields),
            ("inject_fields", inject_fields),
            ("counter_fields", counter_fields),
            ("counter_numbers", counter_numbers),
        ],
    )
}
