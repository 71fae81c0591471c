// SPDX-License-Identifier: GPL-2.0

//! Which times a channel can have: what its clock says now, as far as user space can read that.

use crate::session::nanoseconds;
use anyhow::Result;
use libweir::{
    uapi::{
        CLOCK_BOOTTIME,
        CLOCK_MONOTONIC,
        CLOCK_MONOTONIC_RAW,
        CLOCK_TSC, //
    },
    Channel,
    Clock, //
};
use nix::time::ClockId;

/// How far a conversion of ns into cycles may be off, ns: the kernel's clock is steered, the counter is not.
const TOLERANCE: u64 = 2_000_000;

/// The clock of a channel.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    clock: Clock,
}

/// A clock that user space can read and that a channel's times are compared with, and how far they may be off.
fn reference(clock: u32) -> Option<(ClockId, u64)> {
    match clock {
        CLOCK_MONOTONIC => Some((ClockId::CLOCK_MONOTONIC, 0)),
        CLOCK_MONOTONIC_RAW => Some((ClockId::CLOCK_MONOTONIC_RAW, 0)),
        CLOCK_BOOTTIME => Some((ClockId::CLOCK_BOOTTIME, 0)),
        CLOCK_TSC => Some((ClockId::CLOCK_MONOTONIC_RAW, TOLERANCE)),
        // perf's own cannot be read from here.
        _ => None,
    }
}

/// Now, by what a channel with `clock` is compared with: for [`Times::begin`].
pub fn before(clock: u32) -> u64 {
    reference(clock).map_or(0, |(id, _)| nanoseconds(id))
}

impl Times {
    /// Those of a channel.
    ///
    /// # Errors
    ///
    /// That of `WEIR_IOC_CHANNEL_CLOCK`.
    pub fn of(channel: &Channel) -> Result<Self> {
        Ok(Times {
            clock: channel.clock()?,
        })
    }

    /// No time of a channel is before this, if it was created after [`before`] gave `before`.
    pub fn begin(&self, before: u64) -> u64 {
        let number = self.clock.number();
        reference(number).map_or(0, |(_, off)| self.clock.time(before.saturating_sub(off)))
    }

    /// No time of a channel that is known now is after this.
    pub fn now(&self) -> u64 {
        match reference(self.clock.number()) {
            Some((id, off)) => self.clock.time(nanoseconds(id) + off),
            None => u64::MAX,
        }
    }

    /// A time of the channel that is `ns` after `time`, or before it if `ns` is negative.
    pub fn shifted(&self, time: u64, ns: i64) -> u64 {
        self.clock
            .time(self.clock.nanoseconds(time).saturating_add_signed(ns))
    }
}
