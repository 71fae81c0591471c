// SPDX-License-Identifier: GPL-2.0

//! Book-keeping of torture records: what was written is read once, in order, whole; the rest is counted.

use crate::{
    payload::{
        self,
        Payload, //
    },
    torture::{
        Source,
        Status,
        REFUSED, //
    },
    verifier::{
        CpuTotals,
        Verifier, //
    },
};
use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use libweir::{
    uapi::{
        StatusReq,
        LOST_CAUSES, //
    },
    Channel,
    Record, //
};
use std::collections::{
    BTreeMap,
    BTreeSet, //
};

/// Index of the cause that nobody is told of when writing.
const OVERWRITTEN: usize = LOST_CAUSES - 1;

/// What was read of one writer.
#[derive(Clone, Copy, Debug, Default)]
struct Writer {
    next: u64,
    read: u64,
    refused: u64,
}

/// The books of one channel, over all runs of the torture module on it.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The channel overwrites, so there may be gaps.
    overwrites: bool,
    /// Records that were written and did not come, in all runs that were closed.
    overwritten: u64,
    /// Reservations that were given up in pages that were overwritten: the channel counts those as well.
    given_up: u64,
    /// Of the records that came, how many may count as overwritten all the same; see [`Ledger::doubt`].
    doubts: Vec<u64>,
    writers: BTreeMap<(u32, u32), Writer>,
    /// What was refused on each CPU in all runs that were closed, by cause.
    refused: BTreeMap<u32, [u64; LOST_CAUSES]>,
    /// Final counts of runs whose records are not read yet.
    expected: Vec<Status>,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Calls of `weir_channel_write()`.
    pub attempted: u64,
    /// Records that were written.
    pub written: u64,
    /// Of these, not read: of channels that overwrite only.
    pub overwritten: u64,
    /// Records that were refused, by cause.
    pub refused: [u64; LOST_CAUSES],
    /// Records written inside of another write.
    pub inside: u64,
}

impl Ledger {
    /// Begins with a new channel.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins with a new channel that overwrites what is not read.
    pub fn overwriting() -> Self {
        Ledger {
            overwrites: true,
            ..Self::default()
        }
    }

    /// Takes a record of a page of `cpu`. Only torture records are allowed.
    ///
    /// # Errors
    ///
    /// It is torn, was written on another CPU, or is not the next of its writer.
    pub fn record(&mut self, cpu: u32, record: &Record<'_>) -> Result<()> {
        self.take(cpu, record).map(drop)
    }

    /// The same; what its payload begins with.
    ///
    /// # Errors
    ///
    /// As [`Ledger::record`].
    pub fn take(&mut self, cpu: u32, record: &Record<'_>) -> Result<Payload> {
        let data = match record {
            Record::Raw { data, .. } => data,
            Record::Event { data, .. } => payload::without_filling(data)?,
            _ => bail!("{record:?} where only torture records are written"),
        };
        let head = payload::check(data)?;
        ensure!(
            head.cpu == cpu,
            "CPU {} wrote {head:?} into a page of CPU {cpu}",
            head.cpu
        );
        ensure!(
            Source::from_number(head.source).is_some(),
            "no source has written {head:?}"
        );
        let writer = self.writers.entry((head.cpu, head.source)).or_default();
        ensure!(
            head.sequence == writer.next || (self.overwrites && head.sequence > writer.next),
            "{} {head:?} came where number {} of its writer is next",
            if head.sequence < writer.next {
                "again or late:"
            } else {
                "after a gap:"
            },
            writer.next
        );
        ensure!(
            head.refused >= writer.refused,
            "fewer refused than before, which were {}: {head:?}",
            writer.refused
        );
        writer.next = head.sequence + 1;
        writer.read += 1;
        writer.refused = head.refused;
        Ok(head)
    }

    /// Says that the last `records` that were taken came from a reader who was killed, and of whom nobody knows
    /// whether it had them or they were overwritten before: they were all read, or all overwritten.
    pub fn doubt(&mut self, records: u64) {
        self.doubts.push(records);
    }

    /// Says that so many reservations that were given up did not come as NOPs.
    pub fn unseen(&mut self, given_up: u64) {
        self.given_up += given_up;
    }

    /// Records of all writers that were read in this run.
    pub fn read_in_all(&self) -> u64 {
        self.writers.values().map(|writer| writer.read).sum()
    }

    /// Notes the final counts of a run, whose records will be read later.
    pub fn expect(&mut self, statuses: Vec<Status>) {
        self.expected.extend(statuses);
    }

    /// Records that the runs noted have written.
    pub fn expected(&self) -> u64 {
        self.expected.iter().map(|status| status.written).sum()
    }

    /// Records of one writer that were read so far in this run.
    pub fn read(&self, cpu: u32, source: u32) -> u64 {
        self.writers
            .get(&(cpu, source))
            .map_or(0, |writer| writer.read)
    }

    /// Ends all runs that were noted.
    ///
    /// # Errors
    ///
    /// As [`Ledger::close_run`].
    pub fn close_expected(&mut self) -> Result<RunTotals> {
        let statuses = std::mem::take(&mut self.expected);
        self.close_run(&statuses)
    }

    /// Ends a run, of which all that was written was read: `statuses` are those of all its writers.
    ///
    /// # Errors
    ///
    /// A writer's own count is not what was read of it, or it met an error that the interface does not
    /// have.
    pub fn close_run(&mut self, statuses: &[Status]) -> Result<RunTotals> {
        let mut totals = RunTotals::default();
        for status in statuses {
            let place = || format!("source {} of CPU {}: {status:?}", status.source, status.cpu);
            let writer = self
                .writers
                .remove(&(status.cpu, status.source))
                .unwrap_or_default();
            ensure!(
                status.refused[REFUSED - 1] == 0,
                "weir_channel_write() gave {}, which it is not to give: {}",
                status.other_errno,
                place()
            );
            let refused: u64 = status.refused.iter().sum();
            ensure!(
                status.attempted == status.written + refused,
                "the torture module's own counts do not add up: {}",
                place()
            );
            let missing = status.written.checked_sub(writer.read);
            ensure!(
                missing == Some(0) || (self.overwrites && writer.next <= status.written),
                "{} records were read of {} that were written: {}",
                writer.read,
                status.written,
                place()
            );
            ensure!(
                writer.refused <= refused,
                "a record says that {} were refused: {}",
                writer.refused,
                place()
            );
            totals.attempted += status.attempted;
            totals.written += status.written;
            totals.overwritten += missing.unwrap_or(0);
            totals.inside += status.inside;
            let sums = self.refused.entry(status.cpu).or_default();
            // The causes have the same numbers in both interfaces.
            for (cause, count) in status.refused[..REFUSED - 1].iter().enumerate() {
                sums[cause] += count;
                totals.refused[cause] += count;
            }
        }
        self.overwritten += totals.overwritten;
        if let Some(((cpu, source), _)) = self.writers.first_key_value() {
            bail!("records of source {source} of CPU {cpu} were read, which was not started");
        }
        Ok(totals)
    }

    /// Checks what the channel says it lost on a CPU against what the writers were refused there, and
    /// both against the pages. All runs were closed, and everything was flushed and read.
    ///
    /// # Errors
    ///
    /// They differ.
    pub fn check_cpu(&self, cpu: u32, status: &StatusReq, pages: &CpuTotals) -> Result<()> {
        let mut refused = self.refused.get(&cpu).copied().unwrap_or_default();
        if self.overwrites {
            // Nobody is refused for these: only their sum over all CPUs can be known.
            refused[OVERWRITTEN] = status.lost[OVERWRITTEN];
        }
        ensure!(
            status.lost == refused,
            "CPU {cpu} counts {:?} lost by cause, but its writers were refused {refused:?}",
            status.lost
        );
        let reported: u64 = pages.lost.iter().sum();
        let total: u64 = status.lost.iter().sum();
        let all_reported = status.lost_begin == 0;
        ensure!(
            all_reported == (status.lost_end == 0) && status.lost_begin <= status.lost_end,
            "CPU {cpu}: the times of its losses are {} to {} ns",
            status.lost_begin,
            status.lost_end
        );
        for (cause, (reported, lost)) in pages.lost.iter().zip(status.lost).enumerate() {
            ensure!(
                *reported <= lost,
                "CPU {cpu}: pages report {reported} lost for cause {cause}, STATUS {lost}"
            );
        }
        ensure!(
            all_reported == (reported == total),
            "CPU {cpu}: pages report {reported} lost of {total}, and STATUS {} that some are not reported",
            if all_reported { "does not say" } else { "says" }
        );
        // Parts of open pages come in addition to those published, and replace others. Pages that all CPUs
        // write are not one CPU's.
        if pages.partial == 0 && !pages.shared && !self.overwrites {
            ensure!(
                pages.pages == status.pages,
                "CPU {cpu}: {} pages were read of {} published",
                pages.pages,
                status.pages
            );
        }
        Ok(())
    }

    /// [`Ledger::check_cpu`] of every CPU of a channel.
    ///
    /// # Errors
    ///
    /// They differ, or a status cannot be read.
    pub fn check_channel(&self, session: &crate::session::Session) -> Result<()> {
        self.check(session.channel(), session.verifier())
    }

    /// The same, of a channel and what was read from it.
    ///
    /// # Errors
    ///
    /// As [`Ledger::check_channel`].
    pub fn check(&self, channel: &Channel, verifier: &Verifier) -> Result<()> {
        let mut overwritten = 0;
        for cpu in libweir::cpu::possible()? {
            let status = channel.status(cpu)?;
            self.check_cpu(cpu, &status, &verifier.totals(cpu))
                .context("what was lost")?;
            overwritten += status.lost[OVERWRITTEN];
        }
        ensure!(
            self.may_be_overwritten(overwritten),
            "{overwritten} records count as overwritten, but {} were written and not read, {} given up, and of {:?} that is not known",
            self.overwritten,
            self.given_up,
            self.doubts
        );
        Ok(())
    }

    /// Whether so many were overwritten: those that did not come, and any of those that are in doubt.
    fn may_be_overwritten(&self, records: u64) -> bool {
        let mut sums = BTreeSet::from([self.overwritten + self.given_up]);
        for doubt in &self.doubts {
            let with: Vec<u64> = sums.iter().map(|sum| sum + doubt).collect();
            sums.extend(with);
        }
        sums.contains(&records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::build::{
        page,
        raw, //
    };
    use libweir::Page;

    fn feed(ledger: &mut Ledger, cpu: u32, payload: &[u8]) -> Result<()> {
        let bytes = page(cpu, 0, (1, 1), &[raw(cpu, 1, payload)]);
        let page = Page::parse(&bytes).unwrap();
        let record = page.records().next().unwrap().unwrap();
        ledger.record(cpu, &record)
    }

    fn status(cpu: u32, source: u32, written: u64, refused: [u64; REFUSED]) -> Status {
        Status {
            cpu,
            source,
            attempted: written + refused.iter().sum::<u64>(),
            written,
            refused,
            ..Default::default()
        }
    }

    /// Two records each of two writers.
    fn ledger() -> Ledger {
        let mut ledger = Ledger::new();
        for (source, sequence, refused) in [(0, 0, 0), (2, 0, 0), (0, 1, 3), (2, 1, 0)] {
            feed(
                &mut ledger,
                0,
                &payload::make(0, source, sequence, refused, 40),
            )
            .unwrap();
        }
        ledger
    }

    #[test]
    fn right_books_pass() {
        let mut ledger = ledger();
        let totals = ledger
            .close_run(&[
                status(0, 0, 2, [3, 1, 0, 0]),
                status(0, 2, 2, [0; 4]),
                status(1, 0, 0, [0; 4]),
            ])
            .unwrap();
        assert_eq!(totals.attempted, 8);
        assert_eq!(totals.written, 4);
        assert_eq!(totals.refused, [3, 1, 0, 0]);
        let channel = StatusReq {
            pages: 1,
            lost: [3, 1, 0, 0],
            ..Default::default()
        };
        let pages = CpuTotals {
            pages: 1,
            records: 4,
            lost: [3, 1, 0, 0],
            ..Default::default()
        };
        ledger.check_cpu(0, &channel, &pages).unwrap();
        // A loss that no page reports yet has times.
        let pages = CpuTotals {
            lost: [2, 1, 0, 0],
            ..pages
        };
        assert!(ledger.check_cpu(0, &channel, &pages).is_err());
        let channel = StatusReq {
            lost_begin: 5,
            lost_end: 6,
            ..channel
        };
        ledger.check_cpu(0, &channel, &pages).unwrap();
    }

    #[test]
    fn gaps_repetitions_and_foreign_records_fail() {
        for (cpu, payload) in [
            (0, payload::make(0, 0, 3, 3, 40)),
            (0, payload::make(0, 0, 1, 3, 40)),
            (0, payload::make(0, 0, 2, 2, 40)),
            (1, payload::make(0, 0, 2, 3, 40)),
            (0, payload::make(0, 9, 0, 0, 40)),
            (0, b"something else".to_vec()),
        ] {
            assert!(feed(&mut ledger(), cpu, &payload).is_err(), "{payload:x?}");
        }
        feed(&mut ledger(), 0, &payload::make(0, 0, 2, 3, 40)).unwrap();
    }

    #[test]
    fn counts_that_differ_fail() {
        let good = status(0, 2, 2, [0; 4]);
        for wrong in [
            // Written but not read; read but not written; refused less than a record says.
            status(0, 0, 3, [3, 0, 0, 0]),
            status(0, 0, 1, [3, 0, 0, 0]),
            status(0, 0, 2, [2, 0, 0, 0]),
            // An error that the interface does not have.
            status(0, 0, 2, [3, 0, 0, 1]),
            Status {
                attempted: 6,
                ..status(0, 0, 2, [3, 0, 0, 0])
            },
            // A writer that was never started has records.
            status(1, 0, 0, [0; 4]),
        ] {
            assert!(ledger().close_run(&[good, wrong]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_in_doubt_was_read_or_overwritten_as_a_whole() {
        let mut ledger = Ledger::overwriting();
        feed(&mut ledger, 0, &payload::make(0, 0, 4, 0, 40)).unwrap();
        feed(&mut ledger, 0, &payload::make(0, 0, 5, 0, 40)).unwrap();
        ledger.doubt(2);
        feed(&mut ledger, 0, &payload::make(0, 0, 9, 0, 40)).unwrap();
        ledger.doubt(1);
        assert_eq!(ledger.read_in_all(), 3);
        ledger.close_run(&[status(0, 0, 20, [0; 4])]).unwrap();
        for records in 0..25 {
            let possible = (17..=20).contains(&records);
            assert_eq!(ledger.may_be_overwritten(records), possible, "{records}");
        }
        let mut given_up = ledger.clone();
        given_up.unseen(1);
        assert!(!given_up.may_be_overwritten(17));
        assert!(given_up.may_be_overwritten(18));
        ledger.doubts = vec![3];
        assert!(!ledger.may_be_overwritten(18));
    }

    #[test]
    fn losses_that_differ_fail() {
        let mut ledger = ledger();
        ledger
            .close_run(&[status(0, 0, 2, [3, 0, 0, 0]), status(0, 2, 2, [0; 4])])
            .unwrap();
        let channel = StatusReq {
            pages: 1,
            lost: [3, 0, 0, 0],
            ..Default::default()
        };
        let pages = CpuTotals {
            pages: 1,
            records: 4,
            lost: [3, 0, 0, 0],
            ..Default::default()
        };
        ledger.check_cpu(0, &channel, &pages).unwrap();
        for (lost, pages) in [
            ([2, 0, 0, 0], pages),
            ([2, 1, 0, 0], pages),
            (
                [3, 0, 0, 0],
                CpuTotals {
                    lost: [4, 0, 0, 0],
                    ..pages
                },
            ),
            (
                [3, 0, 0, 0],
                CpuTotals {
                    lost: [2, 1, 0, 0],
                    ..pages
                },
            ),
            ([3, 0, 0, 0], CpuTotals { pages: 2, ..pages }),
        ] {
            let channel = StatusReq { lost, ..channel };
            assert!(
                ledger.check_cpu(0, &channel, &pages).is_err(),
                "{lost:?} {pages:?}"
            );
        }
    }
}
