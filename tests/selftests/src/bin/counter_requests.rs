// SPDX-License-Identifier: GPL-2.0

//! Requests about counters that make no sense.

use anyhow::{
    ensure,
    Result, //
};
use libweir::{
    ioctl::{
        counter_control,
        counter_create,
        counter_read,
        COUNTER_DISABLE,
        COUNTER_ENABLE,
        COUNTER_PERIOD,
        COUNTER_READ,
        COUNTER_REFRESH,
        COUNTER_RELEASE,
        COUNTER_RESET, //
    },
    uapi::{
        CounterRead,
        CounterReq,
        CounterValue,
        SCOPE_ALL,
        SCOPE_CPU, //
    },
    Attr,
    Channel,
    CounterOptions,
    Errno,
    Scope, //
};
use rustix::ioctl::Opcode;
use std::process::ExitCode;
use weir_selftests::{
    beside::channel,
    ktap::{
        self,
        Verdict, //
    },
    syscall::{
        ioctl,
        lend_values,
        Argument, //
    },
    work::PAGE_FAULTS,
};
use zerocopy::IntoBytes;

const OPERATIONS: [(Opcode, u64); 6] = [
    (COUNTER_ENABLE, 0),
    (COUNTER_DISABLE, 0),
    (COUNTER_RESET, 0),
    (COUNTER_PERIOD, 1000),
    (COUNTER_REFRESH, 1),
    (COUNTER_RELEASE, 0),
];

fn attr() -> Attr {
    Attr::new(PAGE_FAULTS).period(1000)
}

fn read(channel: &Channel, flags: u32, id: u32) -> Result<(), Errno> {
    let mut request = CounterRead {
        size: size_of::<CounterRead>() as u32,
        flags,
        id,
        ..Default::default()
    };
    counter_read(channel, &mut request, &mut [CounterValue::default(); 64])
}

/// Of a counter that there is not, or not any more, there is nothing to be had.
fn unknown(channel: &mut Channel) -> Verdict {
    let channel: &Channel = channel;
    let options = CounterOptions {
        attrs: vec![attr(); 3],
        scope: Scope::Task(0),
        cached: false,
    };
    let counter = channel.counter_create(&options)?;
    let id = counter.id();
    let check = |id: u32, what: &str, period: Result<(), Errno>| -> Verdict {
        for (opcode, value) in OPERATIONS {
            let expected = match opcode {
                COUNTER_PERIOD => period,
                _ => Err(Errno::NOENT),
            };
            let result = counter_control(channel, opcode, id, value);
            ensure!(result == expected, "{opcode:#x} of {what}: {result:?}");
        }
        if id != 0 {
            let result = read(channel, 0, id);
            ensure!(result == Err(Errno::NOENT), "reading {what}: {result:?}");
        }
        Ok(())
    };
    // The number of an event is not that of a counter, but for its period.
    check(id + 1, "the second event", Ok(()))?;
    check(id + 2, "the last event", Ok(()))?;
    for (id, what) in [
        (id + 3, "the next number"),
        (0, "number 0"),
        (id - 1, "the number before"),
        (u32::MAX, "the last number"),
        (i32::MAX as u32 + 1, "a negative number"),
    ] {
        check(id, what, Err(Errno::NOENT))?;
    }
    // Another channel has numbers of its own.
    let other = weir_selftests::beside::channel()?;
    let result = counter_control(&other, COUNTER_ENABLE, id, 0);
    ensure!(result == Err(Errno::NOENT), "another channel: {result:?}");
    counter.enable()?;
    counter.release()?;
    check(id, "a counter that was released", Err(Errno::NOENT))
}

/// Only a period and a number of overflows are values.
fn values(channel: &mut Channel) -> Verdict {
    let channel: &Channel = channel;
    let counter = channel.counter_create(&CounterOptions::new(attr(), Scope::Task(0)))?;
    for (opcode, value) in OPERATIONS {
        if value != 0 {
            continue;
        }
        for value in [1, 1 << 32, u64::MAX] {
            let result = counter_control(channel, opcode, counter.id(), value);
            ensure!(
                result == Err(Errno::INVAL),
                "{opcode:#x} with {value}: {result:?}"
            );
        }
    }
    // It is there still.
    counter.enable()?;
    counter.release()?;
    Ok(())
}

/// Where there is nothing, and flags that mean nothing.
fn places_and_flags(channel: &mut Channel) -> Verdict {
    let channel: &Channel = channel;
    let right = CounterReq {
        size: size_of::<CounterReq>() as u32,
        ..Default::default()
    };
    for (what, request, expected) in [
        ("all CPUs", right, Ok(())),
        (
            "all CPUs, and one",
            CounterReq { target: 1, ..right },
            Err(Errno::INVAL),
        ),
        (
            "all CPUs, and -1",
            CounterReq {
                target: -1,
                ..right
            },
            Err(Errno::INVAL),
        ),
        (
            "an unknown scope",
            CounterReq { scope: 3, ..right },
            Err(Errno::INVAL),
        ),
        (
            "the last scope",
            CounterReq {
                scope: u32::MAX,
                ..right
            },
            Err(Errno::INVAL),
        ),
        (
            "an unknown flag",
            CounterReq { flags: 2, ..right },
            Err(Errno::INVAL),
        ),
        (
            "the last flag",
            CounterReq {
                flags: 1 << 31,
                ..right
            },
            Err(Errno::INVAL),
        ),
        (
            "CPU -1",
            CounterReq {
                scope: SCOPE_CPU,
                target: -1,
                ..right
            },
            Err(Errno::INVAL),
        ),
    ] {
        ensure!(right.scope == SCOPE_ALL, "it is 0");
        let mut request = request;
        let result = counter_create(channel, &mut request, &mut [attr()]);
        ensure!(result == expected, "{what}: {result:?}");
        if result.is_ok() {
            counter_control(channel, COUNTER_RELEASE, request.id, 0)?;
        }
    }
    for flags in [4, 1 << 31, u32::MAX] {
        let result = read(channel, flags, 0);
        ensure!(result == Err(Errno::INVAL), "flags {flags:#x}: {result:?}");
    }
    Ok(())
}

/// Values go where there is room, or nowhere; a counter is none the worse for it.
fn room(channel: &mut Channel) -> Verdict {
    const KERNEL: u64 = 0xffff_8000_0000_0000;
    let channel: &Channel = channel;
    let counter = channel.counter_create(&CounterOptions::new(attr(), Scope::Task(0)))?;
    let (lent, room) = lend_values();
    for (what, values, count, expected) in [
        ("right", lent, room, Ok(())),
        ("room for one", lent, 1, Ok(())),
        ("no room", lent, 0, Err(Errno::NOSPC)),
        ("no address", 0, 1, Err(Errno::FAULT)),
        ("the kernel's", KERNEL, 1, Err(Errno::FAULT)),
        ("the last", u64::MAX, 1, Err(Errno::FAULT)),
        ("the end", u64::MAX - 15, u32::MAX, Err(Errno::FAULT)),
    ] {
        let mut request = CounterRead {
            size: size_of::<CounterRead>() as u32,
            id: counter.id(),
            values,
            count,
            ..Default::default()
        };
        let argument = Argument::Bytes(request.as_mut_bytes());
        let result = ioctl(channel, COUNTER_READ, argument);
        ensure!(result == expected, "{what}: {result:?}");
        ensure!(
            result.is_err() || request.count == 1,
            "{what}: there is one, not {}",
            request.count
        );
    }
    counter.enable()?;
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(
        channel,
        &[
            ("unknown", unknown),
            ("values", values),
            ("places_and_flags", places_and_flags),
            ("room", room),
        ],
    )
}
