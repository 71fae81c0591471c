// SPDX-License-Identifier: GPL-2.0

//! One counter on every CPU for an event.

use crate::cli::NamedEvent;
use libweir::{
    Attr,
    Channel,
    Counter,
    CounterOptions,
    Errno,
    Error,
    Result,
    Sampling,
    Scope, //
};

/// Opens a counter of `event` on all CPUs.
pub(crate) fn open<'a>(
    channel: &'a Channel,
    event: &NamedEvent,
    sampling: Sampling,
) -> Result<Counter<'a>> {
    let attr = Attr::new(event.event).sampling(sampling);
    channel.counter_create(&CounterOptions::new(attr, Scope::All))
}

/// Whether an error of [`open`] says that this machine lacks the event.
pub(crate) fn is_unsupported(error: &Error) -> bool {
    matches!(
        error.errno(),
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV)
    )
}
