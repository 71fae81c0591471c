// SPDX-License-Identifier: GPL-2.0

//! What is watched: a command, or everything for a time; and what ends it.

use crate::output;
use anyhow::{
    anyhow,
    Context,
    Result, //
};
use libweir::Held;
use rustix::{
    event::{
        poll,
        PollFd,
        PollFlags,
        Timespec, //
    },
    fd::{
        AsFd,
        BorrowedFd,
        OwnedFd, //
    },
    io::Errno,
    process::{
        pidfd_open,
        pidfd_send_signal,
        Pid,
        PidfdFlags,
        Signal, //
    },
};
use signal_hook::{
    consts::{
        SIGINT,
        SIGTERM, //
    },
    low_level::pipe, //
};
use std::{
    ffi::OsString,
    io::ErrorKind,
    os::unix::{
        net::UnixStream,
        process::ExitStatusExt, //
    },
    process::{
        Child,
        Command, //
    },
    time::{
        Duration,
        Instant, //
    },
};

/// How long a command has to obey a signal before it is killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// The command could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot run `{command}`: {reason}")]
pub(crate) struct NotStarted {
    command: String,
    reason: std::io::Error,
}

impl NotStarted {
    /// What shells exit with then.
    pub(crate) fn exit_code(&self) -> u8 {
        if self.reason.kind() == ErrorKind::NotFound {
            127
        } else {
            126
        }
    }
}

/// Why [`Workload::wait`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// There is something to read.
    Readable,
    /// It is over.
    Over(End),
}

/// What ended the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The command.
    Exited,
    /// A signal to this process.
    Signalled(Signal),
    /// The time.
    TimeUp,
}

/// A command that runs, tasks that run already, or the time that passes.
#[derive(Debug)]
pub(crate) struct Workload {
    /// A byte comes out of each when its signal comes.
    signals: [(Signal, UnixStream); 2],
    held: Option<(Held, String)>,
    child: Option<(Child, OwnedFd)>,
    /// Others, whose end is waited for.
    tasks: Vec<OwnedFd>,
    begin: Instant,
    duration: Option<Duration>,
    deadline: Option<Instant>,
}

impl Workload {
    /// Has nothing to do yet. From now on SIGINT and SIGTERM end the workload, and not this process.
    pub(crate) fn prepare(duration: Option<Duration>) -> Result<Self> {
        Ok(Workload {
            signals: [
                (Signal::INT, signal_pipe(SIGINT)?),
                (Signal::TERM, signal_pipe(SIGTERM)?),
            ],
            held: None,
            child: None,
            tasks: Vec::new(),
            begin: Instant::now(),
            duration,
            deadline: None,
        })
    }

    /// Makes the process that will be the command, and holds it. Gives its number.
    pub(crate) fn hold(&mut self, program: &OsString, arguments: &[OsString]) -> Result<i32> {
        let mut command = Command::new(program);
        command.args(arguments);
        let held = Held::start(command).context("cannot make a process for the command")?;
        let pid = held.pid();
        self.held = Some((held, program.to_string_lossy().into_owned()));
        Ok(pid)
    }

    /// Is over when all these tasks have ended.
    pub(crate) fn watch(&mut self, tasks: Vec<OwnedFd>) {
        self.tasks = tasks;
    }

    /// Lets the command go, where one is held, and starts the clock.
    pub(crate) fn begin(&mut self) -> Result<()> {
        let held = self.held.take();
        self.begin = Instant::now();
        // What is too long for the clock is for ever.
        self.deadline = (self.duration).and_then(|duration| self.begin.checked_add(duration));
        if let Some((held, command)) = held {
            let child = held
                .release()
                .map_err(|reason| NotStarted { command, reason })?;
            let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())
                .context("cannot watch the command")?;
            self.child = Some((child, pidfd));
        }
        Ok(())
    }

    /// Runs a command, if there is one, from now on.
    pub(crate) fn start(duration: Option<Duration>, command: &[OsString]) -> Result<Self> {
        let mut workload = Self::prepare(duration)?;
        if let [program, arguments @ ..] = command {
            workload.hold(program, arguments)?;
        }
        workload.begin()?;
        Ok(workload)
    }

    /// How long it has been going on.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Sleeps until the workload is over or `input`, where there is one, can be read.
    pub(crate) fn wait(&mut self, input: Option<BorrowedFd<'_>>) -> Result<Wake> {
        loop {
            if let Some(wake) = self.wait_until(input, None)? {
                return Ok(wake);
            }
        }
    }

    /// Sleeps until the workload is over, `input` can be read, or the time has come, which is none.
    pub(crate) fn wait_until(
        &mut self,
        input: Option<BorrowedFd<'_>>,
        time: Option<Instant>,
    ) -> Result<Option<Wake>> {
        loop {
            let now = Instant::now();
            let until = self.deadline.into_iter().chain(time).min();
            let left = until.map(|until| until.saturating_duration_since(now));
            if let Some(wake) = self.look(input, left)? {
                return Ok(Some(wake));
            }
            if self.deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(Some(Wake::Over(End::TimeUp)));
            }
            if time.is_some_and(|time| time <= now) {
                return Ok(None);
            }
        }
    }

    /// Whether the workload is over by now.
    pub(crate) fn over(&mut self) -> Result<Option<End>> {
        match self.look(None, Some(Duration::ZERO))? {
            Some(Wake::Over(end)) => Ok(Some(end)),
            _ => Ok(self
                .deadline
                .filter(|deadline| *deadline <= Instant::now())
                .map(|_| End::TimeUp)),
        }
    }

    /// Sleeps until something happens, for as long as `timeout` says, and tells the most important
    /// thing that did.
    fn look(
        &mut self,
        input: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
    ) -> Result<Option<Wake>> {
        let mut fds = Vec::with_capacity(4);
        let mut meanings = Vec::with_capacity(4);
        let mut watch = |fd, meaning| {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            meanings.push(meaning);
        };
        for (signal, pipe) in &self.signals {
            watch(pipe.as_fd(), Wake::Over(End::Signalled(*signal)));
        }
        if let Some((_, pidfd)) = &self.child {
            watch(pidfd.as_fd(), Wake::Over(End::Exited));
        }
        // One after the other: it is over when the last has ended.
        if let Some(pidfd) = self.tasks.last() {
            watch(pidfd.as_fd(), Wake::Over(End::Exited));
        }
        if let Some(input) = input {
            watch(input, Wake::Readable);
        }
        // What is too long for the kernel is for ever.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(None),
            Err(errno) => return Err(errno).context("cannot wait"),
        }
        let Some(index) = fds.iter().position(|fd| !fd.revents().is_empty()) else {
            return Ok(None);
        };
        if !fds[index].revents().contains(PollFlags::IN) {
            return Err(anyhow!(
                "cannot wait: the kernel reports {:?}",
                fds[index].revents()
            ));
        }
        let wake = meanings[index];
        let gone = wake == Wake::Over(End::Exited) && self.child.is_none();
        drop(fds);
        if gone {
            self.tasks.pop();
            if !self.tasks.is_empty() {
                return Ok(None);
            }
        }
        Ok(Some(wake))
    }

    /// Ends the command where it still runs, and gives the status to exit with: the command's own, or
    /// success where it was only stopped because the time was up.
    pub(crate) fn finish(&mut self, end: End) -> Result<u8> {
        let Some((mut child, pidfd)) = self.child.take() else {
            return Ok(0);
        };
        match end {
            End::Exited => {}
            End::Signalled(signal) => stop(&pidfd, signal)?,
            End::TimeUp => stop(&pidfd, Signal::TERM)?,
        }
        let status = child.wait().context("cannot wait for the command")?;
        if end == End::TimeUp {
            return Ok(0);
        }
        let code = match (status.code(), status.signal()) {
            (Some(code), _) => code,
            // As shells do.
            (None, Some(signal)) => 128 + signal,
            (None, None) => 1,
        };
        Ok(code as u8)
    }
}

/// Sends `signal` to a process, and kills it where it does not end soon.
fn stop(pidfd: &OwnedFd, signal: Signal) -> Result<()> {
    send(pidfd, signal)?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(pidfd, PollFlags::IN)], timeout.as_ref()) {
            Ok(0) => break,
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno).context("cannot wait for the command"),
        }
    }
    output::message(&format!(
        "the command still runs {} s after it was told to stop: killing it",
        PATIENCE.as_secs()
    ));
    send(pidfd, Signal::KILL)
}

fn send(pidfd: &OwnedFd, signal: Signal) -> Result<()> {
    match pidfd_send_signal(pidfd, signal) {
        // It has ended by itself meanwhile.
        Err(Errno::SRCH) => Ok(()),
        result => result.context("cannot stop the command"),
    }
}

/// Makes a signal come out of a socket.
fn signal_pipe(signal: i32) -> Result<UnixStream> {
    let error = "cannot catch signals";
    let (read, write) = UnixStream::pair().context(error)?;
    pipe::register(signal, write).context(error)?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A signal reaches every workload of this process, so there is one at a time.
    static ONE: Mutex<()> = Mutex::new(());

    fn start(command: &[&str], duration: Option<Duration>) -> Result<Workload> {
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        Workload::start(duration, &command)
    }

    fn ending(command: &[&str], duration: Option<Duration>) -> (End, u8) {
        let mut workload = start(command, duration).unwrap();
        match workload.wait(None).unwrap() {
            Wake::Over(end) => (end, workload.finish(end).unwrap()),
            Wake::Readable => panic!("there is nothing to read"),
        }
    }

    const SHORT: Option<Duration> = Some(Duration::from_millis(50));

    #[test]
    fn the_status_of_the_command_is_passed_on() {
        let _one = ONE.lock();
        assert_eq!(ending(&["true"], None), (End::Exited, 0));
        assert_eq!(ending(&["sh", "-c", "exit 7"], None), (End::Exited, 7));
        let killed = ending(&["sh", "-c", "kill -KILL $$"], None);
        assert_eq!(killed, (End::Exited, 137));
    }

    #[test]
    fn a_command_that_cannot_be_started_is_told_from_one_that_fails() {
        let _one = ONE.lock();
        for (command, code) in [("/nonexistent/command", 127), ("/dev/null", 126)] {
            let error = start(&[command], None).unwrap_err();
            let not_started = error.downcast_ref::<NotStarted>().unwrap();
            assert_eq!(not_started.exit_code(), code);
            assert!(error.to_string().contains(command), "{error}");
        }
    }

    #[test]
    fn time_ends_the_command_as_well() {
        let _one = ONE.lock();
        assert_eq!(ending(&[], SHORT), (End::TimeUp, 0));
        let begin = Instant::now();
        assert_eq!(ending(&["sleep", "60"], SHORT), (End::TimeUp, 0));
        assert!(begin.elapsed() < Duration::from_secs(30));
        let mut workload = start(&[], SHORT).unwrap();
        assert_eq!(workload.over().unwrap(), None);
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(workload.over().unwrap(), Some(End::TimeUp));
    }

    #[test]
    fn a_command_that_does_not_obey_is_killed() {
        let _one = ONE.lock();
        let stubborn = "trap '' TERM; while :; do sleep 1; done";
        let duration = Some(Duration::from_millis(500));
        assert_eq!(ending(&["sh", "-c", stubborn], duration), (End::TimeUp, 0));
    }

    #[test]
    fn a_signal_ends_it_and_reaches_the_command() {
        let _one = ONE.lock();
        for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
            let mut workload = start(&["sleep", "60"], None).unwrap();
            assert_eq!(workload.over().unwrap(), None);
            rustix::process::kill_process(rustix::process::getpid(), signal).unwrap();
            assert_eq!(
                workload.wait(None).unwrap(),
                Wake::Over(End::Signalled(signal))
            );
            assert_eq!(workload.finish(End::Signalled(signal)).unwrap(), code);
        }
    }

    #[test]
    fn input_wakes_and_the_end_comes_first() {
        let _one = ONE.lock();
        let (read, mut write) = UnixStream::pair().unwrap();
        let mut workload = start(&["sleep", "60"], None).unwrap();
        std::io::Write::write_all(&mut write, b"x").unwrap();
        assert_eq!(workload.wait(Some(read.as_fd())).unwrap(), Wake::Readable);
        rustix::process::kill_process(rustix::process::getpid(), Signal::TERM).unwrap();
        let end = End::Signalled(Signal::TERM);
        // Another thread may take the signal, a little later.
        while workload.over().unwrap().is_none() {}
        assert_eq!(workload.wait(Some(read.as_fd())).unwrap(), Wake::Over(end));
        workload.finish(end).unwrap();
    }
}
