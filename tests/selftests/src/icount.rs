// SPDX-License-Identifier: GPL-2.0

//! Machines that execute one instruction in one ns of their own time: there, and nowhere else, a test may
//! expect a certain number of instructions. The virtual machine says so in the environment of its programs.

use crate::ktap::skip;
use anyhow::Result;
use std::env;

const VARIABLE: &str = "WEIR_ICOUNT";

/// Whether this machine is one.
pub fn is_on() -> bool {
    env::var_os(VARIABLE).is_some_and(|value| value == "1")
}

/// For tests that need one.
///
/// # Errors
///
/// A skip where this machine is none.
pub fn required() -> Result<()> {
    match is_on() {
        true => Ok(()),
        false => Err(skip(format!(
            "numbers of instructions are not certain here (no {VARIABLE}=1)"
        ))),
    }
}
