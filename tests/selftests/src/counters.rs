// SPDX-License-Identifier: GPL-2.0

//! Driving `weir_counters.ko`, which uses counters as kernel code does.

use crate::{
    ktap::{
        note,
        skip,
        Verdict, //
    },
    loaded::Loaded,
    syscall::{
        ioctl,
        Argument, //
    },
};
use anyhow::{
    ensure,
    Context,
    Result, //
};
use rustix::{
    fd::OwnedFd,
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
    path::Path,
    time::Duration, //
};
use zerocopy::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout, //
};

const DEVICE: &str = "/dev/weir_counters";
const MODULE: &str = "weir_counters";

const RUN: Opcode = opcode::read_write::<Run>(0xBD, 0);

const NAME_LEN: usize = 32;
const REPORT_LEN: usize = 448;

/// `struct weir_counters_run`.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Run {
    size: u32,
    ms: u32,
    failures: u32,
    pid: i32,
    seed: u64,
    rounds: u64,
    name: [u8; NAME_LEN],
    report: [u8; REPORT_LEN],
}

/// The device of the module.
#[derive(Debug)]
pub struct Counters {
    fd: OwnedFd,
    /// It goes after the descriptor, if it was loaded for this.
    _module: Option<Loaded>,
    /// How long a test runs that ends when it is told.
    duration: Duration,
    seed: u64,
}

impl Counters {
    /// Opens the device; loads the module from `module` where it is not there, until this is dropped.
    ///
    /// # Errors
    ///
    /// Those of the calls; a skip where the module is not loaded and there is no file of it.
    pub fn open(module: Option<&Path>, duration: Duration) -> Result<Self> {
        if cfg!(target_arch = "aarch64") {
            return Err(skip(
                "its work are breakpoints of the kernel, which arm64 does not get past if a handler watches, and \
                 which its emulator does not count exactly",
            ));
        }
        drop(crate::session::open_device()?);
        let module = match module {
            Some(path) if !Path::new(DEVICE).exists() => Some(Loaded::load(path, MODULE)?),
            _ => None,
        };
        match rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => Ok(Self {
                fd,
                _module: module,
                duration,
                seed: fastrand::u64(..),
            }),
            Err(Errno::NOENT) => Err(skip(
                "weir_counters.ko is not loaded, and no file of it was given: a kernel without perf events has none",
            )),
            Err(errno) => Err(errno).with_context(|| format!("opening {DEVICE}")),
        }
    }

    fn call(&self, name: &str, pid: i32, duration: Duration) -> (Run, Result<(), Errno>) {
        let mut run = Run {
            size: size_of::<Run>() as u32,
            ms: duration.as_millis() as u32,
            failures: 0,
            pid,
            seed: self.seed,
            rounds: 0,
            name: [0; NAME_LEN],
            report: [0; REPORT_LEN],
        };
        let Some(room) = run.name.get_mut(..name.len()) else {
            return (run, Err(Errno::INVAL));
        };
        room.copy_from_slice(name.as_bytes());
        let result = ioctl(&self.fd, RUN, Argument::Bytes(run.as_mut_bytes()));
        (run, result)
    }

    /// What the calls of a test give, that does nothing but call.
    ///
    /// # Errors
    ///
    /// The error of the first that failed.
    pub fn call_only(&self, name: &str) -> Result<(), Errno> {
        self.call(name, 0, Duration::ZERO).1
    }

    /// Runs a test as long as tests run, and gives how many rounds that was.
    ///
    /// # Errors
    ///
    /// What the test has found.
    pub fn rounds(&self, name: &str) -> Result<u64> {
        self.rounds_of(name, self.duration)
    }

    /// Runs a test so long, and gives how many rounds that was.
    ///
    /// # Errors
    ///
    /// What the test has found.
    pub fn rounds_of(&self, name: &str, duration: Duration) -> Result<u64> {
        self.evaluate(name, self.call(name, 0, duration))
    }

    /// Runs a test that counts in the task of this number.
    ///
    /// # Errors
    ///
    /// What the test has found.
    pub fn run_in(&self, name: &str, pid: i32) -> Verdict {
        self.evaluate(name, self.call(name, pid, self.duration))?;
        Ok(())
    }

    fn evaluate(&self, name: &str, (run, result): (Run, Result<(), Errno>)) -> Result<u64> {
        let end = run.report.iter().position(|byte| *byte == 0);
        let report = String::from_utf8_lossy(&run.report[..end.unwrap_or(REPORT_LEN)]);
        note(&report);
        if result == Err(Errno::OPNOTSUPP) {
            return Err(skip(report.trim_end()));
        }
        result.with_context(|| format!("{name}, seed {}", self.seed))?;
        ensure!(
            run.failures == 0,
            "{} expectations were not met, seed {}",
            run.failures,
            self.seed
        );
        Ok(run.rounds)
    }

    /// Runs a test.
    ///
    /// # Errors
    ///
    /// What the test has found.
    pub fn run(&self, name: &str) -> Verdict {
        let rounds = self.rounds(name)?;
        if rounds != 0 {
            note(format_args!("{rounds} rounds"));
        }
        Ok(())
    }
}

/// A list of tests of the module for [`main`](crate::ktap::main), by their names.
#[macro_export]
macro_rules! counters_tests {
    ($($name:ident),+ $(,)?) => {
        [$((
            stringify!($name),
            (|counters: &mut $crate::counters::Counters| counters.run(stringify!($name)))
                as fn(&mut $crate::counters::Counters) -> $crate::ktap::Verdict,
        )),+]
    };
}
