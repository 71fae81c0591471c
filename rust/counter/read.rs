// SPDX-License-Identifier: GPL-2.0

//! Reading counters: all events of a CPU at one instant, with one interrupt to each CPU.
//!
//! Each CPU copies what its events say, of all counters that are asked for, with interrupts off; then the copies
//! are read. What has no new copy (its task does not run, its CPU is offline, children count for it) is asked
//! for by perf's own call, which interrupts nobody in the first two cases.

use super::{
    lanes::Lanes,
    slot::{
        self,
        Slot, //
    },
};
use crate::abs::{
    cpus,
    cross_call,
    interrupts::InterruptsOff,
    perf_event::Reading, //
};
use kernel::{
    prelude::*,
    sync::atomic::ordering::Relaxed, //
};
use weir_core::uapi::{
    CounterValue,
    VALUE_MISSING,
    VALUE_REVOKED,
    VALUE_TOGETHER, //
};

/// How counters are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// As of now.
    Now,
    /// Without interrupting any CPU: as of when each had time to say so.
    Cached,
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The sum of all CPUs, or the task.
    Sum,
    /// Each CPU on which it ever counted, one after the other, of one event after the other.
    EachCpu,
    /// One CPU.
    Cpu(usize),
}

/// Number of an event that `CounterValue::id` gives, of the first of a counter.
pub(super) type FirstId = u32;

/// Lets the CPUs on which events of `counters` count copy what they say; or, with `all`, those that have any.
/// Returns a time from which on copies are new. Does not sleep.
pub(super) fn refresh<'a>(counters: impl Fn() -> Counters<'a> + Sync, all: bool) -> u64 {
    let since = slot::now();
    let wanted = |cpu: usize| {
        let off = InterruptsOff::new();
        counters().any(|lanes| lanes.counts_on(&off, cpu, all))
    };
    cross_call::on_each(wanted, |off| {
        for lanes in counters() {
            lanes.here(off, |slot| slot.refresh(off));
        }
    });
    since
}

/// Counters, one after the other.
pub(super) type Counters<'a> = core::iter::Copied<core::slice::Iter<'a, &'a Lanes>>;

/// What is added up.
#[derive(Clone, Copy, Default)]
struct Sum {
    reading: Reading,
    age: u64,
    lost: u64,
    throttled: u64,
    together: bool,
    revoked: bool,
}

/// Gives what each event of a counter says. Sleeps.
///
/// # Errors
///
/// Those of `give`; `ENOMEM`; `ENODEV` if one CPU is asked for on which it never counted.
pub(super) fn values(
    lanes: &Lanes,
    first_id: FirstId,
    part: Part,
    freshness: Freshness,
    since: u64,
    give: &mut dyn FnMut(CounterValue) -> Result,
) -> Result {
    let events = lanes.events();
    let mut raw = KVec::from_elem(Reading::default(), events, GFP_KERNEL)?;
    let mut sums = KVec::from_elem(
        Sum {
            together: true,
            ..Sum::default()
        },
        events,
        GFP_KERNEL,
    )?;
    let slots = lanes.lock();
    let mut counted = false;
    let mut missing = false;
    for (lane, slot) in slots.slots.iter().enumerate() {
        let cpu = lanes.cpu_of(lane);
        if matches!(part, Part::Cpu(wanted) if cpu != Some(wanted)) {
            continue;
        }
        let is_missing = lanes.is_machine_wide() && lanes.is_missing(lane);
        missing |= is_missing;
        let Some(slot) = slot else {
            continue;
        };
        counted = true;
        let age = read_slot(lanes, slot, cpu, freshness, since, &mut raw);
        let together = are_together(slot, &raw);
        for (event, (raw, sum)) in raw.iter().zip(sums.iter_mut()).enumerate() {
            let value = slot.value(event, *raw);
            let accident = lanes.accidents(lane, event);
            let lost = accident.map_or(0, |accidents| accidents.lost.load(Relaxed));
            let throttled = accident.map_or(0, |accidents| accidents.throttled.load(Relaxed));
            let revoked = slot.events().get(event).is_some_and(|e| e.is_revoked());
            if part == Part::EachCpu {
                give(CounterValue {
                    id: first_id.wrapping_add(event as u32),
                    cpu: cpu.map_or(-1, |cpu| cpu as i32),
                    value: value.value,
                    enabled: value.enabled,
                    running: value.running,
                    age,
                    lost,
                    throttled,
                    flags: flags(together, revoked, is_missing),
                    reserved: 0,
                })?;
            }
            sum.reading = sum.reading.wrapping_add(value);
            sum.age = sum.age.max(age);
            sum.lost += lost;
            sum.throttled += throttled;
            // A CPU on which nothing was enabled, as it was offline, says nothing of the others.
            sum.together &= together || value.enabled == 0;
            sum.revoked |= revoked;
        }
    }
    match part {
        Part::EachCpu => return Ok(()),
        Part::Cpu(_) if !counted => return Err(ENODEV),
        Part::Cpu(_) | Part::Sum => {}
    }
    for (event, sum) in sums.iter().enumerate() {
        give(CounterValue {
            id: first_id.wrapping_add(event as u32),
            cpu: match part {
                Part::Cpu(cpu) => cpu as i32,
                Part::Sum | Part::EachCpu => -1,
            },
            value: sum.reading.value,
            enabled: sum.reading.enabled,
            running: sum.reading.running,
            age: sum.age,
            lost: sum.lost,
            throttled: sum.throttled,
            flags: flags(
                sum.together && sum.reading.enabled != 0,
                sum.revoked,
                missing,
            ),
            reserved: 0,
        })?;
    }
    Ok(())
}

fn flags(together: bool, revoked: bool, missing: bool) -> u32 {
    let flag = |on, flag| match on {
        true => flag,
        false => 0,
    };
    flag(together, VALUE_TOGETHER) | flag(revoked, VALUE_REVOKED) | flag(missing, VALUE_MISSING)
}

/// Reads what the events of a slot say, and returns how old that is.
fn read_slot(
    lanes: &Lanes,
    slot: &Slot,
    cpu: Option<usize>,
    freshness: Freshness,
    since: u64,
    raw: &mut [Reading],
) -> u64 {
    if freshness == Freshness::Now || !cpu.is_some_and(cpus::is_online) {
        slot.read_raw(since, raw);
        return 0;
    }
    {
        // Its own copy costs this CPU nothing.
        let off = InterruptsOff::new();
        if cpu == Some(off.cpu()) {
            lanes.here(&off, |slot| slot.refresh(&off));
        }
    }
    match slot.read_raw(1, raw) {
        Some(time) => slot::now().saturating_sub(time),
        None => 0,
    }
}

/// Whether all events of a slot ran as long as they were enabled, which was not never.
fn are_together(slot: &Slot, raw: &[Reading]) -> bool {
    raw.iter().enumerate().all(|(event, raw)| {
        let value = slot.value(event, *raw);
        value.enabled != 0 && value.running == value.enabled
    })
}
