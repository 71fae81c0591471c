// SPDX-License-Identifier: GPL-2.0

//! What becomes of overflows.

use super::sampler::Sampler;
use crate::abs::{
    perf_event::{
        Overflow,
        OverflowHandler, //
    },
    pin::PinnedCpu, //
};
use kernel::sync::{
    atomic::{
        ordering::Relaxed,
        Atomic, //
    },
    Arc, //
};

/// Kernel code that is called.
pub(crate) trait Callback: Send + Sync {
    /// Event number `event` of the counter overflowed. Runs with interrupts off, and in an NMI for hardware
    /// events: must not sleep, allocate, or take a lock.
    fn overflow(&self, event: usize, overflow: &Overflow<'_>);
}

/// What happened to an event on one CPU, or in one task, beside being counted.
pub(super) struct Accidents {
    /// Samples that the channel had no room for.
    pub(super) lost: Atomic<u64>,
    /// Times that perf stopped it for too many overflows.
    pub(super) throttled: Atomic<u64>,
}

impl Accidents {
    /// None yet.
    pub(super) fn new() -> Self {
        Self {
            lost: Atomic::new(0),
            throttled: Atomic::new(0),
        }
    }

    /// Forgets them.
    pub(super) fn reset(&self) {
        self.lost.store(0, Relaxed);
        self.throttled.store(0, Relaxed);
    }
}

/// Where the overflows of an event go.
pub(super) enum Overflows {
    /// Into a channel.
    Samples(Sampler),
    /// To kernel code.
    Call {
        /// Number of the event in its counter.
        event: usize,
        callback: Arc<dyn Callback>,
        accidents: Arc<Accidents>,
    },
}

impl OverflowHandler for Overflows {
    fn overflow(&self, pin: &PinnedCpu, overflow: &Overflow<'_>) {
        match self {
            Self::Samples(sampler) => sampler.overflow(pin, overflow),
            Self::Call {
                event,
                callback,
                accidents,
            } => {
                callback.overflow(*event, overflow);
                if overflow.is_throttled() {
                    accidents.throttled.add(1u64, Relaxed);
                }
            }
        }
    }
}
