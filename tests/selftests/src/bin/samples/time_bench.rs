// SPDX-License-Identifier: GPL-2.0

//! `weir_time_bench` measures a loop: ten times as long is ten times as much.

use crate::Samples;
use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use std::{
    collections::BTreeMap,
    fs, //
};
use weir_selftests::ktap::{
    note,
    skip,
    Verdict, //
};

/// What a loop of a length cost, by unit.
type Costs = BTreeMap<u64, BTreeMap<String, u64>>;

/// Measurements, of which the cheapest counts: a machine that is emulated may be stopped in any of them.
const TIMES: usize = 10;

fn costs() -> Result<Costs> {
    let mut costs = Costs::new();
    for _ in 0..TIMES {
        measure(&mut costs)?;
    }
    for (loops, counts) in &costs {
        note(format_args!("{loops} loops: {counts:?}"));
    }
    let lengths: Vec<_> = costs.keys().copied().collect();
    ensure!(
        lengths == [1, 10, 100, 1000, 10_000, 100_000],
        "{lengths:?}"
    );
    Ok(costs)
}

fn measure(costs: &mut Costs) -> Verdict {
    let text = fs::read_to_string("/sys/kernel/debug/weir_time_bench")?;
    for line in text.lines() {
        let mut words = line.split(' ');
        ensure!(words.next() == Some("loops"), "`{line}`");
        let loops = words.next().context("no length")?.parse()?;
        let of_this = costs.entry(loops).or_default();
        while let Some(unit) = words.next() {
            let count: u64 = words.next().context("no number")?.parse()?;
            let best = of_this.entry(unit.to_owned()).or_insert(count);
            *best = count.min(*best);
        }
        ensure!(!of_this.is_empty(), "`{line}`");
    }
    Ok(())
}

/// Whatever the machine counts, longer loops have more of it.
pub(crate) fn time_bench(samples: &mut Samples) -> Verdict {
    let module = samples.load_counting("weir_time_bench", "")?;
    let costs = costs()?;
    for (unit, short) in &costs[&1000] {
        let long = costs[&100_000][unit];
        ensure!(
            long > 10 * short,
            "{long} {unit} for 100000 loops and {short} for 1000"
        );
    }
    module.unload()
}

/// A loop is so many instructions, however often it runs.
pub(crate) fn hardware(samples: &mut Samples) -> Verdict {
    let module = samples.load_counting("weir_time_bench", "")?;
    let costs = costs()?;
    let instructions = |loops| costs[&loops].get("instructions").copied();
    let (Some(few), Some(more), Some(most)) = (
        instructions(1000),
        instructions(10_000),
        instructions(100_000),
    ) else {
        module.unload()?;
        return Err(skip("this machine does not count instructions"));
    };
    let (short, long) = (more - few, most - more);
    // An NMI may come in between.
    ensure!(
        long.abs_diff(10 * short) <= long / 100,
        "9000 more loops are {short} more instructions, and 90000 are {long}"
    );
    for (loops, counts) in &costs {
        ensure!(
            counts["cycles"] > 0,
            "{loops} loops, and no cycles: {counts:?}"
        );
    }
    module.unload()
}
