// SPDX-License-Identifier: GPL-2.0

//! What rounds came to.

use super::books::Doubts;
use crate::torture::{
    Source,
    Status, //
};
use libweir::uapi::LOST_CAUSES;
use std::fmt;

/// Sums over rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rounds.
    pub rounds: u64,
    /// Records that writers tried to write.
    pub attempted: u64,
    /// Those that were written.
    pub written: u64,
    /// Those that were read.
    pub read: u64,
    /// Those that were written and overwritten unread.
    pub overwritten: u64,
    /// Those that were refused, by cause.
    pub refused: [u64; LOST_CAUSES],
    /// Those that were written inside of another write.
    pub inside: u64,
    /// Those that each source has written.
    pub sources: [u64; Source::ALL.len()],
    /// Pages that were read.
    pub pages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Calls of readers, but for splices.
    pub calls: u64,
    /// Readers that were killed.
    pub kills: u64,
    /// Those that were in a call to take pages.
    pub kills_in_calls: u64,
    /// Their last pages: not copied as a whole; not taken; taken; taken or overwritten.
    pub last_pages: [u64; 4],
    /// How often a reader was stopped for a while.
    pub pauses: u64,
    /// Calls that were made meanwhile, and those that had no answer (marks).
    pub asked: u64,
    /// See above.
    pub unanswered: u64,
    /// Records that were compared with a mark that came before them.
    pub marked: u64,
    /// How often a CPU went or came.
    pub toggled: u64,
}

impl Summary {
    /// Counts what became of last pages.
    pub(super) fn doubts(&mut self, doubts: &Doubts) {
        let Doubts {
            torn,
            left,
            taken,
            either,
        } = *doubts;
        self.last_pages = [torn, left, taken, either];
    }

    /// Counts what a writer has written.
    pub(super) fn source(&mut self, status: &Status) {
        self.sources[status.source as usize] += status.written;
    }

    /// Adds what another came to.
    pub fn add(&mut self, other: &Summary) {
        let Summary {
            rounds,
            attempted,
            written,
            read,
            overwritten,
            refused,
            inside,
            sources,
            pages,
            bytes,
            calls,
            kills,
            kills_in_calls,
            last_pages,
            pauses,
            asked,
            unanswered,
            marked,
            toggled,
        } = other;
        for (sum, value) in [
            (&mut self.rounds, rounds),
            (&mut self.attempted, attempted),
            (&mut self.written, written),
            (&mut self.read, read),
            (&mut self.overwritten, overwritten),
            (&mut self.inside, inside),
            (&mut self.pages, pages),
            (&mut self.bytes, bytes),
            (&mut self.calls, calls),
            (&mut self.kills, kills),
            (&mut self.kills_in_calls, kills_in_calls),
            (&mut self.pauses, pauses),
            (&mut self.asked, asked),
            (&mut self.unanswered, unanswered),
            (&mut self.marked, marked),
            (&mut self.toggled, toggled),
        ] {
            *sum += value;
        }
        let arrays = self.refused.iter_mut().zip(refused);
        let arrays = arrays.chain(self.sources.iter_mut().zip(sources));
        for (sum, value) in arrays.chain(self.last_pages.iter_mut().zip(last_pages)) {
            *sum += value;
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [full, nested, large, _] = self.refused;
        let [task, softirq, irq, nmi] = self.sources;
        let [torn, left, taken, either] = self.last_pages;
        write!(
            f,
            "{} records written (task {task}, softirq {softirq}, irq {irq}, nmi {nmi}; {} inside of another), \
             {} read in {} pages, {} KiB; lost: full {full}, nested {nested}, too large {large}, overwritten {}; \
             {} kills ({} in a call; last page torn {torn}, left {left}, taken {taken}, taken or overwritten {either}), \
             {} pauses, {} calls made, {} without an answer, {} records compared with marks, CPUs on or off {}",
            self.written,
            self.inside,
            self.read,
            self.pages,
            self.bytes >> 10,
            self.overwritten,
            self.kills,
            self.kills_in_calls,
            self.pauses,
            self.asked + self.unanswered,
            self.unanswered,
            self.marked,
            self.toggled,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_everything() {
        let one = Summary {
            rounds: 1,
            refused: [1, 2, 3, 4],
            last_pages: [5, 6, 7, 8],
            toggled: 9,
            ..Default::default()
        };
        let mut sum = one;
        sum.add(&one);
        sum.add(&Summary::default());
        let wanted = Summary {
            rounds: 2,
            refused: [2, 4, 6, 8],
            last_pages: [10, 12, 14, 16],
            toggled: 18,
            ..Default::default()
        };
        assert_eq!(sum, wanted);
    }
}
