// SPDX-License-Identifier: GPL-2.0

//! No bytes make the library panic, and no byte of a page escapes it.

use libweir::{
    build::{
        PageBuilder,
        Task, //
    },
    page::HEADER_SIZE,
    parse_events,
    uapi,
    Continuity,
    Event,
    EventPaths,
    Kallsyms,
    Page,
    Record,
    SampleLayouts,
    Stream, //
};
use proptest::prelude::*;

/// Takes everything out of `bytes` that is in there; returns the number of pages.
fn exhaust(bytes: &[u8]) -> u64 {
    if let Ok(page) = Page::parse(bytes) {
        walk(&page);
    }
    let mut stream = Stream::new(bytes);
    let mut continuity = Continuity::new();
    let mut pages = 0;
    while let Ok(Some(page)) = stream.next_page() {
        walk(&page);
        // Whether it follows does not matter here, but that it can be asked.
        let _ = continuity.follow(&page);
        pages += 1;
    }
    assert!(matches!(stream.next_page(), Ok(None)));
    pages
}

/// Every byte of the page is in the header, in a record, in a NOP, or behind an error with its place.
fn walk(page: &Page<'_>) {
    let content = page.header().content_size / 8;
    let base = page.offset();
    let mut records = page.records();
    let mut last = HEADER_SIZE as u64;
    let mut failed = false;
    while let Some(record) = records.next() {
        assert!(!failed, "a record after an error");
        match record {
            Ok(record) => {
                let end = records.offset() - base;
                assert!(end - u64::from(record.header().size) >= last);
                assert!(end <= content);
                last = end;
            }
            Err(error) => {
                assert!((base + last..base + content).contains(&error.offset));
                failed = true;
            }
        }
    }
    if !failed {
        assert_eq!(records.offset() - base, content);
    }
    let _ = page.verify();
}

#[derive(Clone, Debug)]
enum Write {
    Sample(u64, u16),
    Task(u32, String),
    Raw(Vec<u8>),
    GivenUp(usize),
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        (any::<u64>(), any::<u16>()).prop_map(|(ip, misc)| Write::Sample(ip, misc)),
        (any::<u32>(), "[a-zA-Z0-9/:_-]{0,20}").prop_map(|(pid, name)| Write::Task(pid, name)),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(Write::Raw),
        (1usize..20).prop_map(Write::GivenUp),
    ]
}

/// A page of what fits, and the number of records in it.
fn build(writes: &[(Write, u64)], page_size: usize) -> (Vec<u8>, u64) {
    let mut page = PageBuilder::new(page_size, 3, 0);
    let (mut time, mut count) = (0, 0);
    for (write, step) in writes {
        time += step;
        if page.room() < 256 {
            break;
        }
        match write {
            Write::Sample(ip, misc) => {
                page.sample(uapi::Sample {
                    header: uapi::RecordHeader {
                        misc: *misc,
                        ..Default::default()
                    },
                    ip: *ip,
                    time,
                    ..Default::default()
                });
                count += 1;
            }
            Write::Task(pid, comm) => {
                let task = Task {
                    pid: *pid,
                    tid: *pid,
                    ppid: 1,
                    comm,
                    start: 0,
                };
                page.task(&task, time);
                count += 2;
            }
            Write::Raw(data) => {
                page.raw(data, time);
                count += 1;
            }
            Write::GivenUp(words) => {
                let mut nop = vec![0xff; words * 8];
                nop[..4].copy_from_slice(&uapi::RECORD_NOP.to_ne_bytes());
                nop[4..6].fill(0);
                nop[6..8].copy_from_slice(&(*words as u16 * 8).to_ne_bytes());
                page.push(&nop, time);
            }
        }
    }
    if count == 0 {
        page.lost([0, 0, 0, 1], time.max(1), time.max(1));
    }
    (page.finish(), count)
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        exhaust(&bytes);
    }

    #[test]
    fn any_bytes_behind_a_header_that_is_right(
        content in 12u64..=512,
        body in prop::collection::vec(any::<u8>(), 4000),
    ) {
        let mut page = PageBuilder::new(4096, 0, 0);
        page.raw(b"", 0);
        let mut bytes = page.finish();
        bytes[HEADER_SIZE..].copy_from_slice(&body);
        bytes[24..32].copy_from_slice(&(content * 64).to_ne_bytes());
        // With a NOP in its place, so that what is tested is the records.
        let at = content as usize * 8;
        if at < 4096 {
            bytes[at..at + 4].copy_from_slice(&uapi::RECORD_NOP.to_ne_bytes());
            bytes[at + 4..at + 6].fill(0);
            bytes[at + 6..at + 8].copy_from_slice(&(4096 - at as u16).to_ne_bytes());
        }
        // An empty one is a page as well.
        prop_assert_eq!(exhaust(&bytes), 1);
    }

    #[test]
    fn what_was_built_is_read(
        writes in prop::collection::vec((write(), 0u64..1000), 0..60),
        shift in 9u32..=16,
    ) {
        let (bytes, count) = build(&writes, 1 << shift);
        prop_assert_eq!(bytes.len(), 1 << shift);
        let page = Page::parse(&bytes).unwrap();
        prop_assert_eq!(page.verify(), Ok(count));
        prop_assert_eq!(exhaust(&bytes), 1);
    }

    #[test]
    fn what_was_built_and_spoilt_does_not_panic(
        writes in prop::collection::vec((write(), 0u64..1000), 1..60),
        spoils in prop::collection::vec((0usize..8192, any::<u8>()), 1..8),
    ) {
        let (page, _) = build(&writes, 4096);
        let mut bytes = [&page[..], &page[..]].concat();
        for (at, value) in spoils {
            bytes[at] = value;
        }
        exhaust(&bytes);
    }

    #[test]
    fn any_symbol_list(text in "([0-9a-f]{1,17} [A-Za-z] [a-z_]{1,5}(\t\\[[a-z]{1,3}\\])?\n|.{0,9}\n){0,9}", ip: u64) {
        if let Ok(kallsyms) = Kallsyms::parse(&text) {
            if let Some(found) = kallsyms.resolve(ip) {
                prop_assert_eq!(found.start + found.offset, ip);
            }
        }
    }

    #[test]
    fn any_bytes_as_samples_of_any_fields(
        body in prop::collection::vec(any::<u8>(), 8..400),
        id in 0u64..3,
        types in prop::collection::vec(any::<u64>().prop_map(|bits| bits & 0x1_03ff), 3),
        unknown in prop::option::of(10u32..64),
    ) {
        let mut layouts = SampleLayouts::new();
        for (id, sample_type) in types.iter().enumerate() {
            layouts.insert(id as u64, sample_type | unknown.map_or(0, |bit| 1 << bit));
        }
        let mut page = PageBuilder::new(4096, 3, 0);
        let words: Vec<u64> = body
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
            .collect();
        page.sample_fields(0, id, &words, 10);
        let bytes = page.finish();
        let page = Page::parse(&bytes).unwrap().with_layouts(&layouts);
        walk(&page);
        for record in page.records() {
            if let Ok(Record::SampleFields(fields)) = record {
                prop_assert_eq!(fields.id, id);
                if let Some(chain) = fields.callchain {
                    prop_assert!(chain.words().count() <= words.len());
                }
            }
        }
    }

    #[test]
    fn any_event_name(text in ".{0,20}") {
        let _ = text.parse::<Event>();
    }

    #[test]
    fn any_list_of_events(
        text in "([{},/:=*?]|cycles|mem|0x1|cpu|config|name|'|[a-z]{1,2}|.){0,12}",
    ) {
        // No path of it is there: what names a file must not leave it either.
        let nowhere = EventPaths {
            devices: "/nonexistent/devices".into(),
            tracing: vec!["/nonexistent/tracing".into()],
        };
        if let Ok(sets) = parse_events(&text, &nowhere) {
            prop_assert!(!sets.is_empty());
            for set in sets {
                prop_assert!(set.braces || set.events.len() == 1);
                prop_assert!(!set.events.is_empty());
            }
        }
    }
}
