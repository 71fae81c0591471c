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
    open_word::OpenWord,
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
    record_len::RecordLen,
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

/// A record that is reserved, and must end.
///
/// Dropping it without [`commit`](Self::commit) turns its room into a NOP. Several on one CPU may end in any
/// order; the reader sees none of them before all have.
pub struct Pending<'a, B: Backend> {
    channel: &'a Channel<B>,
    cpu: &'a CpuState<B::Word>,
    /// The open word behind it; [marked](OpenWord::marked) where more is to be done in the end than usual.
    end: OpenWord,
    len: u32,
}

/// Room for one record, in nobody else's hands until it is dropped or committed.
pub struct Reservation<'a, B: Backend> {
    pending: Pending<'a, B>,
    place: <B::Memory as PageMemory>::Place,
    time: u64,
}

impl<'a, B: Backend> Pending<'a, B> {
    /// Ends the record as written.
    #[inline(always)]
    pub fn commit(self) {
        let this = ManuallyDrop::new(self);
        if !Self::try_commit(&this) {
            this.leave();
        }
    }

    /// Ends the record as written, if nothing is to be done for that but to say so; returns whether that was
    /// so. If it was, `this` has ended, and nothing is done with it any more.
    #[inline(always)]
    pub fn try_commit(this: &ManuallyDrop<Self>) -> bool {
        this.channel.leave_open(this.cpu, this.end)
    }

    #[cold]
    #[inline(never)]
    fn leave(&self) {
        self.channel
            .leave_any(self.cpu, self.end.position(), self.len as usize);
    }
}

impl<B: Backend> Drop for Pending<'_, B> {
    // What it calls takes no address of it, so that it can stay in registers where it is committed.
    #[inline(always)]
    fn drop(&mut self) {
        self.channel.discard(self.cpu, self.end, self.len as usize);
    }
}

impl<'a, B: Backend> Reservation<'a, B> {
    /// The time of the record: no record of this CPU before it has a later one.
    #[inline(always)]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// The CPU that it is written on.
    #[inline(always)]
    pub fn cpu(&self) -> u32 {
        self.pending.cpu.number()
    }

    /// Writes `bytes` at `offset` of the record, if all of them fit.
    #[inline(always)]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        self.memory().write_at(self.place, offset, bytes);
    }

    /// Zeroes the last eight bytes of the record.
    #[inline(always)]
    pub fn clear_end(&self) {
        self.memory().clear_end(self.place);
    }

    /// Where the record is from `offset` on, to its end: for whoever fills it in place.
    #[inline(always)]
    pub fn address(&self, offset: usize) -> Option<NonNull<u8>>
    where
        B::Memory: Addressed,
    {
        self.memory().address(self.place, offset)
    }

    /// Ends the record as written.
    #[inline(always)]
    pub fn commit(self) {
        self.pending.commit();
    }

    /// Only what is needed to end it.
    #[inline(always)]
    pub fn into_pending(self) -> Pending<'a, B> {
        self.pending
    }

    #[inline(always)]
    fn memory(&self) -> &'a B::Memory {
        self.pending.channel.backend().memory()
    }
}

/// What opening and closing a page does besides, for each kind of [`Owner`].
trait Turn<B: Backend>: Owner<B::Word> {
    /// The page at `next` was opened, behind that of `old`, and its header has been begun.
    fn opened(self, channel: &Channel<B>, old: OpenWord, next: u64);

    /// The page of `old` was closed, and nothing of it is left to write but records.
    fn closed(self, channel: &Channel<B>, old: OpenWord);

    /// Whether the page of `old`, which is not open, is still to be published, and takes along what was lost.
    fn will_report(self, old: OpenWord) -> bool;
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

    fn will_report(self, old: OpenWord) -> bool {
        !old.is_empty()
    }
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
            .wrapping_sub(channel.offset(old));
        channel.commit_shared(self, old.position(), HALF_HEADER.wrapping_add(rest));
    }

    fn will_report(self, _: OpenWord) -> bool {
        // Another CPU may complete it.
        false
    }
}

impl<B: Backend> Channel<B> {
    /// Reserves `len` bytes, [rounded up](RecordLen::new), for one record.
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
        let Some(len) = RecordLen::new(len) else {
            return self.reserve_slowly(pin, RecordLen::TOO_LARGE, class);
        };
        match self.try_reserve(pin, len, || self.backend().clock(), false) {
            Some(room) => Ok(room),
            None => self.reserve_slowly(pin, len, class),
        }
    }

    /// As [`reserve`](Self::reserve), but only if there is an open page of this CPU with room in it, and no
    /// other write is going on here, as is nearly always so. If not, nothing was done.
    ///
    /// `clock` is [`Backend::clock`], for callers who know which one that is, and `steady` whether it never goes
    /// backwards on a CPU.
    #[inline(always)]
    pub fn try_reserve<'a, P: Pinned>(
        &'a self,
        pin: &'a P,
        len: RecordLen,
        clock: impl FnOnce() -> u64,
        steady: bool,
    ) -> Option<Reservation<'a, B>> {
        let cpu = self.backend().state(pin)?;
        if cpu.depth.load() != 0 {
            return None;
        }
        let open = OpenWord(cpu.open.load());
        // Unless an interrupt has left something to the write that it came into, and that is just ending.
        if open.0 != cpu.committed.load() {
            return None;
        }
        let advance = open.advanced(len)?;
        // The write has begun, for whoever asks, before the clock is read.
        cpu.depth.store(1);
        let mut time = clock();
        if !steady {
            time = time.max(cpu.stamp.load());
        }
        cpu.stamp.store(time);
        let replaced = cpu.open.local_compare_exchange(open.0, advance.end().0);
        if replaced.is_err() {
            cpu.depth.store(0);
            return None;
        }
        let pending = Pending {
            channel: self,
            cpu,
            end: advance.end(),
            len: len.get() as u32,
        };
        // The open page is still the one that it was, since `committed` was `open`.
        let place = self.open_place(cpu, &advance)?;
        Some(Reservation {
            pending,
            place,
            time,
        })
    }

    /// As [`reserve`](Self::reserve), where [`try_reserve`](Self::try_reserve) did nothing.
    ///
    /// # Errors
    ///
    /// As of [`reserve`](Self::reserve).
    #[cold]
    #[inline(never)]
    pub fn reserve_slowly<'a, P: Pinned>(
        &'a self,
        pin: &'a P,
        len: RecordLen,
        class: Class,
    ) -> Result<Reservation<'a, B>, Cause> {
        let cpu = self.backend().state(pin).ok_or(Cause::Full)?;
        let depth = self.enter(cpu);
        let room = if self.is_shared() {
            self.reserve_at(cpu, self.by_all(cpu), depth, len, class)
        } else {
            self.reserve_at(cpu, ByCpu(cpu), depth, len, class)
        };
        match room {
            Ok(room) => {
                if depth != 1 {
                    cpu.nested().local_add(1);
                }
                Ok(room)
            }
            Err(cause) => {
                if class == Class::Live {
                    cpu.lost().count(cause, Loss::one(self.backend().clock()));
                }
                self.end(cpu);
                Err(cause)
            }
        }
    }

    /// The record of `len` bytes at `offset` of the page at `position`, by which the open word became
    /// `end`.
    fn reservation<'a>(
        &'a self,
        cpu: &'a CpuState<B::Word>,
        end: OpenWord,
        len: usize,
        time: u64,
    ) -> Result<Reservation<'a, B>, Cause> {
        let pending = Pending {
            channel: self,
            cpu,
            end: end.marked(),
            len: len as u32,
        };
        let (page, offset) = self.place_of(cpu, end, len);
        // It is inside of its page: what was reserved is.
        let memory = self.backend().memory();
        let place = memory.place(page, offset, len).ok_or(Cause::TooLarge)?;
        Ok(Reservation {
            pending,
            place,
            time,
        })
    }

    /// Page and offset of the record of `len` bytes behind which the open word was `end`.
    fn place_of(&self, cpu: &CpuState<B::Word>, end: OpenWord, len: usize) -> (u32, usize) {
        let owner = if self.is_shared() { 0 } else { cpu.number() };
        let page = self.page_at(owner, end.position());
        (page, self.offset(end).wrapping_sub(len))
    }

    /// Makes a NOP of a record, and ends the write.
    #[cold]
    #[inline(never)]
    fn discard(&self, cpu: &CpuState<B::Word>, end: OpenWord, len: usize) {
        let (page, offset) = self.place_of(cpu, end, len);
        self.write_nop(page, offset, len);
        self.leave_any(cpu, end.position(), len);
    }

    /// Ends a write of `len` bytes to the page at `position`.
    fn leave_any(&self, cpu: &CpuState<B::Word>, position: u64, len: usize) {
        if self.is_shared() {
            self.leave_shared(cpu, position, len);
        } else {
            self.leave(cpu);
        }
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

    fn reserve_at<'a, O: Turn<B>>(
        &'a self,
        cpu: &'a CpuState<B::Word>,
        owner: O,
        depth: u64,
        len: RecordLen,
        class: Class,
    ) -> Result<Reservation<'a, B>, Cause> {
        let page_size = self.backend().memory().page_size();
        if depth > MAX_DEPTH as u64 {
            return Err(Cause::Nested);
        }
        if len.get() > page_size.wrapping_sub(HEADER_SIZE) {
            return Err(Cause::TooLarge);
        }
        let mut spare = None;
        loop {
            let old = owner.load();
            let last = owner.last_time();
            if let Some(advance) = old.advanced(len) {
                let new = advance.end();
                let time = owner.announce(depth, self.backend().clock().max(last));
                if owner.replace(old, new) {
                    if let Some(position) = spare {
                        self.put_back(owner, position);
                    }
                    return self.reservation(cpu, new, len.get(), time);
                }
            } else if let Some(position) = self.next_page(owner, old, &mut spare, class) {
                let time = owner.announce(depth, self.backend().clock().max(last));
                let offset = HEADER_SIZE.wrapping_add(len.get());
                let new = OpenWord::opened(position, page_size, offset, 1);
                if owner.replace(old, new) {
                    self.begin_page(owner, old, position, time);
                    if old.is_open() {
                        self.finish_page(owner, old, last);
                    }
                    return self.reservation(cpu, new, len.get(), time);
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
        let offset = self.offset(old);
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
        let Some(cpu) = self.backend().state(pin) else {
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
        let page_size = self.backend().memory().page_size();
        loop {
            let old = owner.load();
            let last = owner.last_time();
            if old.is_open() {
                if owner.replace(old, old.closed()) {
                    self.finish_page(owner, old, last);
                    return;
                }
            } else if owner.cpu().lost().pending() && !owner.will_report(old) {
                // A page without a record, for the report. Without a free page the next one has it.
                let Some(position) = self.take_page(owner, old, Class::Live, false) else {
                    return;
                };
                let time = owner.announce(depth, self.backend().clock().max(last));
                let new = OpenWord::opened(position, page_size, HEADER_SIZE, 0);
                if owner.replace(old, new) {
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
