// SPDX-License-Identifier: GPL-2.0

//! A page: its header, its records, and the NOP that fills it.

use crate::{
    record::{
        RecordError,
        RecordErrorKind, //
        Records,
    },
    sample::SampleLayouts,
    uapi::{
        self,
        PageHeader,
        RecordHeader, //
    },
};
use zerocopy::FromBytes;

/// Bytes of the header of a page.
pub const HEADER_SIZE: usize = size_of::<PageHeader>();
/// Bytes of the smallest page that there can be: the header, a record and a NOP fit into it.
pub const MIN_SIZE: usize = 256;
/// Bytes of the largest page that there can be.
pub const MAX_SIZE: usize = 64 << 10;

/// Names of the causes for which records are lost, in the order of [`PageHeader::lost`].
pub const LOST_CAUSES: [&str; uapi::LOST_CAUSES] = ["full", "nested", "too-large", "overwritten"];

/// A page does not hold together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("corrupt page at offset {offset} ({offset:#x}): {kind}")]
pub struct PageError {
    /// Bytes from the beginning of the input to what is wrong.
    pub offset: u64,
    /// What is wrong.
    pub kind: PageErrorKind,
}

/// What can be wrong with a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageErrorKind {
    /// There are too few bytes for a header.
    #[error("{0} bytes are no page: the header alone has {HEADER_SIZE}")]
    Short(usize),
    /// The first word is something else.
    #[error("the magic number is {0:#010x} instead of {magic:#010x}", magic = uapi::PAGE_MAGIC)]
    Magic(u32),
    /// The first word is the magic number, bytes reversed.
    #[error("it was written on a machine with the other byte order")]
    ByteOrder,
    /// Not the stream that there is.
    #[error("the stream is {0} instead of 0")]
    Stream(u32),
    /// The size is none that a page has.
    #[error("a page of {0} bits: it must be a power of two from {MIN_SIZE} to {MAX_SIZE} bytes")]
    PacketSize(u64),
    /// The bytes given are not one page.
    #[error("the page has {page} bytes, but {given} are there")]
    Length {
        /// What the header says.
        page: usize,
        /// What was given.
        given: usize,
    },
    /// The records end where they cannot.
    #[error(
        "the records end after {content} bits of {packet}: not a multiple of 64 within the page"
    )]
    ContentSize {
        /// What the header says.
        content: u64,
        /// Bits of the page.
        packet: u64,
    },
    /// It ends before it begins.
    #[error("it begins at {begin} ns and ends before, at {end} ns")]
    Times {
        /// What the header says.
        begin: u64,
        /// What the header says.
        end: u64,
    },
    /// Flags that this version does not know.
    #[error("the flags {0:#x} are not known: it was written by a newer weir")]
    Flags(u32),
    /// The times of the losses cannot be.
    #[error(
        "{count} records are said to be lost, the last of them between {begin} ns and {end} ns"
    )]
    LostTimes {
        /// Since the channel began.
        count: u64,
        /// What the header says.
        begin: u64,
        /// What the header says.
        end: u64,
    },
    /// What was lost is not the sum over all causes.
    #[error("{count} records are said to be lost by cause, but {total} in all")]
    LostCount {
        /// Sum over all causes.
        count: u64,
        /// What the header says.
        total: u64,
    },
    /// A part of an open page holds nothing.
    #[error("it is a part of an open page and has no record")]
    Empty,
    /// Something else than a NOP stands after the records.
    #[error("a NOP of {wanted} bytes must fill the page, but there is a record of type {type_:#x}, misc {misc:#x} and {size} bytes")]
    Nop {
        /// Bytes that are left.
        wanted: usize,
        /// What is there.
        type_: u32,
        /// What is there.
        misc: u16,
        /// What is there.
        size: u16,
    },
}

/// A page whose header and whose NOP are right. Its records are checked when they are taken out.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    header: PageHeader,
    bytes: &'a [u8],
    base: u64,
    layouts: Option<&'a SampleLayouts>,
}

impl<'a> Page<'a> {
    /// Checks that `bytes` are exactly one page.
    ///
    /// # Errors
    ///
    /// [`PageError`], with its offset counted from the beginning of `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PageError> {
        Self::parse_at(bytes, 0)
    }

    /// The same for a page that stands `base` bytes into its input; errors name offsets in the input.
    ///
    /// # Errors
    ///
    /// [`PageError`].
    pub fn parse_at(bytes: &'a [u8], base: u64) -> Result<Self, PageError> {
        let header = parse_header(bytes, base)?;
        let error = |offset: usize, kind| {
            Err(PageError {
                offset: base + offset as u64,
                kind,
            })
        };
        let size = (header.packet_size / 8) as usize;
        if size != bytes.len() {
            return error(
                0,
                PageErrorKind::Length {
                    page: size,
                    given: bytes.len(),
                },
            );
        }
        let content = (header.content_size / 8) as usize;
        let rest = size - content;
        if rest > 0 {
            // Both sizes are multiples of 8, so a whole record header is there.
            let nop = match RecordHeader::read_from_prefix(&bytes[content..]) {
                Ok((nop, _)) => nop,
                Err(_) => return error(content, PageErrorKind::Short(rest)),
            };
            if nop.type_ != uapi::RECORD_NOP || nop.misc != 0 || usize::from(nop.size) != rest {
                return error(
                    content,
                    PageErrorKind::Nop {
                        wanted: rest,
                        type_: nop.type_,
                        misc: nop.misc,
                        size: nop.size,
                    },
                );
            }
        }
        Ok(Page {
            header,
            bytes,
            base,
            layouts: None,
        })
    }

    /// The same page, whose samples have the fields that these layouts say.
    #[must_use]
    pub fn with_layouts(self, layouts: &'a SampleLayouts) -> Self {
        Page {
            layouts: Some(layouts),
            ..self
        }
    }

    /// The header.
    pub fn header(&self) -> &PageHeader {
        &self.header
    }

    /// All bytes of the page.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where the page begins in its input.
    pub fn offset(&self) -> u64 {
        self.base
    }

    /// Whether the page was handed over before it was full.
    pub fn is_partial(&self) -> bool {
        self.header.flags & uapi::PAGE_PARTIAL != 0
    }

    /// Whether all CPUs wrote it.
    pub fn is_shared(&self) -> bool {
        self.header.flags & uapi::PAGE_SHARED != 0
    }

    /// The records, in order. After an error there are no more.
    pub fn records(&self) -> Records<'a> {
        let content = (self.header.content_size / 8) as usize;
        Records::new(
            &self.bytes[HEADER_SIZE..content],
            self.base + HEADER_SIZE as u64,
            self.layouts,
        )
    }

    /// Takes every record out and checks what must hold among them: each is whole, was written by the
    /// page's CPU within the page's time, and not before the one in front of it. Returns their number.
    ///
    /// # Errors
    ///
    /// [`RecordError`] of the first that is not so.
    pub fn verify(&self) -> Result<u64, RecordError> {
        let (mut last, mut count) = (self.header.timestamp_begin, 0);
        let mut records = self.records();
        while let Some(record) = records.next().transpose()? {
            // The iterator stands behind the record now.
            let offset = records.offset() - u64::from(record.header().size);
            let error = |kind| Err(RecordError { offset, kind });
            if let Some(time) = record.time() {
                if time < last || time > self.header.timestamp_end {
                    return error(RecordErrorKind::Time {
                        time,
                        not_before: last,
                        not_after: self.header.timestamp_end,
                    });
                }
                last = time;
            }
            match record.cpu() {
                Some(cpu) if cpu != self.header.cpu_id && !self.is_shared() => {
                    return error(RecordErrorKind::Cpu {
                        record: cpu,
                        page: self.header.cpu_id,
                    })
                }
                _ => {}
            }
            count += 1;
        }
        Ok(count)
    }
}

/// Checks all of a header that can be checked without the rest of the page.
pub(crate) fn parse_header(bytes: &[u8], base: u64) -> Result<PageHeader, PageError> {
    let error = |field: usize, kind| {
        Err(PageError {
            offset: base + field as u64,
            kind,
        })
    };
    // The first word tells most about bytes that are no page, however few there are.
    if let Some(word) = bytes.first_chunk::<4>() {
        match u32::from_ne_bytes(*word) {
            uapi::PAGE_MAGIC => {}
            other if other.swap_bytes() == uapi::PAGE_MAGIC => {
                return error(0, PageErrorKind::ByteOrder)
            }
            other => return error(0, PageErrorKind::Magic(other)),
        }
    }
    let Ok((header, _)) = PageHeader::read_from_prefix(bytes) else {
        return error(0, PageErrorKind::Short(bytes.len()));
    };
    if header.stream_id != 0 {
        return error(
            std::mem::offset_of!(PageHeader, stream_id),
            PageErrorKind::Stream(header.stream_id),
        );
    }
    let packet = header.packet_size;
    let bits = |bytes: usize| bytes as u64 * 8;
    if !packet.is_power_of_two() || !(bits(MIN_SIZE)..=bits(MAX_SIZE)).contains(&packet) {
        return error(
            std::mem::offset_of!(PageHeader, packet_size),
            PageErrorKind::PacketSize(packet),
        );
    }
    let content = header.content_size;
    if content % 64 != 0 || !(bits(HEADER_SIZE)..=packet).contains(&content) {
        return error(
            std::mem::offset_of!(PageHeader, content_size),
            PageErrorKind::ContentSize { content, packet },
        );
    }
    if header.timestamp_begin > header.timestamp_end {
        return error(
            std::mem::offset_of!(PageHeader, timestamp_begin),
            PageErrorKind::Times {
                begin: header.timestamp_begin,
                end: header.timestamp_end,
            },
        );
    }
    let flags = uapi::PAGE_PARTIAL | uapi::PAGE_SHARED | uapi::PAGE_OVERWRITE;
    if header.flags & !flags != 0 {
        return error(
            std::mem::offset_of!(PageHeader, flags),
            PageErrorKind::Flags(header.flags),
        );
    }
    check_losses(&header, base)?;
    // A whole page may be empty: it was to tell of losses that another one told of before.
    if content == bits(HEADER_SIZE) && header.flags & uapi::PAGE_PARTIAL != 0 {
        return error(
            std::mem::offset_of!(PageHeader, content_size),
            PageErrorKind::Empty,
        );
    }
    Ok(header)
}

fn check_losses(header: &PageHeader, base: u64) -> Result<(), PageError> {
    let count: u64 = header.lost.iter().map(|count| u64::from(*count)).sum();
    let total = header.events_discarded;
    let (begin, end) = (header.lost_begin, header.lost_end);
    if begin > end || (begin == 0) != (end == 0) || (begin != 0 && total == 0) {
        return Err(PageError {
            offset: base + std::mem::offset_of!(PageHeader, lost_begin) as u64,
            kind: PageErrorKind::LostTimes {
                count: total,
                begin,
                end,
            },
        });
    }
    // By cause they are counted modulo 2^32.
    if count as u32 != total as u32 || (header.cpu_id == uapi::CPU_NONE && total != 0) {
        return Err(PageError {
            offset: base + std::mem::offset_of!(PageHeader, events_discarded) as u64,
            kind: PageErrorKind::LostCount { count, total },
        });
    }
    Ok(())
}
