// SPDX-License-Identifier: GPL-2.0

//! What became of the records that were written.

use crate::meter::Fired;
use anyhow::{
    bail,
    ensure,
    Result, //
};
use zerocopy::FromBytes;

/// Bytes of the payload of records that a tracepoint gives.
pub const PAYLOAD: usize = 32;

/// What was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrived {
    /// Records.
    pub records: u64,
    /// Those that were overwritten before, as the tracer says.
    pub overwritten: u64,
    /// Those that were lost otherwise, as the tracer says.
    pub lost: u64,
    /// Bytes of a record.
    pub bytes: u64,
    /// Records that are not whole, or not the next one.
    broken: u64,
    /// Number of the last record.
    last: u64,
}

impl Arrived {
    /// What the module itself has read and checked.
    pub fn counted(records: u64, overwritten: u64, bytes: u64) -> Self {
        Self {
            records,
            overwritten,
            bytes,
            ..Default::default()
        }
    }

    /// Takes a record of so many bytes, by its payload.
    pub fn record(&mut self, payload: &[u8], bytes: usize) {
        self.records += 1;
        self.bytes = bytes as u64;
        match number(payload) {
            Some(number) if self.last == 0 || number == self.last + 1 => self.last = number,
            _ => self.broken += 1,
        }
    }

    /// Says what is wrong with it, if `fired` was written.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn check(&self, fired: &Fired) -> Result<()> {
        ensure!(fired.failed == 0, "{} calls failed", fired.failed);
        ensure!(self.lost == 0, "{} records were lost", self.lost);
        ensure!(
            self.broken == 0,
            "{} of {} records are not what was written",
            self.broken,
            self.records
        );
        if self.records == 0 || self.records + self.overwritten != fired.made {
            bail!(
                "{} records were written, {} were read and {} overwritten",
                fired.made,
                self.records,
                self.overwritten
            );
        }
        ensure!(
            self.last == 0 || self.last == fired.made,
            "the last record was number {} of {}",
            self.last,
            fired.made
        );
        Ok(())
    }
}

/// The number that all words of a payload are.
fn number(payload: &[u8]) -> Option<u64> {
    let mut words = payload.chunks(8).map(u64::read_from_bytes);
    let first = words.next()?.ok()?;
    words.all(|word| word.ok() == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    fn arrived(numbers: &[u64]) -> Arrived {
        let mut arrived = Arrived::default();
        for &number in numbers {
            arrived.record([number; 4].as_bytes(), 48);
        }
        arrived
    }

    fn fired(made: u64) -> Fired {
        Fired {
            made,
            ..Default::default()
        }
    }

    #[test]
    fn all_that_was_written_is_well() {
        arrived(&[1, 2, 3]).check(&fired(3)).unwrap();
        let mut late = arrived(&[2, 3]);
        late.overwritten = 1;
        late.check(&fired(3)).unwrap();
    }

    #[test]
    fn whatever_is_missing_is_told() {
        assert!(arrived(&[]).check(&fired(0)).is_err());
        assert!(arrived(&[1, 3]).check(&fired(2)).is_err());
        assert!(arrived(&[1, 2]).check(&fired(3)).is_err());
        assert!(arrived(&[2, 3]).check(&fired(2)).is_err());
        let mut torn = arrived(&[1]);
        torn.record([2u64, 2, 2, 0].as_bytes(), 48);
        assert!(torn.check(&fired(2)).is_err());
        let mut lossy = arrived(&[1, 2]);
        lossy.lost = 1;
        assert!(lossy.check(&fired(2)).is_err());
        let mut short = arrived(&[1]);
        short.record(&2u64.as_bytes()[..7], 48);
        assert!(short.check(&fired(2)).is_err());
        let failed = Fired {
            failed: 1,
            ..fired(1)
        };
        assert!(arrived(&[1]).check(&failed).is_err());
    }
}
