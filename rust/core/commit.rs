// SPDX-License-Identifier: GPL-2.0

//! When a record ends, and what that makes visible: from committed records to finished pages.

use crate::{
    channel::{
        Backend,
        Channel, //
    },
    cpu_state::{
        CpuState,
        NO_CHAIN, //
    },
    lost::LostReport,
    open_word::OpenWord,
    owner::{
        ByAll,
        ByCpu,
        Owner, //
    },
    page_header::PageRest,
    page_memory::PageMemory,
    uapi::{
        CPU_NONE,
        PAGE_OVERWRITE,
        PAGE_SHARED, //
    },
    word::Word,
};
use zerocopy::IntoBytes;

impl<B: Backend> Channel<B> {
    // --- The page of one CPU ---

    /// Ends the write that made the open word `end`, in the common case: it was the outermost one, and
    /// nothing was reserved since. [`false`] if it is not so, and it has not ended.
    #[inline(always)]
    pub(crate) fn leave_open(&self, cpu: &CpuState<B::Word>, end: OpenWord) -> bool {
        // In this order the compiler compares with memory.
        if end.0 != cpu.open.load() {
            return false;
        }
        // This write has found nothing but the open page, so no other one waits.
        let left = Self::leave_at(cpu, end);
        if !left {
            cpu.depth.store(1);
        }
        left
    }

    /// Ends a write. The outermost one makes everything up to here visible.
    pub(crate) fn leave(&self, cpu: &CpuState<B::Word>) {
        let depth = cpu.depth.load();
        if depth > 1 {
            cpu.depth.store(depth.wrapping_sub(1));
            return;
        }
        self.enter_and_publish(cpu);
    }

    /// Makes everything up to `open` visible. [`false`] if an interrupt has written more since: it came
    /// before the depth was zero, saw an outer writer, and left its record to it.
    #[inline(always)]
    fn leave_at(cpu: &CpuState<B::Word>, open: OpenWord) -> bool {
        cpu.committed.store_release(open.0);
        cpu.depth.store_release(0);
        open.0 == cpu.open.load()
    }

    /// Makes everything visible, as the outermost writer.
    ///
    /// What an interrupt left at the wrong moment, after `open` was looked at and before the depth was zero,
    /// is left here: the next writer of this CPU, which may come right then, sees that `open` is not
    /// `committed`, and comes here too.
    #[cold]
    #[inline(never)]
    fn enter_and_publish(&self, cpu: &CpuState<B::Word>) {
        loop {
            cpu.depth.store(1);
            let open = self.publish_closed(cpu);
            // After `open` was loaded: whoever reserves from now on changes it.
            cpu.fold_stamps();
            if open.is_open() {
                self.set_open_page(cpu, self.page_at(cpu.number(), open.position()));
            }
            if Self::leave_at(cpu, open) {
                return;
            }
        }
    }

    /// Whether there is nothing to publish: the first page of the chain is the open one.
    fn is_only_page(first: u64, open: OpenWord) -> bool {
        open.is_open() && open.position() == first
    }

    /// Publishes every page of this CPU that is closed, in the order in which they were opened, and
    /// returns the state up to which that holds. Only for the outermost writer.
    ///
    /// Every reservation made before is committed: writes inside this one have ended. An interrupt at
    /// any point may reserve and close more, but publishes nothing, and of `chain` touches nothing
    /// unless it finds `open` empty.
    fn publish_closed(&self, cpu: &CpuState<B::Word>) -> OpenWord {
        loop {
            // In this order: while there is a chain, `open` is not empty, so no interrupt changes it.
            let first = cpu.chain.load();
            let open = OpenWord(cpu.open.load());
            if first == NO_CHAIN {
                // An interrupt may have come in between, and begun a chain.
                if open.is_empty() {
                    return open;
                }
            } else if Self::is_only_page(first, open) {
                return open;
            } else {
                self.publish_first(cpu, first, open);
            }
        }
    }

    /// Publishes the closed page at `first`, the head of the chain.
    fn publish_first(&self, cpu: &CpuState<B::Word>, first: u64, open: OpenWord) {
        if open.position() == first {
            // It is the last one. Nobody touches `chain` before `open` becomes empty, so it is
            // cleared first.
            cpu.chain.store(NO_CHAIN);
            let emptied = cpu
                .open
                .local_compare_exchange(open.0, open.emptied().0)
                .is_ok();
            if emptied {
                self.publish_of_cpu(cpu, first);
                return;
            }
            // An interrupt has opened a page behind it.
        }
        // The link is read before the page is published: it may be used again at once.
        let page = self.page_at(cpu.number(), first);
        let next = self
            .page_state(page)
            .map_or(NO_CHAIN, |state| state.link.load());
        cpu.chain.store(next);
        self.publish_of_cpu(cpu, first);
    }

    fn publish_of_cpu(&self, cpu: &CpuState<B::Word>, position: u64) {
        let sequence = cpu.pages().load();
        cpu.pages().store(sequence.wrapping_add(1));
        let report = cpu.lost().take_report();
        self.publish(ByCpu(cpu), position, sequence, Some(&report));
    }

    // --- The page of all CPUs ---

    /// Ends a write of `len` bytes to the page at `position`.
    #[inline(never)]
    pub(crate) fn leave_shared(&self, cpu: &CpuState<B::Word>, position: u64, len: usize) {
        self.commit_shared(self.by_all(cpu), position, len);
        cpu.depth.store(cpu.depth.load().wrapping_sub(1));
    }

    /// `len` bytes of the page at `position` are as they stay. Whoever makes it whole publishes it.
    ///
    /// The header counts half when the page is opened and half when it is closed, so no page is whole
    /// that is still open.
    pub(crate) fn commit_shared(&self, owner: ByAll<'_, B::Word>, position: u64, len: usize) {
        let Some(state) = self.page_state(self.page_at(0, position)) else {
            return;
        };
        let committed = state.commit.fetch_add(len as u64).wrapping_add(len as u64);
        if committed & self.page_mask() != 0 {
            return;
        }
        let cpu = owner.cpu();
        cpu.pages().local_add(1);
        // A write that this one interrupted may be at the same. Then the next page has the report.
        let report = (cpu.depth.load() == 1).then(|| cpu.lost().take_report());
        let told = report.is_some_and(|report| report.discarded() != 0);
        state
            .reporter
            .store(if told { u64::from(cpu.number()) + 1 } else { 0 });
        self.publish(owner, position, position, report.as_ref());
    }

    /// What counts bytes of a page modulo its size.
    pub(crate) fn page_mask(&self) -> u64 {
        (self.backend().memory().page_size() as u64).wrapping_sub(1)
    }

    // --- Both ---

    /// Completes the header of a page that is whole, and gives it to the reader.
    fn publish<O: Owner<B::Word>>(
        &self,
        owner: O,
        position: u64,
        sequence: u64,
        report: Option<&LostReport>,
    ) {
        let memory = self.backend().memory();
        let mut flags = 0;
        if self.is_shared() {
            flags |= PAGE_SHARED;
        }
        if self.may_overwrite {
            flags |= PAGE_OVERWRITE;
        }
        let mut rest = PageRest {
            packet_size: memory.page_size() as u64 * 8,
            packet_seq_num: sequence,
            events_discarded: 0,
            cpu_id: CPU_NONE,
            flags,
            lost_begin: 0,
            lost_end: 0,
            lost: Default::default(),
        };
        if let Some(report) = report {
            rest.cpu_id = owner.cpu().number();
            rest.events_discarded = report.discarded();
            rest.lost_begin = report.begin;
            rest.lost_end = report.end;
            rest.lost = report.lost.map(|lost| lost as u32);
        }
        let page = self.page_at(owner.number(), position);
        memory.write(page, PageRest::OFFSET, rest.as_bytes());

        let waiting = self.enqueue(owner, position);
        // The page was given before this is looked at, with a fence in between; the reader says that it
        // waits, and then looks for pages.
        let wanted = self.wanted.load();
        if wanted != 0 && waiting >= wanted {
            // Whoever waits says so again; who reads an older value here wakes it for nothing.
            self.wanted.store(0);
            self.backend().wake();
        }
    }
}
