// SPDX-License-Identifier: GPL-2.0

//! The records in a page.

use crate::{
    sample::{
        SampleFields,
        SampleLayouts, //
    },
    uapi::{
        self,
        RecordHeader,
        SampleId, //
    },
};
use std::borrow::Cow;
use zerocopy::FromBytes;

const HEADER_SIZE: usize = size_of::<RecordHeader>();

/// A record does not hold together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("corrupt record at offset {offset} ({offset:#x}): {kind}")]
pub struct RecordError {
    /// Bytes from the beginning of the input to the record.
    pub offset: u64,
    /// What is wrong.
    pub kind: RecordErrorKind,
}

/// What can be wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordErrorKind {
    /// The size is none that a record has, or leads out of the content of the page.
    #[error("a size of {size} bytes, where a multiple of 8 from 8 to {left} can be")]
    Size {
        /// What the header says.
        size: u16,
        /// Bytes of content that are left.
        left: usize,
    },
    /// Nothing was written here.
    #[error("type 0: it was never written")]
    Unwritten,
    /// A known type with a size that it does not have.
    #[error("type {type_:#x} has {wanted} bytes, but this one {size}")]
    SizeOfType {
        /// What the header says.
        type_: u32,
        /// What the header says.
        size: u16,
        /// What this type has.
        wanted: u64,
    },
    /// A sample is said to have fields that this version does not know.
    #[error("its event was created with fields {0:#x}, which are not known")]
    Fields(u64),
    /// A sample names two events.
    #[error("its two ids differ")]
    OtherId,
    /// A reserved field is in use.
    #[error("a reserved field is not zero")]
    Reserved,
    /// What must be filled with zeros is not.
    #[error("{0} is not filled with zeros")]
    Fill(&'static str),
    /// It was written outside of the page's time, or before the record in front of it.
    #[error("its time is {time} ns, where {not_before} to {not_after} can be")]
    Time {
        /// What the record says.
        time: u64,
        /// Time of the record in front of it, or of the beginning of the page.
        not_before: u64,
        /// Time of the end of the page.
        not_after: u64,
    },
    /// Another CPU's record.
    #[error("it is of CPU {record}, but in a page of CPU {page}")]
    Cpu {
        /// What the record says.
        record: u32,
        /// What the page says.
        page: u32,
    },
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// A counter overflowed, whose samples have the fields of [`uapi::SAMPLE_TYPE`].
    Sample(uapi::Sample),
    /// A counter overflowed, whose samples have other fields: see [`crate::Page::with_layouts`].
    SampleFields(SampleFields<'a>),
    /// Perf stopped an event for too many samples, or, by the header's type, started it again.
    Throttle(uapi::Throttle),
    /// A task exists.
    Fork(uapi::Fork),
    /// Its name.
    Comm(uapi::Comm),
    /// Bytes that kernel code wrote.
    Raw {
        /// What stands in front of them.
        raw: uapi::Raw,
        /// The bytes, without the filling.
        data: &'a [u8],
    },
    /// Words that kernel code wrote in place.
    Event {
        /// What stands in front of them.
        head: uapi::EventHead,
        /// The words, as bytes.
        data: &'a [u8],
    },
    /// A type that this version does not decode.
    Other {
        /// Its header.
        header: RecordHeader,
        /// All of it, header included.
        bytes: &'a [u8],
    },
}

impl<'a> Record<'a> {
    /// Decodes what stands at the beginning of `bytes`, and gives its size. It is no record where it is
    /// a NOP: a write that was given up after its room was reserved.
    fn parse(
        bytes: &'a [u8],
        layouts: Option<&SampleLayouts>,
    ) -> Result<(Option<Self>, usize), RecordErrorKind> {
        let left = bytes.len();
        let header = match RecordHeader::read_from_prefix(bytes) {
            Ok((header, _)) => header,
            Err(_) => return Err(RecordErrorKind::Size { size: 0, left }),
        };
        let size = usize::from(header.size);
        if header.type_ == 0 {
            return Err(RecordErrorKind::Unwritten);
        }
        if size < HEADER_SIZE || size % 8 != 0 || size > left {
            return Err(RecordErrorKind::Size {
                size: header.size,
                left,
            });
        }
        let bytes = &bytes[..size];
        let record = match header.type_ {
            uapi::RECORD_NOP => return Ok((None, size)),
            uapi::RECORD_SAMPLE => parse_sample(bytes, header, layouts)?,
            uapi::RECORD_THROTTLE | uapi::RECORD_UNTHROTTLE => {
                let throttle: uapi::Throttle = exact(bytes, &header)?;
                reserved(throttle.sample_id.reserved)?;
                Record::Throttle(throttle)
            }
            uapi::RECORD_FORK => {
                let fork: uapi::Fork = exact(bytes, &header)?;
                reserved(fork.sample_id.reserved)?;
                Record::Fork(fork)
            }
            uapi::RECORD_COMM => {
                let comm: uapi::Comm = exact(bytes, &header)?;
                reserved(comm.sample_id.reserved)?;
                check_name(&comm.comm)?;
                Record::Comm(comm)
            }
            uapi::RECORD_RAW => parse_raw(bytes, &header)?,
            uapi::RECORD_EVENT => match uapi::EventHead::read_from_prefix(bytes) {
                Ok((head, data)) => Record::Event { head, data },
                Err(_) => {
                    let wanted = size_of::<uapi::EventHead>() as u64;
                    return Err(size_of_type(&header, wanted));
                }
            },
            _ => Record::Other { header, bytes },
        };
        Ok((Some(record), size))
    }

    /// The header.
    pub fn header(&self) -> &RecordHeader {
        match self {
            Record::Sample(sample) => &sample.header,
            Record::SampleFields(fields) => &fields.header,
            Record::Throttle(throttle) => &throttle.header,
            Record::Fork(fork) => &fork.header,
            Record::Comm(comm) => &comm.header,
            Record::Raw { raw, .. } => &raw.header,
            Record::Event { head, .. } => &head.header,
            Record::Other { header, .. } => header,
        }
    }

    /// When it was written, in ns of the channel's clock; `None` where this version does not know the
    /// layout, or it has no time.
    pub fn time(&self) -> Option<u64> {
        match self {
            Record::Sample(sample) => Some(sample.time),
            Record::SampleFields(fields) => fields.time,
            Record::Event { head, .. } => Some(head.time),
            _ => self.sample_id().map(|id| id.time),
        }
    }

    /// The CPU that wrote it; `None` where this version does not know the layout, or it does not say.
    pub fn cpu(&self) -> Option<u32> {
        match self {
            Record::Sample(sample) => Some(sample.cpu),
            Record::SampleFields(fields) => fields.cpu,
            Record::Event { head, .. } => Some(u32::from(head.header.misc)),
            _ => self.sample_id().map(|id| id.cpu),
        }
    }

    /// Who wrote it, and when; samples and events say that in fields of their own.
    pub fn sample_id(&self) -> Option<SampleId> {
        match self {
            Record::Sample(_) | Record::SampleFields(_) | Record::Event { .. } => None,
            Record::Throttle(throttle) => Some(throttle.sample_id),
            Record::Fork(fork) => Some(fork.sample_id),
            Record::Comm(comm) => Some(comm.sample_id),
            Record::Raw { raw, .. } => Some(raw.sample_id),
            // All of perf's records end with it. Those of weir that come later may not.
            Record::Other { header, bytes } if header.type_ < uapi::RECORD_FIRST => {
                SampleId::read_from_suffix(&bytes[HEADER_SIZE..])
                    .ok()
                    .map(|(_, id)| id)
            }
            Record::Other { .. } => None,
        }
    }
}

/// Reads a structure that is the whole record.
fn exact<T: FromBytes>(bytes: &[u8], header: &RecordHeader) -> Result<T, RecordErrorKind> {
    T::read_from_bytes(bytes).map_err(|_| size_of_type(header, size_of::<T>() as u64))
}

fn size_of_type(header: &RecordHeader, wanted: u64) -> RecordErrorKind {
    RecordErrorKind::SizeOfType {
        type_: header.type_,
        size: header.size,
        wanted,
    }
}

fn parse_sample<'a>(
    bytes: &'a [u8],
    header: RecordHeader,
    layouts: Option<&SampleLayouts>,
) -> Result<Record<'a>, RecordErrorKind> {
    // The id stands first in every sample.
    let id = bytes[HEADER_SIZE..].first_chunk().copied();
    let sample_type = match (layouts, id) {
        (Some(layouts), Some(id)) => layouts.get(u64::from_ne_bytes(id)),
        _ => uapi::SAMPLE_TYPE,
    };
    if sample_type != uapi::SAMPLE_TYPE {
        return SampleFields::parse(bytes, header, sample_type).map(Record::SampleFields);
    }
    let sample: uapi::Sample = exact(bytes, &header)?;
    reserved(sample.reserved)?;
    Ok(Record::Sample(sample))
}

fn parse_raw<'a>(bytes: &'a [u8], header: &RecordHeader) -> Result<Record<'a>, RecordErrorKind> {
    let fixed = size_of::<uapi::Raw>() as u64;
    let Ok((raw, rest)) = uapi::Raw::read_from_prefix(bytes) else {
        return Err(size_of_type(header, fixed));
    };
    let wanted = fixed + u64::from(raw.len).next_multiple_of(8);
    if wanted != bytes.len() as u64 {
        return Err(size_of_type(header, wanted));
    }
    reserved(raw.reserved)?;
    reserved(raw.sample_id.reserved)?;
    let (data, fill) = rest.split_at(raw.len as usize);
    if fill.iter().any(|byte| *byte != 0) {
        return Err(RecordErrorKind::Fill("what follows the bytes"));
    }
    Ok(Record::Raw { raw, data })
}

fn reserved(field: u32) -> Result<(), RecordErrorKind> {
    if field == 0 {
        Ok(())
    } else {
        Err(RecordErrorKind::Reserved)
    }
}

/// A name ends with a zero, and nothing but zeros follows.
fn check_name(comm: &[u8; uapi::COMM_LEN]) -> Result<(), RecordErrorKind> {
    match comm.iter().position(|byte| *byte == 0) {
        Some(end) if comm[end..].iter().all(|byte| *byte == 0) => Ok(()),
        _ => Err(RecordErrorKind::Fill("the name")),
    }
}

/// The name of a task as text; bytes that are no UTF-8 are replaced.
pub fn comm_text(comm: &[u8; uapi::COMM_LEN]) -> Cow<'_, str> {
    let end = comm
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(comm.len());
    String::from_utf8_lossy(&comm[..end])
}

/// The records of a page, one after the other, without the NOPs among them. After an error there are no more: where the next one
/// begins is not known then.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    offset: u64,
    layouts: Option<&'a SampleLayouts>,
}

impl<'a> Records<'a> {
    pub(crate) fn new(bytes: &'a [u8], offset: u64, layouts: Option<&'a SampleLayouts>) -> Self {
        Records {
            bytes,
            offset,
            layouts,
        }
    }

    /// How far the iterator is in the input of its page: where the last record ended.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.bytes.is_empty() {
            match Record::parse(self.bytes, self.layouts) {
                Ok((record, size)) => {
                    self.bytes = &self.bytes[size..];
                    self.offset += size as u64;
                    if let Some(record) = record {
                        return Some(Ok(record));
                    }
                }
                Err(kind) => {
                    self.bytes = &[];
                    return Some(Err(RecordError {
                        offset: self.offset,
                        kind,
                    }));
                }
            }
        }
        None
    }
}

impl std::iter::FusedIterator for Records<'_> {}
