// SPDX-License-Identifier: GPL-2.0

//! When records were lost: the times that pages tell, against what each record says of how many of its writer had
//! been refused before.
//!
//! A page tells how many records its CPU has lost so far, and the times of the first and last of those that no
//! page told of before. So everything that it counts was lost up to its last time, and everything that was lost
//! before the first time of the next report, it counts. What had been lost at a time is known from records: a
//! writer's refusals before a record are older than the record, those behind it are not.

use crate::torture::Status;
use anyhow::{
    ensure,
    Result, //
};
use libweir::uapi::PageHeader;
use std::collections::BTreeMap;

/// How far the time of a loss and those of records may be apart from their order, ns: a loss takes the clock as
/// it is, which may run backwards by a little from an NMI to what it interrupted.
const SLACK: i64 = 50_000;

/// What a page tells.
#[derive(Clone, Copy, Debug)]
struct Report {
    begin: u64,
    end: u64,
    /// Lost since the channel began.
    total: u64,
}

/// Records one after the other, of a writer that was refused nothing in between.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u64,
    last: u64,
    /// Refused before.
    refused: u64,
}

/// Of one CPU.
#[derive(Clone, Debug, Default)]
struct Cpu {
    reports: Vec<Report>,
    /// By source.
    writers: BTreeMap<u32, Vec<Stretch>>,
}

/// Of all CPUs of a channel that does not overwrite, whose pages were all read.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    cpus: BTreeMap<u32, Cpu>,
}

impl Losses {
    /// Takes what the header of a page tells.
    pub fn page(&mut self, header: &PageHeader) {
        if header.lost_begin != 0 {
            let cpu = self.cpus.entry(header.cpu_id).or_default();
            cpu.reports.push(Report {
                begin: header.lost_begin,
                end: header.lost_end,
                total: header.events_discarded,
            });
        }
    }

    /// Takes a record of `time`, before which its writer had been refused so many.
    pub fn record(&mut self, cpu: u32, source: u32, time: u64, refused: u64) {
        let writers = &mut self.cpus.entry(cpu).or_default().writers;
        let stretches = writers.entry(source).or_default();
        match stretches.last_mut() {
            Some(stretch) if stretch.refused == refused => stretch.last = time,
            _ => stretches.push(Stretch {
                first: time,
                last: time,
                refused,
            }),
        }
    }

    /// Compares both, at the end; `shifted` gives a time so many ns after another one.
    ///
    /// # Errors
    ///
    /// A range of times is wrong.
    pub fn check(&self, statuses: &[Status], shifted: impl Fn(u64, i64) -> u64) -> Result<()> {
        for (number, cpu) in &self.cpus {
            let of_cpu = || statuses.iter().filter(|status| status.cpu == *number);
            let mut before = 0;
            for report in &cpu.reports {
                let least: u64 = of_cpu()
                    .map(|status| cpu.lost_before(status, shifted(report.begin, -SLACK)))
                    .sum();
                ensure!(
                    least <= before,
                    "CPU {number}: {report:?} comes after one of {before} in all, but {least} had been lost before \
                     its times"
                );
                let most: u64 = of_cpu()
                    .map(|status| cpu.lost_until(status, shifted(report.end, SLACK)))
                    .sum();
                ensure!(
                    report.total <= most,
                    "CPU {number}: {report:?}, but until then {most} had been lost"
                );
                before = report.total;
            }
        }
        Ok(())
    }
}

impl Cpu {
    fn stretches(&self, status: &Status) -> &[Stretch] {
        self.writers.get(&status.source).map_or(&[], Vec::as_slice)
    }

    /// How many of a writer were surely lost before `time`.
    fn lost_before(&self, status: &Status, time: u64) -> u64 {
        let stretches = self.stretches(status);
        let count = stretches.partition_point(|stretch| stretch.first < time);
        stretches[..count]
            .last()
            .map_or(0, |stretch| stretch.refused)
    }

    /// How many of a writer were lost up to `time`, at most.
    fn lost_until(&self, status: &Status, time: u64) -> u64 {
        let stretches = self.stretches(status);
        let index = stretches.partition_point(|stretch| stretch.last <= time);
        match stretches.get(index) {
            Some(stretch) => stretch.refused,
            None => status.refused.iter().sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that wrote at 1, 2, 5 and 9 ms, and lost two before 5 ms, three before 9 ms, one later.
    fn losses(reports: &[(u64, u64, u64)]) -> Result<()> {
        let mut losses = Losses::default();
        for (time, refused) in [(1, 0), (2, 0), (5, 2), (9, 5)] {
            losses.record(0, 1, time * 1_000_000, refused);
        }
        for (begin, end, total) in reports {
            losses.page(&PageHeader {
                lost_begin: begin * 1_000_000,
                lost_end: end * 1_000_000,
                events_discarded: *total,
                ..Default::default()
            });
        }
        let status = Status {
            source: 1,
            refused: [6, 0, 0, 0],
            ..Default::default()
        };
        losses.check(&[status], |time, ns| time.saturating_add_signed(ns))
    }

    #[test]
    fn right_ranges_pass() {
        losses(&[]).unwrap();
        losses(&[(3, 4, 2), (6, 8, 5), (10, 10, 6)]).unwrap();
        losses(&[(3, 10, 6)]).unwrap();
        // It may begin too early.
        losses(&[(3, 4, 2), (4, 8, 5), (8, 10, 6)]).unwrap();
    }

    #[test]
    fn wrong_ranges_fail() {
        // It begins too late, with two lost before.
        losses(&[(6, 10, 6)]).unwrap_err();
        losses(&[(3, 4, 1), (6, 8, 5), (10, 10, 6)]).unwrap_err();
        // It ends too early, before the last of what it counts.
        losses(&[(3, 4, 3), (6, 8, 5), (10, 10, 6)]).unwrap_err();
        losses(&[(3, 4, 2), (6, 8, 6)]).unwrap_err();
    }
}
