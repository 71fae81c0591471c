// SPDX-License-Identifier: GPL-2.0

//! A result, with its raw samples, as a line of a file.

use anyhow::{
    ensure,
    Context,
    Result, //
};
use std::fmt;

/// What samples mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// What they say: all that was written arrived.
    #[default]
    Valid,
    /// Nothing, and why: not all that was written arrived.
    Invalid(String),
    /// There are none, and why.
    Skipped(String),
}

impl State {
    /// A check that failed makes a result invalid.
    pub fn of(check: anyhow::Result<()>) -> Self {
        match check {
            Ok(()) => Self::Valid,
            Err(error) => Self::Invalid(format!("{error:#}")),
        }
    }

    fn parse(field: &str) -> Result<Self> {
        Ok(match field.split_once(": ") {
            None if field == "ok" => Self::Valid,
            Some(("invalid", why)) => Self::Invalid(why.into()),
            Some(("SKIP", why)) => Self::Skipped(why.into()),
            _ => anyhow::bail!("no state: {field}"),
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Valid => f.write_str("ok"),
            Self::Invalid(why) => write!(f, "invalid: {why}"),
            Self::Skipped(why) => write!(f, "SKIP: {why}"),
        }
    }
}

/// What was measured of one way to write, or to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measurement {
    /// Which comparison it belongs to.
    pub part: String,
    /// What was measured.
    pub name: String,
    /// Bytes of payload of a record; 0 where there are none.
    pub payload: u64,
    /// Calls of each sample, or bytes.
    pub per: u64,
    /// Bytes of a record with what its buffer puts before it; 0 where there are none.
    pub bytes: u64,
    /// What the samples mean.
    pub state: State,
    /// What each batch took.
    pub samples: Vec<u64>,
}

impl Measurement {
    /// The line.
    pub fn line(&self) -> String {
        let samples: Vec<_> = self.samples.iter().map(u64::to_string).collect();
        let state = self.state.to_string().replace(['\t', '\n'], " ");
        format!(
            "{}\t{}\t{}\t{}\t{}\t{}\t{}",
            self.part,
            self.name,
            self.payload,
            self.per,
            self.bytes,
            state,
            samples.join(" ")
        )
    }

    /// Reads a line.
    ///
    /// # Errors
    ///
    /// Where it is none.
    pub fn parse(line: &str) -> Result<Self> {
        let fields: Vec<_> = line.split('\t').collect();
        let [part, name, payload, per, bytes, state, samples] = fields[..] else {
            anyhow::bail!("no result: {line}");
        };
        let measurement = Self {
            part: part.into(),
            name: name.into(),
            payload: payload.parse().context("no size of a payload")?,
            per: per.parse().context("no number of calls")?,
            bytes: bytes.parse().context("no number of bytes")?,
            state: State::parse(state)?,
            samples: samples
                .split_whitespace()
                .map(str::parse)
                .collect::<Result<_, _>>()
                .context("a sample is no number")?,
        };
        ensure!(measurement.per > 0, "a sample of nothing: {line}");
        ensure!(
            measurement.state != State::Valid || !measurement.samples.is_empty(),
            "no samples: {line}"
        );
        Ok(measurement)
    }

    /// The median of the samples, for each call.
    pub fn median(&self) -> f64 {
        self.rank(self.samples.len() / 2)
    }

    /// The least.
    pub fn least(&self) -> f64 {
        self.rank(0)
    }

    /// The most.
    pub fn most(&self) -> f64 {
        self.rank(self.samples.len().saturating_sub(1))
    }

    /// The mean, of what is measured too coarsely for a median.
    pub fn mean(&self) -> f64 {
        let sum: u64 = self.samples.iter().sum();
        sum as f64 / self.samples.len() as f64 / self.per as f64
    }

    fn rank(&self, rank: usize) -> f64 {
        let mut samples = self.samples.clone();
        samples.sort_unstable();
        samples
            .get(rank)
            .map_or(f64::NAN, |&sample| sample as f64 / self.per as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement() -> Measurement {
        Measurement {
            part: "direct".into(),
            name: "weir, paged".into(),
            payload: 32,
            per: 10,
            bytes: 48,
            state: State::Valid,
            samples: vec![50, 20, 30],
        }
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let mut measurement = measurement();
        assert_eq!(
            measurement.line(),
            "direct\tweir, paged\t32\t10\t48\tok\t50 20 30"
        );
        assert_eq!(
            Measurement::parse(&measurement.line()).unwrap(),
            measurement
        );
        measurement.state = State::Invalid("1 of 2\tarrived".into());
        let read = Measurement::parse(&measurement.line()).unwrap();
        assert_eq!(read.state, State::Invalid("1 of 2 arrived".into()));
        measurement.state = State::Skipped("no: such thing".into());
        measurement.samples.clear();
        let read = Measurement::parse(&measurement.line()).unwrap();
        assert_eq!(read, measurement);
    }

    #[test]
    fn what_is_no_result_is_refused() {
        for line in [
            "",
            "a\tb",
            "a\tb\t32\t0\t0\tok\t1",
            "a\tb\t32\t1\t0\tok\t",
            "a\tb\t32\t1\t0\tok\tx",
            "a\tb\t32\t1\t0\tfine\t1",
        ] {
            assert!(Measurement::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let measurement = measurement();
        assert_eq!(measurement.least(), 2.0);
        assert_eq!(measurement.median(), 3.0);
        assert_eq!(measurement.most(), 5.0);
        assert!((measurement.mean() - 10.0 / 3.0).abs() < 1e-9);
    }
}
