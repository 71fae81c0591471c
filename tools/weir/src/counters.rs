// SPDX-License-Identifier: GPL-2.0

//! One counter on every CPU for an event.

use crate::cli::NamedEvent;
use libweir::{
    Channel,
    Counter,
    CounterOptions,
    Errno,
    Error,
    Result,
    Sampling, //
};

/// Opens counters of `event` on all of `cpus`: all, or none.
pub(crate) fn open<'a>(
    channel: &'a Channel,
    event: &NamedEvent,
    cpus: &[u32],
    sampling: Sampling,
) -> Result<Vec<Counter<'a>>> {
    cpus.iter()
        .map(|cpu| {
            channel.counter_create(&CounterOptions {
                event: event.event,
                cpu: *cpu,
                sampling,
                ..Default::default()
            })
        })
        .collect()
}

/// Whether an error of [`open`] says that this machine lacks the event.
pub(crate) fn is_unsupported(error: &Error) -> bool {
    matches!(
        error.errno(),
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV)
    )
}
