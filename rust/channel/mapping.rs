// SPDX-License-Identifier: GPL-2.0

//! From the channel to user space without a call for each page: `mmap()`.
//!
//! The reader sees the pages and the slots, and writes how far it is. Nothing that it writes is believed; see
//! `weir_core::Channel::reclaim`.

use super::Channel;
use crate::abs::mmap::{
    Access,
    Mapping, //
};
use kernel::{
    mm::virt::VmaNew,
    prelude::*, //
};
use weir_core::{
    slot::Slots,
    uapi::{
        LayoutReq,
        MMAP_PAGES,
        MMAP_POSITIONS,
        MMAP_SLOTS, //
    },
    Backend,
    Mode, //
};

impl Channel {
    /// Maps what `vma` asks for. Sleeps.
    ///
    /// # Errors
    ///
    /// `EBUSY` (somebody is just reading, or a page is lent), `EINVAL` (no such offset, another size, a private mapping, a channel that overwrites), `EACCES`,
    /// `ENOMEM`.
    pub(crate) fn map(&self, vma: &VmaNew) -> Result {
        if self.options.mode == Mode::Overwrite {
            return Err(EINVAL);
        }
        let backend = self.engine.backend();
        match Mapping::offset(vma) {
            MMAP_POSITIONS => {
                let words = backend.position_words();
                Mapping::new(vma, words.bytes(), Access::Write)?.words(words)?;
                // Against whoever just reads, and whoever else maps. Nobody is waited for, as whoever reads
                // may be waiting for the memory that is being mapped to.
                let _reader = self.reader.try_lock().ok_or(EBUSY)?;
                self.stop_lending()?;
                if !self.engine.is_mapped() {
                    self.engine.set_mapped();
                }
                Ok(())
            }
            MMAP_SLOTS => {
                let words = backend.slot_words();
                Mapping::new(vma, words.bytes(), Access::Read)?.words(words)
            }
            MMAP_PAGES => {
                let pages = backend.memory().pages();
                let mapping = Mapping::new(vma, pages.bytes(), Access::Read)?;
                let reader = self.reader.try_lock().ok_or(EBUSY)?;
                self.stop_lending()?;
                drop(reader);
                mapping.pages(pages)
            }
            _ => Err(EINVAL),
        }
    }

    /// Says how large the mappings are, and how they are read.
    pub(crate) fn layout(&self, request: &mut LayoutReq) {
        let backend = self.engine.backend();
        request.queues = self.engine.queues() as u32;
        (request.share, request.slots) = match self.engine.slots() {
            Slots::Pool(slots) => (0, slots),
            Slots::Ring(share) => (share, backend.ring().len() as u32),
        };
        request.page_size = self.options.page_size as u32;
        request.positions_size = backend.position_words().bytes() as u64;
        request.slots_size = backend.slot_words().bytes() as u64;
        request.pages_size = backend.memory().pages().bytes() as u64;
    }
}
