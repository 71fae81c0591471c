// SPDX-License-Identifier: GPL-2.0

//! Gives a person a shell on the console.

use std::process::Command;

use anyhow::{
    Context,
    Result, //
};
use weir_vm::plan::{
    Step,
    FOLDER, //
};
use weir_vm::report::Outcome;

use crate::guest::Guest;
use crate::program::ENVIRONMENT;

/// Returns when the person leaves the shell.
pub fn run(guest: &mut Guest) -> Result<()> {
    println!("The modules are loaded; {FOLDER} has the programs. Leaving the shell powers off.");
    guest.step(Step::Shell, |_| {
        // A session of its own on the console, so that Ctrl-C and job control work.
        let status = Command::new("/bin/busybox")
            .args(["setsid", "cttyhack", "sh", "-l"])
            .envs(ENVIRONMENT.iter().copied())
            .status()
            .context("cannot start a shell")?;
        // Whatever the person's last command came to is none of a test's business.
        println!("The shell is left ({status}).");
        Ok(Outcome::Well)
    })
}
