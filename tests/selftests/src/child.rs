// SPDX-License-Identifier: GPL-2.0

//! Tasks that the tests start: processes that are this program over again in a role, and threads.

use crate::ktap::Verdict;
use anyhow::{
    ensure,
    Context,
    Result, //
};
use std::{
    env,
    io::{
        BufRead,
        BufReader,
        Read, //
    },
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{
        Child,
        Command,
        ExitCode,
        Stdio, //
    },
    sync::{
        mpsc,
        Arc,
        Condvar,
        Mutex, //
    },
    thread::{
        Builder,
        JoinHandle, //
    },
};

/// Names the role of a process that is not the test itself.
const ROLE: &str = "WEIR_TEST_ROLE";

/// What a process prints when it has done what it is there for.
const READY: &str = "ready";

/// The role of this process, [`None`] for the test itself.
pub fn role() -> Option<String> {
    env::var(ROLE).ok()
}

/// This program over again, in `role`. Its standard input is the end of a pipe.
///
/// # Errors
///
/// This program's file is not known.
pub fn command(role: &str) -> Result<Command> {
    let program = env::current_exe().context("finding this program's own file")?;
    Ok(command_of(&program, role))
}

/// The same of a copy of this program.
pub fn command_of(program: &Path, role: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env(ROLE, role)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Says that this process has done what it is there for, and stays until whoever started it lets go.
///
/// # Errors
///
/// The pipes are not as [`command`] made them.
pub fn stay() -> Result<()> {
    println!("{READY}");
    std::io::stdin()
        .read_to_end(&mut Vec::new())
        .context("waiting for the end of the test")?;
    Ok(())
}

/// Ends a process of [`command`]: what went wrong is what it prints.
pub fn end(verdict: Verdict) -> ExitCode {
    match verdict {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A process that was started and stays until this is dropped.
#[derive(Debug)]
pub struct Standing {
    child: Child,
}

impl Standing {
    /// Starts `command`, which came from [`command`], and waits until it says that it is ready.
    ///
    /// # Errors
    ///
    /// It cannot be started, or ended without saying so.
    pub fn start(mut command: Command) -> Result<Self> {
        let child = command
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let mut standing = Standing { child };
        let stdout = standing
            .child
            .stdout
            .as_mut()
            .context("its output is a pipe")?;
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .context("waiting for a process that was started")?;
        ensure!(
            line.trim() == READY,
            "a process that was started said `{}` and ended",
            line.trim()
        );
        Ok(standing)
    }

    /// Its number, in the pid namespace of this process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it at once, wherever it is.
    ///
    /// # Errors
    ///
    /// Those of `kill()` and `wait()`, or it had ended before.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        let status = self.child.wait()?;
        ensure!(
            status.signal().is_some(),
            "it had ended before it was killed: {status}"
        );
        Ok(())
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        // The end of its input ends it. After a kill both have been done.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Runs `command`, which came from [`command`], to its end; what it printed becomes part of the error.
///
/// # Errors
///
/// It cannot be started, or fails.
pub fn run(mut command: Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {command:?}"))?;
    ensure!(
        output.status.success(),
        "{}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Threads that do nothing until they are dropped.
#[derive(Debug)]
pub struct Threads {
    handles: Vec<JoinHandle<()>>,
    tids: Vec<u32>,
    ended: Arc<(Mutex<bool>, Condvar)>,
}

impl Threads {
    /// Starts `count` of them; each has a name of its own.
    ///
    /// # Errors
    ///
    /// There are no more threads to be had.
    pub fn start(count: usize) -> Result<Self> {
        let mut threads = Threads {
            handles: Vec::new(),
            tids: Vec::new(),
            ended: Arc::default(),
        };
        let (send, receive) = mpsc::channel();
        for number in 0..count {
            let (send, ended) = (send.clone(), threads.ended.clone());
            let handle = Builder::new()
                .name(format!("stand {number} (x)"))
                .stack_size(64 << 10)
                .spawn(move || {
                    // The test waits for every one of them, and fails where one is missing.
                    let _ = send.send(tid());
                    let (ended, changed) = &*ended;
                    let guard = ended
                        .lock()
                        .unwrap_or_else(|poisoned| poisoned.into_inner());
                    drop(changed.wait_while(guard, |ended| !*ended));
                })
                .with_context(|| format!("starting thread {number}"))?;
            threads.handles.push(handle);
        }
        drop(send);
        threads.tids = receive.iter().take(count).collect();
        ensure!(
            threads.tids.len() == count,
            "only {} of {count} threads began",
            threads.tids.len()
        );
        Ok(threads)
    }

    /// Their numbers.
    pub fn tids(&self) -> &[u32] {
        &self.tids
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let (ended, changed) = &*self.ended;
        *ended
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
        changed.notify_all();
        for handle in self.handles.drain(..) {
            // They do nothing that could fail.
            let _ = handle.join();
        }
    }
}

/// The number of this thread.
pub fn tid() -> u32 {
    nix::unistd::gettid().as_raw() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks;

    #[test]
    fn threads_are_there_until_they_are_dropped() {
        let threads = Threads::start(3).unwrap();
        let tids = threads.tids().to_vec();
        let all = tasks::all().unwrap();
        for tid in &tids {
            assert!(all[tid].is_named(&all[tid].comm.clone()));
            assert!(all[tid].comm.starts_with(b"stand "), "{:?}", all[tid]);
            assert_eq!(all[tid].pid, std::process::id());
        }
        drop(threads);
        let all = tasks::all().unwrap();
        assert!(tids.iter().all(|tid| !all.contains_key(tid)));
    }

    #[test]
    fn a_process_that_does_not_get_ready_fails() {
        let mut command = Command::new("true");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        assert!(Standing::start(command).is_err());
        assert!(run(Command::new("false")).is_err());
        run(Command::new("true")).unwrap();
    }
}
