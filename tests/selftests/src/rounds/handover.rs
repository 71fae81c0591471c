// SPDX-License-Identifier: GPL-2.0

//! How pages get from a reader that may be killed at any time to who checks them.
//!
//! Both share memory, in which there are a few slots. A reader says that it begins, takes pages out of the
//! channel right into the next slot, and says that it is done. If it is killed in between, what it had is in the
//! slot: every page but the last was surely taken out of the channel, and the last one perhaps, since it may be
//! killed when the page is copied and not yet taken. [`super::books`] finds out about that one.

use super::plan::{
    Ask,
    Way, //
};
use crate::mapping::RawMap;
use anyhow::{
    ensure,
    Context,
    Result, //
};
use rustix::{
    fd::{
        AsFd,
        AsRawFd,
        OwnedFd, //
    },
    fs::{
        MemfdFlags,
        Mode,
        OFlags, //
    },
    io::Errno,
    mm::{
        MapFlags,
        ProtFlags, //
    },
};
use std::{
    sync::atomic::{
        AtomicU64,
        Ordering, //
    },
    time::Duration,
};

const SLOTS: u64 = 4;
/// Bytes before the first slot.
const HEAD: usize = 4096;

/// The words of the head.
#[derive(Clone, Copy)]
enum At {
    Way,
    PageSize,
    Pages,
    Rest,
    Nonblocking,
    Named,
    Pipe,
    /// Calls that readers have begun, and that they are done with.
    Begun,
    Done,
    /// Those that were looked at: the slots of all later ones are in use.
    Taken,
    /// A bit for each [`Ask`] that the reader is to make.
    Asked,
    /// How many of those were made, and how many marks there were not.
    Answered,
    Unmarked,
    /// The last mark that a reader got, and the last after which it found the channel empty.
    Made,
    Emptied,
    /// Bytes that a call gave, for each slot.
    Bytes,
}

/// What readers are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// How to read.
    pub way: Way,
    /// Bytes of a page.
    pub page_size: usize,
    /// Pages to take at a time.
    pub pages: usize,
    /// How long to rest then.
    pub rest: Duration,
    /// Whether to poll, and never to wait otherwise.
    pub nonblocking: bool,
    /// Whether to attach the channel.
    pub named: bool,
    /// The number that the pipe to splice to has in the process that checks.
    pub pipe: i32,
}

/// The shared memory.
#[derive(Debug)]
pub struct Handover {
    map: RawMap,
    fd: OwnedFd,
    task: Task,
}

impl Handover {
    /// Makes it, for who checks.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn new(task: Task) -> Result<Self> {
        let fd = rustix::fs::memfd_create("weir-handover", MemfdFlags::CLOEXEC)?;
        let bytes = HEAD + SLOTS as usize * task.pages * task.page_size;
        rustix::fs::ftruncate(&fd, bytes as u64)?;
        let map = Self::map(&fd, bytes)?;
        let this = Handover { map, fd, task };
        for (at, value) in [
            (At::Way, task.way as u64),
            (At::PageSize, task.page_size as u64),
            (At::Pages, task.pages as u64),
            (At::Rest, task.rest.as_nanos() as u64),
            (At::Nonblocking, u64::from(task.nonblocking)),
            (At::Named, u64::from(task.named)),
            (At::Pipe, task.pipe as u64),
        ] {
            this.word(at).store(value, Ordering::Relaxed);
        }
        Ok(this)
    }

    /// Opens what another process has made, by its path.
    ///
    /// # Errors
    ///
    /// It is not that.
    pub fn open(path: &str) -> Result<Self> {
        let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .with_context(|| format!("opening {path}"))?;
        let bytes = rustix::fs::fstat(&fd)?.st_size as usize;
        ensure!(bytes >= HEAD, "{path} is no memory to share");
        let map = Self::map(&fd, bytes)?;
        let word = |at: At| map.words()[at as usize].load(Ordering::Relaxed);
        let task = Task {
            way: *Way::ALL
                .get(word(At::Way) as usize)
                .context("no way to read")?,
            page_size: word(At::PageSize) as usize,
            pages: word(At::Pages) as usize,
            rest: Duration::from_nanos(word(At::Rest)),
            nonblocking: word(At::Nonblocking) != 0,
            named: word(At::Named) != 0,
            pipe: word(At::Pipe) as i32,
        };
        Ok(Handover { map, fd, task })
    }

    fn map(fd: &OwnedFd, bytes: usize) -> Result<RawMap, Errno> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        RawMap::new(fd, 0, bytes, access, MapFlags::SHARED)
    }

    /// Where other processes find it, as long as this one is there.
    pub fn path(&self) -> String {
        path_of(&self.fd)
    }

    /// What readers are told.
    pub fn task(&self) -> &Task {
        &self.task
    }

    fn word(&self, at: At) -> &AtomicU64 {
        &self.map.words()[at as usize]
    }

    fn bytes_of(&self, call: u64) -> &AtomicU64 {
        &self.map.words()[At::Bytes as usize + (call % SLOTS) as usize]
    }

    fn page_at(&self, call: u64, page: usize) -> usize {
        HEAD + ((call % SLOTS) as usize * self.task.pages + page) * self.task.page_size
    }

    // --- The reader's side -----------------------------------------------------------------------------------

    /// Says that a call begins; not if every slot is in use.
    pub fn begin(&self) -> Option<u64> {
        let call = self.word(At::Done).load(Ordering::Acquire);
        if call - self.word(At::Taken).load(Ordering::Acquire) >= SLOTS {
            return None;
        }
        self.word(At::Begun).store(call + 1, Ordering::Release);
        Some(call)
    }

    /// Reads from `from` into the slot of `call`.
    ///
    /// # Errors
    ///
    /// That of `read()`.
    pub fn read<Fd: AsFd>(&self, call: u64, from: Fd) -> Result<usize, Errno> {
        let len = self.task.pages * self.task.page_size;
        self.map.read_from(from, self.page_at(call, 0), len)
    }

    /// Copies a page into the slot of `call`.
    ///
    /// # Errors
    ///
    /// It has no such place.
    pub fn fill(&self, call: u64, page: usize, bytes: &[u8]) -> Result<()> {
        ensure!(page < self.task.pages && bytes.len() == self.task.page_size);
        Ok(self.map.fill(self.page_at(call, page), bytes)?)
    }

    /// Says that `call` is done, and gave so many bytes.
    pub fn end(&self, call: u64, bytes: usize) {
        self.bytes_of(call).store(bytes as u64, Ordering::Relaxed);
        self.word(At::Done).store(call + 1, Ordering::Release);
    }

    /// What the reader is to ask of the channel. It is not asked again.
    pub fn asked(&self) -> Vec<Ask> {
        let bits = self.word(At::Asked).swap(0, Ordering::AcqRel);
        Ask::ALL
            .into_iter()
            .filter(|ask| bits & 1 << *ask as u64 != 0)
            .collect()
    }

    /// Says that it was asked, and whether there was an answer.
    pub fn answer(&self, answered: bool) {
        let at = if answered { At::Answered } else { At::Unmarked };
        self.word(at).fetch_add(1, Ordering::Relaxed);
    }

    /// Says which mark this reader got, after it had handed over all that it had taken before.
    pub fn made(&self, mark: u64) {
        self.word(At::Made).store(mark, Ordering::Release);
    }

    /// Says that there was nothing more in the channel after `mark`, when it has handed over what was there.
    pub fn emptied(&self, mark: u64) {
        self.word(At::Emptied).store(mark, Ordering::Release);
    }

    // --- The checker's side ----------------------------------------------------------------------------------

    /// Has the reader ask.
    pub fn ask(&self, ask: Ask) {
        self.word(At::Asked)
            .fetch_or(1 << ask as u64, Ordering::AcqRel);
    }

    /// How often there was an answer, and how often not.
    pub fn answers(&self) -> (u64, u64) {
        let count = |at| self.word(at).load(Ordering::Relaxed);
        (count(At::Answered), count(At::Unmarked))
    }

    /// What [`Handover::made`] and [`Handover::emptied`] said last.
    pub fn marks(&self) -> (u64, u64) {
        let mark = |at| self.word(at).load(Ordering::Acquire);
        (mark(At::Made), mark(At::Emptied))
    }

    /// Calls that readers are done with.
    pub fn calls(&self) -> u64 {
        self.word(At::Done).load(Ordering::Acquire)
    }

    /// Gives the pages of the next call that is done to `f`, and its slot back. Whether there was one.
    ///
    /// # Errors
    ///
    /// The call gave no pages, and what `f` gives.
    pub fn take(&self, mut f: impl FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        let call = self.word(At::Taken).load(Ordering::Relaxed);
        if call == self.calls() {
            return Ok(false);
        }
        let bytes = self.bytes_of(call).load(Ordering::Relaxed) as usize;
        let size = self.task.page_size;
        ensure!(
            bytes % size == 0 && bytes <= self.task.pages * size,
            "a call gave {bytes} bytes"
        );
        let mut page = vec![0; size];
        for index in 0..bytes / size {
            self.map.copy(self.page_at(call, index), &mut page)?;
            f(&page)?;
        }
        self.clear(call);
        self.word(At::Taken).store(call + 1, Ordering::Release);
        Ok(true)
    }

    /// What stands in the slot of the call in which the reader was killed, if it was in one. There is no reader
    /// now, and everything that is done was taken.
    ///
    /// # Errors
    ///
    /// None that are known.
    pub fn left_behind(&self) -> Result<Option<Vec<Vec<u8>>>> {
        let call = self.calls();
        if self.word(At::Begun).swap(call, Ordering::AcqRel) == call {
            return Ok(None);
        }
        let mut pages = Vec::new();
        for index in 0..self.task.pages {
            let at = self.page_at(call, index);
            // No page begins with a zero, and it is the first word that is copied.
            if self.map.words()[at / 8].load(Ordering::Acquire) == 0 {
                break;
            }
            let mut page = vec![0; self.task.page_size];
            self.map.copy(at, &mut page)?;
            pages.push(page);
        }
        self.clear(call);
        Ok(Some(pages))
    }

    /// Makes all places of a slot ones where no page is.
    fn clear(&self, call: u64) {
        for index in 0..self.task.pages {
            let at = self.page_at(call, index);
            self.map.words()[at / 8].store(0, Ordering::Relaxed);
        }
    }
}

/// Where other processes find a descriptor of this one.
fn path_of<Fd: AsFd>(fd: Fd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), fd.as_fd().as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Task = Task {
        way: Way::Map,
        page_size: 4096,
        pages: 3,
        rest: Duration::from_micros(7),
        nonblocking: true,
        named: false,
        pipe: -1,
    };

    fn page(number: u8) -> Vec<u8> {
        vec![number; 4096]
    }

    fn taken(handover: &Handover) -> Vec<u8> {
        let mut pages = Vec::new();
        while handover
            .take(|page| {
                pages.push(page[4095]);
                Ok(())
            })
            .unwrap()
        {}
        pages
    }

    #[test]
    fn both_sides_see_the_same() {
        let checker = Handover::new(TASK).unwrap();
        let reader = Handover::open(&checker.path()).unwrap();
        assert_eq!(reader.task(), &TASK);
        checker.ask(Ask::Mark);
        checker.ask(Ask::Flush);
        assert_eq!(reader.asked(), [Ask::Flush, Ask::Mark]);
        assert_eq!(reader.asked(), []);
        reader.answer(true);
        reader.answer(false);
        assert_eq!(checker.answers(), (1, 1));
        reader.made(7);
        reader.emptied(5);
        assert_eq!(checker.marks(), (7, 5));
        for number in 1..20 {
            let call = reader.begin().unwrap();
            reader.fill(call, 0, &page(number)).unwrap();
            reader.fill(call, 1, &page(100 + number)).unwrap();
            reader.end(call, 8192);
            assert_eq!(taken(&checker), [number, 100 + number]);
        }
        assert_eq!(checker.left_behind().unwrap(), None);
        let call = reader.begin().unwrap();
        assert!(reader.fill(call, 3, &page(1)).is_err());
        reader.end(call, 4097);
        assert!(checker.take(|_| Ok(())).is_err());
    }

    #[test]
    fn a_reader_waits_for_room() {
        let checker = Handover::new(TASK).unwrap();
        for _ in 0..SLOTS {
            let call = checker.begin().unwrap();
            checker.end(call, 0);
        }
        assert_eq!(checker.begin(), None);
        assert!(checker.take(|_| Ok(())).unwrap());
        assert!(checker.begin().is_some());
    }

    #[test]
    fn what_a_killed_reader_had_is_found_once() {
        let checker = Handover::new(TASK).unwrap();
        for round in 0..6 {
            // Killed between the calls; before any page; in the middle; after the last.
            assert_eq!(checker.left_behind().unwrap(), None);
            for pages in 0..=3 {
                let call = checker.begin().unwrap();
                for index in 0..pages {
                    checker.fill(call, index, &page(round + 1)).unwrap();
                }
                let left = checker.left_behind().unwrap().unwrap();
                assert_eq!(left, vec![page(round + 1); pages]);
                assert_eq!(checker.left_behind().unwrap(), None);
            }
            // One that was done has nothing in its slot for whoever is killed there next.
            let call = checker.begin().unwrap();
            checker.fill(call, 2, &page(9)).unwrap();
            checker.end(call, 0);
            assert!(taken(&checker).is_empty());
        }
    }

    #[test]
    fn reads_go_into_the_slot() {
        let checker = Handover::new(TASK).unwrap();
        let (from, to) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&to, &[page(1), page(2)].concat()).unwrap();
        let call = checker.begin().unwrap();
        assert_eq!(checker.read(call, &from), Ok(8192));
        let left = checker.left_behind().unwrap().unwrap();
        assert_eq!(left, [page(1), page(2)]);
    }
}
