// SPDX-License-Identifier: GPL-2.0

//! The truth about tasks, as `/proc` tells it.

use crate::session::nanoseconds;
use anyhow::{
    Context,
    Result, //
};
use libweir::{
    uapi::COMM_LEN,
    Errno, //
};
use nix::time::ClockId;
use std::{
    collections::BTreeMap,
    fmt,
    fs,
    io,
    ops::RangeInclusive,
    path::Path, //
};

/// A thread.
#[derive(Clone, PartialEq, Eq)]
pub struct Task {
    /// Its process.
    pub pid: u32,
    /// Itself.
    pub tid: u32,
    /// The process of its parent.
    pub ppid: u32,
    /// Its name, without what follows a worker's.
    pub comm: Vec<u8>,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Task {
            pid,
            tid,
            ppid,
            comm,
            start,
        } = self;
        let comm = String::from_utf8_lossy(comm);
        write!(
            f,
            "task {tid} `{comm}` of process {pid}, child of {ppid}, started in tick {start}"
        )
    }
}

/// All threads that exist, by `tid`.
///
/// # Errors
///
/// `/proc` cannot be read, or is not as it is known.
pub fn all() -> Result<BTreeMap<u32, Task>> {
    let mut tasks = BTreeMap::new();
    for pid in numbers(Path::new("/proc"))? {
        let threads = Path::new("/proc").join(pid.to_string()).join("task");
        for tid in numbers(&threads)? {
            let path = threads.join(tid.to_string()).join("stat");
            if let Some(stat) = present(fs::read(&path), &path)? {
                let task = parse_stat(pid, &stat).with_context(|| {
                    format!("{} is not as it is known: {stat:?}", path.display())
                })?;
                tasks.insert(tid, task);
            }
        }
    }
    Ok(tasks)
}

/// The names in a folder that are numbers; none where it has gone.
fn numbers(path: &Path) -> Result<Vec<u32>> {
    let Some(entries) = present(fs::read_dir(path), path)? else {
        return Ok(Vec::new());
    };
    let mut numbers = Vec::new();
    for entry in entries {
        match present(entry, path)? {
            Some(entry) => numbers.extend(
                entry
                    .file_name()
                    .to_str()
                    .and_then(|name| name.parse::<u32>().ok()),
            ),
            None => break,
        }
    }
    Ok(numbers)
}

/// Makes nothing of the errors that a task gives that has just ended.
fn present<T>(result: io::Result<T>, path: &Path) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::SRCH) => Ok(None),
            _ => Err(error).with_context(|| format!("reading {}", path.display())),
        },
    }
}

/// Parses `/proc/PID/task/TID/stat`. A name may hold spaces and parentheses, so its end is looked for from
/// behind.
fn parse_stat(pid: u32, stat: &[u8]) -> Option<Task> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let tid = std::str::from_utf8(&stat[..open])
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let mut fields = std::str::from_utf8(&stat[close + 1..])
        .ok()?
        .split_ascii_whitespace();
    // The third field is the first here.
    let ppid = fields.nth(4 - 3)?.parse().ok()?;
    let start = fields.nth(22 - 5)?.parse().ok()?;
    Some(Task {
        pid,
        tid,
        ppid,
        comm: stat[open + 1..close].to_vec(),
        start,
    })
}

/// How long the kernel may be interrupted when it notes the start of a task, ns.
const INTERRUPTED: u64 = 200_000_000;

impl Task {
    /// Whether `comm` is this task's name as the kernel keeps it. `/proc` shows the names of kernel threads
    /// beyond the 15 bytes that are kept, and of a worker what it works on, behind its name.
    pub fn is_named(&self, comm: &[u8]) -> bool {
        let more = comm.len() == COMM_LEN - 1 || comm.starts_with(b"kworker/");
        self.comm == comm || (more && self.comm.starts_with(comm))
    }

    /// Whether it started at `time`, in ns of `CLOCK_MONOTONIC`, as far as clock ticks tell.
    pub fn has_started_at(&self, time: u64) -> bool {
        self.start_ticks_at(time, suspended()).contains(&self.start)
    }

    /// The tick in which a task that started at `time` did so. `/proc` counts from boot, with the time
    /// that the machine was suspended, `suspended` ns until now; the task may have started before that.
    /// The kernel reads the two clocks one after the other, and may be interrupted in between.
    fn start_ticks_at(&self, time: u64, suspended: u64) -> RangeInclusive<u64> {
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        time / tick..=(time + suspended + INTERRUPTED) / tick
    }
}

/// How long the machine has been suspended since it booted, ns.
fn suspended() -> u64 {
    let monotonic = nanoseconds(ClockId::CLOCK_MONOTONIC);
    let boot = nanoseconds(ClockId::CLOCK_BOOTTIME);
    // Up to a millisecond is the time between the two calls.
    boot.saturating_sub(monotonic).saturating_sub(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &[u8] =
        b"77 (a) R (b) S 12 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0 1\n";

    #[test]
    fn a_name_may_look_like_other_fields() {
        let task = parse_stat(70, STAT).unwrap();
        assert_eq!(
            task,
            Task {
                pid: 70,
                tid: 77,
                ppid: 12,
                comm: b"a) R (b".to_vec(),
                start: 12345
            }
        );
        assert_eq!(parse_stat(70, &STAT[..40]), None);
    }

    #[test]
    fn this_task_is_found_with_its_name() {
        let tid = crate::child::tid();
        let tasks = all().unwrap();
        let task = &tasks[&tid];
        assert_eq!(task.pid, std::process::id());
        let comm = fs::read("/proc/thread-self/comm").unwrap();
        assert!(task.is_named(comm.strip_suffix(b"\n").unwrap()));
        assert!(tasks.values().filter(|task| task.tid == task.pid).count() <= tasks.len());
    }

    #[test]
    fn only_kernel_threads_have_more_behind_their_names() {
        let mut task = parse_stat(70, STAT).unwrap();
        assert!(!task.is_named(b"a) R ("));
        task.comm = b"kworker/0:1-events".to_vec();
        assert!(task.is_named(b"kworker/0:1"));
        assert!(!task.is_named(b"kworker/1:1"));
        assert!(!task.is_named(b""));
        task.comm = b"rcu_tasks_trace_kthread".to_vec();
        assert!(task.is_named(b"rcu_tasks_trace"));
        assert!(!task.is_named(b"rcu_tasks_trac"));
    }

    #[test]
    fn start_times_are_compared_in_ticks() {
        let task = parse_stat(70, STAT).unwrap();
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        let range = |time, suspended| task.start_ticks_at(time, suspended);
        let late = INTERRUPTED / tick;
        assert_eq!(range(12345 * tick, 0), 12345..=12345 + late);
        assert_eq!(range(12346 * tick - 1, 0), 12345..=12345 + late);
        assert_eq!(range(12000 * tick, 400 * tick), 12000..=12400 + late);
    }
}
