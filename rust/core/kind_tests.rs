// SPDX-License-Identifier: GPL-2.0

//! Tests of what the models and modes of a channel have of their own.

#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_kinds))]
mod tests {
    use crate::{
        channel::usable_pages,
        page_memory::TestPin,
        test_backend::{
            self,
            CPUS,
            PAGES,
            RECORD, //
        },
        test_reader::*,
        uapi::{
            CPU_NONE,
            PAGE_OVERWRITE,
            PAGE_SHARED, //
        },
        Cause,
        Class,
        Mode,
        Model, //
    };

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
