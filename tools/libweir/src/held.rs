// SPDX-License-Identifier: GPL-2.0

//! A command that waits before it begins, so that counters can be opened in it first.

use rustix::{
    fd::OwnedFd,
    io::Errno,
    pipe::{
        pipe_with,
        PipeFlags, //
    },
    process::{
        getpid,
        getppid,
        set_parent_process_death_signal,
        Pid,
        Signal, //
    },
};
use std::{
    io,
    os::unix::process::CommandExt,
    process::{
        Child,
        Command, //
    },
    thread::{
        self,
        JoinHandle, //
    },
};

/// What tells the process to go on; anything else tells it to end.
const GO: u8 = 1;

/// A process that was forked, and has not become what it shall be yet. Dropping it ends it.
///
/// A counter that is enabled by the next `exec()` ([`crate::Attr::enable_on_exec`]) counts the command from its first
/// instruction on, and nothing before.
#[derive(Debug)]
pub struct Held {
    pid: i32,
    go: OwnedFd,
    /// Comes back when the command runs, or cannot; gone once it was waited for.
    spawning: Option<JoinHandle<io::Result<Child>>>,
}

impl Held {
    /// Forks, and holds the child before it becomes `command`.
    ///
    /// # Errors
    ///
    /// Those of `pipe2()` and `fork()`.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (said, say) = pipe_with(PipeFlags::CLOEXEC)?;
        let (told, go) = pipe_with(PipeFlags::CLOEXEC)?;
        let parent = getpid();
        // SAFETY: `hold` makes system calls only: it takes no lock and no memory, so it may run in the child of
        // a process with other threads.
        unsafe { command.pre_exec(move || hold(parent, &say, &told)) };
        // It waits until the child runs the command. Another one must tell the child to.
        let spawning = thread::spawn(move || command.spawn());
        let mut pid = [0; 4];
        match read(&said, &mut pid) {
            Ok(4) => Ok(Held {
                pid: i32::from_ne_bytes(pid),
                go,
                spawning: Some(spawning),
            }),
            // The thread has let go of the pipe: there was no child, or it is gone.
            Ok(_) => match join(spawning) {
                Ok(mut child) => {
                    child.wait()?;
                    Err(io::Error::other("it ended before it began"))
                }
                Err(error) => Err(error),
            },
            Err(errno) => Err(errno.into()),
        }
    }

    /// Its number, which the command will have.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets it become the command.
    ///
    /// # Errors
    ///
    /// Those of `exec()`.
    pub fn release(mut self) -> io::Result<Child> {
        self.end(GO)
    }

    fn end(&mut self, tell: u8) -> io::Result<Child> {
        // It fails where nobody is there any more who could read it; the status of the child tells then.
        let _ = rustix::io::retry_on_intr(|| rustix::io::write(&self.go, &[tell]));
        let spawning = self.spawning.take();
        let spawning = spawning.ok_or_else(|| io::Error::other("it was released before"))?;
        join(spawning)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.spawning.is_some() {
            // It is told to end, and fails for that.
            if let Ok(mut child) = self.end(0) {
                // It was killed instead.
                let _ = child.wait();
            }
        }
    }
}

/// In the child: says that it is there, and waits. It ends with the thread that forked it.
fn hold(parent: Pid, say: &OwnedFd, told: &OwnedFd) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(parent) {
        return Err(Errno::CANCELED.into());
    }
    rustix::io::write(say, &getpid().as_raw_nonzero().get().to_ne_bytes())?;
    let mut word = [0];
    if read(told, &mut word)? != 1 || word[0] != GO {
        return Err(Errno::CANCELED.into());
    }
    // The command shall outlive whom it likes.
    set_parent_process_death_signal(None)?;
    Ok(())
}

fn read(pipe: &OwnedFd, bytes: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::retry_on_intr(|| rustix::io::read(pipe, &mut *bytes))
}

fn join(spawning: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    spawning
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the thread that starts it has panicked")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        path::Path,
        process::Stdio, //
    };

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn it_waits_and_then_is_the_command() {
        let folder = tempfile::tempdir().unwrap();
        let begun = folder.path().join("begun");
        let mut command = sh(&format!("echo $$ >{}; exit 7", begun.display()));
        command.stdin(Stdio::null());
        let held = Held::start(command).unwrap();
        let pid = held.pid();
        assert!(Path::new(&format!("/proc/{pid}/task/{pid}")).exists());
        assert!(!begun.exists());
        let mut child = held.release().unwrap();
        assert_eq!(child.id(), pid as u32);
        assert_eq!(child.wait().unwrap().code(), Some(7));
        assert_eq!(fs::read_to_string(begun).unwrap(), format!("{pid}\n"));
    }

    #[test]
    fn what_cannot_be_run_says_why_when_it_is_released() {
        for (program, kind) in [
            ("/nonexistent/command", io::ErrorKind::NotFound),
            ("/dev/null", io::ErrorKind::PermissionDenied),
        ] {
            let held = Held::start(Command::new(program)).unwrap();
            assert_eq!(held.release().unwrap_err().kind(), kind);
        }
    }

    #[test]
    fn one_that_is_dropped_never_begins() {
        let folder = tempfile::tempdir().unwrap();
        let begun = folder.path().join("begun");
        let held = Held::start(sh(&format!("touch {}", begun.display()))).unwrap();
        let pid = held.pid();
        drop(held);
        assert!(!begun.exists());
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn one_that_is_killed_is_gone() {
        let held = Held::start(sh("exit 0")).unwrap();
        let pid = Pid::from_raw(held.pid()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
        // Its end cannot be told from its beginning, but by how it ended.
        let status = held.release().unwrap().wait().unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(9)
        );
    }
}
