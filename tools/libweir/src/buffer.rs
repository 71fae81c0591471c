// SPDX-License-Identifier: GPL-2.0

//! Memory that pages are read into.

/// Room for a number of pages, and the pages that the last read left in it.
#[derive(Debug)]
pub struct PageBuffer {
    bytes: Vec<u8>,
    page_size: usize,
    filled: usize,
}

impl PageBuffer {
    /// Makes room for `pages` pages of `page_size` bytes; for at least one.
    ///
    /// # Panics
    ///
    /// If `page_size` is zero.
    pub fn new(page_size: usize, pages: usize) -> Self {
        assert!(page_size > 0, "a page has a size");
        PageBuffer {
            bytes: vec![0; page_size * pages.max(1)],
            page_size,
            filled: 0,
        }
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// Number of pages that there is room for.
    pub fn capacity(&self) -> usize {
        self.bytes.len() / self.page_size
    }

    /// The pages of the last read, one slice each.
    pub fn pages(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.bytes().chunks_exact(self.page_size)
    }

    /// The pages of the last read, as they stand one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// The whole room, for a read to fill.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        self.filled = 0;
        &mut self.bytes
    }

    /// Says that a read filled `pages` pages.
    pub(crate) fn set_filled(&mut self, pages: usize) {
        self.filled = pages * self.page_size;
    }
}
