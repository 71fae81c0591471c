// SPDX-License-Identifier: GPL-2.0

//! The write path: reserve, fill, commit; and closing a page.
//!
//! Everything here runs in any context, takes no lock, and waits for nobody.

use crate::{
    channel::{
        Backend,
        Channel,
        Class,
        HEADER_SIZE, //
    },
    cpu_state::{
        CpuState,
        MAX_DEPTH, //
    },
    lost::{
        Cause,
        Loss, //
    },
    open_word::{
        OpenWord,
        RECORD_ALIGN, //
    },
    owner::{
        ByAll,
        ByCpu,
        Owner, //
    },
    page_header::{
        PageBegin,
        PageEnd, //
    },
    page_memory::{
        Addressed,
        PageMemory,
        Pinned, //
    },
    uapi::{
        RecordHeader,
        PAGE_MAGIC,
        RECORD_NOP, //
    },
    word::Word,
};
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use zerocopy::IntoBytes;

/// Room for one record, in nobody else's hands until it is dropped.
///
/// Dropping it without [`commit`](Self::commit) turns the room into a NOP. Several on one CPU may be
/// dropped in any order; the reader sees none of them before all are.
pub struct Reservation<'a, B: Backend> {
    channel: &'a Channel<B>,
    cpu: &'a CpuState<B::Word>,
    place: <B::Memory as PageMemory>::Place,
    position: u64,
    offset: u32,
    len: u32,
    time: u64,
}

/// Where a record is to stand.
#[derive(Clone, Copy)]
struct Room {
    position: u64,
    page: u32,
    offset: usize,
    time: u64,
}

impl<B: Backend> Reservation<'_, B> {
    /// The time of the record: no record of this CPU before it has a later one.
    #[inline(always)]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Writes `bytes` at `offset` of the record, if all of them fit.
    #[inline(always)]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        self.channel
            .backend()
            .memory()
            .write_at(self.place, offset, bytes);
    }

    /// Where the record is from `offset` on, to its end: for whoever fills it in place.
    #[inline(always)]
    pub fn address(&self, offset: usize) -> Option<NonNull<u8>>
    where
        B::Memory: Addressed,
    {
        self.channel.backend().memory().address(self.place, offset)
    }

    /// Ends the record as written.
    #[inline(always)]
    pub fn commit(self) {
        let this = ManuallyDrop::new(self);
        this.leave();
    }

    #[inline(always)]
    fn leave(&self) {
        if self.channel.is_shared() {
            self.channel
                .leave_shared(self.cpu, self.position, self.len as usize);
        } else {
            self.channel.leave(self.cpu);
        }
    }
}

impl<B: Backend> Drop for Reservation<'_, B> {
    // What it calls takes no address of it, so that it can stay in registers where it is committed.
    #[inline(always)]
    fn drop(&mut self) {
        self.channel
            .discard(self.cpu, self.position, self.offset, self.len);
    }
}

/// What opening and closing a page does besides, for each kind of [`Owner`].
trait Turn<B: Backend>: Owner<B::Word> {
    /// The page at `next` was opened, behind that of `old`, and its header has been begun.
    fn opened(self, channel: &Channel<B>, old: OpenWord, next: u64);

    /// The page of `old` was closed, and nothing of it is left to write but records.
    fn closed(self, channel: &Channel<B>, old: OpenWord);
}

impl<B: Backend> Turn<B> for ByCpu<'_, B::Word> {
    fn opened(self, channel: &Channel<B>, old: OpenWord, next: u64) {
        if old.is_empty() {
            self.0.chain.store(next);
        } else if let Some(state) =
            channel.page_state(channel.page_at(self.number(), old.position()))
        {
            state.link.store(next);
        }
    }

    fn closed(self, _: &Channel<B>, _: OpenWord) {}
}

/// Half of the header counts when a page is opened, and half when it is closed.
const HALF_HEADER: usize = HEADER_SIZE / 2;

impl<B: Backend> Turn<B> for ByAll<'_, B::Word> {
    fn opened(self, channel: &Channel<B>, _: OpenWord, next: u64) {
        channel.commit_shared(self, next, HALF_HEADER);
    }

    fn closed(self, channel: &Channel<B>, old: OpenWord) {
        let rest = channel
            .backend()
            .memory()
            .page_size()
            .wrapping_sub(old.offset());
        channel.commit_shared(self, old.position(), HALF_HEADER.wrapping_add(rest));
    }
}

impl<B: Backend> Channel<B> {
    /// Reserves `len` bytes, rounded up to [`RECORD_ALIGN`], for one record.
    ///
    /// `pin` is borrowed for as long as the reservation lives: the CPU must not change meanwhile.
    ///
    /// # Errors
    ///
    /// The cause for which there is no room. With [`Class::Live`] it is counted as a loss; an injected
    /// record is not lost, as its object is still there.
    #[inline(always)]
    pub fn reserve<'a, P: Pinned>(
        &'a self,
        pin: &'a P,
        len: usize,
        class: Class,
    ) -> Result<Reservation<'a, B>, Cause> {
        let cpu = self.cpu(pin.cpu()).ok_or(Cause::Full)?;
        let len = len.wrapping_add(RECORD_ALIGN - 1) & !(RECORD_ALIGN - 1);
        let depth = self.enter(cpu);
        // Nearly always there is an open page of this CPU with room in it.
        let room = match self.reserve_open(cpu, depth, len) {
            Some(room) => room,
            None => self.reserve_anywhere(cpu, depth, len, class)?,
        };
        if depth != 1 {
            cpu.nested().local_add(1);
        }
        let memory = self.backend().memory();
        // It is inside of its page: what was reserved is.
        let place = memory
            .place(room.page, room.offset, len)
            .ok_or(Cause::TooLarge)?;
        Ok(Reservation {
            channel: self,
            cpu,
            place,
            position: room.position,
            offset: room.offset as u32,
            len: len as u32,
            time: room.time,
        })
    }

    /// Makes a NOP of a record, and ends the write.
    #[cold]
    #[inline(never)]
    fn discard(&self, cpu: &CpuState<B::Word>, position: u64, offset: u32, len: u32) {
        let owner = if self.is_shared() { 0 } else { cpu.number() };
        let page = self.page_at(owner, position);
        self.write_nop(page, offset as usize, len as usize);
        if self.is_shared() {
            self.leave_shared(cpu, position, len as usize);
        } else {
            self.leave(cpu);
        }
    }

    /// Tries once to reserve in the open page of a CPU.
    #[inline(always)]
    fn reserve_open(&self, cpu: &CpuState<B::Word>, depth: u64, len: usize) -> Option<Room> {
        let owner = ByCpu(cpu);
        let stamp = owner.stamp(depth).ok()?;
        let old = owner.load();
        let end = old.offset().wrapping_add(len);
        let page_size = self.backend().memory().page_size();
        if self.is_shared() || !old.is_open() || len == 0 || len > page_size || end > page_size {
            return None;
        }
        let last = owner.last_time();
        let time = owner.announce(stamp, self.backend().clock().max(last));
        if !owner.replace(old, old.advanced(len)) {
            return None;
        }
        Some(Room {
            position: old.position(),
            page: self.page_at(owner.number(), old.position()),
            offset: old.offset(),
            time,
        })
    }

    /// Reserves wherever there is room. If there is none, the write ends.
    #[cold]
    #[inline(never)]
    fn reserve_anywhere(
        &self,
        cpu: &CpuState<B::Word>,
        depth: u64,
        len: usize,
        class: Class,
    ) -> Result<Room, Cause> {
        let room = if self.is_shared() {
            self.reserve_at(self.by_all(cpu), depth, len, class)
        } else {
            self.reserve_at(ByCpu(cpu), depth, len, class)
        };
        if let Err(cause) = room {
            if class == Class::Live {
                cpu.lost().count(cause, Loss::one(self.backend().clock()));
            }
            self.end(cpu);
        }
        room
    }

    /// Begins a write and returns at which depth, from one.
    #[inline]
    fn enter(&self, cpu: &CpuState<B::Word>) -> u64 {
        // An interrupt between the two restores what it found.
        let depth = cpu.depth.load().wrapping_add(1);
        cpu.depth.store(depth);
        depth
    }

    /// Ends a write that has reserved nothing.
    fn end(&self, cpu: &CpuState<B::Word>) {
        if self.is_shared() {
            cpu.depth.store(cpu.depth.load().wrapping_sub(1));
        } else {
            self.leave(cpu);
        }
    }

    #[inline]
    fn reserve_at<O: Turn<B>>(
        &self,
        owner: O,
        depth: u64,
        len: usize,
        class: Class,
    ) -> Result<Room, Cause> {
        let page_size = self.backend().memory().page_size();
        let stamp = owner.stamp(depth)?;
        if len > page_size.wrapping_sub(HEADER_SIZE) || len == 0 {
            return Err(Cause::TooLarge);
        }
        let mut spare = None;
        loop {
            let old = owner.load();
            let last = owner.last_time();
            if old.is_open() && old.offset().wrapping_add(len) <= page_size {
                let time = owner.announce(stamp, self.backend().clock().max(last));
                if owner.replace(old, old.advanced(len)) {
                    if let Some(position) = spare {
                        self.put_back(owner, position);
                    }
                    return Ok(Room {
                        position: old.position(),
                        page: self.page_at(owner.number(), old.position()),
                        offset: old.offset(),
                        time,
                    });
                }
            } else if let Some(position) = self.next_page(owner, old, &mut spare, class) {
                let time = owner.announce(stamp, self.backend().clock().max(last));
                let offset = HEADER_SIZE.wrapping_add(len);
                if owner.replace(old, OpenWord::opened(position, offset, 1)) {
                    self.begin_page(owner, old, position, time);
                    if old.is_open() {
                        self.finish_page(owner, old, last);
                    }
                    return Ok(Room {
                        position,
                        page: self.page_at(owner.number(), position),
                        offset: HEADER_SIZE,
                        time,
                    });
                }
            } else if owner.load() == old {
                // Live records give the reader what there is: it frees pages by reading.
                if class == Class::Live && old.is_open() && owner.replace(old, old.closed()) {
                    self.finish_page(owner, old, last);
                }
                return Err(Cause::Full);
            }
        }
    }

    /// Finds a page to follow `old`. A page of a pool is kept in `spare` from one try to the next.
    fn next_page<O: Owner<B::Word>>(
        &self,
        owner: O,
        old: OpenWord,
        spare: &mut Option<u64>,
        class: Class,
    ) -> Option<u64> {
        match *spare {
            Some(position) => *spare = Some(self.renewed(old, position)),
            None => *spare = self.take_page(owner, old, class, true),
        }
        let position = *spare;
        if self.is_ring() {
            // The position depends on `old`.
            *spare = None;
        }
        position
    }

    /// Begins the page at `position`, by which `old` was just replaced.
    fn begin_page<O: Turn<B>>(&self, owner: O, old: OpenWord, position: u64, time: u64) {
        let page = self.page_at(owner.number(), position);
        // No more of the header than this: an interrupt may have ended the page already.
        let begin = PageBegin {
            magic: PAGE_MAGIC,
            stream_id: 0,
            timestamp_begin: time,
        };
        self.backend().memory().write(page, 0, begin.as_bytes());
        if let Some(state) = self.page_state(page) {
            state.begin.store(time);
            state.user.store(u64::from(owner.cpu().number()));
        }
        owner.opened(self, old, position);
    }

    /// Ends the page of `old`, which was just closed: what is left becomes a NOP.
    fn finish_page<O: Turn<B>>(&self, owner: O, old: OpenWord, end: u64) {
        let memory = self.backend().memory();
        let page = self.page_at(owner.number(), old.position());
        let offset = old.offset();
        self.write_nop(page, offset, memory.page_size().wrapping_sub(offset));
        let header = PageEnd {
            timestamp_end: end,
            content_size: offset as u64 * 8,
        };
        memory.write(page, PageEnd::OFFSET, header.as_bytes());
        if let Some(state) = self.page_state(page) {
            state.end.store(end);
            state.records.store(old.count());
        }
        owner.closed(self, old);
    }

    fn write_nop(&self, page: u32, offset: usize, len: usize) {
        if len == 0 {
            return;
        }
        let nop = RecordHeader {
            type_: RECORD_NOP,
            misc: 0,
            size: len as u16,
        };
        self.backend().memory().write(page, offset, nop.as_bytes());
    }

    /// Closes the open page of this CPU, or of all, and gives the reader losses of this CPU that no page
    /// has told it of.
    ///
    /// Returns whether everything this CPU has committed is readable: not so if this call came in the
    /// middle of a write, which then does the rest when it ends. A page of all CPUs is readable when it
    /// [is settled](Self::is_settled).
    pub fn close<P: Pinned>(&self, pin: &P) -> bool {
        let Some(cpu) = self.cpu(pin.cpu()) else {
            return true;
        };
        let depth = self.enter(cpu);
        if self.is_shared() {
            self.close_at(self.by_all(cpu), depth);
        } else {
            self.close_at(ByCpu(cpu), depth);
        }
        self.end(cpu);
        depth == 1
    }

    fn close_at<O: Turn<B>>(&self, owner: O, depth: u64) {
        loop {
            let old = owner.load();
            let last = owner.last_time();
            if old.is_open() {
                if owner.replace(old, old.closed()) {
                    self.finish_page(owner, old, last);
                    return;
                }
            } else if owner.cpu().lost().pending() {
                // A page without a record, for the report. Without a free page the next one has it.
                let Some(position) = self.take_page(owner, old, Class::Live, false) else {
                    return;
                };
                let mut time = self.backend().clock().max(last);
                if let Ok(stamp) = owner.stamp(depth) {
                    time = owner.announce(stamp, time);
                }
                if owner.replace(old, OpenWord::opened(position, HEADER_SIZE, 0)) {
                    self.begin_page(owner, old, position, time);
                } else {
                    self.put_back(owner, position);
                }
            } else {
                return;
            }
        }
    }

    /// Whether CPU `cpu` has something that [`Channel::close`] would make readable. From any CPU.
    pub fn has_open(&self, cpu: usize) -> bool {
        self.cpu(cpu).is_some_and(|cpu| {
            if self.is_shared() {
                return OpenWord(self.shared.open().load_acquire()).is_open()
                    || cpu.lost().pending();
            }
            cpu.depth.load_acquire() != 0
                || !OpenWord(cpu.open.load_acquire()).is_empty()
                || cpu.lost().pending()
        })
    }
}

const _: () = assert!(MAX_DEPTH >= 4);
