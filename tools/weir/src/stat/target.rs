// SPDX-License-Identifier: GPL-2.0

//! Whose events are counted.

use crate::cli::StatArgs;
use anyhow::{
    bail,
    Context,
    Result, //
};
use rustix::{
    fd::OwnedFd,
    io::Errno,
    process::{
        pidfd_open,
        Pid,
        PidfdFlags, //
    },
};
use std::{
    fs,
    io::ErrorKind,
    path::Path, //
};

/// `PIDFD_THREAD` of linux/pidfd.h, which is `O_EXCL`.
const PIDFD_THREAD: u32 = 0o200;

/// Where it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// In the command and its children.
    Command,
    /// On every CPU.
    All,
    /// On these CPUs.
    Cpus(Vec<u32>),
    /// In these threads and their children.
    Tasks(Vec<i32>),
}

impl Target {
    /// Whether it is what tasks do, and not CPUs.
    pub(crate) fn is_tasks(&self) -> bool {
        matches!(self, Target::Command | Target::Tasks(_))
    }
}

/// What the user wants to be watched.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) target: Target,
    /// What it is, for a person.
    pub(crate) what: String,
    /// Whether each CPU is told of.
    pub(crate) per_cpu: bool,
    /// Each says when a task that was there before has ended.
    pub(crate) ends: Vec<OwnedFd>,
}

impl Watched {
    /// Finds it out from what was asked for.
    pub(crate) fn new(args: &StatArgs) -> Result<Self> {
        let list = |numbers: &[u32]| {
            let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
            texts.join(", ")
        };
        if !args.pids.is_empty() {
            let mut tasks = Vec::new();
            let mut ends = Vec::new();
            for pid in &args.pids {
                ends.push(end(*pid, PidfdFlags::empty(), "process")?);
                tasks.extend(threads(Path::new("/proc"), *pid)?);
            }
            return Ok(Watched {
                target: Target::Tasks(tasks),
                what: format!("process {}", list(&args.pids)),
                per_cpu: false,
                ends,
            });
        }
        if !args.tids.is_empty() {
            let flags = PidfdFlags::from_bits_retain(PIDFD_THREAD);
            let ends = args.tids.iter().map(|tid| end(*tid, flags, "thread"));
            return Ok(Watched {
                ends: ends.collect::<Result<_>>()?,
                target: Target::Tasks(args.tids.iter().map(|tid| *tid as i32).collect()),
                what: format!("thread {}", list(&args.tids)),
                per_cpu: false,
            });
        }
        let (target, what) = if let Some(cpus) = &args.cpus {
            let mut cpus = cpus.0.clone();
            cpus.sort_unstable();
            cpus.dedup();
            let online = libweir::cpu::online()?;
            if let Some(cpu) = cpus.iter().find(|cpu| !online.contains(cpu)) {
                bail!(
                    "there is no CPU {cpu}, or it is offline; online are {}",
                    list(&online)
                );
            }
            let what = format!("CPU {}", list(&cpus));
            (Target::Cpus(cpus), what)
        } else if args.all_cpus || args.command.is_empty() {
            (Target::All, "all CPUs".to_owned())
        } else {
            let words: Vec<_> = args
                .command
                .iter()
                .map(|word| word.to_string_lossy())
                .collect();
            (Target::Command, format!("`{}`", words.join(" ")))
        };
        Ok(Watched {
            target,
            what,
            per_cpu: args.per_cpu,
            ends: Vec::new(),
        })
    }
}

/// What says that a task has ended.
fn end(number: u32, flags: PidfdFlags, kind: &str) -> Result<OwnedFd> {
    let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
    let result = pid.map_or(Err(Errno::SRCH), |pid| pidfd_open(pid, flags));
    match result {
        Ok(fd) => Ok(fd),
        Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => {
            bail!("there is no {kind} {number}, or it has ended: see `ps -eLf`")
        }
        Err(errno) => Err(errno).with_context(|| format!("cannot watch {kind} {number}")),
    }
}

/// All threads that a process has now.
fn threads(proc: &Path, pid: u32) -> Result<Vec<i32>> {
    let folder = proc.join(pid.to_string()).join("task");
    let cannot = || {
        format!(
            "cannot list the threads of process {pid}: {}",
            folder.display()
        )
    };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("there is no process {pid}, or it has ended: see `ps -e`")
        }
        Err(error) => return Err(error).with_context(cannot),
    };
    let mut threads = Vec::new();
    for entry in entries {
        let name = entry.with_context(cannot)?.file_name();
        threads.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    threads.sort_unstable();
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_threads() {
        let root = tempfile::tempdir().unwrap();
        for tid in [71, 70, 102] {
            fs::create_dir_all(root.path().join(format!("70/task/{tid}"))).unwrap();
        }
        assert_eq!(threads(root.path(), 70).unwrap(), [70, 71, 102]);
        let error = threads(root.path(), 7).unwrap_err().to_string();
        assert!(error.contains("no process 7"), "{error}");
    }

    #[test]
    fn a_task_that_is_not_there_is_named() {
        for number in [i32::MAX as u32, u32::MAX] {
            let error = end(number, PidfdFlags::empty(), "process").unwrap_err();
            let wanted = format!("no process {number}");
            assert!(error.to_string().contains(&wanted), "{error}");
        }
        end(std::process::id(), PidfdFlags::empty(), "process").unwrap();
    }
}
