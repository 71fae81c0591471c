// SPDX-License-Identifier: GPL-2.0

//! Counters that user space opens through a channel.

use crate::{
    error::{
        Call,
        Error,
        Result, //
    },
    ioctl, uapi, Channel, Event,
};
use rustix::io::Errno;

/// When a counter writes a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// Never: it only counts.
    #[default]
    None,
    /// Every so many events.
    Period(u64),
    /// About so often a second.
    Frequency(u64),
}

/// What a counter shall count. By default it is `cpu-clock` on CPU 0, without samples.
#[derive(Clone, Debug, Default)]
pub struct CounterOptions {
    /// Which event.
    pub event: Event,
    /// On which CPU.
    pub cpu: u32,
    /// When it writes a sample.
    pub sampling: Sampling,
    /// Whether user space is left out.
    pub exclude_user: bool,
    /// Whether the kernel is left out.
    pub exclude_kernel: bool,
    /// Whether it is always on its PMU, or in error.
    pub pinned: bool,
}

impl CounterOptions {
    /// The request that asks for this.
    pub fn request(&self) -> uapi::CounterReq {
        let (sample_period, frequency) = match self.sampling {
            Sampling::None => (0, false),
            Sampling::Period(period) => (period, false),
            Sampling::Frequency(hertz) => (hertz, true),
        };
        let flags = [
            (frequency, uapi::COUNTER_FREQ),
            (self.exclude_user, uapi::COUNTER_EXCLUDE_USER),
            (self.exclude_kernel, uapi::COUNTER_EXCLUDE_KERNEL),
            (self.pinned, uapi::COUNTER_PINNED),
        ]
        .into_iter()
        .fold(0, |flags, (on, flag)| flags | if on { flag } else { 0 });
        uapi::CounterReq {
            size: size_of::<uapi::CounterReq>() as u32,
            flags,
            type_: self.event.type_,
            // No kernel has so many CPUs; a wrapped number is refused.
            cpu: self.cpu as i32,
            config: self.event.config,
            config1: self.event.config1,
            config2: self.event.config2,
            sample_period,
            ..Default::default()
        }
    }
}

/// A counter on one CPU. Dropping it releases it; so does closing its channel.
#[derive(Debug)]
pub struct Counter<'a> {
    channel: &'a Channel,
    id: u32,
    cpu: u32,
    released: bool,
}

impl Channel {
    /// Creates a counter, disabled.
    ///
    /// # Errors
    ///
    /// [`Call::CounterCreate`], with what `perf_event_open()` gives; `EOPNOTSUPP` where the kernel has
    /// no perf events, `ENOSPC` where the channel has too many counters.
    pub fn counter_create(&self, options: &CounterOptions) -> Result<Counter<'_>> {
        let mut req = options.request();
        ioctl::counter_create(self, &mut req)
            .map_err(|errno| Error::call(Call::CounterCreate(options.cpu), errno))?;
        Ok(Counter {
            channel: self,
            id: req.id,
            cpu: options.cpu,
            released: false,
        })
    }
}

impl Counter<'_> {
    /// What names it on this channel, and in its samples.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The CPU it counts on.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Starts to count.
    ///
    /// # Errors
    ///
    /// [`Call::CounterEnable`] with `EBUSY` where it got no place on its PMU.
    pub fn enable(&self) -> Result<()> {
        self.control(ioctl::COUNTER_ENABLE, Call::CounterEnable)
    }

    /// Stops counting.
    ///
    /// # Errors
    ///
    /// [`Call::CounterDisable`].
    pub fn disable(&self) -> Result<()> {
        self.control(ioctl::COUNTER_DISABLE, Call::CounterDisable)
    }

    /// Reads it.
    ///
    /// # Errors
    ///
    /// [`Call::CounterRead`].
    pub fn read(&self) -> Result<uapi::CounterValue> {
        let mut value = uapi::CounterValue {
            size: size_of::<uapi::CounterValue>() as u32,
            id: self.id,
            ..Default::default()
        };
        ioctl::counter_read(self.channel, &mut value)
            .map_err(|errno| Error::call(Call::CounterRead(self.id), errno))?;
        Ok(value)
    }

    /// Releases it, and says whether that worked; dropping it does not say.
    ///
    /// # Errors
    ///
    /// [`Call::CounterRelease`].
    pub fn release(mut self) -> Result<()> {
        self.released = true;
        self.control(ioctl::COUNTER_RELEASE, Call::CounterRelease)
    }

    fn control(&self, opcode: rustix::ioctl::Opcode, call: fn(u32) -> Call) -> Result<()> {
        ioctl::counter_control(self.channel, opcode, self.id)
            .map_err(|errno: Errno| Error::call(call(self.id), errno))
    }
}

impl Drop for Counter<'_> {
    fn drop(&mut self) {
        if !self.released {
            // It can only fail for a counter that is gone already, and then there is nothing to do.
            let _ = self.control(ioctl::COUNTER_RELEASE, Call::CounterRelease);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_a_request() {
        let request = CounterOptions {
            event: Event {
                type_: 4,
                config: 0x1c0,
                config1: 5,
                config2: 6,
            },
            cpu: 3,
            sampling: Sampling::Frequency(4000),
            exclude_user: true,
            exclude_kernel: false,
            pinned: true,
        }
        .request();
        assert_eq!(
            request,
            uapi::CounterReq {
                size: 56,
                flags: uapi::COUNTER_FREQ | uapi::COUNTER_EXCLUDE_USER | uapi::COUNTER_PINNED,
                type_: 4,
                cpu: 3,
                config: 0x1c0,
                config1: 5,
                config2: 6,
                sample_period: 4000,
                id: 0,
                reserved: 0,
            }
        );
        assert_eq!(CounterOptions::default().request().sample_period, 0);
    }
}
