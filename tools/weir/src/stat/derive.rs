// SPDX-License-Identifier: GPL-2.0

//! What numbers say together: instructions per cycle, a clock's frequency, shares and rates, as `perf stat` shows
//! them.

use libweir::{
    event::{
        TYPE_HARDWARE,
        TYPE_HW_CACHE,
        TYPE_SOFTWARE, //
    },
    Attr,
};
use serde::Serialize;

/// A number that follows from others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Derived {
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
}

/// An event to derive from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted<'a> {
    pub(crate) attr: &'a Attr,
    /// The set it is of.
    pub(crate) set: Option<usize>,
    /// None where it was not counted.
    pub(crate) count: Option<f64>,
}

/// Type and configuration of an event.
type Key = (u32, u64);

const CYCLES: Key = (TYPE_HARDWARE, 0);
const CLOCKS: [Key; 2] = [(TYPE_SOFTWARE, 1), (TYPE_SOFTWARE, 0)];

/// Shares: an event, what it is a share of, and what that is called.
const SHARES: [(Key, Key, &str); 4] = [
    ((TYPE_HARDWARE, 3), (TYPE_HARDWARE, 2), "% of cache refs"),
    ((TYPE_HARDWARE, 5), (TYPE_HARDWARE, 4), "% of branches"),
    ((TYPE_HARDWARE, 7), CYCLES, "% frontend idle"),
    ((TYPE_HARDWARE, 8), CYCLES, "% backend idle"),
];

impl Counted<'_> {
    fn key(&self) -> Key {
        let event = self.attr.event();
        (event.type_, event.config)
    }

    /// Whose code is counted.
    fn whose(&self) -> [u64; 6] {
        let raw = self.attr.raw();
        [
            raw.exclude_user(),
            raw.exclude_kernel(),
            raw.exclude_hv(),
            raw.exclude_idle(),
            raw.exclude_host(),
            raw.exclude_guest(),
        ]
    }
}

/// Whether the count of an event is a time in ns.
pub(crate) fn is_clock(attr: &Attr) -> bool {
    let event = attr.event();
    CLOCKS.contains(&(event.type_, event.config))
}

/// What follows for the event with this index: of whose code it is, and preferably within its set.
pub(crate) fn derive(index: usize, all: &[Counted<'_>], duration_ns: f64) -> Option<Derived> {
    let this = all.get(index)?;
    let count = this.count?;
    let key = this.key();
    let other = |wanted: Key| {
        let same = |other: &&Counted<'_>| other.key() == wanted && other.whose() == this.whose();
        let in_set = |other: &&Counted<'_>| this.set.is_some() && other.set == this.set;
        let found = (all.iter().filter(same).find(in_set)).or_else(|| all.iter().find(same));
        found?.count.filter(|count| *count > 0.0)
    };
    // Clocks count whosever code it is.
    let clock = CLOCKS.iter().find_map(|clock| {
        let found = all.iter().find(|other| other.key() == *clock);
        found?.count.filter(|count| *count > 0.0)
    });
    let derived = |value, unit| Some(Derived { value, unit });
    if CLOCKS.contains(&key) {
        if duration_ns <= 0.0 {
            return None;
        }
        return derived(count / duration_ns, "CPUs utilized");
    }
    if key == CYCLES {
        return derived(count / clock?, "GHz");
    }
    if key == (TYPE_HARDWARE, 1) {
        if let Some(cycles) = other(CYCLES) {
            return derived(count / cycles, "insn per cycle");
        }
    }
    for (part, whole, unit) in SHARES {
        if key == part {
            if let Some(whole) = other(whole) {
                return derived(100.0 * count / whole, unit);
            }
        }
    }
    // Misses of a cache are a share of what was looked for in it.
    const MISS: u64 = 1 << 16;
    if key.0 == TYPE_HW_CACHE && key.1 & MISS != 0 {
        if let Some(whole) = other((TYPE_HW_CACHE, key.1 & !MISS)) {
            return derived(100.0 * count / whole, "% of accesses");
        }
    }
    let per_second = count / (clock? / 1e9);
    match per_second {
        rate if rate >= 1e9 => derived(rate / 1e9, "G/sec"),
        rate if rate >= 1e6 => derived(rate / 1e6, "M/sec"),
        rate if rate >= 1e3 => derived(rate / 1e3, "K/sec"),
        rate => derived(rate, "/sec"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libweir::{
        parse_events,
        EventPaths, //
    };

    /// What follows for each of a list of events, of which each was counted so often, in a second.
    fn derived(events: &str, counts: &[Option<f64>]) -> Vec<Option<(f64, &'static str)>> {
        let sets = parse_events(events, &EventPaths::default()).unwrap();
        let events: Vec<_> = sets
            .iter()
            .enumerate()
            .flat_map(|(set, events)| {
                let number = events.braces.then_some(set);
                events.events.iter().map(move |event| (number, &event.attr))
            })
            .collect();
        assert_eq!(events.len(), counts.len());
        let all: Vec<Counted<'_>> = (events.iter().zip(counts))
            .map(|((set, attr), count)| Counted {
                attr,
                set: *set,
                count: *count,
            })
            .collect();
        (0..all.len())
            .map(|index| derive(index, &all, 1e9).map(|derived| (derived.value, derived.unit)))
            .collect()
    }

    #[test]
    fn numbers_are_derived_as_perf_does() {
        assert_eq!(
            derived(
                "task-clock,cycles,instructions,branches,branch-misses,faults",
                &[5e8, 1e9, 2e9, 4e8, 1e8, 50.0].map(Some)
            ),
            [
                Some((0.5, "CPUs utilized")),
                Some((2.0, "GHz")),
                Some((2.0, "insn per cycle")),
                Some((800.0, "M/sec")),
                Some((25.0, "% of branches")),
                Some((100.0, "/sec")),
            ]
        );
        assert_eq!(
            derived("LLC-loads,LLC-load-misses", &[Some(8.0), Some(2.0)]),
            [None, Some((25.0, "% of accesses"))]
        );
    }

    #[test]
    fn what_was_not_counted_has_nothing_to_say() {
        let none = derived("task-clock,cycles,instructions", &[None, Some(1.0), None]);
        assert_eq!(none, [None, None, None]);
        let idle = derived(
            "cycles,instructions,task-clock",
            &[Some(0.0), Some(0.0), Some(0.0)],
        );
        assert_eq!(idle, [None, None, Some((0.0, "CPUs utilized"))]);
    }

    #[test]
    fn only_what_counts_the_same_code_goes_together() {
        assert_eq!(
            derived(
                "cycles:u,cycles:k,instructions:k",
                &[1.0, 2.0, 4.0].map(Some)
            )[2],
            Some((2.0, "insn per cycle"))
        );
        assert_eq!(
            derived("cycles:u,instructions", &[1.0, 4.0].map(Some))[1],
            None
        );
    }

    #[test]
    fn a_set_goes_before_others() {
        let derived = derived("cycles,{cycles,instructions}", &[1.0, 2.0, 4.0].map(Some));
        assert_eq!(derived[2], Some((2.0, "insn per cycle")));
    }
}
