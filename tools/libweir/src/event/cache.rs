// SPDX-License-Identifier: GPL-2.0

//! Events of caches: which one, what was done there, and how it went.

use super::{
    Event,
    TYPE_HW_CACHE, //
};

/// Names of a thing; the first is the one to show.
type Names = &'static [&'static str];

/// Caches, in the order of `PERF_COUNT_HW_CACHE_*`, with what can be done there: bits of [`OPERATIONS`].
const CACHES: [(Names, u8); 7] = [
    (&["L1-dcache", "l1-d", "l1d", "L1-data"], 0b111),
    (&["L1-icache", "l1-i", "l1i", "L1-instruction"], 0b101),
    (&["LLC", "L2"], 0b111),
    (&["dTLB", "d-tlb", "Data-TLB"], 0b111),
    (&["iTLB", "i-tlb", "Instruction-TLB"], 0b001),
    (&["branch", "branches", "bpu", "btb", "bpc"], 0b001),
    (&["node"], 0b111),
];

/// In the order of `PERF_COUNT_HW_CACHE_OP_*`.
const OPERATIONS: [Names; 3] = [
    &["loads", "load", "read"],
    &["stores", "store", "write"],
    &[
        "prefetches",
        "prefetch",
        "speculative-read",
        "speculative-load",
    ],
];

/// In the order of `PERF_COUNT_HW_CACHE_RESULT_*`.
const RESULTS: [Names; 2] = [&["refs", "Reference", "ops", "access"], &["misses", "miss"]];

/// Takes the longest name of a list from the front of `text`, and what separates it from the next.
fn take(text: &str, lists: impl IntoIterator<Item = Names>) -> Option<(usize, &str)> {
    let mut best: Option<(usize, usize)> = None;
    for (index, names) in lists.into_iter().enumerate() {
        for name in names {
            let here = text
                .get(..name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(name));
            let ends = matches!(text.as_bytes().get(name.len()), None | Some(b'-'));
            if here && ends && best.is_none_or(|(_, len)| name.len() > len) {
                best = Some((index, name.len()));
            }
        }
    }
    let (index, len) = best?;
    let rest = &text[len..];
    Some((index, rest.strip_prefix('-').unwrap_or(rest)))
}

/// The event of a name such as `L1-dcache-load-misses`, `LLC-misses` or `iTLB`: the operation and the result may be
/// left out, and stand in any order.
pub(super) fn find(text: &str) -> Option<Event> {
    if text.ends_with('-') {
        return None;
    }
    let (cache, mut rest) = take(text, CACHES.map(|(names, _)| names))?;
    let (mut operation, mut result) = (None, None);
    while !rest.is_empty() {
        if let (None, Some((found, after))) = (operation, take(rest, OPERATIONS)) {
            (operation, rest) = (Some(found), after);
        } else if let (None, Some((found, after))) = (result, take(rest, RESULTS)) {
            (result, rest) = (Some(found), after);
        } else {
            return None;
        }
    }
    let (operation, result) = (operation.unwrap_or(0), result.unwrap_or(0));
    if CACHES[cache].1 & 1 << operation == 0 {
        return None;
    }
    let config = cache | operation << 8 | result << 16;
    Some(Event::new(TYPE_HW_CACHE, config as u64))
}

/// All events, in the spelling of `perf list`.
pub(super) fn names() -> impl Iterator<Item = String> {
    CACHES.iter().flat_map(|(names, possible)| {
        let operations = OPERATIONS.iter().enumerate();
        let operations = operations.filter(move |(index, _)| possible & 1 << index != 0);
        operations.flat_map(move |(_, operation)| {
            let singular = operation[1];
            [
                format!("{}-{}", names[0], operation[0]),
                format!("{}-{singular}-misses", names[0]),
            ]
        })
    })
}
