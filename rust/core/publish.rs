// SPDX-License-Identifier: GPL-2.0

//! From a CPU's closed pages to the one queue.

use crate::{
    channel::{
        Backend,
        Channel, //
    },
    cpu_state::CpuState,
    open_word::{
        OpenWord,
        NO_PAGE, //
    },
    page_header::PageRest,
    page_memory::PageMemory,
    word::Word,
};
use zerocopy::IntoBytes;

const SLOT_PAGE_BITS: u32 = 24;

/// What the slot of `ticket` holds once `page` is in it. Never zero, which is what an unused one holds.
pub(crate) fn slot_value(ticket: u64, page: u32) -> u64 {
    ticket.wrapping_add(1) << SLOT_PAGE_BITS | u64::from(page)
}

/// The page in a slot, if it is there for `ticket` already.
pub(crate) fn slot_page(value: u64, ticket: u64) -> Option<u32> {
    let page = (value & ((1 << SLOT_PAGE_BITS) - 1)) as u32;
    (value == slot_value(ticket, page)).then_some(page)
}

impl<B: Backend> Channel<B> {
    /// Publishes every page of this CPU that is closed, in the order in which they were opened, and
    /// returns the state up to which that holds. Only for the outermost writer.
    ///
    /// Every reservation made before is committed: writes inside this one have ended. An interrupt at
    /// any point may reserve and close more, but publishes nothing, and of `chain` touches nothing
    /// unless it finds `open` empty.
    #[inline]
    pub(crate) fn publish_closed(&self, cpu: &CpuState<B::Word>) -> OpenWord {
        loop {
            // In this order: while there is a chain, `open` is not empty, so no interrupt changes it.
            let first = cpu.chain.load() as u32;
            let open = OpenWord(cpu.open.load());
            if first == NO_PAGE || (open.is_open() && open.page() == first) {
                return open;
            }
            self.publish_first(cpu, first, open);
        }
    }

    /// Publishes the closed page `first`, the head of the chain.
    fn publish_first(&self, cpu: &CpuState<B::Word>, first: u32, open: OpenWord) {
        if open.page() == first {
            // It is the last one. Nobody touches `chain` before `open` becomes empty, so it is
            // cleared first.
            cpu.chain.store(u64::from(NO_PAGE));
            let emptied = cpu
                .open
                .local_compare_exchange(open.0, open.emptied().0)
                .is_ok();
            if emptied {
                self.publish(cpu, first);
                return;
            }
            // An interrupt has opened a page behind it.
        }
        // The link is read before the page is published: the reader may free it at once.
        cpu.chain.store(self.link(first));
        self.publish(cpu, first);
    }

    /// Gives `page` to the reader.
    fn publish(&self, cpu: &CpuState<B::Word>, page: u32) {
        let memory = self.backend().memory();
        let sequence = cpu.pages().load();
        let report = cpu.lost().take_report();
        cpu.pages().store(sequence.wrapping_add(1));
        let rest = PageRest {
            packet_size: memory.page_size() as u64 * 8,
            packet_seq_num: sequence,
            events_discarded: report.discarded,
            cpu_id: cpu.number(),
            flags: 0,
            lost_begin: report.begin,
            lost_end: report.end,
            lost: report
                .lost
                .map(|lost| u32::try_from(lost).unwrap_or(u32::MAX)),
        };
        memory.write(page, PageRest::OFFSET, rest.as_bytes());

        // The ring has at least as many slots as there are pages, so this one is free.
        let ticket = self.tail.fetch_add(1);
        let ring = self.backend().ring();
        let index = ticket as usize & ring.len().wrapping_sub(1);
        if let Some(slot) = ring.get(index) {
            slot.store_release(slot_value(ticket, page));
        }
        // Against the reader, which says that it waits and then looks at the ring again.
        B::Word::fence();
        let wanted = self.wanted.load();
        if wanted != 0
            && ticket
                .wrapping_add(1)
                .wrapping_sub(self.head.load())
                .ge(&wanted)
        {
            // Whoever waits says so again; who reads an older value here wakes it for nothing.
            self.wanted.store(0);
            self.backend().wake();
        }
    }
}

#[cfg(any(test, weir_kunit))]
#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_publish))]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_valid_for_its_ticket_only() {
        assert_eq!(slot_page(0, 0), None);
        let value = slot_value(5, 7);
        assert_eq!(slot_page(value, 5), Some(7));
        assert_eq!(slot_page(value, 4), None);
        assert_eq!(slot_page(value, 5 + 8), None);
        assert_eq!(slot_page(slot_value(0, 0), 0), Some(0));
    }
}
