// SPDX-License-Identifier: GPL-2.0

//! What must hold from page to page of one CPU.

use crate::page::Page;
use std::collections::HashMap;

/// Two pages of one CPU do not follow each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("page of CPU {cpu} at offset {offset} ({offset:#x}): {kind}")]
pub struct ContinuityError {
    /// Where the later page begins in its input.
    pub offset: u64,
    /// The CPU.
    pub cpu: u32,
    /// What is wrong.
    pub kind: ContinuityErrorKind,
}

/// What can be wrong between two pages of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContinuityErrorKind {
    /// Pages are missing, or there twice.
    #[error(
        "its number is {found} instead of {wanted}: pages are missing, repeated or out of order"
    )]
    Sequence {
        /// One more than that of the page before.
        wanted: u64,
        /// What the header says.
        found: u64,
    },
    /// Time went backwards.
    #[error("it begins at {begin} ns, before the end of the one before it at {end} ns")]
    Time {
        /// Beginning of the later page.
        begin: u64,
        /// End of the earlier page.
        end: u64,
    },
    /// The losses do not add up.
    #[error("it counts {found} lost records, where the pages so far report {wanted}")]
    Lost {
        /// Sum over all pages so far, this one included.
        wanted: u64,
        /// What the header says.
        found: u64,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    pages: u64,
    end: u64,
    lost: u64,
}

/// Follows the pages of all CPUs from the beginning of a channel.
#[derive(Clone, Debug, Default)]
pub struct Continuity {
    cpus: HashMap<u32, Cpu>,
}

impl Continuity {
    /// Begins where a channel begins: the first page of each CPU has the number zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks that `page` follows those before: numbers count up without a gap, time does not run
    /// backwards, and no loss is left out of the reports.
    ///
    /// # Errors
    ///
    /// [`ContinuityError`].
    pub fn follow(&mut self, page: &Page<'_>) -> Result<(), ContinuityError> {
        let header = page.header();
        let cpu = self.cpus.entry(header.cpu_id).or_default();
        let reported = cpu.lost.saturating_add(page.lost());
        // A page reports no more than fits.
        let lost = if header.lost.contains(&u32::MAX) {
            reported.max(header.events_discarded)
        } else {
            reported
        };
        let kind = if header.packet_seq_num != cpu.pages {
            ContinuityErrorKind::Sequence {
                wanted: cpu.pages,
                found: header.packet_seq_num,
            }
        } else if header.timestamp_begin < cpu.end {
            ContinuityErrorKind::Time {
                begin: header.timestamp_begin,
                end: cpu.end,
            }
        } else if header.events_discarded != lost {
            ContinuityErrorKind::Lost {
                wanted: lost,
                found: header.events_discarded,
            }
        } else {
            *cpu = Cpu {
                pages: cpu.pages + 1,
                end: header.timestamp_end,
                lost,
            };
            return Ok(());
        };
        Err(ContinuityError {
            offset: page.offset(),
            cpu: header.cpu_id,
            kind,
        })
    }
}
