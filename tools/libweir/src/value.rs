// SPDX-License-Identifier: GPL-2.0

//! What counters counted, and how it is read.

use crate::{
    error::{
        Call,
        Error,
        Result, //
    },
    ioctl, uapi, Channel,
};
use rustix::io::Errno;

/// What an event counted since it was enabled first or reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// The event: one of [`crate::Counter::event_ids`].
    pub id: u32,
    /// The CPU; none for a task, or for the sum of all.
    pub cpu: Option<u32>,
    /// How often it happened while it was counted.
    pub value: u64,
    /// Time in ns for which it was enabled.
    pub enabled: u64,
    /// Time in ns for which it was counted.
    pub running: u64,
    /// Time in ns since the oldest part of this was read from its CPU.
    pub age: u64,
    /// Samples that the channel had no room for.
    pub lost: u64,
    /// How often perf stopped it for too many samples.
    pub throttled: u64,
    /// All events of the counter were counted together, all the time.
    pub together: bool,
    /// Its PMU has gone: this is what was counted before.
    pub revoked: bool,
    /// A CPU is online and was not counted.
    pub missing: bool,
}

impl Value {
    /// What it would say if it had been counted all the time that it was enabled; none where it never was.
    pub fn scaled(&self) -> Option<u64> {
        match (self.running, self.enabled) {
            (0, _) => None,
            (running, enabled) if running >= enabled => Some(self.value),
            (running, enabled) => {
                let scaled = u128::from(self.value) * u128::from(enabled) / u128::from(running);
                Some(u64::try_from(scaled).unwrap_or(u64::MAX))
            }
        }
    }
}

impl From<&uapi::CounterValue> for Value {
    fn from(value: &uapi::CounterValue) -> Self {
        let flag = |flag| value.flags & flag != 0;
        Value {
            id: value.id,
            cpu: u32::try_from(value.cpu).ok(),
            value: value.value,
            enabled: value.enabled,
            running: value.running,
            age: value.age,
            lost: value.lost,
            throttled: value.throttled,
            together: flag(uapi::VALUE_TOGETHER),
            revoked: flag(uapi::VALUE_REVOKED),
            missing: flag(uapi::VALUE_MISSING),
        }
    }
}

/// How counters are read. By default: the sum over all CPUs, as it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// A value for each CPU on which the event ever counted.
    pub per_cpu: bool,
    /// No CPU is interrupted; [`Value::age`] says how old what it gives is. Only for counters that were created
    /// with [`crate::CounterOptions::cached`].
    pub cached: bool,
}

impl ReadOptions {
    /// The request that asks for this.
    pub fn request(&self, id: u32) -> uapi::CounterRead {
        let flag = |on, flag| if on { flag } else { 0 };
        uapi::CounterRead {
            size: size_of::<uapi::CounterRead>() as u32,
            flags: flag(self.per_cpu, uapi::READ_PER_CPU) | flag(self.cached, uapi::READ_CACHED),
            id,
            ..Default::default()
        }
    }
}

impl Channel {
    /// Reads all counters of the channel at once, in the order of their ids.
    ///
    /// # Errors
    ///
    /// [`Call::CounterRead`] of counter 0.
    pub fn read_counters(&self, options: ReadOptions) -> Result<Vec<Value>> {
        self.read_values(0, options, 64)
    }

    /// Reads counter `id` with room for so many values, and with more where there are more.
    pub(crate) fn read_values(
        &self,
        id: u32,
        options: ReadOptions,
        room: usize,
    ) -> Result<Vec<Value>> {
        let mut values = vec![uapi::CounterValue::default(); room.max(1)];
        loop {
            let mut request = options.request(id);
            match ioctl::counter_read(self, &mut request, &mut values) {
                Ok(()) => {
                    let count = (request.count as usize).min(values.len());
                    return Ok(values[..count].iter().map(Value::from).collect());
                }
                // Twice as many at least: there may be more by the next time.
                Err(Errno::NOSPC) if values.len() < 1 << 24 => {
                    let wanted = (request.count as usize).max(values.len() * 2);
                    values.resize(wanted.min(1 << 24), uapi::CounterValue::default());
                }
                Err(errno) => return Err(Error::call(Call::CounterRead(id), errno)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(value: u64, enabled: u64, running: u64) -> Value {
        Value {
            value,
            enabled,
            running,
            ..Default::default()
        }
    }

    #[test]
    fn a_part_of_the_time_is_scaled_up_and_none_is_no_zero() {
        assert_eq!(value(10, 100, 100).scaled(), Some(10));
        assert_eq!(value(10, 100, 50).scaled(), Some(20));
        assert_eq!(
            value(u64::MAX / 2, 1 << 40, 1 << 39).scaled(),
            Some(u64::MAX - 1)
        );
        assert_eq!(value(u64::MAX, 2, 1).scaled(), Some(u64::MAX));
        assert_eq!(value(0, 100, 0).scaled(), None);
        assert_eq!(value(0, 0, 0).scaled(), None);
        // Nothing happened, and that was seen.
        assert_eq!(value(0, 100, 100).scaled(), Some(0));
    }

    #[test]
    fn what_the_kernel_says_is_taken_over() {
        let value = Value::from(&uapi::CounterValue {
            id: 7,
            cpu: 3,
            value: 1,
            enabled: 2,
            running: 3,
            age: 4,
            lost: 5,
            throttled: 6,
            flags: uapi::VALUE_TOGETHER | uapi::VALUE_MISSING,
            reserved: 0,
        });
        assert_eq!(
            value,
            Value {
                id: 7,
                cpu: Some(3),
                value: 1,
                enabled: 2,
                running: 3,
                age: 4,
                lost: 5,
                throttled: 6,
                together: true,
                revoked: false,
                missing: true,
            }
        );
        let sum = uapi::CounterValue {
            cpu: -1,
            flags: uapi::VALUE_REVOKED,
            ..Default::default()
        };
        assert_eq!(Value::from(&sum).cpu, None);
        assert!(Value::from(&sum).revoked);
    }

    #[test]
    fn options_become_a_request() {
        let request = ReadOptions {
            per_cpu: true,
            cached: true,
        }
        .request(9);
        assert_eq!((request.size, request.flags, request.id), (24, 3, 9));
        assert_eq!(ReadOptions::default().request(0).flags, 0);
    }
}
