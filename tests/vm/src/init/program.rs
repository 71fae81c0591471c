// SPDX-License-Identifier: GPL-2.0

//! Runs one program: passes on what it writes, ends it when its time is over, and sees to it that
//! nothing of it is left.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{
    AsFd,
    OwnedFd, //
};
use std::os::unix::process::CommandExt;
use std::process::{
    Command,
    Stdio, //
};
use std::time::{
    Duration,
    Instant, //
};

use anyhow::{
    Context,
    Result, //
};
use rustix::event::{
    poll,
    PollFd,
    PollFlags,
    Timespec, //
};
use rustix::io::Errno;
use rustix::pipe::{
    pipe_with,
    PipeFlags, //
};
use rustix::process::{
    kill_process_group,
    pidfd_open,
    wait,
    Pid,
    PidfdFlags,
    Signal,
    WaitOptions,
    WaitStatus, //
};
use weir_vm::plan::{
    Plan,
    Program, //
};
use weir_vm::report::{
    Event,
    Outcome, //
};

use crate::guest::Guest;

/// How long killed processes may take to go.
const KILL_TIME: Duration = Duration::from_secs(5);

/// What every program finds in its environment.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("PATH", "/bin:/sbin:/usr/bin:/usr/sbin:/weir"),
    ("HOME", "/root"),
    ("TMPDIR", "/tmp"),
    ("LANG", "C.UTF-8"),
];

/// And what more where [`Plan::icount`] is set.
const ICOUNT: (&str, &str) = ("WEIR_ICOUNT", "1");

/// What a program finds in its environment.
pub fn environment(plan: &Plan) -> impl Iterator<Item = (&'static str, &'static str)> {
    let icount = plan.icount.then_some(ICOUNT);
    ENVIRONMENT.iter().copied().chain(icount)
}

/// Runs the program to its end.
pub fn run(guest: &mut Guest, plan: &Plan, program: &Program) -> Result<Outcome> {
    let Some((path, arguments)) = program.argv.split_first() else {
        return Ok(Outcome::Error("the plan names no program".into()));
    };
    let (output, input) = pipe_with(PipeFlags::CLOEXEC).context("cannot make a pipe")?;
    let mut command = Command::new(path);
    command
        .args(arguments)
        .envs(environment(plan))
        .stdin(Stdio::null())
        .stdout(input.try_clone()?)
        .stderr(input)
        .process_group(0);
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Outcome::Error(format!("cannot start {path}: {error}"))),
    };
    // The command holds the pipe's other end; while anything does, there is no end of file.
    drop(command);
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let id = id.context("a process without an id")?;
    let mut run = Run {
        guest,
        exited: Some(pidfd_open(id, PidfdFlags::empty()).context("cannot watch the program")?),
        output: Some(output.into()),
        statuses: HashMap::new(),
    };
    let deadline = Instant::now() + Duration::from_secs(program.timeout_s);
    while !run.statuses.contains_key(&id) && Instant::now() < deadline {
        run.wait_for_something(deadline)?;
        run.reap()?;
    }
    let outcome = match run.statuses.get(&id) {
        Some(status) => outcome(*status),
        None => Outcome::TimedOut(program.timeout_s),
    };
    run.end_all()?;
    Ok(outcome)
}

fn outcome(status: WaitStatus) -> Outcome {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(status), _) => Outcome::Exit(status),
        (None, Some(signal)) => Outcome::Signal(signal),
        (None, None) => Outcome::Error(format!("ended with {status:?}")),
    }
}

struct Run<'a> {
    guest: &'a mut Guest,
    /// Readable once the program has ended; `None` when that is known.
    exited: Option<OwnedFd>,
    /// `None` after its end.
    output: Option<File>,
    /// What became of processes; this program is the parent of all that have lost theirs.
    statuses: HashMap<Pid, WaitStatus>,
}

impl Run<'_> {
    /// Waits until the program writes or ends, or the kernel logs, and passes on what there is.
    fn wait_for_something(&mut self, deadline: Instant) -> Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).context("a timeout too long")?;
        let log_readable;
        let output_readable;
        {
            let log = self.guest.log_fd();
            let mut fds = vec![PollFd::from_borrowed_fd(log, PollFlags::IN)];
            let output = self.output.iter().map(AsFd::as_fd);
            let exited = self.exited.iter().map(AsFd::as_fd);
            for fd in output.chain(exited) {
                fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            }
            match poll(&mut fds, Some(&left)) {
                Ok(_) | Err(Errno::INTR) => (),
                Err(error) => return Err(error).context("cannot wait for the program"),
            }
            log_readable = !fds[0].revents().is_empty();
            output_readable = self.output.is_some() && !fds[1].revents().is_empty();
        }
        if log_readable {
            self.guest.pump_log()?;
        }
        if output_readable {
            self.pass_on()?;
        }
        Ok(())
    }

    /// Passes on one piece of output; there must be some, or the end of it.
    fn pass_on(&mut self) -> Result<()> {
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        let mut piece = [0; 64 << 10];
        match output
            .read(&mut piece)
            .context("cannot read a program's output")?
        {
            0 => self.output = None,
            count => self.guest.send(&Event::Output, &piece[..count])?,
        }
        Ok(())
    }

    /// Takes note of all processes that have ended. Gives whether there are others.
    fn reap(&mut self) -> Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((id, status))) => {
                    self.statuses.insert(id, status);
                }
                Ok(None) => return Ok(true),
                Err(Errno::CHILD) => return Ok(false),
                Err(error) => return Err(error).context("cannot wait for processes"),
            }
        }
    }

    /// Kills every process but this one, and passes on what was written before.
    fn end_all(mut self) -> Result<()> {
        self.exited = None;
        // The group of process 1 stands for all processes that there are.
        match kill_process_group(Pid::INIT, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => (),
            Err(error) => return Err(error).context("cannot kill what is left of the program"),
        }
        let deadline = Instant::now() + KILL_TIME;
        let mut left = self.reap()?;
        while left || self.output.is_some() {
            let now = Instant::now();
            if now >= deadline {
                let note = "weir-init: a process of this program cannot be killed\n";
                return self.guest.send(&Event::Output, note.as_bytes());
            }
            self.wait_for_something(deadline.min(now + Duration::from_millis(20)))?;
            left = self.reap()?;
        }
        Ok(())
    }
}
