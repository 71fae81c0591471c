// SPDX-License-Identifier: GPL-2.0

//! A raw capture: pages one after the other, as they came out of a channel.

use crate::page::{
    self,
    Page,
    PageError, //
};
use std::io::{
    ErrorKind,
    Read, //
};

/// A capture could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The input gave an error.
    #[error("cannot read at offset {offset} ({offset:#x}): {reason}")]
    Io {
        /// Bytes that were read before.
        offset: u64,
        /// What it gave.
        reason: std::io::Error,
    },
    /// The input ends within a page.
    #[error("the input ends within the page at offset {offset} ({offset:#x}): {missing} bytes are missing; the writer was stopped, or the copy is incomplete")]
    Truncated {
        /// Where the page begins.
        offset: u64,
        /// Bytes up to the end of the page, or of its header where not even that is there.
        missing: usize,
    },
    /// A page does not hold together.
    #[error(transparent)]
    Page(#[from] PageError),
}

/// Takes the pages out of a capture, one at a time; memory for one page is all it needs.
#[derive(Debug)]
pub struct Stream<R> {
    input: R,
    page: Vec<u8>,
    offset: u64,
    failed: bool,
}

impl<R: Read> Stream<R> {
    /// Begins to read `input`. It is read in pieces as small as a header, so a file is better
    /// wrapped into a [`std::io::BufReader`].
    pub fn new(input: R) -> Self {
        Stream {
            input,
            page: Vec::new(),
            offset: 0,
            failed: false,
        }
    }

    /// Where the next page begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next page; `None` at the end of the input, and after an error.
    ///
    /// # Errors
    ///
    /// [`StreamError`], with the offset in the input.
    pub fn next_page(&mut self) -> Result<Option<Page<'_>>, StreamError> {
        if self.failed {
            return Ok(None);
        }
        self.failed = true;
        self.page.clear();
        let header_bytes = self.fill(page::HEADER_SIZE)?;
        if header_bytes == 0 {
            return Ok(None);
        }
        // A wrong magic number says more than that the header is not complete.
        let header = match page::parse_header(&self.page, self.offset) {
            Err(error) if matches!(error.kind, page::PageErrorKind::Short(_)) => {
                return Err(self.truncated(page::HEADER_SIZE))
            }
            header => header?,
        };
        let size = (header.packet_size / 8) as usize;
        if self.fill(size)? < size {
            return Err(self.truncated(size));
        }
        let page = Page::parse_at(&self.page, self.offset)?;
        self.offset += size as u64;
        self.failed = false;
        Ok(Some(page))
    }

    /// Reads until the page buffer holds `size` bytes or the input ends. Returns what it holds.
    fn fill(&mut self, size: usize) -> Result<usize, StreamError> {
        let mut have = self.page.len();
        self.page.resize(size, 0);
        while have < size {
            match self.input.read(&mut self.page[have..]) {
                Ok(0) => break,
                Ok(bytes) => have += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(reason) => {
                    return Err(StreamError::Io {
                        offset: self.offset + have as u64,
                        reason,
                    })
                }
            }
        }
        self.page.truncate(have);
        Ok(have)
    }

    fn truncated(&self, size: usize) -> StreamError {
        StreamError::Truncated {
            offset: self.offset,
            missing: size - self.page.len(),
        }
    }
}
