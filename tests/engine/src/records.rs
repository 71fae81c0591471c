// SPDX-License-Identifier: GPL-2.0

//! Records with a number each, and the check that what is read is what was written.

use crate::memory::On;
use std::collections::BTreeMap;
use weir_core::{
    uapi::{
        PageHeader,
        RecordHeader,
        CPU_NONE,
        PAGE_OVERWRITE,
        PAGE_SHARED,
        RECORD_NOP, //
    },
    Backend,
    Channel,
    Class,
    PageMemory,
    Progress,
    Reader,
    RecordLen,
    Word,
    HEADER_SIZE, //
};
use zerocopy::{
    FromBytes,
    IntoBytes, //
};

/// Bytes of a record: header, number, the number again, inverted, and the lower half of its time.
pub const RECORD: usize = 16;

const TYPE: u32 = 77;

/// Writes `number` on `cpu`; [`false`] if it was lost. Odd ones are written as by those who know that the clock
/// never goes backwards.
pub fn write<B: Backend>(channel: &Channel<B>, cpu: usize, number: u16) -> bool {
    let pin = On(cpu);
    let len = RecordLen::new(RECORD).expect("it fits a page");
    let steadily = || channel.try_reserve(&pin, len, || channel.backend().clock(), true);
    let room = match number % 2 {
        0 => channel.reserve(&pin, RECORD, Class::Live),
        _ => steadily().map_or_else(|| channel.reserve_slowly(&pin, len, Class::Live), Ok),
    };
    let Ok(room) = room else {
        return false;
    };
    let header = RecordHeader {
        type_: TYPE,
        misc: 0,
        size: RECORD as u16,
    };
    room.write(0, header.as_bytes());
    room.write(8, number.as_bytes());
    room.write(10, (!number).as_bytes());
    room.write(12, (room.time() as u32).as_bytes());
    room.commit();
    true
}

/// A reader that checks every page.
pub struct Checker {
    reader: Reader<Vec<Progress>, Vec<u64>>,
    cpus: usize,
    /// How often each number came.
    pub numbers: BTreeMap<u16, u32>,
    /// Losses of each CPU that pages told of.
    lost: Vec<u64>,
    sequences: Vec<u64>,
    ends: Vec<u64>,
    /// Pages of each queue that were read where the channel is mapped.
    had: Vec<u64>,
    nop_allowed: bool,
    /// No record comes any more that is older.
    complete_until: u32,
}

impl Checker {
    /// A reader of a channel of so many CPUs, and pages of so many bytes.
    pub fn new(cpus: usize, page_size: usize) -> Self {
        Self {
            reader: Reader::new(vec![Progress::new(); cpus], vec![0; page_size / 8]),
            cpus,
            numbers: BTreeMap::new(),
            lost: vec![0; cpus],
            sequences: vec![0; cpus],
            ends: vec![0; cpus],
            had: Vec::new(),
            nop_allowed: false,
            complete_until: 0,
        }
    }

    /// Finds out how far the stream is complete, unless some CPU is seen in the middle of a write, and reads the
    /// finished pages. What comes later is not older.
    pub fn mark<B: Backend>(&mut self, channel: &Channel<B>) {
        let now = channel.backend().clock();
        if !(0..self.cpus).all(|cpu| channel.is_quiet(cpu)) {
            return;
        }
        let until = self.reader.complete_until(channel, now) as u32;
        while self.read(channel, false) {}
        self.complete_until = self.complete_until.max(until);
    }

    /// The time of the last mark.
    pub fn complete_until(&self) -> u32 {
        self.complete_until
    }

    /// Reservations are dropped in this test.
    pub fn allow_nop(&mut self) {
        self.nop_allowed = true;
    }

    /// Losses that pages told of.
    pub fn lost(&self) -> u64 {
        self.lost.iter().sum()
    }

    /// Reads one page, or, with `open`, what is committed in an open one; [`false`] if there is none.
    pub fn read<B: Backend>(&mut self, channel: &Channel<B>, open: bool) -> bool {
        let chunk = self.reader.next(channel).or_else(|| {
            (0..self.cpus)
                .filter(|_| open)
                .find_map(|cpu| self.reader.next_open(channel, cpu, u64::MAX))
        });
        let Some(chunk) = chunk else {
            return false;
        };
        let header = *chunk.header();
        let records = self.reader.records(channel, &chunk, <[u8]>::to_vec);
        // If it was overwritten meanwhile, what was copied may be anything.
        if self.reader.consume(channel, chunk) {
            self.check(&header, &records);
        }
        true
    }

    /// Takes one finished page without a copy, if it can be lent, and returns its number: `keep` has noted
    /// that somebody refers to it. Else reads it as [`Checker::read`] does.
    pub fn lend<B: Backend>(
        &mut self,
        channel: &Channel<B>,
        keep: impl FnOnce(u32),
    ) -> Option<u32> {
        let chunk = self.reader.next(channel)?;
        let header = *chunk.header();
        let records = self.reader.records(channel, &chunk, <[u8]>::to_vec);
        let mut lent = None;
        let refused = self.reader.lend(channel, chunk, |page| {
            keep(page);
            lent = Some(page);
        });
        match refused {
            None => self.check(&header, &records),
            Some(chunk) => {
                if self.reader.consume(channel, chunk) {
                    self.check(&header, &records);
                }
            }
        }
        lent
    }

    /// Reads one page as somebody does who maps the channel; [`false`] if there is none.
    pub fn read_mapped<B: Backend>(&mut self, channel: &Channel<B>) -> bool {
        let backend = channel.backend();
        self.had.resize(channel.queues(), 0);
        let found = self.had.iter().enumerate().find_map(|(queue, &position)| {
            let index = channel.slots().index(queue as u32, position);
            let value = backend.ring()[index as usize].load_acquire();
            let page = channel.slots().page(index, value, position)?;
            Some((queue, page))
        });
        let Some((queue, page)) = found else {
            return false;
        };
        let memory = backend.memory();
        let (header, records) = memory.read(page, 0..memory.page_size(), |bytes| {
            let (header, rest) = PageHeader::read_from_prefix(bytes).expect("a header");
            let records = header.content_size as usize / 8 - HEADER_SIZE;
            (header, rest[..records].to_vec())
        });
        self.check(&header, &records);
        self.had[queue] += 1;
        backend.positions()[queue].store_release(self.had[queue]);
        true
    }

    /// As [`Checker::finish`], mapped.
    pub fn finish_mapped<B: Backend>(&mut self, channel: &Channel<B>) {
        while (0..self.cpus).any(|cpu| channel.has_open(cpu)) {
            for cpu in 0..self.cpus {
                assert!(channel.close(&On(cpu)));
            }
            while self.read_mapped(channel) {}
        }
        while self.read_mapped(channel) {}
    }

    fn check(&mut self, header: &PageHeader, records: &[u8]) {
        let owner = match header.flags & PAGE_SHARED {
            0 => header.cpu_id as usize,
            _ => 0,
        };
        if header.flags & PAGE_OVERWRITE == 0 {
            assert_eq!(header.packet_seq_num, self.sequences[owner]);
        } else {
            assert!(header.packet_seq_num >= self.sequences[owner]);
        }
        self.sequences[owner] = header.packet_seq_num + 1;
        assert!(header.timestamp_begin >= self.ends[owner]);
        assert!(header.timestamp_end >= header.timestamp_begin);
        self.ends[owner] = header.timestamp_end;
        let lost = header.lost.iter().map(|&lost| u64::from(lost)).sum::<u64>();
        assert_eq!(lost, header.events_discarded);
        assert!(header.lost_begin <= header.lost_end);
        if header.cpu_id != CPU_NONE {
            let before = &mut self.lost[header.cpu_id as usize];
            assert!(lost >= *before);
            if header.flags & PAGE_OVERWRITE == 0 {
                assert_eq!(lost != *before, header.lost_begin != 0);
            }
            *before = lost;
        }
        assert_eq!(
            header.content_size as usize / 8,
            HEADER_SIZE + records.len()
        );
        assert!(!records.is_empty() || header.lost_begin != 0);
        let mut last = header.timestamp_begin as u32;
        for record in records.chunks(RECORD) {
            let (head, body) = RecordHeader::read_from_prefix(record).expect("a header");
            assert_eq!(head.size as usize, RECORD);
            if self.nop_allowed && head.type_ == RECORD_NOP {
                continue;
            }
            assert_eq!(head.type_, TYPE);
            let (numbers, time) = <[u16; 2]>::read_from_prefix(body).expect("a body");
            assert_eq!(numbers[0], !numbers[1]);
            let time = u32::read_from_bytes(time).expect("a time");
            assert!(last <= time && time <= header.timestamp_end as u32);
            assert!(
                self.complete_until <= time,
                "a record of {time} comes after the mark of {}",
                self.complete_until
            );
            last = time;
            let number = numbers[0];
            *self.numbers.entry(number).or_default() += 1;
        }
    }

    /// Closes all open pages and reads everything, as at the end of a channel.
    pub fn finish<B: Backend>(&mut self, channel: &Channel<B>) {
        while (0..self.cpus).any(|cpu| channel.has_open(cpu)) {
            for cpu in 0..self.cpus {
                assert!(channel.close(&On(cpu)));
            }
            assert!(channel.is_settled(channel.drawn()));
            while self.read(channel, false) {}
        }
        while self.read(channel, false) {}
    }
}
