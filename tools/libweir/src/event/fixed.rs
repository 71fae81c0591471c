// SPDX-License-Identifier: GPL-2.0

//! Names that mean the same on every machine.

use super::{
    cache,
    Event,
    EventError,
    TYPE_HARDWARE,
    TYPE_RAW,
    TYPE_SOFTWARE, //
};

/// Where these names come from.
pub(super) const PLACE: &str =
    "`perf list` shows the names that every machine knows, and rNNNN (hexadecimal) is a raw one";

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
    ("bpf-output", TYPE_SOFTWARE, 10),
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
    ("idle-cycles-frontend", TYPE_HARDWARE, 7),
    ("stalled-cycles-backend", TYPE_HARDWARE, 8),
    ("idle-cycles-backend", TYPE_HARDWARE, 8),
    ("ref-cycles", TYPE_HARDWARE, 9),
];

/// All names that every machine knows, without those of cache events in other spellings, and the raw form.
pub fn names() -> impl Iterator<Item = String> {
    let names = NAMES.iter().map(|(name, ..)| (*name).to_owned());
    names.chain(cache::names())
}

/// The event of a name; `None` where it is no fixed one.
pub(super) fn find(text: &str) -> Option<Result<Event, EventError>> {
    if let Some((_, type_, config)) = NAMES.iter().find(|(name, ..)| *name == text) {
        return Some(Ok(Event::new(*type_, *config)));
    }
    if let Some(event) = cache::find(text) {
        return Some(Ok(event));
    }
    let digits = text.strip_prefix('r')?;
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    // Stricter than `from_str_radix`, which takes a sign.
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = u64::from_str_radix(digits, 16).map_err(|_| EventError::Raw(text.to_owned()));
    Some(number.map(|config| Event::new(TYPE_RAW, config)))
}
