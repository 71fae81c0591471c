// SPDX-License-Identifier: GPL-2.0

//! Events by the names that perf gives them.
//!
//! [`Event`] has the numbers, and takes names that every machine has. [`parse_events`] takes lists of all names
//! there are: of PMUs and their own events, tracepoints, breakpoints, with modifiers and in sets.

mod breakpoint;
mod cache;
mod error;
mod fixed;
mod format;
mod list;
mod modifier;
mod nearest;
mod pmu;
mod split;
mod tracepoint;

pub use error::EventError;
pub use fixed::names;
pub use list::{
    parse_events,
    EventSet,
    NamedEvent, //
};
pub use pmu::Unit;

use perf_event_open_sys::bindings;
use std::{
    path::PathBuf,
    str::FromStr, //
};

/// `PERF_TYPE_HARDWARE`.
pub const TYPE_HARDWARE: u32 = bindings::PERF_TYPE_HARDWARE;
/// `PERF_TYPE_SOFTWARE`.
pub const TYPE_SOFTWARE: u32 = bindings::PERF_TYPE_SOFTWARE;
/// `PERF_TYPE_TRACEPOINT`.
pub const TYPE_TRACEPOINT: u32 = bindings::PERF_TYPE_TRACEPOINT;
/// `PERF_TYPE_HW_CACHE`.
pub const TYPE_HW_CACHE: u32 = bindings::PERF_TYPE_HW_CACHE;
/// `PERF_TYPE_RAW`.
pub const TYPE_RAW: u32 = bindings::PERF_TYPE_RAW;
/// `PERF_TYPE_BREAKPOINT`.
pub const TYPE_BREAKPOINT: u32 = bindings::PERF_TYPE_BREAKPOINT;

/// What a counter counts, in the numbers of `perf_event_open()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// `PERF_TYPE_*`, or the number of a PMU in `/sys/bus/event_source/devices/*/type`.
    pub type_: u32,
    /// What to count, in terms of that type.
    pub config: u64,
    /// More of it.
    pub config1: u64,
    /// More of it.
    pub config2: u64,
    /// More of it.
    pub config3: u64,
    /// Of a breakpoint: `HW_BREAKPOINT_*`. Its address is `config1`, its length `config2`.
    pub bp_type: u32,
}

impl Event {
    /// Time in ns that a CPU runs: the one that every machine has.
    pub const CPU_CLOCK: Event = Event::new(TYPE_SOFTWARE, 0);

    /// An event that needs no more than a type and a configuration.
    pub const fn new(type_: u32, config: u64) -> Self {
        Event {
            type_,
            config,
            config1: 0,
            config2: 0,
            config3: 0,
            bp_type: 0,
        }
    }
}

impl Default for Event {
    fn default() -> Self {
        Event::CPU_CLOCK
    }
}

impl FromStr for Event {
    type Err = EventError;

    /// Parses a name that means the same on every machine: of hardware, software and cache events, or `rNNNN` for the
    /// number of a raw hardware event.
    fn from_str(text: &str) -> Result<Self, EventError> {
        match fixed::find(text) {
            Some(event) => event,
            None => Err(EventError::unknown(text, names(), fixed::PLACE)),
        }
    }
}

/// Where the names come from that only the running kernel knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPaths {
    /// The folder with one folder for each PMU.
    pub devices: PathBuf,
    /// The folder of tracefs; the first of these that is there.
    pub tracing: Vec<PathBuf>,
}

impl Default for EventPaths {
    /// Those of the running kernel.
    fn default() -> Self {
        EventPaths {
            devices: "/sys/bus/event_source/devices".into(),
            tracing: vec![
                "/sys/kernel/tracing".into(),
                "/sys/kernel/debug/tracing".into(),
            ],
        }
    }
}

#[cfg(test)]
mod tests;
