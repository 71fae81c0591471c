// SPDX-License-Identifier: GPL-2.0

//! What perf lets users do who have no capability.

use crate::ktap::{
    note,
    skip, //
};
use anyhow::{
    Context,
    Result, //
};
use nix::unistd::{
    setgid,
    setgroups,
    setuid,
    Gid,
    Uid, //
};
use std::{
    fs,
    io::ErrorKind, //
};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// `nobody`, who has no capability.
const NOBODY: u32 = 65_534;

/// The system's setting, which is restored in the end.
#[derive(Debug)]
pub struct Paranoid {
    before: String,
}

impl Paranoid {
    /// What it is now.
    ///
    /// # Errors
    ///
    /// It cannot be read; a skip where the kernel has no such setting.
    pub fn get() -> Result<Self> {
        match fs::read_to_string(PARANOID) {
            Ok(before) => Ok(Self { before }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(skip("this kernel has no perf_event_paranoid"))
            }
            Err(error) => Err(error).context(PARANOID),
        }
    }

    /// Changes it.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn set(&self, value: i32) -> Result<()> {
        fs::write(PARANOID, value.to_string())
            .with_context(|| format!("writing {value} to {PARANOID}"))
    }
}

impl Drop for Paranoid {
    fn drop(&mut self) {
        if let Err(error) = fs::write(PARANOID, self.before.trim()) {
            note(format_args!(
                "{PARANOID}: {error}: it was {}",
                self.before.trim()
            ));
        }
    }
}

/// Makes this process one of `nobody`, for ever.
///
/// # Errors
///
/// Those of the calls.
pub fn become_nobody() -> Result<()> {
    setgroups(&[]).context("giving up all groups")?;
    setgid(Gid::from_raw(NOBODY)).context("becoming the group of nobody")?;
    setuid(Uid::from_raw(NOBODY)).context("becoming nobody")
}
