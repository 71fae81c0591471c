// SPDX-License-Identifier: GPL-2.0

//! What a capture comes to: tasks, samples, and what each CPU wrote and lost.
//!
//! It is made page by page, in memory that grows with the number of tasks and of places in the kernel
//! that were hit, and not with the length of the capture.

use libweir::{
    record::comm_text,
    uapi,
    Continuity,
    Error,
    Page,
    Record, //
};
use std::collections::{
    BTreeMap,
    HashMap, //
};

/// A task that the capture tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// Unknown where only the name was in the capture.
    pub(crate) ppid: Option<u32>,
    pub(crate) comm: Option<String>,
    /// Start in ns of the channel's clock.
    pub(crate) start: Option<u64>,
}

/// Where a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Code {
    /// In the kernel, at this address.
    Kernel(u64),
    /// In user space.
    User,
    /// Elsewhere: in a hypervisor or a guest.
    Other,
}

/// What samples are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) counter: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) code: Code,
}

/// What one CPU wrote and lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpu {
    pub(crate) pages: u64,
    /// Of these, handed over before they were full.
    pub(crate) partial: u64,
    pub(crate) records: u64,
    /// Bytes of the pages.
    pub(crate) bytes: u64,
    /// Of these, bytes of records and headers.
    pub(crate) used: u64,
    /// Lost records, by cause.
    pub(crate) lost: [u64; uapi::LOST_CAUSES],
    /// Times of the first and the last of them in ns.
    pub(crate) lost_range: Option<(u64, u64)>,
}

impl Cpu {
    /// Lost records, for all causes.
    pub(crate) fn lost_records(&self) -> u64 {
        self.lost.iter().sum()
    }
}

/// The whole of a capture so far.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    continuity: Continuity,
    tasks: Vec<Task>,
    /// The latest task of a number.
    by_tid: HashMap<u32, usize>,
    samples: HashMap<Key, u64>,
    cpus: BTreeMap<u32, Cpu>,
    /// Times of the first and the last page in ns.
    range: Option<(u64, u64)>,
}

impl Summary {
    /// Takes in the next page of the capture.
    ///
    /// # Errors
    ///
    /// What does not hold together in it, or between it and those before.
    pub(crate) fn add(&mut self, page: &Page<'_>) -> Result<(), Error> {
        let records = page.verify()?;
        let lost = self.continuity.follow(page)?;
        for record in page.records() {
            self.add_record(&record?);
        }
        let header = page.header();
        let cpu = self.cpus.entry(header.cpu_id).or_default();
        cpu.pages += 1;
        cpu.partial += u64::from(page.is_partial());
        cpu.records += records;
        cpu.bytes += page.bytes().len() as u64;
        cpu.used += header.content_size / 8;
        for (sum, lost) in cpu.lost.iter_mut().zip(lost) {
            *sum += lost;
        }
        if header.lost_begin != 0 {
            cpu.lost_range = Some(widen(cpu.lost_range, header.lost_begin, header.lost_end));
        }
        self.range = Some(widen(
            self.range,
            header.timestamp_begin,
            header.timestamp_end,
        ));
        Ok(())
    }

    fn add_record(&mut self, record: &Record<'_>) {
        match record {
            Record::Sample(sample) => {
                let code = match sample.header.misc & uapi::MISC_CPUMODE_MASK {
                    uapi::MISC_KERNEL => Code::Kernel(sample.ip),
                    uapi::MISC_USER => Code::User,
                    _ => Code::Other,
                };
                let key = Key {
                    counter: sample.id,
                    pid: sample.pid,
                    tid: sample.tid,
                    code,
                };
                *self.samples.entry(key).or_default() += 1;
            }
            Record::Fork(fork) => {
                // A number may be used again, by a task with another start.
                let known = self.by_tid.get(&fork.tid).map(|at| &mut self.tasks[*at]);
                match known {
                    Some(task) if task.start.is_none_or(|start| start == fork.time) => {
                        task.ppid = Some(fork.ppid);
                        task.start = Some(fork.time);
                    }
                    _ => self.push_task(Task {
                        pid: fork.pid,
                        tid: fork.tid,
                        ppid: Some(fork.ppid),
                        comm: None,
                        start: Some(fork.time),
                    }),
                }
            }
            Record::Comm(comm) => {
                let name = comm_text(&comm.comm).into_owned();
                match self.by_tid.get(&comm.tid) {
                    Some(at) => self.tasks[*at].comm = Some(name),
                    None => self.push_task(Task {
                        pid: comm.pid,
                        tid: comm.tid,
                        ppid: None,
                        comm: Some(name),
                        start: None,
                    }),
                }
            }
            _ => {}
        }
    }

    fn push_task(&mut self, task: Task) {
        self.by_tid.insert(task.tid, self.tasks.len());
        self.tasks.push(task);
    }

    /// All tasks, sorted by process and thread.
    pub(crate) fn tasks(&self) -> Vec<&Task> {
        let mut tasks: Vec<&Task> = self.tasks.iter().collect();
        tasks.sort_by_key(|task| (task.pid, task.tid, task.start));
        tasks
    }

    /// The name of a thread, or of its process where only that is known.
    pub(crate) fn comm(&self, pid: u32, tid: u32) -> Option<&str> {
        if tid == 0 {
            // The idle task of each CPU, which is in no list of tasks.
            return Some("swapper");
        }
        let comm = |tid| self.tasks[*self.by_tid.get(&tid)?].comm.as_deref();
        comm(tid).or_else(|| comm(pid))
    }

    /// Numbers of samples.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (Key, u64)> + '_ {
        self.samples.iter().map(|(key, count)| (*key, *count))
    }

    /// What each CPU wrote, sorted.
    pub(crate) fn cpus(&self) -> &BTreeMap<u32, Cpu> {
        &self.cpus
    }

    /// Time of the first and the last page in ns.
    pub(crate) fn range(&self) -> Option<(u64, u64)> {
        self.range
    }
}

fn widen(range: Option<(u64, u64)>, begin: u64, end: u64) -> (u64, u64) {
    match range {
        Some((first, last)) => (first.min(begin), last.max(end)),
        None => (begin, end),
    }
}
