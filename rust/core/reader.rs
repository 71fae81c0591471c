// SPDX-License-Identifier: GPL-2.0

//! The read side: pages out of the queue, and what is committed in pages still open.

use crate::{
    channel::{
        Backend,
        Channel,
        HEADER_SIZE, //
    },
    open_word::{
        OpenWord,
        NO_PAGE, //
    },
    page_header::PageBegin,
    page_memory::PageMemory,
    publish::slot_page,
    uapi::{
        PageHeader,
        RecordHeader,
        PAGE_MAGIC,
        PAGE_PARTIAL,
        RECORD_NOP, //
    },
    word::Word,
};
use core::ops::Range;
use zerocopy::FromBytes;

/// What the reader has had of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Page that was read while open, or [`NO_PAGE`].
    page: u32,
    /// Bytes of it that were read.
    offset: usize,
    /// Time up to which they reach.
    end: u64,
    /// Pages delivered beyond those published: parts of open ones, less pages with nothing left.
    extra: u64,
    /// What comes next as [`PageHeader::packet_seq_num`].
    sequence: u64,
    /// [`PageHeader::events_discarded`] as last delivered.
    discarded: u64,
}

impl Progress {
    /// Nothing was read.
    pub const fn new() -> Self {
        Self {
            page: NO_PAGE,
            offset: 0,
            end: 0,
            extra: 0,
            sequence: 0,
            discarded: 0,
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// The one reader of a channel, with the [`Progress`] of every CPU.
pub struct Reader<P> {
    progress: P,
}

/// A page as it is delivered: the header, some records of a page in memory, a NOP.
///
/// It stays in the channel until [`Reader::consume`] is called for it.
#[derive(Debug)]
pub struct Chunk {
    page: u32,
    range: Range<usize>,
    header: PageHeader,
    /// The state of the CPU whose open page this is a part of.
    open: OpenWord,
}

impl Chunk {
    /// The header.
    pub fn header(&self) -> &PageHeader {
        &self.header
    }

    /// Calls `f` with the records.
    pub fn records<B: Backend, R>(&self, channel: &Channel<B>, f: impl FnOnce(&[u8]) -> R) -> R {
        // They are committed, and the page is not free before `consume`.
        channel
            .backend()
            .memory()
            .read(self.page, self.range.clone(), f)
    }

    /// The NOP that follows them, and the number of bytes it stands for, which is zero if it does not
    /// exist.
    pub fn nop(&self) -> (RecordHeader, usize) {
        let size = (self
            .header
            .packet_size
            .wrapping_sub(self.header.content_size)
            / 8) as usize;
        let nop = RecordHeader {
            type_: RECORD_NOP,
            misc: 0,
            size: size as u16,
        };
        (nop, size)
    }

    fn is_partial(&self) -> bool {
        self.header.flags & PAGE_PARTIAL != 0
    }
}

impl<P: AsMut<[Progress]>> Reader<P> {
    /// Makes the reader. `progress` has an element for each CPU; there is one reader for a channel.
    pub fn new(progress: P) -> Self {
        Self { progress }
    }

    /// The next finished page, or [`None`].
    pub fn next<B: Backend>(&mut self, channel: &Channel<B>) -> Option<Chunk> {
        loop {
            let page = channel.queued()?;
            let mut header = channel.read_header(page)?;
            let progress = self.progress.as_mut().get_mut(header.cpu_id as usize)?;
            let end = (header.content_size / 8) as usize;
            let start = if progress.page == page {
                progress.offset
            } else {
                HEADER_SIZE
            };
            if start == end && header.lost_begin == 0 {
                // All of it was read while it was open, or it was meant for a report of losses that
                // the page before it has.
                progress.page = NO_PAGE;
                progress.extra = progress.extra.wrapping_sub(1);
                channel.release(page, &header);
                continue;
            }
            if start != HEADER_SIZE {
                header.timestamp_begin = progress.end;
                // It may be the time of the record for which the page was just being closed.
                header.timestamp_end = header.timestamp_end.max(progress.end);
            }
            header.packet_seq_num = header.packet_seq_num.wrapping_add(progress.extra);
            header.content_size = (HEADER_SIZE + end.saturating_sub(start)) as u64 * 8;
            return Some(Chunk {
                page,
                range: start..end,
                header,
                open: OpenWord::EMPTY,
            });
        }
    }

    /// What CPU `cpu` has committed in its open page and the reader has not had, if that began before
    /// `before`; [`None`] where there is nothing, or the CPU is just writing.
    ///
    /// To be called when [`next`](Self::next) has nothing. Nothing is sent to the CPU.
    pub fn next_open<B: Backend>(
        &mut self,
        channel: &Channel<B>,
        cpu: usize,
        before: u64,
    ) -> Option<Chunk> {
        let progress = self.progress.as_mut().get(cpu)?;
        let state = channel.cpu(cpu)?;
        let committed = OpenWord(state.committed.load_acquire());
        if !committed.is_open() {
            return None;
        }
        let page = committed.page();
        let again = progress.page == page;
        let start = if again { progress.offset } else { HEADER_SIZE };
        if committed.offset() <= start || state.open.load_acquire() != committed.0 {
            return None;
        }
        // No reservation is open. What is reserved from now on is not before any time stored so far,
        // and what was reserved is not after: so this is the end, unless `open` moves meanwhile.
        let mut end = 0;
        for stamp in &state.stamps {
            end = stamp.load_acquire().max(end);
        }
        if state.open.load() != committed.0 {
            return None;
        }
        // The page is this CPU's, and only this reader could take it from it. But an earlier page
        // may have come to the queue since; that one must be read first. It came before `committed`
        // was stored.
        if channel.tail.load_acquire() != channel.head.load() {
            return None;
        }
        let begin = if again {
            progress.end
        } else {
            channel.read_begin(page)?
        };
        if begin >= before {
            return None;
        }
        let header = PageHeader {
            magic: PAGE_MAGIC,
            stream_id: 0,
            timestamp_begin: begin,
            timestamp_end: end,
            content_size: (HEADER_SIZE + (committed.offset() - start)) as u64 * 8,
            packet_size: channel.backend().memory().page_size() as u64 * 8,
            packet_seq_num: progress.sequence,
            events_discarded: progress.discarded,
            cpu_id: state.number(),
            flags: PAGE_PARTIAL,
            ..PageHeader::default()
        };
        Some(Chunk {
            page,
            range: start..committed.offset(),
            header,
            open: committed,
        })
    }

    /// Takes `chunk`, which was delivered, out of the channel.
    pub fn consume<B: Backend>(&mut self, channel: &Channel<B>, chunk: Chunk) {
        let cpu = chunk.header.cpu_id as usize;
        let Some(progress) = self.progress.as_mut().get_mut(cpu) else {
            return;
        };
        progress.sequence = chunk.header.packet_seq_num.wrapping_add(1);
        if chunk.is_partial() {
            progress.page = chunk.page;
            progress.offset = chunk.range.end;
            progress.end = chunk.header.timestamp_end;
            progress.extra = progress.extra.wrapping_add(1);
            if let Some(state) = channel.cpu(cpu) {
                state.seen().store(chunk.open.0);
            }
        } else {
            progress.page = NO_PAGE;
            progress.discarded = chunk.header.events_discarded;
            channel.release(chunk.page, &chunk.header);
        }
    }
}

impl<B: Backend> Channel<B> {
    /// The page at the head of the queue. A ticket that is drawn but not filled yet counts as none:
    /// its writer was interrupted.
    fn queued(&self) -> Option<u32> {
        let head = self.head.load();
        let ring = self.backend().ring();
        let slot = ring.get(head as usize & ring.len().wrapping_sub(1))?;
        slot_page(slot.load_acquire(), head)
    }

    /// Frees `page`, which is at the head of the queue.
    fn release(&self, page: u32, header: &PageHeader) {
        // The head moves first: a page that is free may come to the queue again, and finds a slot.
        self.head.store_release(self.head.load().wrapping_add(1));
        if let Some(cpu) = self.cpu(header.cpu_id as usize) {
            self.give_page(cpu, page);
        }
    }

    /// When the open page `page` began.
    fn read_begin(&self, page: u32) -> Option<u64> {
        self.backend()
            .memory()
            .read(page, 0..size_of::<PageBegin>(), |bytes| {
                let begin = PageBegin::read_from_bytes(bytes).ok()?;
                Some(begin.timestamp_begin)
            })
    }

    fn read_header(&self, page: u32) -> Option<PageHeader> {
        self.backend().memory().read(page, 0..HEADER_SIZE, |bytes| {
            PageHeader::read_from_bytes(bytes).ok()
        })
    }

    /// Whether at least `pages` finished pages are there.
    pub fn is_readable(&self, pages: u64) -> bool {
        let waiting = self.tail.load_acquire().wrapping_sub(self.head.load());
        waiting >= pages && self.queued().is_some()
    }

    /// Says that a reader waits for `pages` finished pages; zero for none. The caller looks again
    /// after that, and waits only if there still is nothing.
    pub fn want(&self, pages: u64) {
        self.wanted.store(pages);
        B::Word::fence();
    }

    /// Number of the last ticket drawn.
    pub fn drawn(&self) -> u64 {
        self.tail.load_acquire()
    }

    /// Whether every ticket up to `drawn` is filled, or was taken by the reader already.
    pub fn is_settled(&self, drawn: u64) -> bool {
        let ring = self.backend().ring();
        let mut ticket = self.head.load_acquire();
        while (drawn.wrapping_sub(ticket) as i64) > 0 {
            let Some(slot) = ring.get(ticket as usize & ring.len().wrapping_sub(1)) else {
                return true;
            };
            // A later one may stand in the slot, if the reader went on meanwhile.
            if (slot.load_acquire() >> 24) < (ticket.wrapping_add(1) & ((1 << 40) - 1)) {
                return false;
            }
            ticket = ticket.wrapping_add(1);
        }
        true
    }

    /// Whether CPU `cpu` has committed records in its open page that the reader has not had. From any
    /// CPU and context.
    pub fn has_unread(&self, cpu: usize) -> bool {
        self.cpu(cpu).is_some_and(|state| {
            let committed = state.committed.load_acquire();
            OpenWord(committed).is_open() && committed != state.seen().load()
        })
    }
}

#[cfg(any(test, weir_kunit))]
#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_channel))]
mod tests {
    use super::*;
    use crate::{
        page_memory::TestPin,
        test_backend::{
            channel,
            TestBackend,
            CPUS,
            PAGE,
            PAGES,
            RECORD, //
        },
        Cause, Class,
    };
    use core::sync::atomic::Ordering;
    use zerocopy::IntoBytes;

    const A_PAGE: usize = (PAGE - HEADER_SIZE) / RECORD;

    fn reader() -> Reader<[Progress; CPUS]> {
        Reader::new([Progress::new(); CPUS])
    }

    /// Writes a record that carries `number`, and says whether there was room.
    fn write(channel: &Channel<TestBackend>, cpu: usize, number: u64, class: Class) -> bool {
        let pin = TestPin(cpu);
        let Ok(room) = channel.reserve(&pin, RECORD, class) else {
            return false;
        };
        let header = RecordHeader {
            type_: 1,
            misc: 0,
            size: RECORD as u16,
        };
        room.write(0, header.as_bytes());
        room.write(8, [number, room.time(), 0].as_bytes());
        room.commit();
        true
    }

    /// Checks a page as every reader may rely on it, and returns the sum of the numbers in it and
    /// how many they are.
    fn check(channel: &Channel<TestBackend>, chunk: &Chunk) -> (u64, u64) {
        let header = chunk.header();
        let (nop, nop_size) = chunk.nop();
        let len = chunk.records(channel, |bytes| bytes.len());
        assert_eq!(header.packet_size, PAGE as u64 * 8);
        assert_eq!(header.content_size, (HEADER_SIZE + len) as u64 * 8);
        assert_eq!(HEADER_SIZE + len + nop_size, PAGE);
        assert!(nop_size == 0 || nop.size as usize == nop_size);
        let mut sum = 0;
        let mut count = 0;
        let mut last = header.timestamp_begin;
        chunk.records(channel, |bytes| {
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
            let (numbers, count) = check(&channel, &chunk);
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
        let (numbers, count) = check(&channel, &chunk);
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
                read += check(&channel, &chunk).1;
                lost += u64::from(chunk.header().lost[Cause::Full as usize]);
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
            .is_some_and(|status| status.lost.discarded == 0));
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
        chunk.records(&channel, |bytes| {
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
            .is_some_and(|status| status.lost.discarded == 2));
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
                sum += check(&channel, &chunk).0;
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
            check(&channel, &chunk);
            assert!(chunk.header().timestamp_begin >= last);
            last = chunk.header().timestamp_end;
            reader.consume(&channel, chunk);
        }
        assert!(last >= 5000);
    }
}
