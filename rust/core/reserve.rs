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
    lost::Cause,
    open_word::{
        OpenWord,
        RECORD_ALIGN, //
    },
    page_header::{
        PageBegin,
        PageEnd, //
    },
    page_memory::{
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
use zerocopy::IntoBytes;

/// Room for one record, in nobody else's hands until it is dropped.
///
/// Dropping it without [`commit`](Self::commit) turns the room into a NOP. Several on one CPU may be
/// dropped in any order; the reader sees none of them before all are.
pub struct Reservation<'a, B: Backend> {
    channel: &'a Channel<B>,
    cpu: &'a CpuState<B::Word>,
    page: u32,
    offset: usize,
    len: usize,
    time: u64,
    committed: bool,
}

impl<B: Backend> Reservation<'_, B> {
    /// The time of the record: no record of this CPU before it has a later one.
    #[inline]
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Writes `bytes` at `offset` of the record; what would lie outside it is left out.
    #[inline]
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let Some(room) = self.len.checked_sub(offset) else {
            return;
        };
        let bytes = match bytes.get(..room) {
            Some(fitting) => fitting,
            None => bytes,
        };
        self.channel
            .backend()
            .memory()
            .write(self.page, self.offset.wrapping_add(offset), bytes);
    }

    /// Ends the record as written.
    #[inline]
    pub fn commit(mut self) {
        self.committed = true;
    }
}

impl<B: Backend> Drop for Reservation<'_, B> {
    #[inline]
    fn drop(&mut self) {
        if !self.committed {
            self.channel.write_nop(self.page, self.offset, self.len);
        }
        self.channel.leave(self.cpu);
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
    #[inline]
    pub fn reserve<'a, P: Pinned>(
        &'a self,
        pin: &'a P,
        len: usize,
        class: Class,
    ) -> Result<Reservation<'a, B>, Cause> {
        let cpu = self.cpu(pin.cpu()).ok_or(Cause::Full)?;
        let len = len.wrapping_add(RECORD_ALIGN - 1) & !(RECORD_ALIGN - 1);
        let depth = self.enter(cpu);
        match self.reserve_at(cpu, depth, len, class) {
            Ok((page, offset, time)) => {
                if depth != 1 {
                    cpu.nested().local_add(1);
                }
                Ok(Reservation {
                    channel: self,
                    cpu,
                    page,
                    offset,
                    len,
                    time,
                    committed: false,
                })
            }
            Err(cause) => {
                if class == Class::Live {
                    cpu.lost().count(cause, self.backend().clock());
                }
                self.leave(cpu);
                Err(cause)
            }
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

    #[inline]
    fn reserve_at(
        &self,
        cpu: &CpuState<B::Word>,
        depth: u64,
        len: usize,
        class: Class,
    ) -> Result<(u32, usize, u64), Cause> {
        let page_size = self.backend().memory().page_size();
        let stamp = cpu
            .stamps
            .get((depth as usize).wrapping_sub(1))
            .ok_or(Cause::Nested)?;
        if len > page_size.wrapping_sub(HEADER_SIZE) || len == 0 {
            return Err(Cause::TooLarge);
        }
        let mut spare = None;
        loop {
            let old = OpenWord(cpu.open.load());
            let last = cpu.last_time();
            if old.is_open() && old.offset().wrapping_add(len) <= page_size {
                let time = self.backend().clock().max(last);
                stamp.store(time);
                if cpu
                    .open
                    .local_compare_exchange(old.0, old.advanced(len).0)
                    .is_ok()
                {
                    if let Some(page) = spare {
                        self.give_page(cpu, page);
                    }
                    return Ok((old.page(), old.offset(), time));
                }
            } else if let Some(page) = spare.or_else(|| self.take_page(cpu, class)) {
                spare = Some(page);
                let time = self.backend().clock().max(last);
                stamp.store(time);
                let new = old.opened(page, HEADER_SIZE.wrapping_add(len));
                if cpu.open.local_compare_exchange(old.0, new.0).is_ok() {
                    self.begin_page(cpu, old, page, time);
                    if old.is_open() {
                        self.finish_page(old, last);
                    }
                    return Ok((page, HEADER_SIZE, time));
                }
            } else {
                // Live records give the reader what there is: it frees pages by reading.
                let closed = class == Class::Live
                    && old.is_open()
                    && cpu
                        .open
                        .local_compare_exchange(old.0, old.closed().0)
                        .is_ok();
                if closed {
                    self.finish_page(old, last);
                }
                return Err(Cause::Full);
            }
        }
    }

    /// Puts `page`, which `old` was just replaced by, behind the page before it, and begins it.
    fn begin_page(&self, cpu: &CpuState<B::Word>, old: OpenWord, page: u32, time: u64) {
        if old.is_empty() {
            cpu.chain.store(u64::from(page));
        } else {
            self.set_link(old.page(), page);
        }
        // No more of the header than this: an interrupt may have ended the page already.
        let begin = PageBegin {
            magic: PAGE_MAGIC,
            stream_id: 0,
            timestamp_begin: time,
        };
        self.backend().memory().write(page, 0, begin.as_bytes());
    }

    /// Ends the page of `old`, which was just closed: what is left becomes a NOP.
    fn finish_page(&self, old: OpenWord, end: u64) {
        let memory = self.backend().memory();
        let (page, offset) = (old.page(), old.offset());
        self.write_nop(page, offset, memory.page_size().wrapping_sub(offset));
        let end = PageEnd {
            timestamp_end: end,
            content_size: offset as u64 * 8,
        };
        memory.write(page, PageEnd::OFFSET, end.as_bytes());
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

    /// Ends a write. The outermost one makes everything up to here visible.
    #[inline]
    pub(crate) fn leave(&self, cpu: &CpuState<B::Word>) {
        let depth = cpu.depth.load();
        if depth > 1 {
            cpu.depth.store(depth.wrapping_sub(1));
            return;
        }
        loop {
            let open = self.publish_closed(cpu);
            cpu.committed.store_release(open.0);
            cpu.depth.store(0);
            // An interrupt that came before the store saw an outer writer and left its record to it.
            if cpu.open.load() == open.0 {
                return;
            }
            cpu.depth.store(1);
        }
    }

    /// Closes the open page of this CPU, and gives the reader losses that no page has told it of.
    ///
    /// Returns whether everything this CPU has committed is readable: not so if this call came in the
    /// middle of a write, which then does the rest when it ends.
    pub fn close<P: Pinned>(&self, pin: &P) -> bool {
        let Some(cpu) = self.cpu(pin.cpu()) else {
            return true;
        };
        let depth = self.enter(cpu);
        loop {
            let old = OpenWord(cpu.open.load());
            let last = cpu.last_time();
            if old.is_open() {
                if cpu
                    .open
                    .local_compare_exchange(old.0, old.closed().0)
                    .is_ok()
                {
                    self.finish_page(old, last);
                    break;
                }
            } else if cpu.lost().pending() {
                // A page without a record, for the report. Without a free page the next one has it.
                let Some(page) = self.take_page(cpu, Class::Live) else {
                    break;
                };
                let time = self.backend().clock().max(last);
                if let Some(stamp) = cpu.stamps.get((depth as usize).wrapping_sub(1)) {
                    stamp.store(time);
                }
                let new = old.opened(page, HEADER_SIZE);
                if cpu.open.local_compare_exchange(old.0, new.0).is_ok() {
                    self.begin_page(cpu, old, page, time);
                } else {
                    self.give_page(cpu, page);
                }
            } else {
                break;
            }
        }
        self.leave(cpu);
        depth == 1
    }

    /// Whether CPU `cpu` has something that [`Channel::close`] would make readable. From any CPU.
    pub fn has_open(&self, cpu: usize) -> bool {
        self.cpu(cpu).is_some_and(|cpu| {
            cpu.depth.load_acquire() != 0
                || !OpenWord(cpu.open.load_acquire()).is_empty()
                || cpu.lost().pending()
        })
    }
}

const _: () = assert!(MAX_DEPTH >= 4);
