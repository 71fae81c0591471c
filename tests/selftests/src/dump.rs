// SPDX-License-Identifier: GPL-2.0

//! One dump of tasks, call by call, and what it must agree with.

use crate::{
    child::tid,
    session::Session,
    tasks::Task, //
};
use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use libweir::{
    uapi::{
        Comm,
        Cursor,
        Fork,
        InjectReq,
        COLLECTION_TASK,
        STOP_END,
        STOP_FULL,
        STOP_INTERRUPTED,
        STOP_LEN, //
    },
    Record, //
};
use std::collections::BTreeMap;

/// A task as a dump gives it.
#[derive(Clone, Copy, Debug)]
pub struct Dumped {
    /// When it started and whose it is.
    pub fork: Fork,
    /// What it is called.
    pub comm: Comm,
}

/// The calls of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// All of them.
    pub total: u64,
    /// Those that stopped because the channel was full.
    pub full: u64,
    /// Those that stopped because of a signal.
    pub interrupted: u64,
}

/// Puts together the records of a dump.
#[derive(Debug, Default)]
pub struct Collector {
    forks: BTreeMap<u32, Fork>,
    tasks: Vec<Dumped>,
}

impl Collector {
    /// Takes a record of a page of `cpu`.
    ///
    /// # Errors
    ///
    /// It is none of a dump, or a name without the task in front of it.
    pub fn record(&mut self, cpu: u32, record: &Record<'_>) -> Result<()> {
        match record {
            Record::Fork(fork) => {
                if let Some(other) = self.forks.insert(cpu, *fork) {
                    bail!("{other:?} has no name");
                }
            }
            Record::Comm(comm) => match self.forks.remove(&cpu) {
                Some(fork) if (fork.pid, fork.tid) == (comm.pid, comm.tid) => {
                    self.tasks.push(Dumped { fork, comm: *comm });
                }
                other => bail!("{comm:?} follows {other:?}"),
            },
            _ => bail!("{record:?} in a dump of tasks"),
        }
        Ok(())
    }

    /// The tasks, once all pages were read.
    ///
    /// # Errors
    ///
    /// A task has no name.
    pub fn finish(self) -> Result<Vec<Dumped>> {
        match self.forks.first_key_value() {
            Some((_, fork)) => bail!("{fork:?} has no name"),
            None => Ok(self.tasks),
        }
    }
}

/// A request for tasks.
pub fn request(start: Cursor, len: u64, flags: u32) -> InjectReq {
    InjectReq {
        size: size_of::<InjectReq>() as u32,
        collection: COLLECTION_TASK,
        flags,
        start,
        len,
        ..Default::default()
    }
}

/// Dumps all tasks in calls of at most `len` objects, and reads whenever the channel is full and at the
/// end. Every call's answer is checked.
///
/// # Errors
///
/// A call fails or says what cannot be, or what came out is not what the calls say.
pub fn dump(session: &mut Session, len: u64, flags: u32) -> Result<(Vec<Dumped>, Calls)> {
    let mut collector = Collector::default();
    let mut calls = Calls::default();
    let mut written = 0;
    let mut start = Cursor::default();
    let mut stuck = 0;
    loop {
        let mut call = request(start, len, flags);
        session.channel().inject(&mut call)?;
        calls.total += 1;
        written += call.read;
        ensure!(
            len == 0 || call.read <= len,
            "more than {len} objects: {call:?}"
        );
        ensure!(call.skipped == 0, "objects were left out: {call:?}");
        match call.stop {
            STOP_END => break,
            STOP_LEN => {
                ensure!(len != 0 && call.read == len, "not {len} objects: {call:?}");
                ensure!(call.next != start, "the cursor stands still: {call:?}");
            }
            STOP_FULL => {
                calls.full += 1;
                stuck = if call.read == 0 { stuck + 1 } else { 0 };
                ensure!(
                    stuck < 100,
                    "nothing fits in spite of all being read: {call:?}"
                );
                session.flush(|cpu, record| collector.record(cpu, record))?;
            }
            STOP_INTERRUPTED => calls.interrupted += 1,
            _ => bail!("an injection stopped with {call:?}"),
        }
        start = call.next;
    }
    session.flush(|cpu, record| collector.record(cpu, record))?;
    let tasks = collector.finish()?;
    ensure!(
        tasks.len() as u64 == written,
        "{} tasks came out, but the calls wrote {written}",
        tasks.len()
    );
    Ok((tasks, calls))
}

/// Checks a dump against what `/proc` said before it and after it: a task that is in both is in it
/// exactly once, as it is; none is in it twice.
///
/// # Errors
///
/// What does not agree.
pub fn compare(
    tasks: &[Dumped],
    before: &BTreeMap<u32, Task>,
    after: &BTreeMap<u32, Task>,
) -> Result<()> {
    let mut dumped = BTreeMap::new();
    for task in tasks {
        // The number of a task that has ended may be another's later; the time tells them apart.
        let key = (task.fork.tid, task.fork.time);
        ensure!(dumped.insert(key, task).is_none(), "{task:?} came twice");
        check_writer(task)?;
    }
    for (tid, task) in before {
        let Some(later) = after.get(tid).filter(|later| later.start == task.start) else {
            continue;
        };
        let found: Vec<_> = dumped
            .range((*tid, 0)..=(*tid, u64::MAX))
            .map(|(_, found)| *found)
            .filter(|found| task.has_started_at(found.fork.time))
            .collect();
        let [found] = found[..] else {
            bail!(
                "{task:?} lived throughout and came {} times: {found:?}",
                found.len()
            );
        };
        check_task(found, task, later).with_context(|| format!("{found:?}"))?;
    }
    Ok(())
}

fn check_task(found: &Dumped, before: &Task, after: &Task) -> Result<()> {
    let fork = &found.fork;
    ensure!(
        fork.pid == before.pid,
        "it is in process {}: {before:?}",
        before.pid
    );
    ensure!(
        fork.ppid == before.ppid || fork.ppid == after.ppid,
        "its parent is {}, later {}",
        before.ppid,
        after.ppid
    );
    let end = found.comm.comm.iter().position(|byte| *byte == 0);
    let comm = &found.comm.comm[..end.unwrap_or(found.comm.comm.len())];
    ensure!(
        before.is_named(comm) || after.is_named(comm),
        "its name is `{}`, later `{}`",
        String::from_utf8_lossy(&before.comm),
        String::from_utf8_lossy(&after.comm)
    );
    Ok(())
}

/// A dump is written by whoever makes the call.
fn check_writer(task: &Dumped) -> Result<()> {
    let me = (std::process::id(), tid());
    for id in [&task.fork.sample_id, &task.comm.sample_id] {
        ensure!(
            (id.pid, id.tid) == me,
            "not written by {me:?}, but by {id:?}"
        );
        ensure!(
            task.fork.time <= id.time,
            "it was written before it started: {task:?}"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use libweir::uapi::SampleId;

    fn task(tid: u32, start: u64) -> Task {
        Task {
            pid: 1,
            tid,
            ppid: 0,
            comm: b"init".to_vec(),
            start,
        }
    }

    fn dumped(tid_: u32, start: u64) -> Dumped {
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        let sample_id = SampleId {
            pid: std::process::id(),
            tid: tid(),
            time: u64::MAX,
            ..Default::default()
        };
        let mut comm = [0; 16];
        comm[..4].copy_from_slice(b"init");
        Dumped {
            fork: Fork {
                pid: 1,
                tid: tid_,
                time: start * tick + 5,
                sample_id,
                ..Default::default()
            },
            comm: Comm {
                pid: 1,
                tid: tid_,
                comm,
                sample_id,
                ..Default::default()
            },
        }
    }

    fn map(tasks: &[Task]) -> BTreeMap<u32, Task> {
        tasks.iter().map(|task| (task.tid, task.clone())).collect()
    }

    #[test]
    fn tasks_that_live_throughout_are_there_once() {
        let truth = map(&[task(1, 10), task(2, 20)]);
        let whole = [dumped(1, 10), dumped(2, 20)];
        compare(&whole, &truth, &truth).unwrap();
        // What came and went meanwhile may be there or not.
        compare(&whole, &map(&[task(1, 10)]), &truth).unwrap();
        compare(&whole[..1], &map(&[task(1, 10)]), &truth).unwrap();
        // The number was another's before.
        compare(
            &[dumped(1, 10), dumped(1, 30)],
            &map(&[task(1, 10)]),
            &map(&[task(1, 30)]),
        )
        .unwrap();
    }

    #[test]
    fn tasks_missed_or_repeated_are_found() {
        let truth = map(&[task(1, 10), task(2, 20)]);
        assert!(compare(&[dumped(1, 10)], &truth, &truth).is_err());
        assert!(compare(
            &[dumped(1, 10), dumped(2, 20), dumped(2, 20)],
            &truth,
            &truth
        )
        .is_err());
        assert!(compare(&[dumped(1, 10), dumped(2, 21)], &truth, &truth).is_err());
    }

    #[test]
    fn wrong_facts_are_found() {
        let truth = map(&[task(1, 10)]);
        let wrong: [fn(&mut Dumped); 6] = [
            |task| task.fork.pid = 9,
            |task| task.fork.ppid = 9,
            |task| task.comm.comm[0] = b'x',
            |task| task.comm.comm[4] = b'x',
            |task| task.fork.sample_id.pid ^= 1,
            |task| task.comm.sample_id.time = 0,
        ];
        for (number, change) in wrong.into_iter().enumerate() {
            let mut task = dumped(1, 10);
            change(&mut task);
            assert!(compare(&[task], &truth, &truth).is_err(), "change {number}");
        }
    }

    #[test]
    fn a_name_belongs_to_the_task_in_front_of_it() {
        let (one, two) = (dumped(1, 10), dumped(2, 20));
        let feed = |records: &[(u32, Record<'_>)]| {
            let mut collector = Collector::default();
            for (cpu, record) in records {
                collector.record(*cpu, record)?;
            }
            collector.finish().map(|tasks| tasks.len())
        };
        let fork = |task: &Dumped| Record::Fork(task.fork);
        let comm = |task: &Dumped| Record::Comm(task.comm);
        // Whoever makes the call may change its CPU between two tasks.
        let right = [
            (0, fork(&one)),
            (1, fork(&two)),
            (0, comm(&one)),
            (1, comm(&two)),
        ];
        assert_eq!(feed(&right).unwrap(), 2);
        assert!(feed(&[(0, fork(&one))]).is_err());
        assert!(feed(&[(0, comm(&one))]).is_err());
        assert!(feed(&[(0, fork(&one)), (0, comm(&two))]).is_err());
        assert!(feed(&[(0, fork(&one)), (0, fork(&two))]).is_err());
    }
}
