// SPDX-License-Identifier: GPL-2.0

//! What a round holds: the reader that it kills, and the pipe that readers splice to.

use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use rustix::{
    fd::{
        AsRawFd,
        OwnedFd, //
    },
    io::Errno,
    pipe::{
        fcntl_setpipe_size,
        pipe_with,
        PipeFlags, //
    },
    process::{
        kill_process,
        Pid,
        Signal, //
    },
};
use std::{
    io::Read,
    os::unix::process::ExitStatusExt,
    process::{
        Child,
        ExitStatus, //
    },
};

/// Bytes that the pipe holds: several of the largest pages.
const PIPE: usize = 256 << 10;

/// A reader; it is killed when this is dropped.
#[derive(Debug)]
pub struct Victim {
    child: Child,
}

impl Victim {
    /// Takes a process over.
    pub fn new(child: Child) -> Self {
        Victim { child }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).with_context(|| format!("sending {signal:?} to a reader"))
    }

    /// Stops it where it is.
    ///
    /// # Errors
    ///
    /// That of the call.
    pub fn stop(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    ///
    /// # Errors
    ///
    /// That of the call.
    pub fn go_on(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Kills it, and waits until nothing is left of it.
    ///
    /// # Errors
    ///
    /// It had ended before, with what it said.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        let status = self.child.wait()?;
        if status.signal() == Some(Signal::KILL.as_raw()) {
            return Ok(());
        }
        self.ended(status)
    }

    /// Sees whether it is still there.
    ///
    /// # Errors
    ///
    /// It has ended, with what it said.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => self.ended(status),
            None => Ok(()),
        }
    }

    fn ended(&mut self, status: ExitStatus) -> Result<()> {
        let mut text = String::new();
        if let Some(stdout) = &mut self.child.stdout {
            stdout.read_to_string(&mut text)?;
        }
        bail!("a reader has ended, {status}: {}", text.trim());
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // Once it has ended, both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How much of what was in a pipe was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// It was empty.
    Nothing,
    /// Perhaps not all.
    Some,
    /// All.
    All,
}

/// A pipe, of which this process reads one end.
#[derive(Debug)]
pub struct Pipe {
    ends: Option<(OwnedFd, OwnedFd)>,
    /// What was read and is no page yet.
    bytes: Vec<u8>,
}

impl Pipe {
    /// Makes one, if it is `used`.
    ///
    /// # Errors
    ///
    /// That of the calls.
    pub fn new(used: bool) -> Result<Self> {
        let mut ends = None;
        if used {
            let (from, to) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
            let size = fcntl_setpipe_size(&to, PIPE)?;
            ensure!(size >= PIPE, "a pipe has {size} bytes");
            ends = Some((from, to));
        }
        Ok(Pipe {
            ends,
            bytes: Vec::new(),
        })
    }

    /// The descriptor to write to, as a number of this process.
    pub fn number(&self) -> i32 {
        self.ends.as_ref().map_or(-1, |(_, to)| to.as_raw_fd())
    }

    /// Reads what is there, in so many calls at most, and gives `f` the pages.
    ///
    /// # Errors
    ///
    /// That of `read()`, and what `f` gives.
    pub fn drain(
        &mut self,
        page_size: usize,
        calls: usize,
        mut f: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<Drained> {
        let Some((from, _)) = &self.ends else {
            return Ok(Drained::Nothing);
        };
        let mut any = false;
        for _ in 0..calls {
            let start = self.bytes.len();
            self.bytes.resize(start + PIPE, 0);
            let read = rustix::io::read(from, &mut self.bytes[start..]);
            self.bytes.truncate(start + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(_) => any = true,
                Err(Errno::AGAIN) if any => return Ok(Drained::All),
                Err(Errno::AGAIN) => return Ok(Drained::Nothing),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno).context("reading the pipe"),
            }
            let whole = self.bytes.len() - self.bytes.len() % page_size;
            self.bytes[..whole]
                .chunks_exact(page_size)
                .try_for_each(&mut f)?;
            self.bytes.drain(..whole);
        }
        Ok(Drained::Some)
    }

    /// Bytes that were read and are no page.
    pub fn rest(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{
        Command,
        Stdio, //
    };

    #[test]
    fn a_reader_that_ended_is_told_from_one_that_was_killed() {
        let start = |script: &str| {
            let child = Command::new("sh")
                .args(["-c", script])
                .stdout(Stdio::piped())
                .spawn();
            Victim::new(child.unwrap())
        };
        let mut victim = start("sleep 60");
        victim.stop().unwrap();
        victim.check().unwrap();
        victim.go_on().unwrap();
        victim.kill().unwrap();
        let mut victim = start("echo what is wrong; exit 1");
        victim.child.wait().unwrap();
        let error = victim.check().unwrap_err().to_string();
        assert!(error.contains("what is wrong"), "{error}");
        assert!(victim.kill().is_err());
    }

    #[test]
    fn pages_come_out_of_a_pipe_whole() {
        let mut pipe = Pipe::new(true).unwrap();
        let mut seen = Vec::new();
        let mut drain = |pipe: &mut Pipe| {
            pipe.drain(4, 10, |page| {
                seen.push(page[0]);
                Ok(())
            })
            .unwrap()
        };
        assert_eq!(drain(&mut pipe), Drained::Nothing);
        let write = |pipe: &Pipe, bytes: &[u8]| {
            let (_, to) = pipe.ends.as_ref().unwrap();
            rustix::io::write(to, bytes).unwrap();
        };
        write(&pipe, &[1, 1, 1]);
        assert_eq!(drain(&mut pipe), Drained::All);
        assert_eq!(pipe.rest(), 3);
        write(&pipe, &[1, 2, 2, 2, 2, 3]);
        assert_eq!(drain(&mut pipe), Drained::All);
        assert_eq!(pipe.rest(), 1);
        assert_eq!(seen, [1, 2]);
        assert_eq!(Pipe::new(false).unwrap().number(), -1);
    }
}
