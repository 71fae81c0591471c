// SPDX-License-Identifier: GPL-2.0

//! The first program in the guest: carries out the plan that the host put beside it, and reports.
//!
//! Whatever goes wrong here is said on the console, and the machine is powered off without the
//! report's last word; the host calls it lost.

mod applets;
mod guest;
mod kernel_log;
mod leaks;
mod modules;
mod mount;
mod port;
mod program;
mod shell;
mod symbols;

use std::env;
use std::fs::{
    self,
    File, //
};
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{
    bail,
    Context,
    Result, //
};
use rustix::system::RebootCommand;
use weir_vm::plan::{
    self,
    Plan,
    Step, //
};
use weir_vm::report::{
    Event,
    Outcome,
    BODY_MAX, //
};

use guest::Guest;

fn main() -> ExitCode {
    if !rustix::process::getpid().is_init() {
        eprintln!("weir-init is the first program of a test machine, and of no use elsewhere; see weir-vm");
        return ExitCode::FAILURE;
    }
    if let Err(error) = carry_out_plan() {
        eprintln!("weir-init: {error:#}");
    }
    rustix::fs::sync();
    let error = rustix::system::reboot(RebootCommand::PowerOff);
    // The kernel panics when this program returns, which ends the machine as well.
    eprintln!("weir-init: cannot power off: {error:?}");
    ExitCode::FAILURE
}

fn carry_out_plan() -> Result<()> {
    let text = fs::read_to_string(plan::PATH).with_context(|| format!("no {}", plan::PATH))?;
    let plan: Plan = serde_json::from_str(&text).context("the plan makes no sense")?;
    if plan.protocol != plan::PROTOCOL {
        bail!(
            "the plan is of version {}, this program of version {}",
            plan.protocol,
            plan::PROTOCOL
        );
    }
    mount::file_systems()?;
    applets::link()?;
    rustix::system::sethostname(b"weir").context("cannot set the host name")?;
    if !plan.shell {
        // Everything to the console: it is what is left of a kernel that dies.
        fs::write("/proc/sys/kernel/printk", "8").context("cannot set the console's level")?;
    }
    // Once for all programs: to change it for a child, std makes a socket pair, which kernels without
    // CONFIG_NET do not have.
    env::set_current_dir(plan::FOLDER).with_context(|| format!("no {}", plan::FOLDER))?;
    let mut guest = Guest::new(port::open(&plan.port)?)?;
    guest.hello()?;
    leaks::prepare(&plan)?;

    let (loaded, all) = modules::load(&mut guest, &plan)?;
    if all && plan.shell {
        shell::run(&mut guest, &plan)?;
    } else if all {
        for (index, program) in plan.programs.iter().enumerate() {
            guest.step(Step::Program(index), |guest| {
                program::run(guest, &plan, program)
            })?;
        }
    }
    let leaks = leaks::Search::new(&plan)?;
    if !plan.keep_modules {
        modules::unload(&mut guest, &plan, &loaded)?;
    }
    leaks.look(&mut guest)?;
    for (index, path) in plan.collect.iter().enumerate() {
        guest.step(Step::Collect(index), |guest| {
            Ok(match send_file(guest, Path::new(path)) {
                Ok(()) => Outcome::Well,
                Err(error) => Outcome::Error(format!("{error:#}")),
            })
        })?;
    }
    guest.done()
}

fn send_file(guest: &mut Guest, path: &Path) -> Result<()> {
    let mut file = File::open(path)?;
    let mut part = vec![0; BODY_MAX];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(()),
            count => guest.send(&Event::Output, &part[..count])?,
        }
    }
}
