// SPDX-License-Identifier: GPL-2.0

//! Gives a person a shell on the console.

use std::process::Command;

use anyhow::{
    Context,
    Result, //
};
use weir_vm::plan::{
    Plan,
    Step,
    BUSYBOX,
    FOLDER, //
};
use weir_vm::report::Outcome;

use crate::guest::Guest;
use crate::program::environment;

/// Returns when the person leaves the shell.
pub fn run(guest: &mut Guest, plan: &Plan) -> Result<()> {
    println!("The modules are loaded; {FOLDER} has the programs. Leaving the shell powers off.");
    guest.step(Step::Shell, |_| {
        // A session of its own on the console, so that Ctrl-C and job control work.
        let status = Command::new(BUSYBOX)
            .args(["setsid", "cttyhack", "sh", "-l"])
            .envs(environment(plan))
            .status()
            .context("cannot start a shell")?;
        // Whatever the person's last command came to is none of a test's business.
        println!("The shell is left ({status}).");
        Ok(Outcome::Well)
    })
}
