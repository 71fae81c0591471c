// SPDX-License-Identifier: GPL-2.0

//! Whether `perf stat` and `weir stat` say the same, though neither always does.

use crate::{
    ktap::note,
    stat::{
        Counts,
        Tool,
        TOOLS, //
    },
};
use anyhow::{
    ensure,
    Context,
    Result, //
};
use std::collections::BTreeMap;

/// How often each tool counts the same work at most: more often than asked for where something came between. An odd
/// number.
pub const MOST_ROUNDS: usize = 31;

/// What each tool has said of an event, run after run.
pub type Runs = BTreeMap<(Tool, String), Vec<f64>>;

/// What most runs of a tool have to say of events.
#[derive(Debug, Default)]
pub struct Expected(BTreeMap<(Tool, String), f64>);

impl Expected {
    /// So much more than was said before.
    ///
    /// # Errors
    ///
    /// Such an event was not counted.
    pub fn more(before: &Runs, known: &[(&str, u64)]) -> Result<Self> {
        let mut expected = Self::default();
        for tool in TOOLS {
            for (event, more) in known {
                let value = usual(before, tool, event)? + *more as f64;
                expected.0.insert((tool, (*event).to_owned()), value);
            }
        }
        Ok(expected)
    }

    /// What is not so.
    fn missed(&self, runs: &Runs) -> Result<Vec<String>> {
        let mut missed = Vec::new();
        for ((tool, event), expected) in &self.0 {
            if usual(runs, *tool, event)? != *expected {
                let said = &runs[&(*tool, event.clone())];
                missed.push(format!(
                    "{event}: {tool} says {said:?}, and should say {expected}"
                ));
            }
        }
        Ok(missed)
    }
}

/// Lets both tools count in turn until they agree and say what is expected, and gives all that they said: `rounds`
/// times each, an odd number, or more often where something came between.
///
/// # Errors
///
/// That of `count`; they do not agree, or do not say what is expected.
pub fn agree(
    rounds: usize,
    expected: &Expected,
    mut count: impl FnMut() -> Result<[Counts; 2]>,
) -> Result<Runs> {
    let mut runs = Runs::new();
    for round in 1.. {
        for (tool, counts) in TOOLS.into_iter().zip(count()?) {
            for (event, count) in counts {
                let count = count.with_context(|| format!("{tool} has no {event}"))?;
                runs.entry((tool, event)).or_default().push(count.value);
            }
        }
        if round < rounds || round % 2 == 0 {
            continue;
        }
        let mut wrong = expected.missed(&runs)?;
        wrong.extend(disputed(&runs)?);
        if wrong.is_empty() {
            if round > rounds {
                note(format_args!("it took {round} rounds"));
            }
            break;
        }
        ensure!(round < MOST_ROUNDS, "{}", wrong.join("\n"));
    }
    Ok(runs)
}

/// Of what weir does not say what perf says.
fn disputed(runs: &Runs) -> Result<Vec<String>> {
    let mut disputed = Vec::new();
    for ((tool, event), perf) in runs {
        let of = |tool| runs.get(&(tool, event.clone()));
        let weir = of(Tool::Weir).with_context(|| format!("weir did not count {event}"))?;
        ensure!(of(Tool::Perf).is_some(), "perf did not count {event}");
        if *tool == Tool::Perf && !is_within_noise(perf, weir) {
            disputed.push(format!("{event}: perf says {perf:?}, weir {weir:?}"));
        }
    }
    Ok(disputed)
}

/// What most runs said.
///
/// # Errors
///
/// Such an event was not counted.
pub fn usual(runs: &Runs, tool: Tool, event: &str) -> Result<f64> {
    let runs = runs.get(&(tool, event.to_owned()));
    Ok(median(runs.with_context(|| {
        format!("{tool} did not count {event}")
    })?))
}

/// What is in the middle of an odd number of values.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Whether what weir says of the same work again and again is within the noise of what perf says of it: as two runs
/// of perf may be as far from each other as `noise`, the greatest difference between any two of those that were
/// made, weir may be as far from the nearest of them. It is the middle of weir's runs that is looked at, so that one
/// of them may be disturbed more than all of perf's; but where perf always says the same, that is what most of
/// weir's runs must say.
fn is_within_noise(perf: &[f64], weir: &[f64]) -> bool {
    let low = perf.iter().copied().fold(f64::INFINITY, f64::min);
    let high = perf.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let noise = high - low;
    (low - noise..=high + noise).contains(&median(weir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::Count;

    fn counts(value: u32) -> Counts {
        let count = Count {
            value: value.into(),
            spread: None,
        };
        Counts::from([("cs".to_owned(), Some(count))])
    }

    /// Lets the tools say this, one round after the other.
    fn agreed(expected: &Expected, rounds: &[[u32; 2]]) -> Result<Runs> {
        let mut rounds = rounds.iter();
        agree(3, expected, || {
            let said = rounds.next().context("they were not asked so often")?;
            Ok(said.map(counts))
        })
    }

    #[test]
    fn tools_count_until_they_agree() {
        let none = Expected::default();
        let runs = agreed(&none, &[[7, 7], [7, 9], [7, 7]]).unwrap();
        assert_eq!(usual(&runs, Tool::Weir, "cs").unwrap(), 7.0);
        // Twice it was 8, but most of five are not.
        agreed(&none, &[[7, 8], [7, 8], [7, 7], [7, 7], [7, 7]]).unwrap();
        assert!(agreed(&none, &[[7, 8], [7, 8], [7, 7]]).is_err());
        let error = agreed(&none, &[[7, 8]; MOST_ROUNDS]).unwrap_err();
        assert!(error.to_string().starts_with("cs: perf says [7.0, "));
    }

    #[test]
    fn both_must_say_what_is_expected() {
        let before = agreed(&Expected::default(), &[[1, 1]; 3]).unwrap();
        let expected = Expected::more(&before, &[("cs", 10)]).unwrap();
        agreed(&expected, &[[11, 11]; 3]).unwrap();
        let error = agreed(&expected, &[[12, 12]; MOST_ROUNDS]).unwrap_err();
        assert!(error.to_string().contains("should say 11"), "{error}");
        assert!(Expected::more(&before, &[("faults", 0)]).is_err());
    }

    #[test]
    fn noise_is_what_perf_differs_from_itself() {
        assert!(is_within_noise(&[7.0, 7.0, 7.0], &[7.0, 9.0, 7.0]));
        assert!(!is_within_noise(&[7.0, 7.0, 7.0], &[8.0, 8.0, 7.0]));
        assert!(is_within_noise(&[10.0, 12.0, 11.0], &[8.0, 14.0, 14.0]));
        assert!(!is_within_noise(&[10.0, 12.0, 11.0], &[7.0, 7.0, 14.0]));
    }
}
