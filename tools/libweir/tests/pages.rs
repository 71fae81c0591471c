// SPDX-License-Identifier: GPL-2.0

//! Pages that are right are taken apart completely; every way to spoil one is found, by its place.

use libweir::{
    build::{
        PageBuilder,
        Task, //
    },
    page::{
        PageErrorKind,
        HEADER_SIZE, //
    },
    record::{
        comm_text,
        RecordErrorKind, //
    },
    sample_type,
    uapi,
    Page,
    Record,
    SampleLayouts, //
};
use std::mem::offset_of;

const INIT: Task<'static> = Task {
    pid: 1,
    tid: 1,
    ppid: 0,
    comm: "init",
    start: 7,
};

fn sample(ip: u64, time: u64) -> uapi::Sample {
    uapi::Sample {
        header: uapi::RecordHeader {
            misc: uapi::MISC_KERNEL,
            ..Default::default()
        },
        id: 3,
        ip,
        pid: 1,
        tid: 1,
        time,
        period: 1000,
        ..Default::default()
    }
}

/// A task, a sample, eleven raw bytes, a loss.
fn builder() -> PageBuilder {
    let mut page = PageBuilder::new(4096, 2, 5);
    page.task(&INIT, 100)
        .sample(sample(0xffff_ffff_8100_0000, 110))
        .raw(b"eleven byte", 120)
        .lost([1, 0, 2, 0], 90, 130);
    page
}

#[test]
fn a_page_is_taken_apart() {
    let bytes = builder().finish();
    let page = Page::parse(&bytes).unwrap();
    assert_eq!(page.header().cpu_id, 2);
    assert_eq!(page.header().packet_seq_num, 5);
    assert_eq!(
        (page.header().timestamp_begin, page.header().timestamp_end),
        (90, 130)
    );
    assert_eq!(page.header().events_discarded, 3);
    assert!(!page.is_shared());
    assert!(!page.is_partial());

    let records: Vec<Record> = page.records().map(Result::unwrap).collect();
    assert_eq!(page.verify(), Ok(records.len() as u64));
    let [Record::Fork(fork), Record::Comm(comm), Record::Sample(sample), Record::Raw { raw, data }] =
        records[..]
    else {
        panic!("{records:?}");
    };
    assert_eq!((fork.pid, fork.tid, fork.ppid, fork.time), (1, 1, 0, 7));
    assert_eq!(comm_text(&comm.comm), "init");
    assert_eq!((sample.ip, sample.period), (0xffff_ffff_8100_0000, 1000));
    assert_eq!((raw.len, data), (11, &b"eleven byte"[..]));
    let times: Vec<_> = records
        .iter()
        .map(|record| record.time().unwrap())
        .collect();
    assert_eq!(times, [100, 100, 110, 120]);
    assert!(records.iter().all(|record| record.cpu() == Some(2)));
}

#[test]
fn a_page_may_be_full_to_its_edge_or_hold_a_loss_only() {
    let mut full = PageBuilder::new(4096, 0, 0);
    full.raw(&[7; 4096 - HEADER_SIZE - size_of::<uapi::Raw>()], 1);
    assert_eq!(full.room(), 0);
    assert_eq!(Page::parse(&full.finish()).unwrap().verify(), Ok(1));

    let mut loss = PageBuilder::new(4096, 0, 0);
    loss.lost([9, 0, 0, 0], 1, 2);
    assert_eq!(Page::parse(&loss.finish()).unwrap().verify(), Ok(0));

    let mut largest = PageBuilder::new(64 << 10, 0, 0);
    largest.raw(b"", 1);
    assert_eq!(Page::parse(&largest.finish()).unwrap().verify(), Ok(1));
}

#[test]
fn writes_that_were_given_up_are_passed_over() {
    let mut page = PageBuilder::new(4096, 0, 0);
    let mut nop = [0xa5; 24];
    nop[..8].copy_from_slice(&[0, 0, 1, 0, 0, 0, 24, 0]);
    page.push(&nop, 1).task(&INIT, 2).push(&nop, 2);
    let bytes = page.finish();
    let page = Page::parse(&bytes).unwrap();
    assert_eq!(page.records().count(), 2);
    assert_eq!(page.verify(), Ok(2));
}

#[test]
fn an_unknown_record_is_handed_out_whole() {
    let mut page = PageBuilder::new(4096, 0, 0);
    // PERF_RECORD_EXIT: a body of 24 bytes, and the sample_id that ends all of perf's records.
    let mut exit = vec![0; 8 + 24 + size_of::<uapi::SampleId>()];
    exit[..8].copy_from_slice(&[4, 0, 0, 0, 0, 0, 64, 0]);
    exit[32 + 8] = 55;
    page.push(&exit, 55);
    // A type of weir's own that this version does not know.
    page.push(&[0xff, 0, 1, 0, 0, 0, 8, 0], 55);
    let bytes = page.finish();
    let page = Page::parse(&bytes).unwrap();
    let records: Vec<Record> = page.records().map(Result::unwrap).collect();
    assert!(matches!(records[0], Record::Other { bytes, .. } if bytes == exit));
    assert_eq!(records[0].time(), Some(55));
    assert_eq!(records[1].time(), None);
    assert_eq!(page.verify(), Ok(2));
}

/// Sets a word of the header and gives the error that follows.
fn spoil_header(field: usize, value: u64, bytes: usize) -> (u64, PageErrorKind) {
    let mut page = builder().finish();
    page[field..field + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    let error = Page::parse_at(&page, 8192).unwrap_err();
    (error.offset - 8192, error.kind)
}

#[test]
#[cfg(target_endian = "little")]
fn a_spoilt_header_is_found_by_its_field() {
    use uapi::PageHeader as H;
    let content = Page::parse(&builder().finish())
        .unwrap()
        .header()
        .content_size;
    let cases = [
        (
            offset_of!(H, magic),
            4,
            0xdead_beef,
            PageErrorKind::Magic(0xdead_beef),
        ),
        (
            offset_of!(H, magic),
            4,
            0xc11f_fcc1,
            PageErrorKind::ByteOrder,
        ),
        (offset_of!(H, stream_id), 4, 1, PageErrorKind::Stream(1)),
        (
            offset_of!(H, packet_size),
            8,
            0,
            PageErrorKind::PacketSize(0),
        ),
        (
            offset_of!(H, packet_size),
            8,
            4095 * 8,
            PageErrorKind::PacketSize(4095 * 8),
        ),
        (
            offset_of!(H, packet_size),
            8,
            1 << 63,
            PageErrorKind::PacketSize(1 << 63),
        ),
        (
            offset_of!(H, content_size),
            8,
            95 * 8,
            PageErrorKind::ContentSize {
                content: 95 * 8,
                packet: 4096 * 8,
            },
        ),
        (
            offset_of!(H, content_size),
            8,
            4104 * 8,
            PageErrorKind::ContentSize {
                content: 4104 * 8,
                packet: 4096 * 8,
            },
        ),
        (
            offset_of!(H, content_size),
            8,
            content + 1,
            PageErrorKind::ContentSize {
                content: content + 1,
                packet: 4096 * 8,
            },
        ),
        (
            offset_of!(H, timestamp_begin),
            8,
            131,
            PageErrorKind::Times {
                begin: 131,
                end: 130,
            },
        ),
        (offset_of!(H, flags), 4, 8, PageErrorKind::Flags(8)),
        (
            offset_of!(H, lost_begin),
            8,
            131,
            PageErrorKind::LostTimes {
                count: 3,
                begin: 131,
                end: 130,
            },
        ),
        (
            offset_of!(H, events_discarded),
            8,
            2,
            PageErrorKind::LostCount { count: 3, total: 2 },
        ),
    ];
    for (field, bytes, value, kind) in cases {
        assert_eq!(spoil_header(field, value, bytes), (field as u64, kind));
    }
}

#[test]
fn losses_and_their_times_go_together() {
    let mut page = PageBuilder::new(4096, 0, 0);
    page.raw(b"", 1).lost([0; 4], 1, 1);
    let error = Page::parse(&page.finish()).unwrap_err();
    assert!(matches!(
        error.kind,
        PageErrorKind::LostTimes { count: 0, .. }
    ));
}

#[test]
fn only_a_whole_page_may_be_empty() {
    let mut bytes = PageBuilder::new(4096, 0, 0).finish();
    assert_eq!(Page::parse(&bytes).unwrap().verify(), Ok(0));
    bytes[offset_of!(uapi::PageHeader, flags)] = uapi::PAGE_PARTIAL as u8;
    assert_eq!(Page::parse(&bytes).unwrap_err().kind, PageErrorKind::Empty);
}

#[test]
fn the_length_must_be_the_pages() {
    let bytes = builder().finish();
    for given in [HEADER_SIZE, 4088, 4095] {
        let error = Page::parse(&bytes[..given]).unwrap_err();
        assert_eq!(error.kind, PageErrorKind::Length { page: 4096, given });
    }
    let error = Page::parse(&bytes[..HEADER_SIZE - 1]).unwrap_err();
    assert_eq!(error.kind, PageErrorKind::Short(HEADER_SIZE - 1));
    let longer = [&bytes[..], &[0]].concat();
    let error = Page::parse(&longer).unwrap_err();
    assert_eq!(
        error.kind,
        PageErrorKind::Length {
            page: 4096,
            given: 4097
        }
    );
}

#[test]
#[cfg(target_endian = "little")]
fn a_nop_must_fill_the_page() {
    let bytes = builder().finish();
    let content = usize::try_from(Page::parse(&bytes).unwrap().header().content_size).unwrap() / 8;
    // Type, misc and size, one after the other.
    for byte in [0, 2, 4, 6, 7] {
        let mut page = bytes.clone();
        page[content + byte] ^= 0x10;
        let error = Page::parse(&page).unwrap_err();
        assert_eq!(error.offset, content as u64);
        assert!(matches!(error.kind, PageErrorKind::Nop { .. }), "{error}");
    }
}

/// Spoils a byte of a record of [`builder`] and gives the error that follows.
fn spoil_record(at: usize, value: u8) -> (u64, RecordErrorKind) {
    let mut bytes = builder().finish();
    bytes[at] = value;
    let page = Page::parse_at(&bytes, 4096).unwrap();
    let error = page.verify().unwrap_err();
    // Whatever is wrong within a record, the iterator says it as well, and then ends.
    if !matches!(
        error.kind,
        RecordErrorKind::Time { .. } | RecordErrorKind::Cpu { .. }
    ) {
        let mut records = page.records().skip_while(Result::is_ok);
        assert_eq!(records.next(), Some(Err(error.clone())));
        assert!(records.next().is_none());
    }
    (error.offset - 4096, error.kind)
}

#[test]
#[cfg(target_endian = "little")]
fn a_spoilt_record_is_found_by_its_place() {
    let fork = HEADER_SIZE;
    let comm = fork + size_of::<uapi::Fork>();
    let sample = comm + size_of::<uapi::Comm>();
    let raw = sample + size_of::<uapi::Sample>();
    let end = raw + size_of::<uapi::Raw>() + 16;

    let size = offset_of!(uapi::RecordHeader, size);
    let left = end - fork;
    let wanted = size_of::<uapi::Fork>() as u64;
    for (value, kind) in [
        (0, RecordErrorKind::Size { size: 0, left }),
        (57, RecordErrorKind::Size { size: 57, left }),
        (
            56,
            RecordErrorKind::SizeOfType {
                type_: 7,
                size: 56,
                wanted,
            },
        ),
    ] {
        assert_eq!(spoil_record(fork + size, value), (fork as u64, kind));
    }
    assert_eq!(
        spoil_record(raw + size, 248),
        (
            raw as u64,
            RecordErrorKind::Size {
                size: 248,
                left: end - raw
            }
        )
    );
    assert_eq!(
        spoil_record(comm, 0),
        (comm as u64, RecordErrorKind::Unwritten)
    );
    assert_eq!(
        spoil_record(comm + offset_of!(uapi::Comm, comm) + 9, b'x'),
        (comm as u64, RecordErrorKind::Fill("the name"))
    );
    assert_eq!(
        spoil_record(sample + offset_of!(uapi::Sample, reserved), 1),
        (sample as u64, RecordErrorKind::Reserved)
    );
    assert_eq!(
        spoil_record(end - 1, 1),
        (raw as u64, RecordErrorKind::Fill("what follows the bytes"))
    );
    let len = raw + offset_of!(uapi::Raw, len);
    assert_eq!(
        spoil_record(len, 17),
        (
            raw as u64,
            RecordErrorKind::SizeOfType {
                type_: uapi::RECORD_RAW,
                size: 64,
                wanted: 72
            }
        )
    );
    assert_eq!(
        spoil_record(sample + offset_of!(uapi::Sample, cpu), 1),
        (sample as u64, RecordErrorKind::Cpu { record: 1, page: 2 })
    );
    for time in [99, 131] {
        assert_eq!(
            spoil_record(sample + offset_of!(uapi::Sample, time), time),
            (
                sample as u64,
                RecordErrorKind::Time {
                    time: time.into(),
                    not_before: 100,
                    not_after: 130
                }
            )
        );
    }
}

#[test]
fn samples_have_the_fields_that_their_event_has() {
    let mut layouts = SampleLayouts::new();
    layouts.insert(2, sample_type::TIME | sample_type::CALLCHAIN);
    let mut builder = PageBuilder::new(4096, 3, 0);
    builder
        .sample(uapi::Sample {
            id: 1,
            time: 10,
            ..Default::default()
        })
        .sample_fields(uapi::MISC_KERNEL, 2, &[20, 2, 0x100, 0x200], 20)
        .throttle(2, true, 30)
        .throttle(2, false, 40);
    let bytes = builder.finish();
    let page = Page::parse(&bytes).unwrap().with_layouts(&layouts);
    assert_eq!(page.verify(), Ok(4));
    let records: Vec<Record> = page.records().map(Result::unwrap).collect();
    let [Record::Sample(sample), Record::SampleFields(fields), Record::Throttle(stop), Record::Throttle(start)] =
        &records[..]
    else {
        panic!("{records:?}");
    };
    assert_eq!((sample.id, sample.time), (1, 10));
    assert_eq!((fields.id, fields.time, fields.ip), (2, Some(20), None));
    let chain: Vec<u64> = fields.callchain.unwrap().words().collect();
    assert_eq!(chain, [0x100, 0x200]);
    assert_eq!(
        (stop.header.type_, stop.id, stop.time),
        (uapi::RECORD_THROTTLE, 2, 30)
    );
    assert_eq!(start.header.type_, uapi::RECORD_UNTHROTTLE);
    assert_eq!(records[3].cpu(), Some(3));
    // Without that, it is taken for one of the default fields, and does not have them.
    let error = Page::parse(&bytes).unwrap().verify().unwrap_err();
    assert!(matches!(error.kind, RecordErrorKind::SizeOfType { .. }));
}
