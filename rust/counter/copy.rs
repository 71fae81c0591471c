// SPDX-License-Identifier: GPL-2.0

//! Readings that one CPU writes and others read without asking it.
//!
//! A version that is odd while they are being written, as in a seqlock: who reads tries again if it was, or
//! has changed. Writers never wait, so they may be anywhere; they are kept apart by whoever writes.

use crate::abs::perf_event::Reading;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Relaxed,
                Release, //
            },
            Atomic, //
        },
        barrier::{
            smp_mb,
            Read,
            Write, //
        },
    },
};

/// How often it is tried to read what somebody writes just now.
const TRIES: usize = 64;

struct Words {
    value: Atomic<u64>,
    enabled: Atomic<u64>,
    running: Atomic<u64>,
}

impl Words {
    fn new() -> Self {
        Self {
            value: Atomic::new(0),
            enabled: Atomic::new(0),
            running: Atomic::new(0),
        }
    }

    fn store(&self, reading: Reading) {
        self.value.store(reading.value, Relaxed);
        self.enabled.store(reading.enabled, Relaxed);
        self.running.store(reading.running, Relaxed);
    }

    fn load(&self) -> Reading {
        Reading {
            value: self.value.load(Relaxed),
            enabled: self.enabled.load(Relaxed),
            running: self.running.load(Relaxed),
        }
    }
}

/// A reading of each event.
pub(super) struct Copy {
    version: Atomic<u64>,
    /// When they were taken; zero if they were not.
    time: Atomic<u64>,
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
            version: Atomic::new(0),
            time: Atomic::new(0),
            readings,
        })
    }

    /// Writes what `reading` gives for each event; if it fails for one, there is none. Only one may write at a
    /// time.
    pub(super) fn write(&self, time: u64, mut reading: impl FnMut(usize) -> Option<Reading>) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1), Relaxed);
        smp_mb(Write);
        let mut complete = true;
        for (event, words) in self.readings.iter().enumerate() {
            match reading(event) {
                Some(reading) => words.store(reading),
                None => complete = false,
            }
        }
        let time = match complete {
            true => time,
            false => 0,
        };
        self.time.store(time, Relaxed);
        self.version.store(version.wrapping_add(2), Release);
    }

    /// Reads that of one event. None if somebody writes all the time, or what is read stands in the middle of
    /// the write.
    pub(super) fn get(&self, event: usize) -> Option<Reading> {
        self.consistent(|| self.readings.get(event).map(Words::load))
            .flatten()
    }

    /// Reads all, and when they were taken. None if they were not, or as for [`get`](Self::get).
    pub(super) fn read(&self, to: &mut [Reading]) -> Option<u64> {
        let time = self.consistent(|| {
            for (to, words) in to.iter_mut().zip(&self.readings) {
                *to = words.load();
            }
            self.time.load(Relaxed)
        });
        time.filter(|time| *time != 0)
    }

    /// When they were taken, or zero; it may change at once.
    pub(super) fn time(&self) -> u64 {
        self.time.load(Relaxed)
    }

    fn consistent<R>(&self, mut read: impl FnMut() -> R) -> Option<R> {
        for _ in 0..TRIES {
            let version = self.version.load(Acquire);
            let result = read();
            smp_mb(Read);
            if version % 2 == 0 && self.version.load(Relaxed) == version {
                return Some(result);
            }
            core::hint::spin_loop();
        }
        None
    }
}
