// SPDX-License-Identifier: GPL-2.0

//! Lends the terminal to an interactive machine, which is in a process group of its own.

use std::io;

use anyhow::{
    Context,
    Result, //
};
use nix::sys::signal::{
    SigSet,
    Signal, //
};
use rustix::process::{
    kill_process_group,
    Pid, //
};
use rustix::termios::{
    isatty,
    tcgetattr,
    tcgetpgrp,
    tcsetattr,
    tcsetpgrp,
    OptionalActions,
    Termios, //
};

/// The terminal while it is lent; dropping takes it back, in the state that it was in.
pub struct Lent {
    owner: Pid,
    state: Termios,
}

impl Lent {
    /// Lends the terminal to a process group; `None` where standard input is no terminal.
    ///
    /// # Errors
    ///
    /// Those of the terminal.
    pub fn to(group: Pid) -> Result<Option<Self>> {
        let terminal = io::stdin();
        if !isatty(&terminal) {
            return Ok(None);
        }
        // Without this, taking it back would stop this process, as it is in the background then.
        let mut background = SigSet::empty();
        background.add(Signal::SIGTTOU);
        background.thread_block().context("cannot block a signal")?;
        let lent = Self {
            owner: tcgetpgrp(&terminal).context("cannot see who has the terminal")?,
            state: tcgetattr(&terminal).context("cannot read the terminal's state")?,
        };
        tcsetpgrp(&terminal, group).context("cannot lend the terminal")?;
        // It was stopped if it has used the terminal before.
        kill_process_group(group, rustix::process::Signal::CONT).context("cannot wake the VM")?;
        Ok(Some(lent))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let terminal = io::stdin();
        let back = tcsetpgrp(&terminal, self.owner)
            .and_then(|()| tcsetattr(&terminal, OptionalActions::Drain, &self.state));
        if let Err(error) = back {
            eprintln!("weir-vm: cannot take the terminal back: {error}; 'reset' may help");
        }
    }
}
