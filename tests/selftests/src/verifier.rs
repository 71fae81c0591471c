// SPDX-License-Identifier: GPL-2.0

//! What must hold of every stream of pages, whoever wrote the records in it.

use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use libweir::{
    uapi::{
        PageHeader,
        LOST_CAUSES, //
    },
    Continuity,
    Page,
    Record, //
};
use std::collections::BTreeMap;

/// What came out of one CPU so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTotals {
    /// Pages, parts of open ones included.
    pub pages: u64,
    /// How many of them were parts of open ones.
    pub partial: u64,
    /// Whether they were pages that all CPUs write, which tell of the losses of this one.
    pub shared: bool,
    /// Records.
    pub records: u64,
    /// Losses that page headers reported, by cause.
    pub lost: [u64; LOST_CAUSES],
}

/// Follows all pages of a channel, from its first on.
#[derive(Clone, Debug)]
pub struct Verifier {
    page_size: usize,
    begin: u64,
    continuity: Continuity,
    cpus: BTreeMap<u32, CpuTotals>,
}

impl Verifier {
    /// Begins with a channel of pages of `page_size` bytes that was created after `begin`, in ns of its
    /// clock.
    pub fn new(page_size: usize, begin: u64) -> Self {
        Verifier {
            page_size,
            begin,
            continuity: Continuity::new(),
            cpus: BTreeMap::new(),
        }
    }

    /// What came out of `cpu`.
    pub fn totals(&self, cpu: u32) -> CpuTotals {
        self.cpus.get(&cpu).copied().unwrap_or_default()
    }

    /// The CPUs of which pages came.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.cpus.keys().copied()
    }

    /// Sums over all CPUs.
    pub fn sum(&self) -> CpuTotals {
        let mut sum = CpuTotals::default();
        for cpu in self.cpus.values() {
            sum.pages += cpu.pages;
            sum.partial += cpu.partial;
            sum.shared |= cpu.shared;
            sum.records += cpu.records;
            for (sum, lost) in sum.lost.iter_mut().zip(cpu.lost) {
                *sum += lost;
            }
        }
        sum
    }

    /// Checks one page that was read before `now`, and gives each of its records to `take`.
    ///
    /// Every byte of it is accounted for, its records are whole and in order of time, and it follows
    /// the page of its CPU before it in number, in time, and in what was lost.
    ///
    /// # Errors
    ///
    /// What does not hold, and what `take` gives.
    pub fn page(
        &mut self,
        bytes: &[u8],
        now: u64,
        mut take: impl FnMut(u32, &Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let page = Page::parse(bytes)?;
        let header = *page.header();
        let place = || format!("page {} of CPU {}", header.packet_seq_num, header.cpu_id);
        ensure!(
            bytes.len() == self.page_size,
            "a page of {} bytes in a channel of pages of {}",
            bytes.len(),
            self.page_size
        );
        self.check_times(&header, now).with_context(place)?;
        // No test loses so many that the counts by cause wrap around.
        let lost: u64 = header.lost.iter().map(|lost| u64::from(*lost)).sum();
        ensure!(
            lost == header.events_discarded,
            "{lost} lost by cause, but {} in all, in {}",
            header.events_discarded,
            place()
        );
        let records = page.verify().with_context(place)?;
        let lost = self.continuity.follow(&page)?;
        for record in page.records() {
            let record = record.with_context(place)?;
            if let Record::Other { header, .. } = record {
                bail!(
                    "a record of unknown type {:#x} in {}",
                    header.type_,
                    place()
                );
            }
            // Of a page that all CPUs write, each record says which wrote it.
            let cpu = match page.is_shared() {
                true => record.cpu().with_context(place)?,
                false => header.cpu_id,
            };
            take(cpu, &record).with_context(place)?;
        }
        let totals = self.cpus.entry(header.cpu_id).or_default();
        totals.pages += 1;
        totals.partial += u64::from(page.is_partial());
        totals.shared = page.is_shared();
        totals.records += records;
        for (total, lost) in totals.lost.iter_mut().zip(lost) {
            *total += lost;
        }
        Ok(())
    }

    /// Nothing can be of a time before the channel or after now.
    fn check_times(&self, header: &PageHeader, now: u64) -> Result<()> {
        let (begin, end) = (header.timestamp_begin, header.timestamp_end);
        ensure!(
            self.begin <= begin && end <= now,
            "it is of {begin} to {end} ns, but the channel of {} to {now}",
            self.begin
        );
        let (begin, end) = (header.lost_begin, header.lost_end);
        let none = begin == 0;
        ensure!(
            none || (self.begin <= begin && end <= now),
            "it reports losses of {begin} to {end} ns, but the channel is of {} to {now}",
            self.begin
        );
        Ok(())
    }
}

/// Builds pages as the module does, for tests of what checks them.
#[cfg(test)]
pub(crate) mod build {
    use libweir::uapi::{
        PageHeader,
        Raw,
        RecordHeader,
        SampleId,
        PAGE_MAGIC,
        RECORD_NOP,
        RECORD_RAW, //
    };
    use zerocopy::IntoBytes;

    pub(crate) const PAGE: usize = 4096;

    pub(crate) fn raw(cpu: u32, time: u64, data: &[u8]) -> Vec<u8> {
        let filled = data.len().next_multiple_of(8);
        let raw = Raw {
            header: RecordHeader {
                type_: RECORD_RAW,
                misc: 0,
                size: (size_of::<Raw>() + filled) as u16,
            },
            len: data.len() as u32,
            reserved: 0,
            sample_id: SampleId {
                time,
                cpu,
                ..Default::default()
            },
        };
        let mut bytes = raw.as_bytes().to_vec();
        bytes.extend_from_slice(data);
        bytes.resize(size_of::<Raw>() + filled, 0);
        bytes
    }

    pub(crate) fn page(cpu: u32, number: u64, times: (u64, u64), records: &[Vec<u8>]) -> Vec<u8> {
        let content: usize = size_of::<PageHeader>() + records.iter().map(Vec::len).sum::<usize>();
        let header = PageHeader {
            magic: PAGE_MAGIC,
            timestamp_begin: times.0,
            timestamp_end: times.1,
            content_size: content as u64 * 8,
            packet_size: PAGE as u64 * 8,
            packet_seq_num: number,
            cpu_id: cpu,
            ..Default::default()
        };
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend(records.iter().flatten());
        if content < PAGE {
            let nop = RecordHeader {
                type_: RECORD_NOP,
                misc: 0,
                size: (PAGE - content) as u16,
            };
            bytes.extend_from_slice(nop.as_bytes());
        }
        bytes.resize(PAGE, 0);
        bytes
    }

    /// Changes the header of a page.
    pub(crate) fn edit(page: &[u8], change: impl FnOnce(&mut PageHeader)) -> Vec<u8> {
        use zerocopy::FromBytes;
        let (mut header, rest) = PageHeader::read_from_prefix(page).unwrap();
        change(&mut header);
        [header.as_bytes(), rest].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        build::{
            edit,
            page,
            raw,
            PAGE, //
        },
        *,
    };
    use libweir::uapi::{
        Raw,
        RecordHeader,
        SampleId, //
    };
    use std::mem::offset_of;

    fn verifier() -> Verifier {
        Verifier::new(PAGE, 100)
    }

    fn take(verifier: &mut Verifier, bytes: &[u8]) -> Result<()> {
        verifier.page(bytes, 10_000, |_, _| Ok(()))
    }

    fn sample() -> Vec<u8> {
        page(
            1,
            0,
            (1000, 1100),
            &[
                raw(1, 1000, b"0123456789"),
                raw(1, 1050, b"abc"),
                raw(1, 1100, &[]),
            ],
        )
    }

    #[test]
    fn a_whole_stream_passes_and_is_counted() {
        let mut verifier = verifier();
        take(&mut verifier, &sample()).unwrap();
        let next = page(1, 1, (1100, 1200), &[raw(1, 1150, b"x")]);
        let next = edit(&next, |header| {
            header.events_discarded = 3;
            header.lost = [2, 1, 0, 0];
            header.lost_begin = 1110;
            header.lost_end = 1140;
        });
        take(&mut verifier, &next).unwrap();
        take(&mut verifier, &page(0, 0, (900, 901), &[raw(0, 900, b"y")])).unwrap();
        assert_eq!(
            verifier.totals(1),
            CpuTotals {
                pages: 2,
                partial: 0,
                shared: false,
                records: 4,
                lost: [2, 1, 0, 0]
            }
        );
        assert_eq!(verifier.sum().records, 5);
        assert_eq!(verifier.cpus().collect::<Vec<_>>(), [0, 1]);
    }

    /// Whether a page alone cannot tell that a bit is wrong, in a record at `start` with `data` bytes.
    fn is_free_in_record(byte: usize, bit: u32, start: usize, data: usize) -> bool {
        let Some(at) = byte.checked_sub(start) else {
            return false;
        };
        let id = offset_of!(Raw, sample_id);
        // A record that becomes a NOP is missed by whoever counts them.
        (at == 0 && bit == 0)
            // It has no meaning here.
            || at / 2 == offset_of!(RecordHeader, misc) / 2
            // Within the filling, the data has to tell it.
            || at == offset_of!(Raw, len)
            // Who wrote it, the lower half of when, and for which counter.
            || (id..id + offset_of!(SampleId, time) + 4).contains(&at)
            || (id + offset_of!(SampleId, id)..id + size_of::<SampleId>()).contains(&at)
            || (size_of::<Raw>()..size_of::<Raw>() + data).contains(&at)
    }

    #[test]
    fn a_flipped_bit_is_found() {
        const DATA: [&[u8]; 3] = [b"0123456789", b"abc", &[]];
        let mut starts = vec![size_of::<PageHeader>()];
        for data in DATA {
            let size = size_of::<Raw>() + data.len().next_multiple_of(8);
            starts.push(starts[starts.len() - 1] + size);
        }
        let begin = offset_of!(PageHeader, timestamp_begin);
        let end = offset_of!(PageHeader, timestamp_end);
        let is_free = |byte: usize, bit: u32| {
            // Small changes of times, and what kind of page it is.
            [begin, begin + 1, end, end + 1].contains(&byte)
                || (byte == offset_of!(PageHeader, flags) && bit < 3)
                || (starts.iter().zip(DATA))
                    .any(|(start, data)| is_free_in_record(byte, bit, *start, data.len()))
        };
        let whole = page(
            1,
            0,
            (1000, 1100),
            &[
                raw(1, 1000, DATA[0]),
                raw(1, 1050, DATA[1]),
                raw(1, 1100, DATA[2]),
            ],
        );
        take(&mut verifier(), &whole).unwrap();
        // The NOP's header is the last that counts.
        for byte in 0..starts[DATA.len()] + size_of::<RecordHeader>() {
            for bit in (0..8).filter(|bit| !is_free(byte, *bit)) {
                let mut torn = whole.clone();
                torn[byte] ^= 1 << bit;
                assert!(
                    take(&mut verifier(), &torn).is_err(),
                    "bit {bit} of byte {byte}"
                );
            }
        }
    }

    #[test]
    fn lost_repeated_and_swapped_pages_are_found() {
        let pages: Vec<_> = (0..3)
            .map(|number| {
                let time = 1000 + number * 100;
                page(0, number, (time, time + 50), &[raw(0, time, b"data")])
            })
            .collect();
        for order in [&[0, 2][..], &[1], &[0, 0], &[0, 1, 1], &[1, 0]] {
            let mut verifier = verifier();
            let result = order
                .iter()
                .try_for_each(|number| take(&mut verifier, &pages[*number]));
            assert!(result.is_err(), "{order:?}");
        }
    }

    #[test]
    fn time_that_runs_backwards_is_found() {
        // From page to page, within a page, before the channel began, and after now.
        let mut one = verifier();
        take(&mut one, &page(0, 0, (1000, 1100), &[raw(0, 1000, b"")])).unwrap();
        assert!(take(&mut one, &page(0, 1, (1099, 1200), &[raw(0, 1100, b"")])).is_err());
        let records = [raw(0, 1002, b""), raw(0, 1001, b"")];
        assert!(take(&mut verifier(), &page(0, 0, (1000, 1100), &records)).is_err());
        assert!(take(
            &mut verifier(),
            &page(0, 0, (99, 1100), &[raw(0, 1000, b"")])
        )
        .is_err());
        assert!(take(
            &mut verifier(),
            &page(0, 0, (1000, 10_001), &[raw(0, 1000, b"")])
        )
        .is_err());
    }

    #[test]
    fn losses_that_do_not_add_up_are_found() {
        type Change = fn(&mut PageHeader);
        let wrong: [Change; 5] = [
            // Counted, but not reported; reported, but not counted; without or with impossible times.
            |header| header.events_discarded = 1,
            |header| {
                header.lost[0] = 1;
                header.lost_begin = 1010;
                header.lost_end = 1010;
            },
            |header| {
                header.events_discarded = 1;
                header.lost[0] = 1;
            },
            |header| {
                header.events_discarded = 1;
                header.lost[0] = 1;
                header.lost_begin = 99;
                header.lost_end = 1010;
            },
            |header| {
                header.events_discarded = 1;
                header.lost[0] = 1;
                header.lost_begin = 1010;
                header.lost_end = 10_001;
            },
        ];
        for (number, change) in wrong.into_iter().enumerate() {
            let torn = edit(&sample(), change);
            assert!(take(&mut verifier(), &torn).is_err(), "change {number}");
        }
    }

    #[test]
    fn records_of_another_cpu_or_an_unknown_type_are_found() {
        let foreign = page(0, 0, (1000, 1100), &[raw(1, 1000, b"x")]);
        assert!(take(&mut verifier(), &foreign).is_err());
        let mut record = raw(0, 1000, b"x");
        record[..4].copy_from_slice(&0x1_0099u32.to_ne_bytes());
        let unknown = page(0, 0, (1000, 1100), &[record]);
        assert!(take(&mut verifier(), &unknown).is_err());
    }

    #[test]
    fn a_page_of_another_size_is_found() {
        let mut small = Verifier::new(2 * PAGE, 100);
        assert!(take(&mut small, &sample()).is_err());
    }
}
