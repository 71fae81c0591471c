// SPDX-License-Identifier: GPL-2.0

//! The guest's side of the report: what is under way, and the kernel's log beside it.

use std::os::fd::{
    AsFd,
    BorrowedFd, //
};
use std::thread;
use std::time::Instant;

use anyhow::{
    Context,
    Result, //
};
use weir_vm::plan::{
    Step,
    PROTOCOL, //
};
use weir_vm::report::{
    self,
    Event,
    Outcome, //
};

use crate::kernel_log::KernelLog;
use crate::port::Port;

/// The report and the kernel's log.
pub struct Guest {
    port: Port,
    log: KernelLog,
}

impl Guest {
    /// Takes the port; the log begins at boot.
    pub fn new(port: Port) -> Result<Self> {
        let log = KernelLog::open().context("cannot open /dev/kmsg")?;
        Ok(Self { port, log })
    }

    /// Sends one frame.
    pub fn send(&mut self, event: &Event, body: &[u8]) -> Result<()> {
        report::send(&mut self.port, event, body).context("cannot write to the report port")
    }

    /// Says that this program runs, and sends what the kernel logged until now.
    pub fn hello(&mut self) -> Result<()> {
        let release = rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned();
        let processors = thread::available_parallelism().map_or(1, |count| count.get());
        let hello = Event::Hello {
            protocol: PROTOCOL,
            release,
            processors,
        };
        self.send(&hello, b"")?;
        self.pump_log()
    }

    /// Sends what the kernel has logged since the last time.
    pub fn pump_log(&mut self) -> Result<()> {
        loop {
            let (lines, gap) = self.log.read().context("cannot read /dev/kmsg")?;
            if lines.is_empty() && !gap {
                return Ok(());
            }
            self.send(&Event::Log { gap }, &lines)?;
        }
    }

    /// Readable when the kernel has logged something.
    pub fn log_fd(&self) -> BorrowedFd<'_> {
        self.log.as_fd()
    }

    /// Does a step. What the kernel logs belongs to the step that it was logged in.
    pub fn step(
        &mut self,
        step: Step,
        work: impl FnOnce(&mut Self) -> Result<Outcome>,
    ) -> Result<()> {
        self.pump_log()?;
        self.send(&Event::Begin { step }, b"")?;
        let start = Instant::now();
        let outcome = work(self)?;
        let milliseconds = start.elapsed().as_millis() as u64;
        self.pump_log()?;
        let end = Event::End {
            step,
            outcome,
            milliseconds,
        };
        self.send(&end, b"")
    }

    /// Says that nothing more is to come.
    pub fn done(&mut self) -> Result<()> {
        self.pump_log()?;
        self.send(&Event::Done, b"")
    }
}
