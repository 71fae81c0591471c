// SPDX-License-Identifier: GPL-2.0

//! What a round is: a kind of channel, its writers, its readers, and what is done to them and when. All of it
//! follows from a seed and the number of the round.

use crate::torture::{
    Source,
    Start,
    PAYLOAD_MIN, //
};
use fastrand::Rng;
use libweir::{
    uapi::{
        CLOCK_BOOTTIME,
        CLOCK_MONOTONIC,
        CLOCK_MONOTONIC_RAW,
        CLOCK_PERF,
        CLOCK_TSC,
        MODEL_PAGED,
        MODEL_PER_CPU,
        MODEL_SHARED,
        MODE_DISCARD,
        MODE_OVERWRITE, //
    },
    ChannelOptions,
};
use std::{
    fmt,
    time::Duration, //
};

/// How a reader takes pages out of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Way {
    /// By `read()`.
    Read,
    /// By `splice()` into a pipe.
    Splice,
    /// From a mapping.
    Map,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 3] = [Way::Read, Way::Splice, Way::Map];
}

/// What is done to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// It is killed, and another takes over.
    Kill,
    /// It is stopped for so long.
    Pause(Duration),
}

/// A call that somebody makes while others read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Ask {
    /// `WEIR_IOC_CHANNEL_FLUSH`.
    Flush,
    /// `WEIR_IOC_CHANNEL_MARK`.
    Mark,
    /// `WEIR_IOC_CHANNEL_STATUS` of every CPU.
    Status,
    /// `WEIR_IOC_CHANNEL_FREEZE`, to keep what is there.
    Freeze,
    /// The same, to overwrite again.
    Thaw,
}

impl Ask {
    /// All of them.
    pub const ALL: [Ask; 5] = [Ask::Flush, Ask::Mark, Ask::Status, Ask::Freeze, Ask::Thaw];
}

/// What is to be done, each so long after the one before it.
pub type Script<T> = Vec<(Duration, T)>;

/// What a round may use here.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Number of CPUs that can be.
    pub cpus: u32,
    /// How many can be taken offline.
    pub removable: usize,
    /// Where writers can run.
    pub sources: Vec<Source>,
    /// The clocks that channels can have.
    pub clocks: Vec<u32>,
}

/// A round.
#[derive(Clone, Debug)]
pub struct Plan {
    /// From where all of it is.
    pub seed: u64,
    /// Its number.
    pub round: u64,
    /// How long it writes.
    pub length: Duration,
    /// The channel.
    pub options: ChannelOptions,
    /// How it is read.
    pub way: Way,
    /// Whether the channel is the torture module's own, which each reader attaches by its name. Else each
    /// inherits the descriptor.
    pub named: bool,
    /// Pages that a reader takes at a time.
    pub pages: u32,
    /// How long a reader rests after each time.
    pub rest: Duration,
    /// The writers.
    pub start: Start,
    /// What is done to the reader.
    pub harms: Script<Harm>,
    /// What is asked of the channel.
    pub asks: Script<Ask>,
    /// Which CPU, of those that can, goes or comes back.
    pub toggles: Script<usize>,
}

/// Every model, mode and way to read that there is; a channel that overwrites is not mapped.
fn kinds() -> Vec<(u32, u32, Way)> {
    let mut kinds = Vec::new();
    for model in [MODEL_PER_CPU, MODEL_SHARED, MODEL_PAGED] {
        for mode in [MODE_DISCARD, MODE_OVERWRITE] {
            for way in Way::ALL {
                if mode == MODE_DISCARD || way != Way::Map {
                    kinds.push((model, mode, way));
                }
            }
        }
    }
    kinds
}

/// All clocks, and what they are called.
pub const CLOCKS: [(u32, &str); 5] = [
    (CLOCK_MONOTONIC, "monotonic"),
    (CLOCK_MONOTONIC_RAW, "monotonic raw"),
    (CLOCK_BOOTTIME, "boottime"),
    (CLOCK_PERF, "perf"),
    (CLOCK_TSC, "tsc"),
];

/// Rounds after which every kind has been there once.
pub fn kinds_count() -> u64 {
    kinds().len() as u64
}

fn rng(seed: u64, number: u64) -> Rng {
    // Numbers next to each other are to give what has nothing to do with each other.
    Rng::with_seed(seed ^ (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// The kind of a round, from a deck that is shuffled anew when it is through.
fn kind(seed: u64, round: u64) -> (u32, u32, Way) {
    let mut deck = kinds();
    let count = deck.len() as u64;
    rng(!seed, round / count).shuffle(&mut deck);
    deck[(round % count) as usize]
}

fn one_of<T: Copy>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.usize(..values.len())]
}

/// A time between the two, in which short ones are as likely as long ones.
fn between(rng: &mut Rng, least: Duration, most: Duration) -> Duration {
    let (least, most) = (least.as_secs_f64(), most.as_secs_f64());
    Duration::from_secs_f64(least * (most / least).powf(rng.f64()))
}

/// Things drawn by `draw`, one after the other, until the round is over.
fn script<T>(
    rng: &mut Rng,
    length: Duration,
    (least, most): (u64, u64),
    mut draw: impl FnMut(&mut Rng) -> T,
) -> Script<T> {
    let mut script = Vec::new();
    let mut sum = Duration::ZERO;
    loop {
        let delay = between(
            rng,
            Duration::from_millis(least),
            Duration::from_millis(most),
        );
        sum += delay;
        if sum >= length {
            return script;
        }
        let what = draw(rng);
        script.push((delay, what));
    }
}

/// Bytes of payloads, from and to; now and then larger than a page takes.
fn payload(rng: &mut Rng, page_size: u32) -> (u32, u32) {
    match rng.u32(..8) {
        0 => (PAYLOAD_MIN, PAYLOAD_MIN),
        1..4 => (PAYLOAD_MIN, 300),
        4 => (100, 1000),
        // Nearly each needs a page of its own.
        5 => (page_size / 3, page_size - 300),
        6 => (PAYLOAD_MIN, page_size / 4),
        _ => (PAYLOAD_MIN, (page_size + 500).min(65536)),
    }
}

fn writers(rng: &mut Rng, machine: &Machine, page_size: u32) -> Start {
    let mut sources = 0;
    for source in Source::ALL {
        if rng.u32(..4) != 0 {
            sources |= 1 << source as u32;
        }
    }
    let (least, most) = payload(rng, page_size);
    let task = one_of(rng, &[0, 0, 20, 200, 2000]);
    let timers = [(); 3].map(|()| one_of(rng, &[30, 100, 100, 300, 1000]));
    let in_place = rng.bool();
    let seed = rng.u64(..);
    // What is drawn does not depend on what the machine has.
    let has = |source: Source| machine.sources.contains(&source);
    let mut chosen: Vec<Source> = Source::ALL
        .into_iter()
        .filter(|source| sources & 1 << *source as u32 != 0 && has(*source))
        .collect();
    if chosen.is_empty() {
        chosen.push(Source::Task);
    }
    let mut start = Start::new(&chosen, least..=most)
        .come_back()
        .interval(Source::Task, Duration::from_micros(task));
    for (source, interval) in Source::ALL.into_iter().skip(1).zip(timers) {
        start = start.interval(source, Duration::from_micros(interval));
    }
    if in_place {
        start = start.in_place();
    }
    Start { seed, ..start }
}

fn harms(rng: &mut Rng, length: Duration) -> Script<Harm> {
    match rng.u32(..6) {
        // Somebody who is not disturbed must never wait for what is there.
        0 => Script::new(),
        1 => script(rng, length, (20, 300), |rng| {
            Harm::Pause(Duration::from_millis(rng.u64(5..150)))
        }),
        2 => script(rng, length, (4, 40), |_| Harm::Kill),
        _ => script(rng, length, (10, 250), |rng| match rng.u32(..4) {
            0 => Harm::Pause(Duration::from_millis(rng.u64(2..60))),
            _ => Harm::Kill,
        }),
    }
}

fn asks(rng: &mut Rng, length: Duration, mode: u32) -> Script<Ask> {
    if rng.u32(..4) == 0 {
        return Script::new();
    }
    let mut frozen = false;
    script(rng, length, (1, 120), |rng| match rng.u32(..8) {
        0..3 => Ask::Flush,
        3..5 => Ask::Mark,
        5 => Ask::Status,
        _ if mode == MODE_DISCARD => Ask::Flush,
        _ => {
            frozen = !frozen;
            if frozen {
                Ask::Freeze
            } else {
                Ask::Thaw
            }
        }
    })
}

impl Plan {
    /// Draws a round.
    pub fn draw(seed: u64, round: u64, length: Duration, machine: &Machine) -> Self {
        let (model, mode, way) = kind(seed, round);
        let rng = &mut rng(seed, round);
        let page_size = 4096 << rng.u32(..5);
        let share = one_of(rng, &[4, 4, 8, 16, 64]);
        let (mut clock, _) = one_of(rng, &CLOCKS);
        if !machine.clocks.contains(&clock) {
            clock = CLOCK_MONOTONIC;
        }
        let options = ChannelOptions {
            model,
            mode,
            clock,
            page_size,
            pages: share * machine.cpus,
            watermark: one_of(rng, &[1, 1, 2]),
            max_latency: Duration::from_millis(one_of(rng, &[1, 10, 100])),
            // A splice that waits keeps the pipe locked: who reads there would wait with it, and could not
            // kill it.
            nonblocking: rng.bool() || way == Way::Splice,
            ..Default::default()
        };
        let named = rng.bool();
        let pages = one_of(rng, &[1, 2, 8, 32]);
        let rest = Duration::from_micros(one_of(rng, &[0, 0, 0, 500, 5000]));
        let start = writers(rng, machine, page_size);
        let harms = harms(rng, length);
        let asks = asks(rng, length, mode);
        // A CPU that is not there is none that is drawn.
        let goes = rng.bool();
        let mut toggles = script(rng, length, (10, 400), |rng| rng.usize(..1 << 16));
        toggles.retain(|_| goes && machine.removable > 0);
        for (_, cpu) in &mut toggles {
            *cpu %= machine.removable;
        }
        Plan {
            seed,
            round,
            length,
            options,
            way,
            named,
            pages,
            rest,
            start,
            harms,
            asks,
            toggles,
        }
    }

    /// Whether the channel overwrites.
    pub fn overwrites(&self) -> bool {
        self.options.mode == MODE_OVERWRITE
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let model = match self.options.model {
            MODEL_PER_CPU => "per-cpu",
            MODEL_SHARED => "shared",
            _ => "paged",
        };
        let mode = if self.overwrites() {
            "overwrite"
        } else {
            "discard"
        };
        let clock = CLOCKS
            .iter()
            .find(|(clock, _)| *clock == self.options.clock)
            .map_or("no", |(_, name)| name);
        let count = |harm: fn(&Harm) -> bool| self.harms.iter().filter(|(_, h)| harm(h)).count();
        write!(
            f,
            "round {}: {model} {mode}, {clock} clock, {} pages of {} KiB, latency {} ms, watermark {}; {:?}{}{}, {} pages at a time, \
             rest {} us; sources {:#x}{}, payload {} to {}; {} kills, {} pauses, {} calls, {} CPUs on or off",
            self.round,
            self.options.pages,
            self.options.page_size >> 10,
            self.options.max_latency.as_millis(),
            self.options.watermark,
            self.way,
            if self.named { ", attached" } else { ", inherited" },
            if self.options.nonblocking { ", polls" } else { ", waits" },
            self.pages,
            self.rest.as_micros(),
            self.start.sources,
            if self.start.flags & crate::torture::IN_PLACE != 0 { " in place" } else { "" },
            self.start.payload_min,
            self.start.payload_max,
            count(|harm| *harm == Harm::Kill),
            count(|harm| *harm != Harm::Kill),
            self.asks.len(),
            self.toggles.len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const LENGTH: Duration = Duration::from_secs(1);

    fn machine(removable: usize, sources: &[Source]) -> Machine {
        Machine {
            cpus: 4,
            removable,
            sources: sources.to_vec(),
            clocks: CLOCKS.iter().map(|(clock, _)| *clock).collect(),
        }
    }

    fn text(seed: u64, round: u64) -> String {
        format!(
            "{:?}",
            Plan::draw(seed, round, LENGTH, &machine(3, &Source::ALL))
        )
    }

    #[test]
    fn a_seed_and_a_number_say_all() {
        let mut seen = HashSet::new();
        for seed in [0, 1, 2, u64::MAX] {
            for round in 0..40 {
                assert_eq!(text(seed, round), text(seed, round));
                assert!(seen.insert(text(seed, round)), "seed {seed}, round {round}");
            }
        }
    }

    #[test]
    fn every_kind_comes_once_before_one_comes_again() {
        let count = kinds_count();
        assert_eq!(count, 15);
        for seed in 0..20 {
            for deck in 0..3 {
                let seen: HashSet<_> = (0..count)
                    .map(|round| kind(seed, deck * count + round))
                    .map(|(model, mode, way)| (model, mode, way as u64))
                    .collect();
                assert_eq!(seen.len() as u64, count);
            }
        }
    }

    #[test]
    fn a_machine_that_lacks_something_gets_the_rest_of_the_same() {
        let less = machine(0, &[Source::Task, Source::Irq]);
        let mut nothing_left_out = true;
        for round in 0..100 {
            let all = Plan::draw(7, round, LENGTH, &machine(3, &Source::ALL));
            let some = Plan::draw(7, round, LENGTH, &less);
            assert!(some.toggles.is_empty());
            assert_eq!(some.start.sources & !0b101, 0);
            assert_ne!(some.start.sources, 0);
            nothing_left_out &= all.start.sources == some.start.sources;
            assert_eq!(format!("{:?}", all.asks), format!("{:?}", some.asks));
            assert_eq!(format!("{:?}", all.harms), format!("{:?}", some.harms));
            assert_eq!(
                (all.way, all.named, all.start.seed),
                (some.way, some.named, some.start.seed)
            );
        }
        assert!(!nothing_left_out);
    }

    #[test]
    fn everything_is_drawn_sooner_or_later() {
        let plans: Vec<_> = (0..200)
            .map(|round| Plan::draw(3, round, LENGTH, &machine(3, &Source::ALL)))
            .collect();
        let any = |what: fn(&Plan) -> bool| plans.iter().any(what) && !plans.iter().all(what);
        assert!(any(|plan| plan.harms.is_empty()));
        assert!(any(|plan| plan.asks.is_empty()));
        assert!(any(|plan| plan.toggles.is_empty()));
        assert!(any(|plan| plan.options.clock == CLOCK_TSC));
        assert!(any(|plan| plan.named && plan.way == Way::Map));
        assert!(any(|plan| plan.start.payload_max > plan.options.page_size));
        assert!(any(
            |plan| plan.options.page_size == 65536 && plan.overwrites()
        ));
        assert!(any(|plan| plan
            .asks
            .iter()
            .any(|(_, ask)| *ask == Ask::Freeze)));
        assert!(plans.iter().all(|plan| plan
            .harms
            .iter()
            .map(|(delay, _)| *delay)
            .sum::<Duration>()
            < LENGTH));
    }
}
