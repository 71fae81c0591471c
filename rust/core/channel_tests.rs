// SPDX-License-Identifier: GPL-2.0

//! Tests of a whole channel of the model *paged* in the mode *discard*, from the writer to the reader. The
//! same run in the kernel, as KUnit; see `kind_tests.rs` for the other models and modes.

#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_channel))]
mod tests {
    use crate::{
        channel::{
            Channel,
            HEADER_SIZE, //
        },
        page_memory::TestPin,
        test_backend::{
            self,
            TestBackend,
            PAGE,
            PAGES,
            RECORD, //
        },
        test_reader::*,
        uapi::{
            RecordHeader,
            RECORD_NOP, //
        },
        Cause,
        Class,
        Mode,
        Model, //
    };
    use core::sync::atomic::Ordering;
    use zerocopy::FromBytes;

    fn channel() -> Channel<TestBackend> {
        test_backend::channel(Model::Paged, Mode::Discard)
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
}
