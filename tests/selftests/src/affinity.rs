// SPDX-License-Identifier: GPL-2.0

//! On which CPU a thread runs.

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
    unistd::Pid, //
};

/// This thread.
const THIS: Pid = Pid::from_raw(0);

/// Binds this thread to one CPU, for ever.
///
/// # Errors
///
/// Those of `sched_setaffinity()`: it is offline.
pub fn bind(cpu: u32) -> Result<()> {
    let mut one = CpuSet::new();
    one.set(cpu as usize)?;
    sched_setaffinity(THIS, &one).with_context(|| format!("binding this thread to CPU {cpu}"))
}

/// Runs `f` bound to one CPU.
///
/// # Errors
///
/// As [`bind`]; not what `f` gives.
pub fn on_cpu<T>(cpu: u32, f: impl FnOnce() -> T) -> Result<T> {
    let before = sched_getaffinity(THIS)?;
    bind(cpu)?;
    let result = f();
    sched_setaffinity(THIS, &before).context("letting this thread run everywhere again")?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_runs_where_it_is_bound() {
        let before = sched_getaffinity(THIS).unwrap();
        let cpu = (0..CpuSet::count())
            .rfind(|cpu| before.is_set(*cpu).unwrap())
            .unwrap();
        let on = on_cpu(cpu as u32, || nix::sched::sched_getcpu().unwrap()).unwrap();
        assert_eq!(on, cpu);
        assert_eq!(sched_getaffinity(THIS).unwrap(), before);
        assert!(on_cpu(u32::from(u16::MAX), || ()).is_err());
    }
}
