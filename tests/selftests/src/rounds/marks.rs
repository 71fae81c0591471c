// SPDX-License-Identifier: GPL-2.0

//! Whether marks are honest: that nothing older than a mark comes when all is read that was there when it was
//! made.
//!
//! A reader asks for a mark and says which one it got. What it had taken before was handed over before that. So
//! once the checker has seen the mark and taken all that was handed over, what comes is from after the mark. As
//! many pages of a queue as it can hold at all may have been finished before; or the reader has found nothing
//! more in the channel, and says so. What comes then is not older than the mark.

use anyhow::{
    ensure,
    Result, //
};
use libweir::Page;
use std::collections::HashMap;

/// Marks that are waited for at a time: more would come to the same.
const WAITING: usize = 4;

/// A mark before which there may be pages still.
#[derive(Clone, Debug)]
struct Waiting {
    mark: u64,
    /// Pages of each queue that have come since.
    pages: HashMap<u32, u64>,
}

/// The marks of a channel.
#[derive(Debug)]
pub struct Marks {
    /// All pages go through one queue; else each CPU has its own.
    one_queue: bool,
    /// Pages that a queue can hold.
    room: u64,
    /// The marks that were seen last: one that was made, and one after which the channel was empty.
    made: u64,
    emptied: u64,
    waiting: Vec<Waiting>,
    /// Nothing older comes: of any queue, and of each.
    bound: u64,
    bounds: HashMap<u32, u64>,
    /// Records that were compared with a mark.
    compared: u64,
}

impl Marks {
    /// Begins with a channel with so many queues, of so many pages each.
    pub fn new(queues: u32, room: u64) -> Self {
        Marks {
            one_queue: queues == 1,
            room,
            made: 0,
            emptied: 0,
            waiting: Vec::new(),
            bound: 0,
            bounds: HashMap::new(),
            compared: 0,
        }
    }

    /// Takes note of the marks that a reader has said it got last, before what it had handed over was taken.
    pub fn seen(&mut self, made: u64, emptied: u64) {
        if self.emptied != emptied {
            self.emptied = emptied;
            self.bound = self.bound.max(emptied);
        }
        if self.made != made && self.waiting.len() < WAITING {
            self.made = made;
            self.waiting.push(Waiting {
                mark: made,
                pages: HashMap::new(),
            });
        }
    }

    /// Takes a page that was taken out of the channel for sure.
    ///
    /// # Errors
    ///
    /// There is a record that is older than a mark before it.
    pub fn page(&mut self, page: &Page<'_>) -> Result<()> {
        let queue = match self.one_queue {
            true => 0,
            false => page.header().cpu_id,
        };
        let bound = self.bounds.get(&queue).map_or(0, |bound| *bound);
        let bound = bound.max(self.bound);
        if bound > 0 {
            for record in page.records() {
                let time = record?.time().unwrap_or(u64::MAX);
                ensure!(
                    time >= bound,
                    "a mark was wrong: a record of {time} came when all until {bound} had come"
                );
                self.compared += 1;
            }
        }
        if !page.is_partial() {
            self.count(queue);
        }
        Ok(())
    }

    /// A page of `queue` has come.
    fn count(&mut self, queue: u32) {
        let (one_queue, room) = (self.one_queue, self.room);
        let bounds = &mut self.bounds;
        self.waiting.retain_mut(|waiting| {
            let pages = waiting.pages.entry(queue).or_default();
            *pages += 1;
            if *pages < room {
                return true;
            }
            let bound = bounds.entry(queue).or_default();
            *bound = waiting.mark.max(*bound);
            // Of other queues less may have come: they are given up where they are slower than three rounds.
            !one_queue && *pages < 4 * room
        });
    }

    /// Records that were compared with a mark.
    pub fn compared(&self) -> u64 {
        self.compared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::build::{
        edit,
        page,
        raw, //
    };
    use libweir::uapi::PAGE_PARTIAL;

    fn feed(marks: &mut Marks, cpu: u32, time: u64) -> Result<()> {
        let bytes = page(cpu, 0, (time, time), &[raw(cpu, time, b"x")]);
        marks.page(&Page::parse(&bytes).unwrap())
    }

    #[test]
    fn nothing_older_comes_when_the_channel_was_empty() {
        let mut marks = Marks::new(1, 100);
        feed(&mut marks, 0, 10).unwrap();
        marks.seen(50, 0);
        feed(&mut marks, 0, 20).unwrap();
        assert_eq!(marks.compared(), 0);
        marks.seen(50, 50);
        feed(&mut marks, 1, 50).unwrap();
        assert_eq!(marks.compared(), 1);
        feed(&mut marks, 1, 49).unwrap_err();
        // An earlier mark takes nothing back.
        marks.seen(40, 40);
        feed(&mut marks, 1, 49).unwrap_err();
    }

    #[test]
    fn nothing_older_comes_after_as_many_pages_as_there_are() {
        let mut marks = Marks::new(1, 3);
        marks.seen(50, 0);
        for cpu in 0..3 {
            feed(&mut marks, cpu, 20).unwrap();
        }
        feed(&mut marks, 0, 49).unwrap_err();
        feed(&mut marks, 0, 50).unwrap();
    }

    #[test]
    fn every_queue_counts_its_own_and_whole_pages_only() {
        let mut marks = Marks::new(2, 2);
        marks.seen(50, 0);
        for _ in 0..3 {
            let bytes = page(1, 0, (20, 20), &[raw(1, 20, b"x")]);
            let part = edit(&bytes, |header| header.flags |= PAGE_PARTIAL);
            marks.page(&Page::parse(&part).unwrap()).unwrap();
        }
        feed(&mut marks, 1, 20).unwrap();
        feed(&mut marks, 1, 20).unwrap();
        feed(&mut marks, 0, 20).unwrap();
        feed(&mut marks, 1, 20).unwrap_err();
        feed(&mut marks, 0, 20).unwrap();
        feed(&mut marks, 0, 20).unwrap_err();
    }
}
