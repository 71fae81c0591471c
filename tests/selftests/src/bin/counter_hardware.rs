// SPDX-License-Identifier: GPL-2.0

//! What the processor's own counters count, as perf alone has it: the ground that tests of weir's counters
//! stand on.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    event::TYPE_HARDWARE,
    Errno, //
};
use rustix::{
    fd::OwnedFd,
    ioctl::{
        opcode,
        Opcode, //
    },
};
use std::{
    hint::black_box,
    process::ExitCode, //
};
use weir_selftests::{
    affinity::on_cpu,
    icount,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    syscall::{
        ioctl,
        perf_event_open,
        Argument,
        PerfAttr, //
    },
};

/// `PERF_COUNT_HW_*`.
const CYCLES: u64 = 0;
const INSTRUCTIONS: u64 = 1;

/// Bits of `perf_event_attr`.
const DISABLED: u64 = 1 << 0;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;

/// `PERF_EVENT_IOC_ENABLE` and `_DISABLE`.
const ENABLE: Opcode = opcode::none(b'$', 0);
const DISABLE: Opcode = opcode::none(b'$', 1);

/// A counter of user space on one CPU.
struct Counter(OwnedFd);

impl Counter {
    fn new(config: u64, cpu: u32) -> Result<Self, Errno> {
        let attr = PerfAttr {
            type_: TYPE_HARDWARE,
            config,
            flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HV,
            ..Default::default()
        };
        perf_event_open(&attr, cpu as i32).map(Self)
    }

    fn read(&self) -> Result<u64> {
        let mut value = [0; 8];
        let read = rustix::io::read(&self.0, &mut value).context("reading a counter")?;
        ensure!(read == value.len(), "{read} bytes are no value");
        Ok(u64::from_ne_bytes(value))
    }

    /// What is counted while `f` runs.
    fn during(&self, f: impl FnOnce()) -> Result<u64> {
        let before = self.read()?;
        ioctl(&self.0, ENABLE, Argument::Null).context("enabling a counter")?;
        f();
        ioctl(&self.0, DISABLE, Argument::Null).context("disabling a counter")?;
        Ok(self.read()? - before)
    }
}

/// A CPU whose processor has counters.
fn setup() -> Result<u32> {
    let cpu = libweir::cpu::online()?[0];
    match Counter::new(CYCLES, cpu) {
        Ok(_) => Ok(cpu),
        Err(error @ (Errno::NOENT | Errno::OPNOTSUPP | Errno::NOSYS | Errno::NODEV))
            if !icount::is_on() =>
        {
            Err(skip(format!("this processor counts no cycles: {error}")))
        }
        Err(error) => Err(error).context("opening a counter of cycles"),
    }
}

/// So many times the same few instructions.
#[inline(never)]
fn rounds(count: u64) {
    for round in 0..count {
        black_box(round);
    }
}

/// Cycles are counted while the counter is enabled.
fn cycles(cpu: &mut u32) -> Verdict {
    let counter = Counter::new(CYCLES, *cpu)?;
    on_cpu(*cpu as usize, || {
        for count in [1_000_000, 10_000_000] {
            let value = counter.during(|| rounds(count))?;
            note(format_args!("{count} rounds took {value} cycles"));
            ensure!(value > 0, "{count} rounds took no cycles");
            let (before, ()) = (counter.read()?, rounds(count));
            ensure!(
                counter.read()? == before,
                "a disabled counter went on from {before}"
            );
        }
        Ok(())
    })?
}

/// Each round has as many instructions as every other, so as many are counted.
fn instructions(cpu: &mut u32) -> Verdict {
    icount::required()?;
    const ROUNDS: u64 = 100_000;
    let counter = Counter::new(INSTRUCTIONS, *cpu)?;
    on_cpu(*cpu as usize, || {
        let counted: Vec<u64> = (1..=5)
            .map(|times| counter.during(|| rounds(times * ROUNDS)))
            .collect::<Result<_>>()?;
        note(format_args!("{counted:?} instructions"));
        let more = counted[1].saturating_sub(counted[0]);
        ensure!(
            more > 0 && more % ROUNDS == 0,
            "{ROUNDS} rounds more took {more} instructions more"
        );
        for pair in counted.windows(2) {
            ensure!(
                pair[1] == pair[0] + more,
                "rounds of {} instructions each took {counted:?} instructions",
                more / ROUNDS
            );
        }
        Ok(())
    })?
}

fn main() -> ExitCode {
    ktap::main(setup, &[("cycles", cycles), ("instructions", instructions)])
}
