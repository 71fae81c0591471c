// SPDX-License-Identifier: GPL-2.0

//! From the channel to a pipe: `splice()`.
//!
//! A page of a pool that was not read in part is lent: the pipe gets the page itself, and the pool gets it back
//! when nobody refers to it any more (`weir_core`'s `Channel::lend`). Everything else is copied.

use super::{
    delivery::{
        ChannelReader,
        Sink, //
    },
    Channel,
};
use crate::abs::{
    lender::{
        Lend,
        Lender, //
    },
    pipe::{
        PageCopy,
        Pipe, //
    },
};
use kernel::{
    prelude::*,
    sync::atomic::ordering::Relaxed, //
};
use weir_core::{
    Backend,
    Chunk,
    Mode,
    Model, //
};

/// A pipe, and how much is still to be put into it.
struct Filling<'a, 'b> {
    pipe: &'a mut Pipe<'b>,
    left: usize,
    lender: Option<&'a Lender<Channel>>,
}

impl Sink for Filling<'_, '_> {
    fn takes(&self, len: usize) -> bool {
        len <= self.left.min(self.pipe.room())
    }

    fn put(&mut self, channel: &Channel, reader: &mut ChannelReader, chunk: Chunk) -> Result<bool> {
        let len = channel.options.page_size;
        let room = self.pipe.reserve(len).ok_or(EAGAIN)?;
        let engine = &channel.engine;
        let (chunk, room) = match self.lender {
            // Whoever maps a page refers to it for as long.
            Some(lender) if !channel.pages_mapped.load(Relaxed) => {
                let pages = engine.backend().memory().pages();
                let mut room = Some(room);
                let refused = reader.lend(engine, chunk, |page| {
                    if let Some(room) = room.take() {
                        room.lend(pages, page, lender);
                    }
                });
                match (refused, room) {
                    (Some(chunk), Some(room)) => (chunk, room),
                    _ => {
                        self.left = self.left.saturating_sub(len);
                        return Ok(true);
                    }
                }
            }
            _ => (chunk, room),
        };
        let mut copy = PageCopy::new(len)?;
        channel
            .copy(reader, &chunk, |bytes| copy.append(bytes))
            .ok_or(EFAULT)?;
        // If it was overwritten meanwhile, the next one takes its place.
        if !reader.consume(engine, chunk) {
            return Ok(false);
        }
        room.give(copy);
        self.left = self.left.saturating_sub(len);
        Ok(true)
    }
}

impl Channel {
    /// Whether pages can be lent at all: those of rings are used again after a round, whoever refers to them.
    pub(crate) fn lends(&self) -> bool {
        self.options.model == Model::Paged && self.options.mode == Mode::Discard
    }

    /// Puts as many whole pages as there are and fit into `pipe`, but no more than `len` bytes; none, at the end.
    /// Without `lender` they are copied. May sleep.
    ///
    /// # Errors
    ///
    /// As [`Self::read`], but `EINVAL` means that not even one page is wanted or fits into the pipe when it is
    /// empty, `EAGAIN` also that it has room for a part of one, and `ENOMEM` that one could not be copied.
    pub(crate) fn splice(
        &self,
        pipe: &mut Pipe<'_>,
        len: usize,
        lender: Option<&Lender<Self>>,
        nonblocking: bool,
    ) -> Result<usize> {
        let page_size = self.options.page_size;
        let room = pipe.room();
        if len < page_size {
            // The caller has limited what is wanted to what there is room for.
            let wants_less = len < room || pipe.capacity() < page_size;
            return Err(if wants_less { EINVAL } else { EAGAIN });
        }
        let mut filling = Filling {
            pipe,
            left: len,
            lender,
        };
        self.take(&mut filling, nonblocking)
    }

    /// Sees to it that no page is lent while the pages are mapped. The caller holds up readers.
    ///
    /// # Errors
    ///
    /// `EBUSY` if one is.
    pub(super) fn stop_lending(&self) -> Result {
        while self.engine.take_back() {}
        if self.engine.lent() != 0 {
            return Err(EBUSY);
        }
        self.pages_mapped.store(true, Relaxed);
        Ok(())
    }
}

impl Lend for Channel {
    fn let_go(&self) {
        self.engine.take_back();
    }
}
