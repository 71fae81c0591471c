// SPDX-License-Identifier: GPL-2.0

//! Writing to a channel and reading from it, for the tests of this crate.

use crate::{
    channel::{
        Channel,
        HEADER_SIZE, //
    },
    page_memory::TestPin,
    reader::{
        Chunk,
        Progress,
        Reader, //
    },
    test_backend::{
        TestBackend,
        CPUS,
        PAGE,
        RECORD, //
    },
    uapi::RecordHeader,
    Class,
    Reservation, //
};
use zerocopy::{
    FromBytes,
    IntoBytes, //
};

pub(crate) const A_PAGE: usize = (PAGE - HEADER_SIZE) / RECORD;

pub(crate) type TestReader = Reader<[Progress; CPUS], [u64; PAGE / 8]>;

pub(crate) fn reader() -> TestReader {
    Reader::new([Progress::new(); CPUS], [0; PAGE / 8])
}

/// Writes a record that carries `number`, and says whether there was room.
pub(crate) fn write(channel: &Channel<TestBackend>, cpu: usize, number: u64, class: Class) -> bool {
    let pin = TestPin(cpu);
    let Ok(room) = channel.reserve(&pin, RECORD, class) else {
        return false;
    };
    fill(room, number);
    true
}

/// Writes a record that carries `number` into the room for it.
pub(crate) fn fill(room: Reservation<'_, TestBackend>, number: u64) {
    let header = RecordHeader {
        type_: 1,
        misc: 0,
        size: RECORD as u16,
    };
    room.write(0, header.as_bytes());
    room.write(8, [number, room.time(), 0].as_bytes());
    room.commit();
}

/// Checks a page as every reader may rely on it, and returns the sum of the numbers in it and
/// how many they are.
pub(crate) fn check(
    reader: &mut TestReader,
    channel: &Channel<TestBackend>,
    chunk: &Chunk,
) -> (u64, u64) {
    let header = chunk.header();
    let (nop, nop_size) = chunk.nop();
    let len = reader.records(channel, chunk, |bytes| bytes.len());
    assert_eq!(header.packet_size, PAGE as u64 * 8);
    assert_eq!(header.content_size, (HEADER_SIZE + len) as u64 * 8);
    assert_eq!(HEADER_SIZE + len + nop_size, PAGE);
    assert!(nop_size == 0 || nop.size as usize == nop_size);
    let mut sum = 0;
    let mut count = 0;
    let mut last = header.timestamp_begin;
    reader.records(channel, chunk, |bytes| {
        for record in bytes.chunks_exact(RECORD) {
            let number = u64::read_from_bytes(&record[8..16]).unwrap_or(0);
            let time = u64::read_from_bytes(&record[16..24]).unwrap_or(0);
            let whole = record[..4] == 1u32.to_ne_bytes();
            assert!(whole);
            assert!(time >= last);
            assert!(time <= header.timestamp_end);
            last = time;
            sum += number;
            count += 1;
        }
    });
    (sum, count)
}

/// Reads all that is there; returns how many records, and what was lost of `cpu`.
pub(crate) fn drain(
    reader: &mut TestReader,
    channel: &Channel<TestBackend>,
    cpu: u32,
) -> (u64, u64) {
    let mut records = 0;
    let mut lost = 0;
    while let Some(chunk) = reader.next(channel) {
        records += check(reader, channel, &chunk).1;
        if chunk.header().cpu_id == cpu {
            lost = chunk.header().events_discarded;
        }
        assert!(reader.consume(channel, chunk));
    }
    (records, lost)
}
