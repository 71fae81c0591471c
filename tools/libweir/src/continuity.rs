// SPDX-License-Identifier: GPL-2.0

//! What must hold from page to page of one CPU.

use crate::{
    page::Page,
    uapi::{
        CPU_NONE,
        LOST_CAUSES,
        PAGE_OVERWRITE,
        PAGE_SHARED, //
    },
};
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
    #[error("it counts {found} lost records, but by cause they are {wanted}")]
    Lost {
        /// What the page before says and what was lost since by cause.
        wanted: u64,
        /// What the header says.
        found: u64,
    },
    /// Losses without a time, or a time without losses.
    #[error("{count} records were lost since the page before it, but from {begin} ns on")]
    LostTime {
        /// Lost since the page before.
        count: u64,
        /// What the header says.
        begin: u64,
    },
}

/// The pages of a CPU, or of all.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    pages: u64,
    end: u64,
}

/// The losses of a CPU so far.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    total: u64,
    by_cause: [u32; LOST_CAUSES],
}

/// Follows the pages of all CPUs from the beginning of a channel.
#[derive(Clone, Debug, Default)]
pub struct Continuity {
    streams: HashMap<u32, Stream>,
    lost: HashMap<u32, Lost>,
}

impl Continuity {
    /// Begins where a channel begins: the first page of each CPU has the number zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks that `page` follows those before: numbers count up, without a gap unless the channel
    /// overwrites; time does not run backwards; no loss is left out of the reports. Returns what was lost
    /// since the page before, by cause.
    ///
    /// # Errors
    ///
    /// [`ContinuityError`].
    pub fn follow(&mut self, page: &Page<'_>) -> Result<[u64; LOST_CAUSES], ContinuityError> {
        let header = page.header();
        let error = |kind| {
            Err(ContinuityError {
                offset: page.offset(),
                cpu: header.cpu_id,
                kind,
            })
        };
        let shared = header.flags & PAGE_SHARED != 0;
        let overwrites = header.flags & PAGE_OVERWRITE != 0;
        let key = if shared { CPU_NONE } else { header.cpu_id };
        let stream = self.streams.entry(key).or_default();
        let lost = self.lost.entry(header.cpu_id).or_default();

        let follows = match overwrites {
            true => header.packet_seq_num >= stream.pages,
            false => header.packet_seq_num == stream.pages,
        };
        if !follows {
            return error(ContinuityErrorKind::Sequence {
                wanted: stream.pages,
                found: header.packet_seq_num,
            });
        }
        if header.timestamp_begin < stream.end {
            return error(ContinuityErrorKind::Time {
                begin: header.timestamp_begin,
                end: stream.end,
            });
        }
        let mut since = [0; LOST_CAUSES];
        let words = header.lost.iter().zip(&lost.by_cause);
        for (since, (now, before)) in since.iter_mut().zip(words) {
            *since = u64::from(now.wrapping_sub(*before));
        }
        let count: u64 = since.iter().sum();
        let wanted = lost.total.wrapping_add(count);
        if header.events_discarded < lost.total || header.events_discarded as u32 != wanted as u32 {
            return error(ContinuityErrorKind::Lost {
                wanted,
                found: header.events_discarded,
            });
        }
        // A page with the time may have been overwritten; and a report may be there for the second time.
        if !overwrites && (count != 0) != (header.lost_begin != 0) {
            return error(ContinuityErrorKind::LostTime {
                count,
                begin: header.lost_begin,
            });
        }
        *stream = Stream {
            pages: header.packet_seq_num.wrapping_add(1),
            end: header.timestamp_end,
        };
        *lost = Lost {
            total: header.events_discarded,
            by_cause: header.lost,
        };
        Ok(since)
    }
}
