// SPDX-License-Identifier: GPL-2.0

//! A virtual machine as a child process, and the streams that come out of it.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{
    self,
    BufWriter,
    Read,
    Seek, //
};
use std::os::fd::{
    AsFd,
    AsRawFd,
    OwnedFd, //
};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{
    Path,
    PathBuf, //
};
use std::process::{
    self,
    Child,
    Command,
    ExitStatus,
    Stdio, //
};
use std::sync::atomic::{
    AtomicBool,
    Ordering, //
};
use std::sync::Arc;

use anyhow::{
    bail,
    Context,
    Result, //
};
use rustix::fs::{
    memfd_create,
    MemfdFlags, //
};
use rustix::io::{
    fcntl_setfd,
    FdFlags, //
};
use rustix::process::{
    Pid,
    Resource,
    Rlimit,
    Signal, //
};
use tempfile::TempDir;
use weir_vm::initramfs::Initramfs;

/// What to start, and how to hear of it.
pub struct Launch {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What it inherits, under the same numbers.
    pub inherited: Vec<OwnedFd>,
    /// The report.
    pub report: Box<dyn Read + Send>,
    /// The console, where it is not the program's standard output.
    pub console: Option<UnixStream>,
    /// QEMU's monitor.
    pub monitor: Option<UnixStream>,
    /// Set when the machine is gone, for a report that does not end by itself.
    pub gone: Arc<AtomicBool>,
    /// Removed with the machine.
    pub scratch: Option<TempDir>,
}

/// A running machine; dropping it stops it.
pub struct Machine {
    child: Child,
    gone: Arc<AtomicBool>,
    _scratch: Option<TempDir>,
}

/// What comes out of it.
pub struct Streams {
    /// The report.
    pub report: Box<dyn Read + Send>,
    /// The console; `None` where it is the user's terminal.
    pub console: Option<Box<dyn Read + Send>>,
    /// What the program itself says on standard error.
    pub errors: Option<Box<dyn Read + Send>>,
    /// QEMU's monitor.
    pub monitor: Option<UnixStream>,
}

impl Launch {
    /// Starts it. `interactive` gives it the terminal.
    pub fn start(self, interactive: bool) -> Result<(Machine, Streams)> {
        for fd in &self.inherited {
            fcntl_setfd(fd, FdFlags::empty()).context("cannot pass on a descriptor")?;
        }
        let itself = env::current_exe().context("cannot find this program itself")?;
        let mut command = Command::new(itself);
        command
            .arg("tied")
            .arg(process::id().to_string())
            .arg(&self.program)
            .args(&self.arguments)
            // User-mode Linux kills the group that it is in when it panics.
            .process_group(0);
        if !interactive {
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        }
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let stdout = child.stdout.take();
        let errors = child.stderr.take();
        let console = match self.console {
            Some(socket) => Some(Box::new(socket) as Box<dyn Read + Send>),
            None => stdout.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        };
        let machine = Machine {
            child,
            gone: self.gone,
            _scratch: self.scratch,
        };
        let streams = Streams {
            report: self.report,
            console,
            errors: errors.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            monitor: self.monitor,
        };
        Ok((machine, streams))
    }
}

impl Machine {
    /// Its process, which is also the number of its process group.
    pub fn id(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait().context("cannot wait for the VM")?;
        if status.is_some() {
            self.gone.store(true, Ordering::Release);
        }
        Ok(status)
    }

    /// Stops it, if it still runs.
    pub fn stop(&mut self) -> io::Result<()> {
        if self.child.try_wait()?.is_none() {
            self.child.kill()?;
            self.child.wait()?;
        }
        self.gone.store(true, Ordering::Release);
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("weir-vm: cannot stop the VM: {error}");
        }
    }
}

/// Becomes the program, and dies with `parent`.
///
/// A child that is to die with its parent must ask for that itself, between the fork and the exec;
/// in a program of its own that takes no unsafe code.
pub fn become_tied(parent: u32, argv: &[OsString]) -> Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .context("cannot tie the VM to its parent")?;
    // The parent may have died before that.
    let actual = rustix::process::getppid().map(|id| id.as_raw_nonzero().get());
    if actual != i32::try_from(parent).ok() {
        bail!("the parent is gone");
    }
    // User-mode Linux aborts when it panics; nobody wants its memory.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, none).context("cannot forbid core files")?;
    let (program, arguments) = argv.split_first().context("there is no program")?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot run {}", Path::new(program).display()))
}

/// Writes the initramfs to a file without a name, which is gone with whoever has it open.
pub fn initramfs_file(initramfs: &Initramfs) -> Result<OwnedFd> {
    let fd =
        memfd_create("initramfs", MemfdFlags::CLOEXEC).context("cannot make a file in memory")?;
    let mut file = File::from(fd);
    initramfs
        .write(BufWriter::new(&mut file))
        .context("cannot write the initramfs")?;
    file.rewind().context("cannot rewind the initramfs")?;
    Ok(file.into())
}

/// The path under which whoever inherits the descriptor can open it.
pub fn inherited_path(fd: impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}
