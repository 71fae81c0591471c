// SPDX-License-Identifier: GPL-2.0

//! The events of a counter on one CPU, or in one task.

use super::{
    copy::Copy,
    overflow::Overflows, //
};
use crate::abs::{
    clock::Clock,
    cross_call,
    interrupts::InterruptsOff,
    perf_event::{
        PerfEvent,
        Reading, //
    },
};
use kernel::prelude::*;

/// How often events are asked that begin to count, or stop, in the middle of it.
const TRIES: usize = 16;

/// The events, and what is known of their values.
///
/// What an event says is `raw`; what the counter says is that and an offset, so that a counter begins at
/// zero, and goes on where it was after it had been disabled, or its CPU away.
pub(super) struct Slot {
    events: KVec<PerfEvent<Overflows>>,
    /// Written under the lock of the counter.
    offset: Copy,
    /// Raw. Written on the CPU where they count, with interrupts off.
    copy: Copy,
}

/// ns of a clock that all CPUs share. Any context.
pub(super) fn now() -> u64 {
    Clock::Monotonic.now()
}

impl Slot {
    /// Takes events, which were not enabled yet. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(events: KVec<PerfEvent<Overflows>>) -> Result<Self> {
        let count = events.len();
        Ok(Self {
            events,
            offset: Copy::new(count)?,
            copy: Copy::new(count)?,
        })
    }

    /// The events, in their order.
    pub(super) fn events(&self) -> &[PerfEvent<Overflows>] {
        &self.events
    }

    /// Copies what the events say now, if this is where they count. Any context but NMI.
    pub(super) fn refresh(&self, off: &InterruptsOff) {
        // A task that has just gone to another CPU may be copied there now.
        if !self.events.iter().all(|event| event.is_here(off)) {
            return;
        }
        self.copy.write(now(), |event| {
            let event = self.events.get(event)?;
            event.read_local(off).ok()
        });
    }

    /// When the copy was taken, or zero.
    pub(super) fn copied_at(&self) -> u64 {
        self.copy.time()
    }

    /// Whether an event counts on `cpu`, or waits for its turn there; one of a task waits nowhere.
    pub(super) fn counts_on(&self, cpu: usize, of_task: bool) -> bool {
        self.events.iter().any(|event| match of_task {
            true => event.active_cpu() == Some(cpu),
            false => event.is_enabled(),
        })
    }

    /// What the counter says of one event, read where it counts. Any context.
    ///
    /// # Errors
    ///
    /// As [`PerfEvent::read_local`]; `EBUSY` while the offset is being changed on this CPU.
    pub(super) fn read_local(&self, off: &InterruptsOff, event: usize) -> Result<Reading> {
        let raw = self.events.get(event).ok_or(EINVAL)?.read_local(off)?;
        Ok(raw.wrapping_add(self.offset.get(event).ok_or(EBUSY)?))
    }

    /// What the events say: the copy, if it is not older than `since`, or else by asking each. Sleeps. Returns
    /// the time of the copy if that was it.
    pub(super) fn read_raw(&self, since: u64, to: &mut [Reading]) -> Option<u64> {
        let mut since = since;
        for _ in 0..TRIES {
            if let Some(time) = self.copy.read(to).filter(|time| *time >= since) {
                return Some(time);
            }
            for (to, event) in to.iter_mut().zip(&self.events) {
                *to = event.read();
            }
            // What children count, no CPU alone can copy.
            if self.events.iter().any(|event| event.is_inherited()) {
                return None;
            }
            // None counts as long as none says something else, so that it was one instant for all.
            if to
                .iter()
                .zip(&self.events)
                .all(|(to, event)| *to == event.read())
            {
                return None;
            }
            // The task runs, which it did not.
            since = now();
            cross_call::on_each(
                |cpu| {
                    self.events
                        .iter()
                        .any(|event| event.active_cpu() == Some(cpu))
                },
                |off| self.refresh(off),
            );
        }
        None
    }

    /// What the counter says of an event that says `raw`. Under the lock of the counter.
    pub(super) fn value(&self, event: usize, raw: Reading) -> Reading {
        // Nobody writes it meanwhile, so it can be read.
        raw.wrapping_add(self.offset.get(event).unwrap_or_default())
    }

    /// From now on the counter says `value` of an event that says `raw`. Under the lock of the counter.
    pub(super) fn rebase(&self, value: &[Reading], raw: &[Reading]) {
        self.offset.write(0, |event| {
            Some(value.get(event)?.wrapping_sub(*raw.get(event)?))
        });
    }
}
