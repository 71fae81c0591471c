// SPDX-License-Identifier: GPL-2.0

//! Events by the names that perf gives them.

use std::str::FromStr;

/// `PERF_TYPE_HARDWARE`.
pub const TYPE_HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`.
pub const TYPE_SOFTWARE: u32 = 1;
/// `PERF_TYPE_RAW`.
pub const TYPE_RAW: u32 = 4;

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

/// Names, types and configurations; the first of several names of one event is the one to show.
const NAMES: &[(&str, u32, u64)] = &[
    ("cpu-clock", TYPE_SOFTWARE, 0),
    ("task-clock", TYPE_SOFTWARE, 1),
    ("page-faults", TYPE_SOFTWARE, 2),
    ("faults", TYPE_SOFTWARE, 2),
    ("context-switches", TYPE_SOFTWARE, 3),
    ("cs", TYPE_SOFTWARE, 3),
    ("cpu-migrations", TYPE_SOFTWARE, 4),
    ("migrations", TYPE_SOFTWARE, 4),
    ("minor-faults", TYPE_SOFTWARE, 5),
    ("major-faults", TYPE_SOFTWARE, 6),
    ("alignment-faults", TYPE_SOFTWARE, 7),
    ("emulation-faults", TYPE_SOFTWARE, 8),
    ("dummy", TYPE_SOFTWARE, 9),
    ("cgroup-switches", TYPE_SOFTWARE, 11),
    ("cycles", TYPE_HARDWARE, 0),
    ("cpu-cycles", TYPE_HARDWARE, 0),
    ("instructions", TYPE_HARDWARE, 1),
    ("cache-references", TYPE_HARDWARE, 2),
    ("cache-misses", TYPE_HARDWARE, 3),
    ("branches", TYPE_HARDWARE, 4),
    ("branch-instructions", TYPE_HARDWARE, 4),
    ("branch-misses", TYPE_HARDWARE, 5),
    ("bus-cycles", TYPE_HARDWARE, 6),
    ("stalled-cycles-frontend", TYPE_HARDWARE, 7),
    ("stalled-cycles-backend", TYPE_HARDWARE, 8),
    ("ref-cycles", TYPE_HARDWARE, 9),
];

/// All names that [`Event::from_str`] knows, without the raw form.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, ..)| *name)
}

/// A name that is not an event's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// It is none that this library knows.
    #[error("there is no event `{0}`: take one of {list}, or rNNNN (hexadecimal) for a raw one", list = names().collect::<Vec<_>>().join(", "))]
    Unknown(String),
    /// It is the number of a raw one, but too large.
    #[error("`{0}` is no raw event: the number has more than 64 bits")]
    Raw(String),
}

impl FromStr for Event {
    type Err = EventError;

    /// Parses a name, or `rNNNN` for the number of a raw hardware event.
    fn from_str(text: &str) -> Result<Self, EventError> {
        if let Some((_, type_, config)) = NAMES.iter().find(|(name, ..)| *name == text) {
            return Ok(Event::new(*type_, *config));
        }
        match text.strip_prefix('r') {
            Some(digits) if is_hexadecimal(digits) => u64::from_str_radix(digits, 16)
                .map(|config| Event::new(TYPE_RAW, config))
                .map_err(|_| EventError::Raw(text.to_owned())),
            _ => Err(EventError::Unknown(text.to_owned())),
        }
    }
}

/// Stricter than `from_str_radix`, which takes a sign.
fn is_hexadecimal(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_perfs_numbers() {
        assert_eq!("cpu-clock".parse(), Ok(Event::CPU_CLOCK));
        assert_eq!("context-switches".parse(), Ok(Event::new(1, 3)));
        assert_eq!("cs".parse(), Ok(Event::new(1, 3)));
        assert_eq!("instructions".parse(), Ok(Event::new(0, 1)));
        assert_eq!("branch-misses".parse(), Ok(Event::new(0, 5)));
    }

    #[test]
    fn raw_events_are_hexadecimal() {
        assert_eq!("r1c2".parse(), Ok(Event::new(TYPE_RAW, 0x1c2)));
        assert_eq!("r01C2".parse(), Ok(Event::new(TYPE_RAW, 0x1c2)));
        assert_eq!(
            "rffffffffffffffff".parse(),
            Ok(Event::new(TYPE_RAW, u64::MAX))
        );
    }

    #[test]
    fn what_is_no_event_is_said_to_be_none() {
        let raw = "r1ffffffffffffffff";
        assert_eq!(raw.parse::<Event>(), Err(EventError::Raw(raw.into())));
        for unknown in [
            "r12x",
            "ref-cycle",
            "",
            "r",
            "r+1",
            "cpu_clock",
            "CPU-CLOCK",
            "cycles ",
        ] {
            assert_eq!(
                unknown.parse::<Event>(),
                Err(EventError::Unknown(unknown.into()))
            );
        }
        let text = "cycels".parse::<Event>().unwrap_err().to_string();
        assert!(
            text.contains("`cycels`") && text.contains("cache-misses"),
            "{text}"
        );
    }
}
