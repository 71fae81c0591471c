// SPDX-License-Identifier: GPL-2.0

//! Tests, and not of time: whatever is written in one of the ways that are measured is read, whole and in order.

use crate::{
    direct,
    drain,
    meter::Meter,
    tracepoint,
    Batches, //
};
use anyhow::{
    ensure,
    Result, //
};
use std::{
    path::{
        Path,
        PathBuf, //
    },
    process::ExitCode,
};
use weir_bench::measurement::{
    Measurement,
    State, //
};
use weir_selftests::ktap::{
    self,
    Verdict, //
};

/// Enough for a buffer that overwrites to do so.
const BATCHES: Batches = Batches {
    batches: 8,
    rounds: 1,
};

struct Ways {
    meter: Meter,
    bpf: Option<PathBuf>,
}

fn written_directly(ways: &mut Ways) -> Verdict {
    judge(&direct::measure(&ways.meter, BATCHES)?)
}

fn traced(ways: &mut Ways) -> Verdict {
    judge(&tracepoint::measure(
        &ways.meter,
        BATCHES,
        ways.bpf.as_deref(),
    )?)
}

fn read(ways: &mut Ways) -> Verdict {
    judge(&drain::all(&ways.meter, 1)?)
}

/// Says which results are not valid. That some are not there depends on the kernel.
fn judge(measurements: &[Measurement]) -> Result<()> {
    let mut invalid = Vec::new();
    for one in measurements {
        match &one.state {
            State::Valid => (),
            State::Invalid(why) => invalid.push(format!("{}: {why}", one.name)),
            State::Skipped(why) => ktap::note(format!("{}: {why}", one.name)),
        }
    }
    ensure!(invalid.is_empty(), "{}", invalid.join("; "));
    let valid = |one: &Measurement| one.state == State::Valid && one.name.contains("weir");
    ensure!(measurements.iter().any(valid), "nothing was written");
    Ok(())
}

/// Runs the tests.
pub fn main(module: Option<&Path>, bpf: Option<PathBuf>) -> ExitCode {
    ktap::main(
        || {
            Ok(Ways {
                meter: Meter::new(module)?,
                bpf,
            })
        },
        &[
            ("all that is written directly arrives", written_directly),
            ("all that is traced arrives", traced),
            ("all that is there is read", read),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, state: State) -> Measurement {
        Measurement {
            name: name.into(),
            state,
            ..Default::default()
        }
    }

    #[test]
    fn one_bad_result_is_enough() {
        let good = result("weir, paged", State::Valid);
        let absent = result("relay", State::Skipped("no".into()));
        let bad = result("ftrace", State::Invalid("lost".into()));
        judge(&[good.clone(), absent.clone()]).unwrap();
        assert!(judge(&[good, bad]).is_err());
        assert!(judge(&[absent]).is_err());
    }
}
