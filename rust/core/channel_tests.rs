// SPDX-License-Identifier: GPL-2.0

//! Tests of a whole channel, from the writer to the reader. The same run in the kernel, as KUnit.

#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_channel))]
mod tests {
    use crate::{
        channel::{
            usable_pages,
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
            self,
            TestBackend,
            CPUS,
            PAGE,
            PAGES,
            RECORD, //
        },
        uapi::{
            RecordHeader,
            CPU_NONE,
            PAGE_OVERWRITE,
            PAGE_SHARED,
            RECORD_NOP, //
        },
        Cause,
        Class,
        Mode,
        Model,
        Reservation, //
    };
    use core::sync::atomic::Ordering;
    use zerocopy::{
        FromBytes,
        IntoBytes, //
    };

    const A_PAGE: usize = (PAGE - HEADER_SIZE) / RECORD;

    type TestReader = Reader<[Progress; CPUS], [u64; PAGE / 8]>;

    fn reader() -> TestReader {
        Reader::new([Progress::new(); CPUS], [0; PAGE / 8])
    }

    fn channel() -> Channel<TestBackend> {
        test_backend::channel(Model::Paged, Mode::Discard)
    }

    /// Writes a record that carries `number`, and says whether there was room.
    fn write(channel: &Channel<TestBackend>, cpu: usize, number: u64, class: Class) -> bool {
        let pin = TestPin(cpu);
        let Ok(room) = channel.reserve(&pin, RECORD, class) else {
            return false;
        };
        fill(room, number);
        true
    }

    /// Writes a record that carries `number` into the room for it.
    fn fill(room: Reservation<'_, TestBackend>, number: u64) {
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
    fn check(reader: &mut TestReader, channel: &Channel<TestBackend>, chunk: &Chunk) -> (u64, u64) {
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

    #[test]
    fn records_come_back_page_by_page() {
        let channel = channel();
        let mut reader = reader();
        for number in 0..2 * A_PAGE as u64 + 1 {
            assert!(write(&channel, 0, number, Class::Live));
        }
        let mut sum = 0;
        for sequence in 0..2 {
            let chunk = reader.next(&channel);
            assert!(chunk.is_some());
            let Some(chunk) = chunk else {
                return;
            };
            assert_eq!(chunk.header().packet_seq_num, sequence);
            assert_eq!(chunk.header().cpu_id, 0);
            let (numbers, count) = check(&mut reader, &channel, &chunk);
            assert_eq!(count, A_PAGE as u64);
            sum += numbers;
            reader.consume(&channel, chunk);
        }
        assert!(reader.next(&channel).is_none());
        assert!(channel.close(&TestPin(0)));
        let chunk = reader.next(&channel);
        assert!(chunk.is_some());
        let Some(chunk) = chunk else {
            return;
        };
        let (numbers, count) = check(&mut reader, &channel, &chunk);
        assert_eq!(count, 1);
        assert_eq!(sum + numbers, (0..2 * A_PAGE as u64 + 1).sum::<u64>());
    }

    #[test]
    fn a_chunk_that_is_not_consumed_stays() {
        let channel = channel();
        let mut reader = reader();
        assert!(write(&channel, 1, 7, Class::Live));
        channel.close(&TestPin(1));
        assert!(reader.next(&channel).is_some());
        assert!(reader.next(&channel).is_some());
        if let Some(chunk) = reader.next(&channel) {
            reader.consume(&channel, chunk);
        }
        assert!(reader.next(&channel).is_none());
    }

    #[test]
    fn a_full_channel_counts_what_it_loses() {
        let channel = channel();
        let mut reader = reader();
        let mut written = 0;
        while write(&channel, 0, written, Class::Live) {
            written += 1;
        }
        // All but the page kept for the other CPU.
        assert_eq!(written, ((PAGES - 1) * A_PAGE) as u64);
        for _ in 0..4 {
            assert!(!write(&channel, 0, 0, Class::Live));
        }
        // The other CPU has its own page.
        assert!(write(&channel, 1, 1, Class::Live));
        assert!(channel
            .status(0)
            .is_some_and(|status| status.lost.lost[Cause::Full as usize] == 5));

        let mut read = 0;
        let mut lost = 0;
        loop {
            while let Some(chunk) = reader.next(&channel) {
                read += check(&mut reader, &channel, &chunk).1;
                if chunk.header().cpu_id == 0 {
                    lost = chunk.header().lost[Cause::Full as usize];
                }
                if chunk.header().lost_begin != 0 {
                    assert!(chunk.header().lost_begin <= chunk.header().lost_end);
                }
                reader.consume(&channel, chunk);
            }
            let more = channel.has_open(0) || channel.has_open(1);
            if !more {
                break;
            }
            channel.close(&TestPin(0));
            channel.close(&TestPin(1));
        }
        assert_eq!(read, written + 1);
        assert_eq!(lost, 5);
        // It goes on as before.
        assert!(write(&channel, 0, 1, Class::Live));
    }

    #[test]
    fn a_page_that_only_reports_losses_has_a_time() {
        let channel = channel();
        let mut reader = reader();
        let pin = TestPin(0);
        let refused = channel.reserve(&pin, PAGE, Class::Live);
        assert!(refused.is_err());
        channel.close(&pin);
        let chunk = reader.next(&channel);
        assert!(chunk.is_some());
        let Some(chunk) = chunk else {
            return;
        };
        let header = chunk.header();
        assert_eq!(header.lost[Cause::TooLarge as usize], 1);
        assert!(header.lost_begin >= 1000);
        assert!(header.timestamp_begin >= header.lost_end);
        assert!(header.timestamp_end >= header.timestamp_begin);
    }

    #[test]
    fn injected_records_leave_pages_to_live_ones() {
        let channel = channel();
        let mut injected = 0;
        while write(&channel, 0, injected, Class::Injected) {
            injected += 1;
        }
        // Half of the six common pages.
        assert_eq!(injected, (3 * A_PAGE) as u64);
        assert!(channel
            .status(0)
            .is_some_and(|status| status.lost.discarded() == 0));
        let mut live = 0;
        while write(&channel, 0, live, Class::Live) {
            live += 1;
        }
        assert_eq!(live, (4 * A_PAGE) as u64);
    }

    #[test]
    fn a_dropped_reservation_becomes_a_nop() {
        let channel = channel();
        let mut reader = reader();
        let pin = TestPin(0);
        drop(channel.reserve(&pin, RECORD, Class::Live));
        channel.close(&pin);
        let chunk = reader.next(&channel);
        assert!(chunk.is_some());
        let Some(chunk) = chunk else {
            return;
        };
        reader.records(&channel, &chunk, |bytes| {
            let header = RecordHeader::read_from_prefix(bytes);
            let nop = header.is_ok_and(|(header, _)| {
                header.type_ == RECORD_NOP && header.size as usize == RECORD
            });
            assert!(nop);
        });
    }

    #[test]
    fn a_record_larger_than_a_page_is_refused() {
        let channel = channel();
        let pin = TestPin(0);
        let room = PAGE - HEADER_SIZE;
        assert!(channel.reserve(&pin, room, Class::Live).is_ok());
        let refused = channel.reserve(&pin, room + 1, Class::Live);
        assert!(matches!(refused, Err(Cause::TooLarge)));
        let refused = channel.reserve(&pin, usize::MAX, Class::Live);
        assert!(matches!(refused, Err(Cause::TooLarge)));
        assert!(channel
            .status(0)
            .is_some_and(|status| status.lost.discarded() == 2));
    }

    #[test]
    fn writes_nested_too_deep_are_lost_and_counted() {
        let channel = channel();
        let pin = TestPin(0);
        let rooms: [_; crate::MAX_DEPTH] =
            core::array::from_fn(|_| channel.reserve(&pin, 8, Class::Live));
        let deeper = channel.reserve(&pin, 8, Class::Live);
        assert!(matches!(deeper, Err(Cause::Nested)));
        assert!(!channel.close(&pin));
        drop(rooms);
        assert!(channel.close(&pin));
        assert!(channel.status(0).is_some_and(|status| status.nested == 3));
    }

    #[test]
    fn an_open_page_is_read_in_parts() {
        let channel = channel();
        let mut reader = reader();
        let mut sequence = 0;
        let mut sum = 0;
        // The parts, then what is left, which is nothing when the page was read to its end.
        for number in 0..2 * A_PAGE as u64 {
            assert!(write(&channel, 0, number, Class::Live));
            assert!(reader.next_open(&channel, 0, 0).is_none());
            assert!(channel.has_unread(0));
            while let Some(chunk) = reader
                .next(&channel)
                .or_else(|| reader.next_open(&channel, 0, u64::MAX))
            {
                assert_eq!(chunk.header().packet_seq_num, sequence);
                sum += check(&mut reader, &channel, &chunk).0;
                reader.consume(&channel, chunk);
                sequence += 1;
            }
            assert!(!channel.has_unread(0));
        }
        assert_eq!(sum, (0..2 * A_PAGE as u64).sum::<u64>());
        channel.close(&TestPin(0));
        assert!(reader.next(&channel).is_none());
        // The pages are free again.
        assert!(!channel.has_open(0));
    }

    #[test]
    fn an_open_page_is_not_read_within_a_write() {
        let channel = channel();
        let mut reader = reader();
        assert!(write(&channel, 0, 1, Class::Live));
        let pin = TestPin(0);
        let room = channel.reserve(&pin, RECORD, Class::Live);
        assert!(reader.next_open(&channel, 0, u64::MAX).is_none());
        drop(room);
        assert!(reader.next_open(&channel, 0, u64::MAX).is_some());
    }

    #[test]
    fn the_reader_is_woken_when_it_waits() {
        let channel = channel();
        let page = A_PAGE as u64;
        let fill = || {
            for number in 0..page {
                write(&channel, 0, number, Class::Live);
            }
            channel.close(&TestPin(0));
        };
        let wakes = || channel.backend().wakes.load(Ordering::Relaxed);
        fill();
        assert_eq!(wakes(), 0);
        channel.want(3);
        fill();
        assert_eq!(wakes(), 0);
        assert!(!channel.is_readable(3));
        fill();
        assert_eq!(wakes(), 1);
        assert!(channel.is_readable(3));
        assert!(channel.is_settled(channel.drawn()));
    }

    #[test]
    fn times_do_not_run_backwards_when_the_clock_does() {
        let channel = channel();
        let mut reader = reader();
        for number in 0..3 * A_PAGE as u64 {
            channel
                .backend()
                .now
                .store(5000 - number * 10, Ordering::Relaxed);
            assert!(write(&channel, 0, number, Class::Live));
        }
        let mut last = 0;
        while let Some(chunk) = reader.next(&channel) {
            check(&mut reader, &channel, &chunk);
            assert!(chunk.header().timestamp_begin >= last);
            last = chunk.header().timestamp_end;
            reader.consume(&channel, chunk);
        }
        assert!(last >= 5000);
    }

    /// Reads all that is there; returns how many records, and what was lost of `cpu`.
    fn drain(reader: &mut TestReader, channel: &Channel<TestBackend>, cpu: u32) -> (u64, u64) {
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

    #[test]
    fn a_cpu_of_a_ring_has_its_own_pages() {
        let channel = test_backend::channel(Model::PerCpu, Mode::Discard);
        let mut reader = reader();
        let share = (PAGES / CPUS) as u64;
        for _ in 0..3 {
            let mut written = 0;
            while write(&channel, 0, written, Class::Live) {
                written += 1;
            }
            assert_eq!(written, share * A_PAGE as u64);
            // The other one is none the worse.
            assert!(write(&channel, 1, 1, Class::Live));
            channel.close(&TestPin(1));
            let (records, _) = drain(&mut reader, &channel, 0);
            assert_eq!(records, written + 1);
        }
        assert!(channel
            .status(0)
            .is_some_and(|status| status.lost.lost == [3, 0, 0, 0]));
    }

    #[test]
    fn all_cpus_write_to_one_page() {
        let channel = test_backend::channel(Model::Shared, Mode::Discard);
        let mut reader = reader();
        for number in 0..2 * A_PAGE as u64 {
            assert!(write(&channel, number as usize % CPUS, number, Class::Live));
        }
        let mut numbers = 0;
        for sequence in 0..2 {
            let chunk = reader.next(&channel);
            if let Some(chunk) = chunk {
                assert_eq!(chunk.header().packet_seq_num, sequence);
                assert_eq!(chunk.header().flags, PAGE_SHARED);
                numbers += check(&mut reader, &channel, &chunk).0;
                assert!(reader.consume(&channel, chunk));
            }
            // The second one is full, but still open.
            channel.close(&TestPin(0));
        }
        assert_eq!(numbers, (0..2 * A_PAGE as u64).sum::<u64>());
        assert!(reader.next(&channel).is_none());
    }

    #[test]
    fn a_page_of_all_is_whole_when_the_last_record_is() {
        let channel = test_backend::channel(Model::Shared, Mode::Discard);
        let mut reader = reader();
        let pin = TestPin(0);
        let room = channel.reserve(&pin, RECORD, Class::Live);
        assert!(write(&channel, 1, 1, Class::Live));
        let drawn = channel.drawn();
        assert!(channel.is_settled(drawn));
        channel.close(&TestPin(1));
        let drawn = channel.drawn();
        assert!(!channel.is_settled(drawn));
        assert!(reader.next(&channel).is_none());
        // The next page is finished before it, and waits.
        assert!(write(&channel, 1, 2, Class::Live));
        channel.close(&TestPin(1));
        assert!(reader.next(&channel).is_none());
        if let Ok(room) = room {
            fill(room, 0);
        }
        assert!(channel.is_settled(drawn));
        assert_eq!(drain(&mut reader, &channel, CPU_NONE).0, 3);
    }

    #[test]
    fn the_newest_pages_are_kept() {
        for (model, cpus) in [
            (Model::PerCpu, CPUS),
            (Model::Paged, CPUS),
            (Model::Shared, 1),
        ] {
            let channel = test_backend::channel(model, Mode::Overwrite);
            let mut reader = reader();
            let kept = (PAGES / cpus * A_PAGE) as u64;
            let written = 3 * kept + 1;
            for number in 0..written {
                assert!(write(&channel, 0, number, Class::Live));
            }
            channel.close(&TestPin(0));
            let mut sum = 0;
            let mut records = 0;
            let mut lost = 0;
            while let Some(chunk) = reader.next(&channel) {
                assert!(chunk.header().flags & PAGE_OVERWRITE != 0);
                let (numbers, count) = check(&mut reader, &channel, &chunk);
                sum += numbers;
                records += count;
                lost = u64::from(chunk.header().lost[Cause::Overwritten as usize]);
                assert!(reader.consume(&channel, chunk));
            }
            // The last page has one record.
            let pages = (PAGES / cpus) as u64;
            let newest = (pages - 1) * A_PAGE as u64 + 1;
            assert_eq!(records, newest);
            assert_eq!(lost, written - newest);
            assert_eq!(sum, (written - newest..written).sum::<u64>());
        }
    }

    #[test]
    fn what_is_overwritten_while_it_is_read_is_not_taken() {
        let channel = test_backend::channel(Model::PerCpu, Mode::Overwrite);
        let mut reader = reader();
        let kept = (PAGES / CPUS * A_PAGE) as u64;
        for number in 0..kept {
            write(&channel, 0, number, Class::Live);
        }
        let chunk = reader.next(&channel);
        assert!(chunk.is_some());
        write(&channel, 0, kept, Class::Live);
        if let Some(chunk) = chunk {
            assert!(!reader.consume(&channel, chunk));
        }
        // A part of an open page is read, then it is overwritten: only the rest counts as lost.
        let (records, _) = drain(&mut reader, &channel, 0);
        assert_eq!(records, kept - A_PAGE as u64);
        if let Some(chunk) = reader.next_open(&channel, 0, u64::MAX) {
            assert_eq!(check(&mut reader, &channel, &chunk).1, 1);
            assert!(reader.consume(&channel, chunk));
        }
        for number in 0..kept {
            write(&channel, 0, number, Class::Live);
        }
        let lost = channel.status(0).map(|status| status.lost.lost);
        let parts = (A_PAGE + A_PAGE - 1) as u64;
        assert_eq!(lost, Some([0, 0, 0, parts]));
    }

    #[test]
    fn a_frozen_channel_keeps_what_it_has() {
        let channel = test_backend::channel(Model::PerCpu, Mode::Overwrite);
        let mut reader = reader();
        let kept = (PAGES / CPUS * A_PAGE) as u64;
        for number in 0..kept {
            assert!(write(&channel, 0, number, Class::Live));
        }
        channel.freeze(true);
        assert!(!write(&channel, 0, kept, Class::Live));
        assert_eq!(drain(&mut reader, &channel, 0).0, kept);
        assert!(write(&channel, 0, kept, Class::Live));
        channel.freeze(false);
        for number in 0..2 * kept {
            assert!(write(&channel, 0, number, Class::Live));
        }
    }

    #[test]
    fn injected_records_overwrite_nothing() {
        for mode in [Mode::Discard, Mode::Overwrite] {
            let channel = test_backend::channel(Model::PerCpu, mode);
            let mut injected = 0;
            while write(&channel, 0, injected, Class::Injected) {
                injected += 1;
            }
            assert_eq!(injected, (PAGES / CPUS / 2 * A_PAGE) as u64);
            assert!(channel
                .status(0)
                .is_some_and(|status| status.lost.discarded() == 0));
        }
    }

    #[test]
    fn owners_have_a_power_of_two_of_pages() {
        assert_eq!(usable_pages(Model::Paged, Mode::Discard, 3, 100), 100);
        assert_eq!(usable_pages(Model::Paged, Mode::Overwrite, 3, 100), 96);
        assert_eq!(usable_pages(Model::PerCpu, Mode::Discard, 3, 12), 12);
        assert_eq!(usable_pages(Model::PerCpu, Mode::Discard, 3, 95), 48);
        assert_eq!(usable_pages(Model::Shared, Mode::Discard, 3, 100), 64);
    }
}
