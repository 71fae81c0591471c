// SPDX-License-Identifier: GPL-2.0

//! Counters: perf events of the kernel, and their overflows as records.

#[cfg(CONFIG_PERF_EVENTS)]
mod event;
#[cfg(not(CONFIG_PERF_EVENTS))]
mod unsupported;

#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) use event::Counter;
#[cfg(not(CONFIG_PERF_EVENTS))]
pub(crate) use unsupported::Counter;

mod table;

pub(crate) use table::Table;

/// Whether this kernel can count at all.
pub(crate) const SUPPORTED: bool = cfg!(CONFIG_PERF_EVENTS);

/// Value and times of a counter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Value {
    /// Events.
    pub(crate) value: u64,
    /// ns for which it was enabled.
    pub(crate) enabled: u64,
    /// ns for which it really counted.
    pub(crate) running: u64,
}
