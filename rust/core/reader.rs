// SPDX-License-Identifier: GPL-2.0

//! The read side: pages out of the queue, and what is committed in pages still open.

use crate::{
    channel::{
        Backend,
        Channel,
        Model,
        HEADER_SIZE, //
    },
    head::Head,
    open_word::OpenWord,
    page_memory::PageMemory,
    slot::POSITION_MASK,
    uapi::{
        PageHeader,
        RecordHeader,
        LOST_CAUSES,
        PAGE_MAGIC,
        PAGE_OVERWRITE,
        PAGE_PARTIAL,
        RECORD_NOP, //
    },
    word::Word,
};
use core::ops::Range;
use zerocopy::{
    FromBytes,
    IntoBytes, //
};

const NO_POSITION: u64 = u64::MAX;

/// What the reader has had of one CPU, or of all of one channel where they write to one page.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Position of the page that was read while open, or [`NO_POSITION`].
    position: u64,
    /// Bytes of it that were read.
    offset: usize,
    /// Time up to which they reach.
    end: u64,
    /// Pages delivered beyond those published: parts of open ones, less pages with nothing left.
    extra: u64,
    /// What comes next as [`PageHeader::packet_seq_num`].
    sequence: u64,
    /// [`PageHeader::events_discarded`] and [`PageHeader::lost`] as last delivered.
    discarded: u64,
    lost: [u32; LOST_CAUSES],
}

impl Progress {
    /// Nothing was read.
    pub const fn new() -> Self {
        Self {
            position: NO_POSITION,
            offset: 0,
            end: 0,
            extra: 0,
            sequence: 0,
            discarded: 0,
            lost: [0; LOST_CAUSES],
        }
    }
}

impl Progress {
    /// Up to which offset, and time, the page at `position` was read while it was open.
    pub(crate) fn had_of(&self, position: u64) -> Option<(usize, u64)> {
        (self.position == position).then_some((self.offset, self.end))
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// The one reader of a channel, with the [`Progress`] of every CPU.
pub struct Reader<P, S> {
    progress: P,
    /// Room for a page, if pages may be overwritten while they are read.
    scratch: S,
    /// The queue whose turn it is.
    turn: usize,
}

/// A page as it is delivered: the header, some records of a page, a NOP.
///
/// It stays in the channel until [`Reader::consume`] is called for it.
#[derive(Debug)]
pub struct Chunk {
    queue: usize,
    head: Head,
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

    /// The NOP that follows the records, and the number of bytes it stands for, which is zero if it does
    /// not exist.
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

impl<P: AsMut<[Progress]>, S: AsMut<[u64]>> Reader<P, S> {
    /// Makes the reader. `progress` has an element for each CPU; `scratch` has the size of a page, or
    /// none in the mode *discard*. There is one reader for a channel.
    pub fn new(progress: P, scratch: S) -> Self {
        Self {
            progress,
            scratch,
            turn: 0,
        }
    }

    pub(crate) fn progress(&mut self) -> &[Progress] {
        self.progress.as_mut()
    }

    /// Calls `f` with the records of `chunk`. Of a channel that overwrites it must be what was delivered
    /// last, and what `f` gets is worth nothing unless [`consume`](Self::consume) succeeds later.
    pub fn records<B: Backend, R>(
        &mut self,
        channel: &Channel<B>,
        chunk: &Chunk,
        f: impl FnOnce(&[u8]) -> R,
    ) -> R {
        if channel.may_overwrite {
            let page = self.scratch.as_mut().as_bytes();
            return f(page.get(chunk.range.clone()).unwrap_or(&[]));
        }
        // They are committed, and the page is not free before `consume`.
        channel
            .backend()
            .memory()
            .read(chunk.page, chunk.range.clone(), f)
    }

    /// The next finished page, or [`None`].
    pub fn next<B: Backend>(&mut self, channel: &Channel<B>) -> Option<Chunk> {
        loop {
            let (queue, page, head) = self.oldest(channel)?;
            let mut header = self.read_header(channel, page)?;
            let owner = if channel.is_shared() {
                0
            } else {
                header.cpu_id as usize
            };
            let Some(progress) = self.progress.as_mut().get_mut(owner) else {
                // It was overwritten while it was read.
                continue;
            };
            let again = match channel.may_overwrite {
                true => head.records() != 0,
                false => {
                    progress.position != NO_POSITION
                        && channel.page_at(owner as u32, progress.position) == page
                }
            };
            let start = if again { progress.offset } else { HEADER_SIZE };
            // What was overwritten may be anything.
            let page_size = channel.backend().memory().page_size();
            let end = ((header.content_size / 8) as usize).clamp(start, page_size.max(start));
            if start == end && header.lost_begin == 0 {
                // All of it was read while it was open, or it was meant for a report of losses that
                // the page before it has.
                progress.position = NO_POSITION;
                if channel.dequeue(queue, head, page, header.cpu_id as usize) {
                    progress.extra = progress.extra.wrapping_sub(1);
                }
                continue;
            }
            if start != HEADER_SIZE {
                header.timestamp_begin = progress.end;
                // It may be the time of the record for which the page was just being closed.
                header.timestamp_end = header.timestamp_end.max(progress.end);
            }
            header.packet_seq_num = header.packet_seq_num.wrapping_add(progress.extra);
            header.packet_size = page_size as u64 * 8;
            header.content_size = (HEADER_SIZE + end.saturating_sub(start)) as u64 * 8;
            return Some(Chunk {
                queue,
                head,
                page,
                range: start..end,
                header,
                open: OpenWord::EMPTY,
            });
        }
    }

    /// The page to be read next: of its queue the oldest.
    fn oldest<B: Backend>(&mut self, channel: &Channel<B>) -> Option<(usize, u32, Head)> {
        let queues = channel.queues();
        let pages = (0..queues).filter_map(|index| {
            let index = self.turn.wrapping_add(index).checked_rem(queues)?;
            channel
                .oldest(index)
                .map(|(page, head)| (index, page, head))
        });
        match channel.model() {
            // One queue of all would have them in about this order.
            Model::Paged => {
                let mut pages = pages;
                let first = pages.next()?;
                let end = |page: u32| {
                    channel
                        .page_state(page)
                        .map_or(u64::MAX, |state| state.end.load())
                };
                Some(pages.fold(first, |first, page| {
                    if end(page.1) < end(first.1) {
                        page
                    } else {
                        first
                    }
                }))
            }
            _ => {
                let mut pages = pages;
                let page = pages.next()?;
                self.turn = page.0;
                Some(page)
            }
        }
    }

    /// The header of a page; if it may be overwritten, from a copy of all of it.
    fn read_header<B: Backend>(&mut self, channel: &Channel<B>, page: u32) -> Option<PageHeader> {
        let memory = channel.backend().memory();
        if channel.may_overwrite {
            let scratch = self.scratch.as_mut();
            memory.copy(page, scratch);
            let bytes = scratch.as_bytes().get(..HEADER_SIZE)?;
            return PageHeader::read_from_bytes(bytes).ok();
        }
        memory.read(page, 0..HEADER_SIZE, |bytes| {
            PageHeader::read_from_bytes(bytes).ok()
        })
    }

    /// What CPU `cpu` has committed in its open page and the reader has not had, if that began before
    /// `before`; [`None`] where there is nothing, or the CPU is just writing.
    ///
    /// To be called when [`next`](Self::next) has nothing. Nothing is sent to the CPU. A page of all
    /// CPUs is not read while it is open: any CPU can [close](Channel::close) it.
    pub fn next_open<B: Backend>(
        &mut self,
        channel: &Channel<B>,
        cpu: usize,
        before: u64,
    ) -> Option<Chunk> {
        if channel.is_shared() {
            return None;
        }
        let queue = if channel.queues() == 1 { 0 } else { cpu };
        let state = channel.cpu(cpu)?;
        let committed = OpenWord(state.committed.load_acquire());
        if !committed.is_open() {
            return None;
        }
        let head = Head(channel.queue(queue)?.head().load());
        let page = channel.page_at(state.number(), committed.position());
        let progress = *self.progress.as_mut().get(cpu)?;
        let again = match channel.may_overwrite {
            true => head.records() != 0,
            false => progress.position == committed.position(),
        };
        let start = if again { progress.offset } else { HEADER_SIZE };
        let stop = channel.offset(committed);
        if stop <= start || state.open.load_acquire() != committed.0 {
            return None;
        }
        // No reservation is open. What is reserved from now on is not before any time stored so far,
        // and what was reserved is not after: so this is the end, unless `open` moves meanwhile.
        let end = state
            .stamp
            .load_acquire()
            .max(state.nested_stamp().load_acquire());
        if state.open.load() != committed.0 {
            return None;
        }
        // An earlier page may have come to the queue since; that one must be read first. It came before
        // `committed` was stored.
        if !channel.is_at(queue, head, committed) {
            return None;
        }
        let begin = if again {
            progress.end
        } else {
            channel.page_state(page)?.begin.load()
        };
        if begin >= before {
            return None;
        }
        if channel.may_overwrite {
            channel.backend().memory().copy(page, self.scratch.as_mut());
        }
        let mut flags = PAGE_PARTIAL;
        if channel.may_overwrite {
            flags |= PAGE_OVERWRITE;
        }
        let header = PageHeader {
            magic: PAGE_MAGIC,
            stream_id: 0,
            timestamp_begin: begin,
            timestamp_end: end,
            content_size: (HEADER_SIZE + (stop - start)) as u64 * 8,
            packet_size: channel.backend().memory().page_size() as u64 * 8,
            packet_seq_num: progress.sequence,
            events_discarded: progress.discarded,
            cpu_id: state.number(),
            flags,
            lost_begin: 0,
            lost_end: 0,
            lost: progress.lost,
        };
        Some(Chunk {
            queue,
            head,
            page,
            range: start..stop,
            header,
            open: committed,
        })
    }

    /// Takes `chunk`, which was delivered, out of the channel. [`false`] if it was overwritten before
    /// that: then its bytes are worth nothing, and it counts as lost.
    pub fn consume<B: Backend>(&mut self, channel: &Channel<B>, chunk: Chunk) -> bool {
        let cpu = chunk.header.cpu_id as usize;
        let owner = if channel.is_shared() { 0 } else { cpu };
        if channel.may_overwrite {
            // What was copied was copied before the head is moved.
            B::Word::fence();
        }
        let taken = if !chunk.is_partial() {
            channel.dequeue(chunk.queue, chunk.head, chunk.page, cpu)
        } else if channel.may_overwrite {
            let head = chunk.head.with_records(chunk.open.count());
            channel
                .queue(chunk.queue)
                .is_some_and(|queue| queue.head().compare_exchange(chunk.head.0, head.0).is_ok())
        } else {
            true
        };
        if taken {
            self.had(channel, &chunk, owner);
        }
        taken
    }

    /// Takes `chunk` out of the channel without a copy, where it is a page as a whole: the memory of the
    /// page becomes what is delivered, `keep` takes references to it, and the page is used again when
    /// [`PageMemory::is_held`] says that there are none.
    ///
    /// Returns `chunk`, to be copied, if it is a part of a page, the page is not of a pool, or half of the pool
    /// is lent.
    pub fn lend<B: Backend>(
        &mut self,
        channel: &Channel<B>,
        chunk: Chunk,
        keep: impl FnOnce(u32),
    ) -> Option<Chunk> {
        let whole = !chunk.is_partial() && chunk.range.start == HEADER_SIZE;
        // What is held too long by others is theirs to keep; what is not is found here at the latest.
        let may_lend = || channel.may_lend() || (channel.take_back() && channel.may_lend());
        if !whole || !may_lend() {
            return Some(chunk);
        }
        // The page is the reader's until the head moves.
        let memory = channel.backend().memory();
        memory.write(chunk.page, 0, chunk.header.as_bytes());
        let (nop, size) = chunk.nop();
        if size != 0 {
            memory.write(chunk.page, chunk.range.end, nop.as_bytes());
        }
        // What stands behind it is of the page's last use.
        const ZEROS: [u8; 256] = [0; 256];
        let mut rest = size.saturating_sub(size_of_val(&nop));
        while let Some(zeros) = ZEROS.get(..rest.min(ZEROS.len())).filter(|_| rest != 0) {
            let start = memory.page_size().wrapping_sub(rest);
            memory.write(chunk.page, start, zeros);
            rest = rest.wrapping_sub(zeros.len());
        }
        keep(chunk.page);
        channel.lend(chunk.head, chunk.page);
        self.had(channel, &chunk, chunk.header.cpu_id as usize);
        None
    }

    /// Notes that `chunk` was delivered, of `owner`.
    fn had<B: Backend>(&mut self, channel: &Channel<B>, chunk: &Chunk, owner: usize) {
        let Some(progress) = self.progress.as_mut().get_mut(owner) else {
            return;
        };
        progress.sequence = chunk.header.packet_seq_num.wrapping_add(1);
        if chunk.is_partial() {
            progress.position = chunk.open.position();
            progress.offset = chunk.range.end;
            progress.end = chunk.header.timestamp_end;
            progress.extra = progress.extra.wrapping_add(1);
            if let Some(state) = channel.cpu(chunk.header.cpu_id as usize) {
                state.seen().store(chunk.open.0);
            }
        } else {
            progress.position = NO_POSITION;
            progress.discarded = chunk.header.events_discarded;
            progress.lost = chunk.header.lost;
        }
    }
}

impl<B: Backend> Channel<B> {
    /// Whether every page before that of `open` has been read, and `head` says so.
    fn is_at(&self, queue: usize, head: Head, open: OpenWord) -> bool {
        match self.queue(queue) {
            Some(_) if self.is_ring() => head.position() & POSITION_MASK == open.position(),
            Some(queue) => queue.tail().load_acquire() == head.position(),
            None => false,
        }
    }

    /// Whether there are committed records in an open page of CPU `cpu`, or of all, that the reader has
    /// not had. From any CPU and context.
    pub fn has_unread(&self, cpu: usize) -> bool {
        if self.is_shared() {
            return OpenWord(self.shared.open().load_acquire()).is_open();
        }
        self.cpu(cpu).is_some_and(|state| {
            let committed = state.committed.load_acquire();
            OpenWord(committed).is_open() && committed != state.seen().load()
        })
    }

    /// When the open page of all CPUs began, if there is one.
    pub fn shared_since(&self) -> Option<u64> {
        let open = OpenWord(self.shared.open().load_acquire());
        if !self.is_shared() || !open.is_open() {
            return None;
        }
        Some(
            self.page_state(self.page_at(0, open.position()))?
                .begin
                .load(),
        )
    }
}
