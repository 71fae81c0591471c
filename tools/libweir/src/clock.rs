// SPDX-License-Identifier: GPL-2.0

//! What the times in a channel are.

use crate::{
    channel::Channel,
    error::{
        Call,
        Error,
        Result, //
    },
    ioctl,
    uapi::ClockReq, //
};

/// The clock of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock(ClockReq);

impl Channel {
    /// What the times in this channel are.
    ///
    /// # Errors
    ///
    /// [`Call::ChannelClock`].
    pub fn clock(&self) -> Result<Clock> {
        let mut request = ClockReq {
            size: size_of::<ClockReq>() as u32,
            ..Default::default()
        };
        ioctl::channel_clock(self, &mut request)
            .map_err(|errno| Error::call(Call::ChannelClock, errno))?;
        Ok(Clock(request))
    }
}

impl Clock {
    /// One of `CLOCK_*`.
    pub fn number(&self) -> u32 {
        self.0.clock
    }

    /// A time of the channel in ns: of its own clock, or of `CLOCK_MONOTONIC_RAW` where that counts cycles.
    pub fn nanoseconds(&self, time: u64) -> u64 {
        let ClockReq {
            mult,
            shift,
            base,
            ns,
            ..
        } = self.0;
        if mult == 0 {
            return time;
        }
        let cycles = i128::from(time) - i128::from(base);
        let nanoseconds = i128::from(ns) + ((cycles * i128::from(mult)) >> shift);
        nanoseconds.clamp(0, i128::from(u64::MAX)) as u64
    }

    /// The time of the channel at so many ns of that clock: what [`Clock::nanoseconds`] makes them of, up to
    /// its rounding.
    pub fn time(&self, nanoseconds: u64) -> u64 {
        let ClockReq {
            mult,
            shift,
            base,
            ns,
            ..
        } = self.0;
        if mult == 0 {
            return nanoseconds;
        }
        let since = i128::from(nanoseconds) - i128::from(ns);
        let time = i128::from(base) + (since << shift) / i128::from(mult);
        time.clamp(0, i128::from(u64::MAX)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_become_nanoseconds() {
        // 2 GHz.
        let clock = Clock(ClockReq {
            mult: 1 << 31,
            shift: 32,
            base: 1000,
            ns: 5000,
            ..Default::default()
        });
        assert_eq!(clock.nanoseconds(1000), 5000);
        assert_eq!(clock.nanoseconds(1200), 5100);
        assert_eq!(clock.nanoseconds(800), 4900);
        assert_eq!(clock.nanoseconds(0), 4500);
        assert_eq!(clock.time(5100), 1200);
        assert_eq!(clock.time(4900), 800);
        assert_eq!(clock.time(0), 0);
        assert_eq!(Clock(ClockReq::default()).time(7), 7);
        assert_eq!(clock.nanoseconds(u64::MAX), (1 << 63) + 4499);
        assert_eq!(Clock(ClockReq::default()).nanoseconds(7), 7);
    }
}
