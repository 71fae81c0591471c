// SPDX-License-Identifier: GPL-2.0

//! The samples do what they say: their modules are loaded, what they trace or count is read, and it is what
//! happened.

mod channels;
mod family;
mod time_bench;
mod watchdog;
mod writers;

use anyhow::Result;
use clap::Parser;
use libweir::Channel;
use nix::{
    sched::{
        sched_getaffinity,
        sched_setaffinity,
        CpuSet, //
    },
    unistd::Pid, //
};
use std::{
    path::{
        Path,
        PathBuf, //
    },
    process::ExitCode,
};
use weir_selftests::{
    child,
    ktap::{
        self,
        skip, //
    },
    loaded::Loaded,
};

/// Tests the samples.
///
/// Needs weir.ko, root, and the samples' own modules and program.
#[derive(Parser)]
struct Samples {
    /// Where they are.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl Samples {
    fn file(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.as_deref();
        let folder = folder.ok_or_else(|| skip("the folder with the samples was not given"))?;
        Ok(folder.join(name))
    }

    fn load(&self, name: &'static str, parameters: &str) -> Result<Loaded> {
        Loaded::load_with(&self.file(&format!("{name}.ko"))?, name, parameters)
    }

    /// Loads one that counts.
    fn load_counting(&self, name: &'static str, parameters: &str) -> Result<Loaded> {
        if !Path::new("/sys/bus/event_source").exists() {
            return Err(skip("this kernel has no perf events"));
        }
        self.load(name, parameters)
    }
}

fn attach(name: &str) -> Result<Channel> {
    Ok(Channel::attach(libweir::DEVICE.as_ref(), name, true)?)
}

/// Runs `f` on one CPU.
fn on_cpu<R>(cpu: u32, f: impl FnOnce() -> Result<R>) -> Result<R> {
    let this = Pid::from_raw(0);
    let before = sched_getaffinity(this)?;
    let mut one = CpuSet::new();
    one.set(cpu as usize)?;
    sched_setaffinity(this, &one)?;
    let result = f();
    sched_setaffinity(this, &before)?;
    result
}

fn main() -> ExitCode {
    if child::role().as_deref() == Some(family::ROLE) {
        return child::end(family::touch_what_is_asked());
    }
    ktap::main(
        || Ok(Samples::parse()),
        &[
            ("switches", channels::switches),
            ("wakeups", channels::wakeups),
            ("print_switches", channels::print_switches),
            ("watchdog_follows_cpus", watchdog::follows_cpus),
            ("watchdog_finds_a_stuck_cpu", watchdog::finds_a_stuck_cpu),
            ("writers", writers::writers),
            ("time_bench", time_bench::time_bench),
            ("time_bench_of_hardware", time_bench::hardware),
            ("family", family::family),
        ],
    )
}
