// SPDX-License-Identifier: GPL-2.0

//! Records with a number each, and the check that what is read is what was written.

use crate::memory::On;
use std::collections::BTreeMap;
use weir_core::{
    uapi::{
        RecordHeader,
        RECORD_NOP, //
    },
    Backend,
    Channel,
    Chunk,
    Class,
    Progress,
    Reader,
    HEADER_SIZE, //
};
use zerocopy::{
    FromBytes,
    IntoBytes, //
};

/// Bytes of a record: header, number, and the number again, inverted.
pub const RECORD: usize = 24;

const TYPE: u32 = 77;

/// Writes `number` on `cpu`; [`false`] if it was lost.
pub fn write<B: Backend>(channel: &Channel<B>, cpu: usize, number: u64) -> bool {
    let pin = On(cpu);
    let Ok(room) = channel.reserve(&pin, RECORD, Class::Live) else {
        return false;
    };
    let header = RecordHeader {
        type_: TYPE,
        misc: 0,
        size: RECORD as u16,
    };
    room.write(0, header.as_bytes());
    room.write(8, number.as_bytes());
    room.write(16, (!number).as_bytes());
    room.commit();
    true
}

/// A reader that checks every page.
pub struct Checker {
    reader: Reader<Vec<Progress>>,
    cpus: usize,
    /// How often each number came.
    pub numbers: BTreeMap<u64, u32>,
    /// Losses that pages told of.
    pub lost: u64,
    sequences: Vec<u64>,
    ends: Vec<u64>,
    nop_allowed: bool,
}

impl Checker {
    /// A reader of a channel of so many CPUs.
    pub fn new(cpus: usize) -> Self {
        Self {
            reader: Reader::new(vec![Progress::new(); cpus]),
            cpus,
            numbers: BTreeMap::new(),
            lost: 0,
            sequences: vec![0; cpus],
            ends: vec![0; cpus],
            nop_allowed: false,
        }
    }

    /// Reservations are dropped in this test.
    pub fn allow_nop(&mut self) {
        self.nop_allowed = true;
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
        self.check(channel, &chunk);
        self.reader.consume(channel, chunk);
        true
    }

    fn check<B: Backend>(&mut self, channel: &Channel<B>, chunk: &Chunk) {
        let header = chunk.header();
        let cpu = header.cpu_id as usize;
        assert_eq!(header.packet_seq_num, self.sequences[cpu]);
        self.sequences[cpu] += 1;
        assert!(header.timestamp_begin >= self.ends[cpu]);
        assert!(header.timestamp_end >= header.timestamp_begin);
        self.ends[cpu] = header.timestamp_end;
        let lost = header.lost.iter().map(|&lost| u64::from(lost)).sum::<u64>();
        assert_eq!(lost != 0, header.lost_begin != 0);
        assert!(header.lost_begin <= header.lost_end);
        self.lost += lost;
        let records = chunk.records(channel, <[u8]>::to_vec);
        assert_eq!(
            header.content_size as usize / 8,
            HEADER_SIZE + records.len()
        );
        assert!(!records.is_empty() || lost != 0);
        for record in records.chunks(RECORD) {
            let (head, body) = RecordHeader::read_from_prefix(record).expect("a header");
            assert_eq!(head.size as usize, RECORD);
            if self.nop_allowed && head.type_ == RECORD_NOP {
                continue;
            }
            assert_eq!(head.type_, TYPE);
            let [number, inverted] = <[u64; 2]>::read_from_bytes(body).expect("a body");
            assert_eq!(number, !inverted);
            *self.numbers.entry(number).or_default() += 1;
        }
    }

    /// Closes all open pages and reads everything, as at the end of a channel.
    pub fn finish<B: Backend>(&mut self, channel: &Channel<B>) {
        while (0..self.cpus).any(|cpu| channel.has_open(cpu)) {
            for cpu in 0..self.cpus {
                assert!(channel.close(&On(cpu)));
            }
            while self.read(channel, false) {}
        }
        while self.read(channel, false) {}
    }
}
