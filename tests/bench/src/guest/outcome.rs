// SPDX-License-Identifier: GPL-2.0

//! Results of what was fired.

use crate::{
    arrived::Arrived,
    meter::{
        Fired,
        Kind, //
    },
};
use anyhow::ensure;
use weir_bench::measurement::{
    Measurement,
    State, //
};

/// Records of a batch.
pub const CALLS: u32 = 1000;

/// The result of a kind. What is a record must have arrived.
pub fn measurement(kind: &Kind, fired: &Fired, arrived: Option<&Arrived>) -> Measurement {
    let checked = match arrived {
        Some(arrived) => arrived.check(fired),
        None => (|| {
            ensure!(kind.payload == 0, "nobody looked for the records");
            ensure!(fired.failed == 0, "{} calls failed", fired.failed);
            Ok(())
        })(),
    };
    Measurement {
        bytes: arrived.map_or(0, |arrived| arrived.bytes),
        state: State::of(checked),
        samples: fired.samples.clone(),
        ..named(kind)
    }
}

/// A kind that is not measured.
pub fn skipped(kind: &Kind, why: &str) -> Measurement {
    Measurement {
        state: State::Skipped(why.into()),
        ..named(kind)
    }
}

fn named(kind: &Kind) -> Measurement {
    let (part, name) = kind.name.split_once('/').unwrap_or(("", &kind.name));
    Measurement {
        part: part.into(),
        name: name.into(),
        payload: kind.payload as u64,
        per: u64::from(CALLS),
        ..Default::default()
    }
}

/// Adds the result of one more round. What went wrong in any round is wrong.
pub fn add(measurements: &mut Vec<Measurement>, mut result: Measurement) {
    let same = |all: &&mut Measurement| all.part == result.part && all.name == result.name;
    match measurements.iter_mut().find(same) {
        Some(all) => {
            all.samples.append(&mut result.samples);
            if all.state == State::Valid {
                all.state = result.state;
            }
        }
        None => measurements.push(result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(payload: usize) -> Kind {
        Kind {
            name: "direct/buffer".into(),
            payload,
        }
    }

    fn fired() -> Fired {
        Fired {
            made: 1,
            samples: vec![7],
            ..Default::default()
        }
    }

    #[test]
    fn records_that_nobody_looked_for_are_no_result() {
        let unseen = measurement(&kind(32), &fired(), None);
        assert!(matches!(unseen.state, State::Invalid(_)));
        assert_eq!(measurement(&kind(0), &fired(), None).state, State::Valid);
    }

    #[test]
    fn a_bad_round_spoils_all() {
        let mut all = Vec::new();
        add(&mut all, measurement(&kind(0), &fired(), None));
        add(&mut all, measurement(&kind(32), &fired(), None));
        add(&mut all, measurement(&kind(0), &fired(), None));
        let other = Measurement {
            part: "other".into(),
            ..all[0].clone()
        };
        add(&mut all, other);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].samples, [7, 7, 7]);
        assert!(matches!(all[0].state, State::Invalid(_)));
    }
}
