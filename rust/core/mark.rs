// SPDX-License-Identifier: GPL-2.0

//! How far the stream is complete: a time before which nothing is still to come.

use crate::{
    channel::{
        Backend,
        Channel,
        HEADER_SIZE, //
    },
    head::Head,
    open_word::OpenWord,
    reader::{
        Progress,
        Reader, //
    },
    word::Word, //
};

impl<B: Backend> Channel<B> {
    /// Whether no write is under way on CPU `cpu`. If that is seen once, every write that had begun there
    /// before has ended, and what it wrote is in a finished page or committed in an open one.
    ///
    /// A writer that ends sets the depth to zero, and only then looks whether an interrupt has left
    /// records to it. If one has, `open` is not `committed`.
    pub fn is_quiet(&self, cpu: usize) -> bool {
        self.cpu(cpu).is_none_or(|cpu| {
            cpu.depth.load_acquire() == 0 && cpu.open.load_acquire() == cpu.committed.load_acquire()
        })
    }

    /// When the oldest page of all CPUs that is not finished began, if there is one.
    ///
    /// A page that is just being opened may still say when it began the last time, which is earlier.
    fn oldest_unfinished(&self) -> Option<u64> {
        let open = OpenWord(self.shared.open().load_acquire());
        let end = open.next_position();
        let mut head = Head(self.queue(0)?.head().load_acquire());
        if open.is_empty() {
            return None;
        }
        while head.ahead(end) != 0 {
            let page = self.page_at(0, head.position());
            if self.finished(page, head).is_none() {
                return Some(self.page_state(page)?.begin.load());
            }
            head = head.next();
        }
        None
    }
}

impl<P: AsMut<[Progress]>, S: AsMut<[u64]>> Reader<P, S> {
    /// A time not after `now` that no record is older than which is in no finished page and was not read.
    ///
    /// Every CPU must have [been quiet](Channel::is_quiet) once since `now`.
    pub fn complete_until<B: Backend>(&mut self, channel: &Channel<B>, now: u64) -> u64 {
        if channel.is_shared() {
            return channel
                .oldest_unfinished()
                .map_or(now, |begin| begin.min(now));
        }
        let mut until = now;
        for (cpu, progress) in self.progress().iter().enumerate() {
            let Some(state) = channel.cpu(cpu) else {
                continue;
            };
            let committed = OpenWord(state.committed.load_acquire());
            if !committed.is_open() {
                continue;
            }
            let begin = match progress.had_of(committed.position()) {
                Some((offset, _)) if channel.offset(committed) <= offset => continue,
                Some((_, end)) => end,
                None if channel.offset(committed) <= HEADER_SIZE => continue,
                None => {
                    let page = channel.page_at(state.number(), committed.position());
                    channel
                        .page_state(page)
                        .map_or(0, |state| state.begin.load())
                }
            };
            until = until.min(begin);
        }
        until
    }
}
