// SPDX-License-Identifier: GPL-2.0

//! What each CPU has of its own in a channel.

use crate::{
    free_stack::FreeStack, lost::LostCounts, open_word::OpenWord, queue::Queue, word::Word,
};

/// Stands for no position.
pub(crate) const NO_CHAIN: u64 = u64::MAX;

/// How deep writes may nest on a CPU: task, softirq, irq, NMI.
pub const MAX_DEPTH: usize = 4;

/// The state of one CPU. A line that the writer touches for each record comes first; what other CPUs
/// write stands in a line of its own. The size is a power of two, so that a CPU's is found by a shift.
///
/// # Invariants
///
/// `anchor` is one of a page of the memory of the channel that it belongs to, if it belongs to one.
#[repr(C, align(512))]
pub struct CpuState<W> {
    /// [`OpenWord`]: every writer of this CPU moves it by a local compare-exchange.
    pub(crate) open: W,
    /// How far the reader may look: a copy of `open` of a moment when every reservation up to it was
    /// committed. Only the outermost writer stores it.
    ///
    /// While it equals `open`, no page but the open one waits to be published, `stamp` is not before
    /// `nested_stamp`, and, if `open` is open, `anchor` is that page's.
    pub(crate) committed: W,
    /// How many writes are going on here. An interrupt leaves it as it found it.
    pub(crate) depth: W,
    /// Finds the open page: see [`Channel::open_place`](crate::Channel::open_place). Stored by the outermost writer.
    pub(crate) anchor: W,
    /// Position of the first page opened here that is not published, or [`NO_CHAIN`]; the others follow
    /// by the links of the pages. Stored by the outermost writer, and by whoever opens a page when `open` is empty.
    pub(crate) chain: W,
    /// Time of the last reservation, or attempt at one, of an outermost writer. See [`CpuState::last_time`].
    pub(crate) stamp: W,
    number: u32,
    cold: Cold<W>,
    reader: ReaderSide<W>,
    queue: Queue<W>,
}

/// What is touched once a page or less.
#[repr(C, align(64))]
struct Cold<W> {
    /// The latest such time of writers nested in others.
    nested_stamp: W,
    pages: W,
    nested: W,
    lost: LostCounts<W>,
}

/// What the reader writes.
#[repr(C, align(64))]
struct ReaderSide<W> {
    reserve: FreeStack<W>,
    seen: W,
}

impl<W: Word> CpuState<W> {
    /// The state of CPU `number` before its first record.
    pub fn new(number: u32) -> Self {
        Self {
            open: W::new(OpenWord::EMPTY.0),
            committed: W::new(OpenWord::EMPTY.0),
            depth: W::new(0),
            chain: W::new(NO_CHAIN),
            anchor: W::new(0),
            stamp: W::new(0),
            number,
            cold: Cold {
                nested_stamp: W::new(0),
                pages: W::new(0),
                nested: W::new(0),
                lost: LostCounts::new(),
            },
            reader: ReaderSide {
                reserve: FreeStack::new(),
                seen: W::new(OpenWord::EMPTY.0),
            },
            queue: Queue::new(),
        }
    }

    /// Number of the CPU.
    #[inline(always)]
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The time that writers nested in others say: see [`last_time`](Self::last_time).
    pub(crate) fn nested_stamp(&self) -> &W {
        &self.cold.nested_stamp
    }

    /// Number of pages published.
    pub(crate) fn pages(&self) -> &W {
        &self.cold.pages
    }

    /// Number of records that were written inside another's write.
    pub(crate) fn nested(&self) -> &W {
        &self.cold.nested
    }

    /// Pages kept for this CPU.
    pub(crate) fn reserve(&self) -> &FreeStack<W> {
        &self.reader.reserve
    }

    /// Finished pages, where they have a queue for each CPU.
    pub(crate) fn queue(&self) -> &Queue<W> {
        &self.queue
    }

    /// The last value of `committed` up to which the reader has read an open page.
    pub(crate) fn seen(&self) -> &W {
        &self.reader.seen
    }

    pub(crate) fn lost(&self) -> &LostCounts<W> {
        &self.cold.lost
    }

    /// A time not before any reservation of this CPU so far, and not after any that is still to come.
    ///
    /// A writer says its time in `stamp`, or in `nested_stamp` if it is nested in another, before it tries to
    /// reserve with it, and takes as time the later of the clock and this. An interrupt in between says a
    /// time not before that, in `nested_stamp`, which only grows, and makes the attempt fail. So times never
    /// run backwards on a CPU even where its clock does so by a little, as the fast monotonic clock may in
    /// an NMI.
    #[inline]
    pub(crate) fn last_time(&self) -> u64 {
        self.stamp.load().max(self.nested_stamp().load())
    }

    /// Takes the times of nested writers over into `stamp`. Only for the outermost writer.
    pub(crate) fn fold_stamps(&self) {
        self.stamp.store(self.last_time());
    }
}
