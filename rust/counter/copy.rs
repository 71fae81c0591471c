// SPDX-License-Identifier: GPL-2.0

//! Readings that one CPU writes and others read without asking it.
//!
//! Writers never wait, so they may be anywhere; they are kept apart by whoever writes.

use crate::abs::{
    perf_event::Reading,
    word::KernelWord, //
};
use kernel::prelude::*;
use weir_core::{
    Sequence,
    Word, //
};

struct Words {
    value: KernelWord,
    enabled: KernelWord,
    running: KernelWord,
}

impl Words {
    fn new() -> Self {
        Self {
            value: KernelWord::new(0),
            enabled: KernelWord::new(0),
            running: KernelWord::new(0),
        }
    }

    fn store(&self, reading: Reading) {
        self.value.store(reading.value);
        self.enabled.store(reading.enabled);
        self.running.store(reading.running);
    }

    fn load(&self) -> Reading {
        Reading {
            value: self.value.load(),
            enabled: self.enabled.load(),
            running: self.running.load(),
        }
    }
}

/// A reading of each event.
pub(super) struct Copy {
    sequence: Sequence<KernelWord>,
    /// When they were taken; zero if they were not.
    time: KernelWord,
    readings: KVec<Words>,
}

impl Copy {
    /// All zero, and never taken. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(events: usize) -> Result<Self> {
        let mut readings = KVec::with_capacity(events, GFP_KERNEL)?;
        for _ in 0..events {
            readings.push(Words::new(), GFP_KERNEL)?;
        }
        Ok(Self {
            sequence: Sequence::new(),
            time: KernelWord::new(0),
            readings,
        })
    }

    /// Writes what `reading` gives for each event; if it fails for one, there is none. Only one may write at a
    /// time.
    pub(super) fn write(&self, time: u64, reading: impl Fn(usize) -> Option<Reading>) {
        self.sequence.write(|| {
            let mut complete = true;
            for (event, words) in self.readings.iter().enumerate() {
                match reading(event) {
                    Some(reading) => words.store(reading),
                    None => complete = false,
                }
            }
            self.time.store(match complete {
                true => time,
                false => 0,
            });
        });
    }

    /// Reads that of one event. None if somebody writes all the time, or what is read stands in the middle of
    /// the write.
    pub(super) fn get(&self, event: usize) -> Option<Reading> {
        let words = self.readings.get(event)?;
        self.sequence.read(|| words.load())
    }

    /// Reads all, and when they were taken. None if they were not, or as for [`get`](Self::get).
    pub(super) fn read(&self, to: &mut [Reading]) -> Option<u64> {
        let time = self.sequence.read(|| {
            for (to, words) in to.iter_mut().zip(&self.readings) {
                *to = words.load();
            }
            self.time.load()
        });
        time.filter(|time| *time != 0)
    }

    /// When they were taken, or zero; it may change at once.
    pub(super) fn time(&self) -> u64 {
        self.time.load()
    }
}
