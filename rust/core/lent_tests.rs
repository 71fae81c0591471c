// SPDX-License-Identifier: GPL-2.0

//! Tests of pages that are lent instead of copied.

use crate::{
    channel::{
        Channel,
        Class,
        Mode,
        Model,
        HEADER_SIZE, //
    },
    lent::Lent,
    page_memory::{
        PageMemory,
        TestPin, //
    },
    page_state::PageState,
    test_backend::{
        channel,
        TestBackend,
        TestWord,
        CPUS,
        PAGE,
        PAGES,
        RECORD, //
    },
    test_reader::{
        drain,
        reader,
        write,
        TestReader,
        A_PAGE, //
    },
    uapi::{
        PageHeader,
        RecordHeader,
        RECORD_NOP, //
    },
    Backend, //
};
use core::{
    cell::Cell,
    sync::atomic::Ordering, //
};
use zerocopy::FromBytes;

/// The page whose turn it is, held by one more; [`None`] if it was not lent.
fn lend(channel: &Channel<TestBackend>, reader: &mut TestReader) -> Option<u32> {
    let mut lent = None;
    let chunk = reader.next(channel)?;
    let refused = reader.lend(channel, chunk, |page| {
        channel.backend().memory().holders[page as usize].fetch_add(1, Ordering::Relaxed);
        lent = Some(page);
    });
    assert_eq!(refused.is_some(), lent.is_none());
    lent
}

fn release(channel: &Channel<TestBackend>, page: u32) {
    channel.backend().memory().holders[page as usize].fetch_sub(1, Ordering::Release);
}

/// Writes on CPU 0 until nothing can be had, and says how many records.
fn fill_up(channel: &Channel<TestBackend>) -> usize {
    (0..)
        .take_while(|&number| write(channel, 0, number, Class::Live))
        .count()
}

/// What is kept for the other CPU is not for this one.
const ALL: usize = (PAGES - 1) * A_PAGE;

/// Counts KUnit's way: the parts of `core` that print are not for the kernel.
#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_lent))]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_lent_is_free_when_it_is_let_go() {
        let channel = channel(Model::Paged, Mode::Discard);
        let mut reader = reader();
        assert_eq!(fill_up(&channel), ALL);
        let page = lend(&channel, &mut reader);
        assert!(page.is_some());
        assert_eq!(channel.lent(), 1);
        // It is nobody's.
        assert_eq!(fill_up(&channel), 0);
        assert!(!channel.take_back());
        if let Some(page) = page {
            release(&channel, page);
        }
        // The writer finds it.
        assert_eq!(fill_up(&channel), A_PAGE);
        assert_eq!(channel.lent(), 0);
        drain(&mut reader, &channel, 0);
        assert!(channel.close(&TestPin(0)));
        drain(&mut reader, &channel, 0);
        assert_eq!(fill_up(&channel), ALL);
    }

    #[test]
    fn half_of_the_pages_can_be_lent() {
        let channel = channel(Model::Paged, Mode::Discard);
        let mut reader = reader();
        fill_up(&channel);
        let lent: [Option<u32>; PAGES / 2] = core::array::from_fn(|_| lend(&channel, &mut reader));
        assert!(lent.iter().all(Option::is_some));
        // The next one is to be copied, and comes so.
        assert!(lend(&channel, &mut reader).is_none());
        let chunk = reader.next(&channel);
        assert!(chunk.is_some_and(|chunk| reader.consume(&channel, chunk)));
        // Back in any order.
        for page in lent.iter().rev().flatten() {
            release(&channel, *page);
            assert!(channel.take_back());
            assert!(!channel.take_back());
        }
        assert_eq!(channel.lent(), 0);
        assert!(lend(&channel, &mut reader).is_some());
    }

    #[test]
    fn the_reader_finds_pages_that_were_let_go() {
        let channel = channel(Model::Paged, Mode::Discard);
        let mut reader = reader();
        fill_up(&channel);
        let lent: [Option<u32>; PAGES / 2] = core::array::from_fn(|_| lend(&channel, &mut reader));
        for page in lent.iter().flatten() {
            release(&channel, *page);
        }
        // Nobody has looked so far.
        assert_eq!(channel.lent(), PAGES as u64 / 2);
        assert!(lend(&channel, &mut reader).is_some());
        assert_eq!(channel.lent(), 1);
    }

    #[test]
    fn what_is_lent_is_what_would_be_copied() {
        let channel = channel(Model::Paged, Mode::Discard);
        let mut reader = reader();
        // A page of this CPU that was read while it was open makes numbers of pages differ from those that
        // the writer knows.
        assert!(write(&channel, 0, 1, Class::Live));
        let part = reader.next_open(&channel, 0, u64::MAX);
        assert!(part.is_some_and(|part| reader.consume(&channel, part)));
        assert!(write(&channel, 0, 2, Class::Live));
        assert!(channel.close(&TestPin(0)));
        // What is left of it is no page as a whole.
        assert!(lend(&channel, &mut reader).is_none());
        let rest = reader.next(&channel);
        assert!(rest.is_some_and(|rest| reader.consume(&channel, rest)));
        // This page had been used before up to its end.
        assert_eq!(fill_up(&channel), ALL);
        drain(&mut reader, &channel, 0);
        assert!(channel.close(&TestPin(0)));
        drain(&mut reader, &channel, 0);
        assert!(write(&channel, 0, 3, Class::Live));
        assert!(channel.close(&TestPin(0)));

        let chunk = reader.next(&channel);
        let wanted = chunk.as_ref().map(|chunk| *chunk.header());
        let page = lend(&channel, &mut reader);
        assert!(page.is_some());
        let (Some(page), Some(wanted)) = (page, wanted) else {
            return;
        };
        channel.backend().memory().read(page, 0..PAGE, |bytes| {
            let header = PageHeader::read_from_bytes(&bytes[..HEADER_SIZE]).ok();
            assert!(header == Some(wanted));
            let (records, rest) = bytes[HEADER_SIZE..].split_at(RECORD);
            assert!(records[8] == 3);
            let nop = RecordHeader::read_from_bytes(&rest[..8]).ok();
            assert!(nop.is_some_and(|nop| {
                nop.type_ == RECORD_NOP && nop.size as usize == (A_PAGE - 1) * RECORD
            }));
            assert!(rest[8..].iter().all(|byte| *byte == 0));
        });
    }

    #[test]
    fn rings_lend_nothing() {
        for (model, mode) in [
            (Model::PerCpu, Mode::Discard),
            (Model::Shared, Mode::Discard),
            (Model::Paged, Mode::Overwrite),
        ] {
            let channel = channel(model, mode);
            let mut reader = reader();
            (0..2 * A_PAGE as u64)
                .for_each(|number| assert!(write(&channel, 0, number, Class::Live)));
            assert!(lend(&channel, &mut reader).is_none());
            assert!(!channel.take_back());
            assert_eq!(channel.lent(), 0);
            assert!(drain(&mut reader, &channel, 0).0 > 0);
        }
    }

    #[test]
    fn every_page_of_a_large_set_is_found() {
        // More than a word has bits. They are on the stack, and the kernel's has 16 KiB for all that is to
        // be there.
        const MANY: usize = 100;
        let pages: [PageState<TestWord>; MANY] = core::array::from_fn(|_| PageState::new());
        let lent = Lent::new(2 * MANY);
        for page in 0..MANY as u32 {
            assert!(lent.has_room());
            lent.add(&pages, page);
        }
        assert!(lent.count() == MANY as u64);
        // All but a few are held for long, and none of them keeps the others from being found.
        let free = |page: u32| page % 50 == 49;
        let found = Cell::new(0);
        for _ in 0..MANY / 8 {
            lent.take(
                &pages,
                |page| !free(page),
                |page| {
                    assert!(free(page));
                    found.set(found.get() + 1);
                },
            );
        }
        assert!(found.get() == MANY / 50);
        for _ in 0..MANY / 8 {
            lent.take(&pages, |_| false, |_| found.set(found.get() + 1));
        }
        assert!(found.get() == MANY);
        assert!(lent.count() == 0);
    }

    #[test]
    fn a_page_that_was_lent_again_meanwhile_stays() {
        let pages: [PageState<TestWord>; CPUS] = core::array::from_fn(|_| PageState::new());
        let lent = Lent::new(2 * CPUS);
        lent.add(&pages, 1);
        // Not held when it is first looked at; by the time it is claimed it is.
        let looks = Cell::new(0);
        let is_held = |_| {
            looks.set(looks.get() + 1);
            looks.get() > 1
        };
        let given = Cell::new(0);
        lent.take(&pages, is_held, |_| given.set(given.get() + 1));
        assert!(given.get() == 0);
        assert!(lent.count() == 1);
        lent.take(&pages, |_| false, |page| given.set(given.get() + page));
        assert!(given.get() == 1);
    }
}
