// SPDX-License-Identifier: GPL-2.0

//! The slots that say which pages are finished, as readers see them who map a channel. `libweir` has this
//! file too.

const PAGE_BITS: u32 = 24;
const POSITION_BITS: u32 = 35;

/// What positions in a ring are counted modulo, less one.
pub const POSITION_MASK: u64 = (1 << POSITION_BITS) - 1;

/// How finished pages are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    /// One queue of all pages, with so many slots, a power of two: the slot of a position holds the position
    /// and the page.
    Pool(u32),
    /// Queues of so many pages each, a power of two: each page has a slot, which holds the position.
    Ring(u32),
}

impl Slots {
    /// The slot for `position` of `queue`.
    pub fn index(self, queue: u32, position: u64) -> u32 {
        match self {
            Slots::Pool(slots) => position as u32 & slots.wrapping_sub(1),
            Slots::Ring(share) => queue
                .wrapping_mul(share)
                .wrapping_add(position as u32 & share.wrapping_sub(1)),
        }
    }

    /// What a slot holds once `page` is finished and at `position`. Never zero, which is what an unused one
    /// holds.
    pub fn value(self, position: u64, page: u32) -> u64 {
        match self {
            Slots::Pool(_) => position.wrapping_add(1) << PAGE_BITS | u64::from(page),
            Slots::Ring(_) => (position & POSITION_MASK).wrapping_add(1),
        }
    }

    /// The page at `position`, if slot `index`, which is that position's, says with `value` that it is
    /// finished.
    pub fn page(self, index: u32, value: u64, position: u64) -> Option<u32> {
        let page = match self {
            Slots::Pool(_) => (value & ((1 << PAGE_BITS) - 1)) as u32,
            Slots::Ring(_) => index,
        };
        (value == self.value(position, page)).then_some(page)
    }

    /// Whether a slot of a pool holds `position` or a later one.
    pub fn has_passed(value: u64, position: u64) -> bool {
        let known = (1 << (64 - PAGE_BITS)) - 1;
        value >> PAGE_BITS >= position.wrapping_add(1) & known
    }
}
