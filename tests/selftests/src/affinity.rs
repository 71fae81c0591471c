// SPDX-License-Identifier: GPL-2.0

//! Staying on one CPU.

use anyhow::{
    Context,
    Result, //
};
use nix::{
    sched::{
        sched_getaffinity,
        sched_setaffinity,
        CpuSet, //
    },
    unistd::Pid,
};

/// Runs `f` bound to one CPU.
///
/// # Errors
///
/// Where the CPU is not online, or not allowed.
pub fn on_cpu<T>(cpu: usize, f: impl FnOnce() -> T) -> Result<T> {
    let this = Pid::from_raw(0);
    let before = sched_getaffinity(this)?;
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(this, &set).with_context(|| format!("binding this thread to CPU {cpu}"))?;
    let result = f();
    sched_setaffinity(this, &before)?;
    Ok(result)
}
