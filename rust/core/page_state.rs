// SPDX-License-Identifier: GPL-2.0

//! What is known of a page besides its bytes, in words that any CPU may read at any time.

use crate::word::Word;

/// The words of a page. They fill a cache line, so that pages of different CPUs do not meet in one.
#[repr(C, align(64))]
pub struct PageState<W> {
    /// Free, in a pool: the page below it in its stack. Opened by a CPU: position of the page that
    /// this CPU opened next.
    pub(crate) link: W,
    /// Of a page that all CPUs write: bytes that were committed, since the channel began. A multiple
    /// of the size of a page whenever the page is whole.
    pub(crate) commit: W,
    /// When it was opened, and by which CPU.
    pub(crate) begin: W,
    pub(crate) user: W,
    /// Set when it was closed: its end, and how many records it has.
    pub(crate) end: W,
    pub(crate) records: W,
    /// Set when a page that all CPUs write is published: one more than the number of the CPU whose losses
    /// it tells of, zero for none.
    pub(crate) reporter: W,
    /// Not of this page: a bit for each of 64 pages, set while the page is lent. Page 0 has those of the
    /// first 64, and so on.
    pub(crate) lent: W,
}

impl<W: Word> PageState<W> {
    /// The state of a page that was never used.
    pub fn new() -> Self {
        Self {
            link: W::new(0),
            commit: W::new(0),
            begin: W::new(0),
            user: W::new(0),
            end: W::new(0),
            records: W::new(0),
            reporter: W::new(0),
            lent: W::new(0),
        }
    }
}

impl<W: Word> Default for PageState<W> {
    fn default() -> Self {
        Self::new()
    }
}
