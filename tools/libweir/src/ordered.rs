// SPDX-License-Identifier: GPL-2.0

//! The records of all CPUs in one order of time, with no more memory than the marks allow.
//!
//! Pages of one CPU are in order, those of different CPUs are not. A mark says that nothing older than it is
//! still to come: so everything older than it can be given out, in order, and forgotten. What is kept at any
//! time is what was written since the last mark. A mark stays behind the present by up to the channel's
//! `max_latency`, in which a quiet CPU's records may stand in an open page; so the most that is kept is what all
//! CPUs write within that time and one round of the reader, and never more than what was pushed since the
//! last mark.

use crate::{
    page::Page,
    record::RecordError,
    uapi::CPU_NONE, //
};
use std::{
    cmp::Reverse,
    collections::{
        BinaryHeap,
        HashMap,
        VecDeque, //
    },
};

/// A record on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedRecord {
    /// When it was written. A record whose layout is not known has the time of the one in front of it.
    pub time: u64,
    /// The CPU that wrote it.
    pub cpu: u32,
    /// All of it, its header included.
    pub bytes: Vec<u8>,
    /// A record that is not older was given out before it: a mark was wrong. It happens where what the pages
    /// are from does not keep its promise, such as a capture from which pages are missing.
    pub late: bool,
}

/// Brings records into order.
#[derive(Debug, Default)]
pub struct Ordered {
    /// What is kept of each CPU, or of all where they write to one page, in order.
    streams: HashMap<u32, VecDeque<OrderedRecord>>,
    /// The oldest record of each stream that has one: time and key.
    fronts: BinaryHeap<Reverse<(u64, u32)>>,
    /// What came too late.
    late: VecDeque<OrderedRecord>,
    mark: u64,
    /// Time of the last record that was given out.
    given: u64,
    kept: usize,
}

impl Ordered {
    /// Begins with no record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the records of a page. Pages of one CPU must come in order.
    ///
    /// # Errors
    ///
    /// [`RecordError`] of the first that does not hold together; those before it are taken.
    pub fn push(&mut self, page: &Page<'_>) -> Result<(), RecordError> {
        let header = page.header();
        let key = if page.is_shared() {
            CPU_NONE
        } else {
            header.cpu_id
        };
        let mut time = header.timestamp_begin;
        let mut records = page.records();
        while let Some(record) = records.next().transpose()? {
            let size = usize::from(record.header().size);
            let end = (records.offset() - page.offset()) as usize;
            time = record.time().unwrap_or(time);
            self.take(
                key,
                OrderedRecord {
                    time,
                    cpu: record.cpu().unwrap_or(header.cpu_id),
                    bytes: page.bytes()[end - size..end].to_vec(),
                    late: false,
                },
            );
        }
        Ok(())
    }

    fn take(&mut self, key: u32, mut record: OrderedRecord) {
        self.kept += 1;
        let stream = self.streams.entry(key).or_default();
        let newest = stream.back().map_or(0, |last| last.time);
        if record.time < self.given || record.time < newest {
            record.late = true;
            self.late.push_back(record);
            return;
        }
        if stream.is_empty() {
            self.fronts.push(Reverse((record.time, key)));
        }
        stream.push_back(record);
    }

    /// Nothing older than `mark` is still to come.
    pub fn advance(&mut self, mark: u64) {
        self.mark = self.mark.max(mark);
    }

    /// Nothing at all is still to come.
    pub fn finish(&mut self) {
        self.mark = u64::MAX;
    }

    /// The next record, if it is certain that none comes before it.
    pub fn pop(&mut self) -> Option<OrderedRecord> {
        if let Some(late) = self.late.pop_front() {
            self.kept -= 1;
            return Some(late);
        }
        let Reverse((time, key)) = *self.fronts.peek()?;
        if time >= self.mark && self.mark != u64::MAX {
            return None;
        }
        self.fronts.pop();
        let stream = self.streams.get_mut(&key)?;
        let record = stream.pop_front()?;
        if let Some(front) = stream.front() {
            self.fronts.push(Reverse((front.time, key)));
        }
        self.given = record.time;
        self.kept -= 1;
        Some(record)
    }

    /// Number of records that are kept.
    pub fn kept(&self) -> usize {
        self.kept
    }
}
