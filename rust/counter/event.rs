// SPDX-License-Identifier: GPL-2.0

//! A counter on one CPU, and the samples of its overflows.

use super::Value;
use crate::{
    abs::{
        perf_event::{
            self,
            Attributes,
            Overflow,
            OverflowHandler,
            PerfEvent, //
        },
        pin::PinnedCpu,
        rights, //
    },
    channel::Channel,
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weir_core::{
    uapi::{
        CounterReq,
        RecordHeader,
        Sample,
        COUNTER_EXCLUDE_KERNEL,
        COUNTER_EXCLUDE_USER,
        COUNTER_FREQ,
        COUNTER_PINNED,
        MISC_KERNEL,
        MISC_USER,
        RECORD_SAMPLE, //
    },
    Class,
    Pinned, //
};
use zerocopy::IntoBytes;

const FLAGS: u32 = COUNTER_FREQ | COUNTER_EXCLUDE_USER | COUNTER_EXCLUDE_KERNEL | COUNTER_PINNED;

/// A counter.
pub(crate) struct Counter {
    event: PerfEvent<Sampler>,
}

/// Writes a sample for each overflow.
struct Sampler {
    channel: Arc<Channel>,
    id: u32,
}

impl Counter {
    /// Makes a counter, disabled. Its samples carry `id` and go to `channel`. Sleeps.
    ///
    /// # Errors
    ///
    /// As `perf_event_open()`.
    pub(crate) fn new(channel: &Arc<Channel>, request: &CounterReq, id: u32) -> Result<Self> {
        let freq = request.flags & COUNTER_FREQ != 0;
        let exclude_kernel = request.flags & COUNTER_EXCLUDE_KERNEL != 0;
        if request.flags & !FLAGS != 0 || request.reserved != 0 || request.cpu < 0 {
            return Err(EINVAL);
        }
        // As the system call: the highest bit is perf's own, and a frequency needs a value.
        if request.sample_period >> 63 != 0 || (freq && request.sample_period == 0) {
            return Err(EINVAL);
        }
        rights::allow_cpu()?;
        if !exclude_kernel {
            rights::allow_kernel()?;
        }
        if request.type_ == perf_event::TYPE_TRACEPOINT {
            rights::allow_tracepoint()?;
        }
        let attributes = Attributes {
            kind: request.type_,
            config: [request.config, request.config1, request.config2],
            sample_period: request.sample_period,
            freq,
            exclude_user: request.flags & COUNTER_EXCLUDE_USER != 0,
            exclude_kernel,
            pinned: request.flags & COUNTER_PINNED != 0,
        };
        if freq {
            PerfEvent::<Sampler>::check_frequency(request.sample_period, request.cpu)?;
        }
        let sampler = match request.sample_period {
            0 => None,
            _ => Some(Arc::new(
                Sampler {
                    channel: channel.clone(),
                    id,
                },
                GFP_KERNEL,
            )?),
        };
        Ok(Self {
            event: PerfEvent::new(attributes, request.cpu, sampler)?,
        })
    }

    /// Counts from now on. Sleeps.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it got no place on its PMU and will get none.
    pub(crate) fn enable(&self) -> Result {
        self.event.enable()
    }

    /// Counts no more. Sleeps.
    pub(crate) fn disable(&self) {
        self.event.disable();
    }

    /// Value and times so far. Sleeps.
    pub(crate) fn read(&self) -> Value {
        let reading = self.event.read();
        Value {
            value: reading.value,
            enabled: reading.enabled,
            running: reading.running,
        }
    }
}

impl OverflowHandler for Sampler {
    fn overflow(&self, pin: &PinnedCpu, overflow: &Overflow<'_>) {
        // A loss is counted by the channel.
        let Ok(room) = self.channel.reserve(pin, size_of::<Sample>(), Class::Live) else {
            return;
        };
        let (pid, tid) = self.channel.current_ids();
        let sample = Sample {
            header: RecordHeader {
                type_: RECORD_SAMPLE,
                misc: if overflow.user {
                    MISC_USER
                } else {
                    MISC_KERNEL
                },
                size: size_of::<Sample>() as u16,
            },
            id: u64::from(self.id),
            ip: overflow.ip,
            pid,
            tid,
            time: room.time(),
            cpu: pin.cpu() as u32,
            reserved: 0,
            period: overflow.period,
        };
        room.write(0, sample.as_bytes());
        room.commit();
    }
}
