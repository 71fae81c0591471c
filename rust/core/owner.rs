// SPDX-License-Identifier: GPL-2.0

//! Whom an open page belongs to: one CPU, or all.
//!
//! This is what differs: how the open word is replaced, and how times are kept in order. A CPU's own page
//! needs to be safe against interrupts of that CPU only, so nothing is atomic between CPUs. See
//! `commit.rs` for what differs when a record ends.

use crate::{
    cpu_state::CpuState,
    open_word::OpenWord,
    queue::Queue,
    word::Word, //
};

/// The page that all CPUs write.
pub(crate) struct SharedState<W> {
    line: Line<W>,
}

#[repr(C, align(64))]
struct Line<W> {
    open: W,
    latest: W,
}

impl<W: Word> SharedState<W> {
    pub(crate) fn new() -> Self {
        Self {
            line: Line {
                open: W::new(OpenWord::EMPTY.0),
                latest: W::new(0),
            },
        }
    }

    /// Its [`OpenWord`]. It is never empty after the first page: a page that is closed is nobody's.
    pub(crate) fn open(&self) -> &W {
        &self.line.open
    }
}

/// A writer's view of the open page that it writes to.
pub(crate) trait Owner<W: Word>: Copy {
    /// The CPU that writes.
    fn cpu(&self) -> &CpuState<W>;

    /// Which share of the pages is the owner's.
    fn number(&self) -> u32;

    /// The queue that its pages go to, if each owner has one.
    fn queue(&self) -> &Queue<W>;

    /// The [`OpenWord`].
    fn open(&self) -> &W;

    /// Loads the open word. Whatever was written by those who made it what it is can be seen.
    fn load(&self) -> OpenWord;

    /// Replaces the open word, unless it has changed.
    fn replace(&self, old: OpenWord, new: OpenWord) -> bool;

    /// A time not before that of any record that was reserved up to the open word that was loaded
    /// before.
    fn last_time(&self) -> u64;

    /// Says that a writer at `depth` tries to reserve at `time`, or later: returns when.
    fn announce(&self, depth: u64, time: u64) -> u64;
}

/// Lets `word` grow to `time`, by `exchange`, and returns what it then is at least.
fn raise<W: Word>(word: &W, time: u64, exchange: impl Fn(&W, u64, u64) -> Result<(), u64>) -> u64 {
    let mut latest = word.load();
    while latest < time {
        match exchange(word, latest, time) {
            Ok(()) => return time,
            Err(found) => latest = found,
        }
    }
    latest
}

/// The page of one CPU.
pub(crate) struct ByCpu<'a, W>(pub(crate) &'a CpuState<W>);

// Derived ones would demand that words can be copied.
impl<W> Clone for ByCpu<'_, W> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}
impl<W> Copy for ByCpu<'_, W> {}

impl<W: Word> Owner<W> for ByCpu<'_, W> {
    #[inline]
    fn cpu(&self) -> &CpuState<W> {
        self.0
    }

    #[inline]
    fn number(&self) -> u32 {
        self.0.number()
    }

    #[inline]
    fn queue(&self) -> &Queue<W> {
        self.0.queue()
    }

    #[inline]
    fn open(&self) -> &W {
        &self.0.open
    }

    #[inline]
    fn load(&self) -> OpenWord {
        OpenWord(self.0.open.load())
    }

    #[inline]
    fn replace(&self, old: OpenWord, new: OpenWord) -> bool {
        self.0.open.local_compare_exchange(old.0, new.0).is_ok()
    }

    #[inline]
    fn last_time(&self) -> u64 {
        self.0.last_time()
    }

    fn announce(&self, depth: u64, time: u64) -> u64 {
        if depth > 1 {
            return raise(self.0.nested_stamp(), time, W::local_compare_exchange);
        }
        self.0.stamp.store(time);
        time
    }
}

/// The page of all CPUs, as one of them sees it.
pub(crate) struct ByAll<'a, W> {
    pub(crate) shared: &'a SharedState<W>,
    pub(crate) queue: &'a Queue<W>,
    pub(crate) cpu: &'a CpuState<W>,
}

impl<W> Clone for ByAll<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<W> Copy for ByAll<'_, W> {}

impl<W: Word> Owner<W> for ByAll<'_, W> {
    fn cpu(&self) -> &CpuState<W> {
        self.cpu
    }

    fn number(&self) -> u32 {
        0
    }

    fn queue(&self) -> &Queue<W> {
        self.queue
    }

    fn open(&self) -> &W {
        self.shared.open()
    }

    fn load(&self) -> OpenWord {
        OpenWord(self.shared.line.open.load_acquire())
    }

    fn replace(&self, old: OpenWord, new: OpenWord) -> bool {
        self.shared.line.open.compare_exchange(old.0, new.0).is_ok()
    }

    fn last_time(&self) -> u64 {
        self.shared.line.latest.load()
    }

    /// The word only grows. Whoever has replaced the open word has announced its time before, so whoever
    /// loads the open word later finds a time that is not earlier.
    fn announce(&self, _: u64, time: u64) -> u64 {
        raise(&self.shared.line.latest, time, W::compare_exchange)
    }
}
