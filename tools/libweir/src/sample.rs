// SPDX-License-Identifier: GPL-2.0

//! Samples whose fields were chosen when their counter was created.

use crate::{
    attr::sample_type::{
        ADDR,
        CALLCHAIN,
        CPU,
        ID,
        IDENTIFIER,
        IP,
        PERIOD,
        STREAM_ID,
        TID,
        TIME, //
    },
    record::RecordErrorKind,
    uapi::{
        self,
        RecordHeader, //
    },
    Counter,
};
use std::collections::HashMap;

/// What weir writes samples of.
const KNOWN: u64 = IP | TID | TIME | ADDR | ID | STREAM_ID | CPU | PERIOD | CALLCHAIN | IDENTIFIER;

/// Which fields the samples of each event have. One that is not in here has those of [`uapi::SAMPLE_TYPE`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleLayouts(HashMap<u64, u64>);

impl SampleLayouts {
    /// Knows no event.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the events of a counter.
    pub fn add(&mut self, counter: &Counter<'_>) -> &mut Self {
        for (id, attr) in counter.event_ids().zip(counter.attrs()) {
            self.insert(id.into(), attr.raw().sample_type);
        }
        self
    }

    /// Adds the event `id`, created with `sample_type`.
    pub fn insert(&mut self, id: u64, sample_type: u64) -> &mut Self {
        self.0.insert(id, sample_type | IDENTIFIER);
        self
    }

    /// The fields that samples of event `id` have.
    pub fn get(&self, id: u64) -> u64 {
        self.0.get(&id).copied().unwrap_or(uapi::SAMPLE_TYPE)
    }
}

/// A sample with the fields that its event was created with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleFields<'a> {
    /// Type [`uapi::RECORD_SAMPLE`]; `misc` says in which mode the code was.
    pub header: RecordHeader,
    /// Which event.
    pub id: u64,
    /// Where the code was.
    pub ip: Option<u64>,
    /// Which process and thread was interrupted.
    pub task: Option<(u32, u32)>,
    /// When, in the channel's clock.
    pub time: Option<u64>,
    /// The address that was accessed.
    pub addr: Option<u64>,
    /// The event once more.
    pub stream_id: Option<u64>,
    /// Which CPU.
    pub cpu: Option<u32>,
    /// Events since the sample before.
    pub period: Option<u64>,
    /// Who called.
    pub callchain: Option<Callchain<'a>>,
}

impl<'a> SampleFields<'a> {
    /// Decodes a whole record that has these fields. `bytes` is as long as its header says.
    pub(crate) fn parse(
        bytes: &'a [u8],
        header: RecordHeader,
        sample_type: u64,
    ) -> Result<Self, RecordErrorKind> {
        if sample_type & !KNOWN != 0 {
            return Err(RecordErrorKind::Fields(sample_type & !KNOWN));
        }
        let mut words = Words {
            header,
            rest: &bytes[size_of::<RecordHeader>()..],
            taken: size_of::<RecordHeader>() as u64,
        };
        let has = |field: u64| sample_type & field != 0;
        // In the order of perf_output_sample().
        let id = words.take()?;
        let ip = has(IP).then(|| words.take()).transpose()?;
        let task = has(TID).then(|| words.take_halves()).transpose()?;
        let time = has(TIME).then(|| words.take()).transpose()?;
        let addr = has(ADDR).then(|| words.take()).transpose()?;
        if has(ID) && words.take()? != id {
            return Err(RecordErrorKind::OtherId);
        }
        let stream_id = has(STREAM_ID).then(|| words.take()).transpose()?;
        let cpu = match has(CPU).then(|| words.take_halves()).transpose()? {
            Some((_, reserved)) if reserved != 0 => return Err(RecordErrorKind::Reserved),
            cpu => cpu.map(|(cpu, _)| cpu),
        };
        let period = has(PERIOD).then(|| words.take()).transpose()?;
        let callchain = has(CALLCHAIN)
            .then(|| {
                let count = words.take()?;
                words.take_many(count).map(Callchain)
            })
            .transpose()?;
        words.end()?;
        Ok(SampleFields {
            header,
            id,
            ip,
            task,
            time,
            addr,
            stream_id,
            cpu,
            period,
            callchain,
        })
    }
}

/// The words of a record that were not taken yet.
struct Words<'a> {
    header: RecordHeader,
    rest: &'a [u8],
    taken: u64,
}

impl<'a> Words<'a> {
    fn take(&mut self) -> Result<u64, RecordErrorKind> {
        let (word, rest) = self.rest.split_first_chunk().ok_or(self.wanted(8))?;
        self.rest = rest;
        self.taken += 8;
        Ok(u64::from_ne_bytes(*word))
    }

    /// A word of two numbers, the first in memory first.
    fn take_halves(&mut self) -> Result<(u32, u32), RecordErrorKind> {
        let word = self.take()?.to_ne_bytes();
        let half =
            |at: usize| u32::from_ne_bytes([word[at], word[at + 1], word[at + 2], word[at + 3]]);
        Ok((half(0), half(4)))
    }

    fn take_many(&mut self, count: u64) -> Result<&'a [u8], RecordErrorKind> {
        let bytes = count.saturating_mul(8);
        let len = usize::try_from(bytes).ok();
        let (many, rest) = len
            .and_then(|len| self.rest.split_at_checked(len))
            .ok_or(self.wanted(bytes))?;
        self.rest = rest;
        self.taken += bytes;
        Ok(many)
    }

    fn end(&self) -> Result<(), RecordErrorKind> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.wanted(0))
        }
    }

    /// So many bytes more belong to it, but its size is another one.
    fn wanted(&self, more: u64) -> RecordErrorKind {
        RecordErrorKind::SizeOfType {
            type_: self.header.type_,
            size: self.header.size,
            wanted: self.taken.saturating_add(more),
        }
    }
}

/// In [`Callchain`]: from here on, callers are of another context; see `PERF_CONTEXT_*`.
pub const CONTEXT_MAX: u64 = -4095i64 as u64;
/// What follows is the kernel's.
pub const CONTEXT_KERNEL: u64 = -128i64 as u64;
/// What follows is of user space.
pub const CONTEXT_USER: u64 = -512i64 as u64;

/// Addresses of callers, the innermost first, with a word in front of each context; see [`CONTEXT_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Callchain<'a>(&'a [u8]);

impl Callchain<'_> {
    /// Number of words.
    pub fn len(&self) -> usize {
        self.0.len() / 8
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All words: addresses and contexts.
    pub fn words(&self) -> impl Iterator<Item = u64> + '_ {
        let words = self.0.chunks_exact(8);
        words.map(|word| u64::from_ne_bytes(word.try_into().expect("each has 8 bytes")))
    }

    /// The callers in one context: [`CONTEXT_KERNEL`] or [`CONTEXT_USER`].
    pub fn callers(&self, context: u64) -> impl Iterator<Item = u64> + '_ {
        let mut current = None;
        self.words().filter(move |word| {
            if *word >= CONTEXT_MAX {
                current = Some(*word);
                return false;
            }
            current == Some(context)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(words: &[u64]) -> (Vec<u8>, RecordHeader) {
        let header = RecordHeader {
            type_: uapi::RECORD_SAMPLE,
            misc: 1,
            size: 8 + 8 * words.len() as u16,
        };
        let mut bytes = vec![0; 8];
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        (bytes, header)
    }

    fn parse(words: &[u64], sample_type: u64) -> Result<Vec<Option<u64>>, RecordErrorKind> {
        let (bytes, header) = record(words);
        SampleFields::parse(&bytes, header, sample_type).map(|fields| {
            assert_eq!(fields.header, header);
            let chain = fields.callchain.map(|chain| chain.words().sum());
            vec![
                Some(fields.id),
                fields.ip,
                fields
                    .task
                    .map(|(pid, tid)| u64::from(pid) * 100 + u64::from(tid)),
                fields.time,
                fields.addr,
                fields.stream_id,
                fields.cpu.map(u64::from),
                fields.period,
                chain,
            ]
        })
    }

    /// Two numbers in the order in which they stand in memory.
    fn halves(first: u32, second: u32) -> u64 {
        let bytes = [first.to_ne_bytes(), second.to_ne_bytes()].concat();
        u64::from_ne_bytes(bytes.try_into().unwrap())
    }

    #[test]
    fn all_fields_stand_in_perfs_order() {
        let words = [
            7,
            0x1000,
            halves(2, 3),
            4,
            5,
            7,
            8,
            halves(9, 0),
            10,
            2,
            0x100,
            0x200,
        ];
        let all: Vec<_> = [7, 0x1000, 203, 4, 5, 8, 9, 10, 0x300].map(Some).into();
        assert_eq!(parse(&words, KNOWN), Ok(all));
    }

    #[test]
    fn fields_that_were_not_asked_for_are_not_there() {
        let mut expected = vec![None; 9];
        expected[0] = Some(7);
        assert_eq!(parse(&[7], IDENTIFIER), Ok(expected.clone()));
        (expected[4], expected[7]) = (Some(1), Some(2));
        assert_eq!(parse(&[7, 1, 2], IDENTIFIER | ADDR | PERIOD), Ok(expected));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let size = |size, wanted| {
            Err(RecordErrorKind::SizeOfType {
                type_: uapi::RECORD_SAMPLE,
                size,
                wanted,
            })
        };
        assert_eq!(parse(&[], IDENTIFIER), size(8, 16));
        assert_eq!(parse(&[7, 1], IDENTIFIER), size(24, 16));
        assert_eq!(parse(&[7], IDENTIFIER | IP), size(16, 24));
        assert_eq!(parse(&[7, 2, 1], CALLCHAIN), size(32, 40));
        assert_eq!(parse(&[7, u64::MAX, 1], CALLCHAIN), size(32, u64::MAX));
        assert_eq!(parse(&[7, 1 << 61, 1], CALLCHAIN), size(32, u64::MAX));
        assert_eq!(parse(&[7, 8], ID), Err(RecordErrorKind::OtherId));
        assert_eq!(parse(&[7, 1 << 32], CPU), Err(RecordErrorKind::Reserved));
        let raw = 1 << 10;
        assert_eq!(parse(&[7, 1], raw), Err(RecordErrorKind::Fields(raw)));
    }

    #[test]
    fn callers_are_told_apart_by_context() {
        let (bytes, header) = record(&[7, 6, CONTEXT_KERNEL, 1, 2, CONTEXT_USER, 3, 4]);
        let fields = SampleFields::parse(&bytes, header, CALLCHAIN).unwrap();
        let chain = fields.callchain.unwrap();
        assert_eq!((chain.len(), chain.is_empty()), (6, false));
        assert_eq!(chain.callers(CONTEXT_KERNEL).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(chain.callers(CONTEXT_USER).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn an_event_that_is_not_known_has_the_default() {
        let mut layouts = SampleLayouts::new();
        layouts.insert(3, IP);
        assert_eq!(layouts.get(3), IP | IDENTIFIER);
        assert_eq!(layouts.get(4), uapi::SAMPLE_TYPE);
    }
}
