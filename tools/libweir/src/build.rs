// SPDX-License-Identifier: GPL-2.0

//! Makes pages as the kernel makes them: for tests, and for programs that convert into a capture.

use crate::{
    page::HEADER_SIZE,
    uapi::{
        self,
        PageHeader,
        RecordHeader,
        SampleId, //
    },
};
use zerocopy::{
    Immutable,
    IntoBytes, //
};

/// A page that is being filled.
#[derive(Clone, Debug)]
pub struct PageBuilder {
    header: PageHeader,
    records: Vec<u8>,
    page_size: usize,
    any: bool,
}

impl PageBuilder {
    /// Begins page number `sequence` of `cpu`.
    pub fn new(page_size: usize, cpu: u32, sequence: u64) -> Self {
        PageBuilder {
            header: PageHeader {
                magic: uapi::PAGE_MAGIC,
                packet_size: page_size as u64 * 8,
                packet_seq_num: sequence,
                cpu_id: cpu,
                ..Default::default()
            },
            records: Vec::new(),
            page_size,
            any: false,
        }
    }

    /// Bytes that are left for records.
    pub fn room(&self) -> usize {
        self.page_size - HEADER_SIZE - self.records.len()
    }

    /// Appends a record as it is; `time` in ns widens the page's times.
    ///
    /// # Panics
    ///
    /// If it does not fit.
    pub fn push(&mut self, record: &[u8], time: u64) -> &mut Self {
        assert!(record.len() <= self.room(), "the record does not fit");
        self.records.extend_from_slice(record);
        self.cover(time, time)
    }

    /// Appends a sample; its header but for `misc`, and its CPU, are filled in.
    pub fn sample(&mut self, mut sample: uapi::Sample) -> &mut Self {
        sample.header = header::<uapi::Sample>(uapi::RECORD_SAMPLE, sample.header.misc);
        sample.cpu = self.header.cpu_id;
        self.push(sample.as_bytes(), sample.time)
    }

    /// Appends a sample of event `id` with these words behind it, written at `time`: see [`crate::SampleLayouts`].
    pub fn sample_fields(&mut self, misc: u16, id: u64, words: &[u64], time: u64) -> &mut Self {
        let header = RecordHeader {
            type_: uapi::RECORD_SAMPLE,
            misc,
            size: (size_of::<RecordHeader>() + 8 + words.len() * 8) as u16,
        };
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(&id.to_ne_bytes());
        bytes.extend_from_slice(words.as_bytes());
        self.push(&bytes, time)
    }

    /// Appends a note that perf stopped event `id`, or started it again.
    pub fn throttle(&mut self, id: u64, stopped: bool, time: u64) -> &mut Self {
        let type_ = if stopped {
            uapi::RECORD_THROTTLE
        } else {
            uapi::RECORD_UNTHROTTLE
        };
        let throttle = uapi::Throttle {
            header: header::<uapi::Throttle>(type_, 0),
            time,
            id,
            stream_id: id,
            sample_id: SampleId {
                time,
                cpu: self.header.cpu_id,
                id,
                ..Default::default()
            },
        };
        self.push(throttle.as_bytes(), time)
    }

    /// Appends what an injection writes for one task, at `time`.
    pub fn task(&mut self, task: &Task<'_>, time: u64) -> &mut Self {
        let sample_id = SampleId {
            pid: 1,
            tid: 1,
            time,
            cpu: self.header.cpu_id,
            ..Default::default()
        };
        let fork = uapi::Fork {
            header: header::<uapi::Fork>(uapi::RECORD_FORK, 0),
            pid: task.pid,
            ppid: task.ppid,
            tid: task.tid,
            ptid: task.ppid,
            time: task.start,
            sample_id,
        };
        let mut comm = uapi::Comm {
            header: header::<uapi::Comm>(uapi::RECORD_COMM, 0),
            pid: task.pid,
            tid: task.tid,
            comm: [0; uapi::COMM_LEN],
            sample_id,
        };
        let name = task.comm.as_bytes();
        let len = name.len().min(uapi::COMM_LEN - 1);
        comm.comm[..len].copy_from_slice(&name[..len]);
        self.push(fork.as_bytes(), time).push(comm.as_bytes(), time)
    }

    /// Appends a raw record of kernel code, written at `time`.
    pub fn raw(&mut self, data: &[u8], time: u64) -> &mut Self {
        let mut raw = uapi::Raw {
            header: header::<uapi::Raw>(uapi::RECORD_RAW, 0),
            len: data.len() as u32,
            sample_id: SampleId {
                time,
                cpu: self.header.cpu_id,
                ..Default::default()
            },
            ..Default::default()
        };
        raw.header.size += data.len().next_multiple_of(8) as u16;
        let mut bytes = raw.as_bytes().to_vec();
        bytes.extend_from_slice(data);
        bytes.resize(usize::from(raw.header.size), 0);
        self.push(&bytes, time)
    }

    /// Sets how many records were lost since the channel began, by cause.
    pub fn discarded(&mut self, lost: [u32; uapi::LOST_CAUSES]) -> &mut Self {
        self.header.lost = lost;
        self.header.events_discarded = lost.iter().map(|lost| u64::from(*lost)).sum();
        self
    }

    /// The same, where the latest of them were lost between two times in ns.
    pub fn lost(&mut self, lost: [u32; uapi::LOST_CAUSES], begin: u64, end: u64) -> &mut Self {
        self.header.lost_begin = begin;
        self.header.lost_end = end;
        self.discarded(lost).cover(begin, end)
    }

    /// Sets `uapi::PAGE_*`.
    pub fn flags(&mut self, flags: u32) -> &mut Self {
        self.header.flags |= flags;
        self
    }

    /// Marks the page as handed over before it was full.
    pub fn partial(&mut self) -> &mut Self {
        self.header.flags |= uapi::PAGE_PARTIAL;
        self
    }

    /// The finished page, filled with a NOP.
    pub fn finish(&self) -> Vec<u8> {
        let mut header = self.header;
        let content = HEADER_SIZE + self.records.len();
        header.content_size = content as u64 * 8;
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(&self.records);
        let rest = self.page_size - content;
        if rest > 0 {
            let nop = RecordHeader {
                type_: uapi::RECORD_NOP,
                misc: 0,
                size: rest as u16,
            };
            bytes.extend_from_slice(nop.as_bytes());
            bytes.resize(self.page_size, 0);
        }
        bytes
    }

    fn cover(&mut self, begin: u64, end: u64) -> &mut Self {
        let header = &mut self.header;
        header.timestamp_begin = if self.any {
            header.timestamp_begin.min(begin)
        } else {
            begin
        };
        header.timestamp_end = header.timestamp_end.max(end);
        self.any = true;
        self
    }
}

/// A task, as an injection describes it.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Process of the parent.
    pub ppid: u32,
    /// Name; what is longer than 15 bytes is cut off.
    pub comm: &'a str,
    /// When it started, in ns of the channel's clock.
    pub start: u64,
}

fn header<T: IntoBytes + Immutable>(type_: u32, misc: u16) -> RecordHeader {
    RecordHeader {
        type_,
        misc,
        size: size_of::<T>() as u16,
    }
}
