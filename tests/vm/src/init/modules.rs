// SPDX-License-Identifier: GPL-2.0

//! Loads and unloads the modules.
//!
//! A module runs its own code, and KUnit's, before the system call returns. Another thread makes the
//! call, so that the log is read meanwhile (it is longer than the kernel's buffer for it) and so
//! that one which never returns is reported.

use std::ffi::{
    CStr,
    CString, //
};
use std::fs::File;
use std::sync::mpsc::{
    self,
    RecvTimeoutError, //
};
use std::thread;
use std::time::{
    Duration,
    Instant, //
};

use anyhow::{
    bail,
    Context,
    Result, //
};
use rustix::io::Errno;
use weir_vm::plan::{
    Module,
    Plan,
    Step, //
};
use weir_vm::report::Outcome;

use crate::guest::Guest;

/// `O_NONBLOCK` of `delete_module`: refuse a module that is in use, do not wait for it.
const REFUSE_USED: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// Loads all modules, in order, up to the first that fails. Gives the names of those that are
/// loaded, and whether these are all.
pub fn load(guest: &mut Guest, plan: &Plan) -> Result<(Vec<String>, bool)> {
    let mut loaded = Vec::new();
    guest.step(Step::Load, |guest| {
        for module in &plan.modules {
            let job = module.clone();
            let outcome = watch(guest, plan, &module.path, move || load_one(&job))?;
            if outcome != Outcome::Well {
                return Ok(outcome);
            }
            loaded.push(module.name());
        }
        Ok(Outcome::Well)
    })?;
    let all = loaded.len() == plan.modules.len();
    Ok((loaded, all))
}

/// Unloads the modules of these names, the last first.
pub fn unload(guest: &mut Guest, plan: &Plan, loaded: &[String]) -> Result<()> {
    if loaded.is_empty() {
        return Ok(());
    }
    guest.step(Step::Unload, |guest| {
        for name in loaded.iter().rev() {
            let job = CString::new(name.as_str())?;
            let outcome = watch(guest, plan, name, move || unload_one(&job))?;
            if outcome != Outcome::Well {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Well)
    })
}

fn load_one(module: &Module) -> Result<()> {
    let file = File::open(&module.path)?;
    let parameters = CString::new(module.parameters.as_str())?;
    rustix::system::finit_module(&file, &parameters, 0)
        .context("the kernel refuses it; its log says why")
}

fn unload_one(name: &CStr) -> Result<()> {
    match rustix::system::delete_module(name, REFUSE_USED) {
        Err(Errno::AGAIN) => bail!("something holds the module still, or it cannot be unloaded"),
        result => Ok(result?),
    }
}

/// Does the job in another thread and reads the log meanwhile. A job that takes too long is left to
/// itself: there is no way to stop it.
fn watch(
    guest: &mut Guest,
    plan: &Plan,
    name: &str,
    job: impl FnOnce() -> Result<()> + Send + 'static,
) -> Result<Outcome> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // The receiver is gone only if this took too long.
        let _ = sender.send(job());
    });
    let start = Instant::now();
    loop {
        match receiver.recv_timeout(Duration::from_millis(20)) {
            Ok(Ok(())) => return Ok(Outcome::Well),
            Ok(Err(error)) => return Ok(Outcome::Error(format!("{name}: {error:#}"))),
            Err(RecvTimeoutError::Disconnected) => {
                return Ok(Outcome::Error(format!("{name}: weir-init has a fault")));
            }
            Err(RecvTimeoutError::Timeout) => guest.pump_log()?,
        }
        if start.elapsed().as_secs() >= plan.module_timeout_s {
            return Ok(Outcome::TimedOut(plan.module_timeout_s));
        }
    }
}
