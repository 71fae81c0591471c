// SPDX-License-Identifier: GPL-2.0

//! Every clock that a channel may have, compared with what user space reads; and what the kernel says of a
//! channel to those who look at the descriptor.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    uapi::{
        CLOCK_BOOTTIME,
        CLOCK_MONOTONIC,
        CLOCK_MONOTONIC_RAW,
        CLOCK_PERF,
        CLOCK_TSC, //
    },
    Channel,
    ChannelOptions,
    Errno,
    Page, //
};
use nix::time::{
    clock_gettime,
    ClockId, //
};
use rustix::fd::{
    AsFd,
    AsRawFd, //
};
use std::{
    process::ExitCode,
    time::Duration, //
};
use weir_selftests::{
    dump::request,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    session::absent,
};

/// How far a conversion of cycles may be off.
const TOLERANCE: u64 = 2_000_000;

fn read_clock(clock: ClockId) -> Result<u64> {
    let now = clock_gettime(clock)?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// Times of some records, with readings of `reference` before and after each.
fn times(channel: &Channel, reference: ClockId) -> Result<Vec<(u64, u64, u64)>> {
    let clock = channel.clock()?;
    let mut times = Vec::new();
    let mut buffer = channel.buffer(16);
    for _ in 0..20 {
        let before = read_clock(reference)?;
        let mut call = request(Default::default(), 1, 0);
        channel.inject(&mut call)?;
        let after = read_clock(reference)?;
        channel.flush()?;
        channel.drain(&mut buffer, |bytes| {
            let page = Page::parse(bytes)?;
            page.verify()?;
            for record in page.records() {
                if let Some(time) = record?.time() {
                    times.push((before, clock.nanoseconds(time), after));
                }
            }
            Ok::<_, anyhow::Error>(())
        })?;
        std::thread::sleep(Duration::from_millis(1));
    }
    ensure!(times.len() == 40, "{} records of 40", times.len());
    Ok(times)
}

fn open(clock: u32) -> Result<Channel> {
    let options = ChannelOptions {
        clock,
        ..Default::default()
    };
    let channel = Channel::create(&options).map_err(absent)?;
    let number = channel.clock()?.number();
    ensure!(number == clock, "clock {number} instead of {clock}");
    Ok(channel)
}

fn agrees(clock: u32, reference: ClockId, tolerance: u64) -> Verdict {
    for (before, time, after) in times(&open(clock)?, reference)? {
        ensure!(
            before.saturating_sub(tolerance) <= time && time <= after + tolerance,
            "written at {time} ns, between {before} and {after}"
        );
    }
    Ok(())
}

fn monotonic(_: &mut ()) -> Verdict {
    agrees(CLOCK_MONOTONIC, ClockId::CLOCK_MONOTONIC, 0)
}

fn monotonic_raw(_: &mut ()) -> Verdict {
    agrees(CLOCK_MONOTONIC_RAW, ClockId::CLOCK_MONOTONIC_RAW, 0)
}

fn boottime(_: &mut ()) -> Verdict {
    agrees(CLOCK_BOOTTIME, ClockId::CLOCK_BOOTTIME, 0)
}

/// perf's clock cannot be read from here, but it advances as others do.
fn perf(_: &mut ()) -> Verdict {
    let times = times(&open(CLOCK_PERF)?, ClockId::CLOCK_MONOTONIC_RAW)?;
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        return Ok(());
    };
    let (elapsed, least) = (last.1 - first.1, last.0 - first.2);
    let most = last.2 - first.0;
    // A tick is 10 ms where there is no better clock.
    ensure!(
        least.saturating_sub(20_000_000) <= elapsed && elapsed <= most + 20_000_000,
        "{elapsed} ns where {least} to {most} have passed"
    );
    Ok(())
}

fn tsc(_: &mut ()) -> Verdict {
    match open(CLOCK_TSC) {
        Err(error)
            if error
                .downcast_ref::<libweir::Error>()
                .is_some_and(|error| error.errno() == Some(Errno::OPNOTSUPP)) =>
        {
            Err(skip(
                "this machine has no time stamp counter that all CPUs share",
            ))
        }
        Err(error) => Err(error),
        Ok(_) => agrees(CLOCK_TSC, ClockId::CLOCK_MONOTONIC_RAW, TOLERANCE),
    }
}

/// What stands in `/proc/self/fdinfo`.
fn fdinfo(_: &mut ()) -> Verdict {
    let channel = open(CLOCK_MONOTONIC)?;
    let path = format!("/proc/self/fdinfo/{}", channel.as_fd().as_raw_fd());
    let read = || std::fs::read_to_string(&path).with_context(|| path.clone());
    let before = read()?;
    ensure!(
        before.contains("weir-model:\tpaged\n") && before.contains("weir-mode:\tdiscard\n"),
        "{before}"
    );
    ensure!(!before.contains("weir-cpu"), "{before}");
    let mut call = request(Default::default(), 1, 0);
    channel.inject(&mut call)?;
    channel.flush()?;
    let after = read()?;
    note(after.trim().replace('\n', "; "));
    ensure!(
        after.contains(
            "\tpages 1 nested 0 lost-full 0 lost-nested 0 lost-too-large 0 lost-overwritten 0\n"
        ),
        "{after}"
    );
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(
        || Ok(()),
        &[
            ("monotonic", monotonic),
            ("monotonic_raw", monotonic_raw),
            ("boottime", boottime),
            ("perf", perf),
            ("tsc", tsc),
            ("fdinfo", fdinfo),
        ],
    )
}
