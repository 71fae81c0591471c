// SPDX-License-Identifier: GPL-2.0

//! Records of several CPUs come out in order of time, whatever order their pages came in, and no more are kept
//! than the marks demand.

use libweir::{
    build::PageBuilder,
    uapi::{
        PAGE_SHARED,
        RECORD_NOP, //
    },
    Ordered,
    Page, //
};
use proptest::prelude::*;

fn page(cpu: u32, times: &[u64]) -> Vec<u8> {
    let mut page = PageBuilder::new(4096, cpu, 0);
    for time in times {
        page.raw(&time.to_ne_bytes(), *time);
    }
    page.finish()
}

fn push(ordered: &mut Ordered, bytes: &[u8]) {
    ordered.push(&Page::parse(bytes).unwrap()).unwrap();
}

fn times(ordered: &mut Ordered) -> Vec<u64> {
    std::iter::from_fn(|| ordered.pop())
        .map(|record| {
            assert!(!record.late);
            record.time
        })
        .collect()
}

#[test]
fn nothing_comes_before_its_mark() {
    let mut ordered = Ordered::new();
    push(&mut ordered, &page(1, &[20, 40]));
    push(&mut ordered, &page(0, &[10, 30, 50]));
    assert_eq!(times(&mut ordered), []);
    ordered.advance(30);
    assert_eq!(times(&mut ordered), [10, 20]);
    assert_eq!(ordered.kept(), 3);
    // A mark does not go back.
    ordered.advance(5);
    ordered.advance(41);
    assert_eq!(times(&mut ordered), [30, 40]);
    push(&mut ordered, &page(1, &[45]));
    ordered.finish();
    assert_eq!(times(&mut ordered), [45, 50]);
    assert_eq!(ordered.kept(), 0);
}

#[test]
fn records_are_given_as_they_are() {
    let mut ordered = Ordered::new();
    let bytes = page(3, &[7]);
    push(&mut ordered, &bytes);
    ordered.finish();
    let record = ordered.pop().unwrap();
    assert_eq!((record.time, record.cpu), (7, 3));
    let start = libweir::page::HEADER_SIZE;
    assert_eq!(record.bytes, bytes[start..start + record.bytes.len()]);
    assert_ne!(record.bytes[..4], RECORD_NOP.to_ne_bytes());
}

#[test]
fn what_comes_too_late_is_said_to_be_so() {
    let mut ordered = Ordered::new();
    push(&mut ordered, &page(0, &[10, 20]));
    ordered.advance(100);
    assert_eq!(times(&mut ordered), [10, 20]);
    push(&mut ordered, &page(1, &[15, 30]));
    let record = ordered.pop().unwrap();
    assert!(record.late);
    assert_eq!(record.time, 15);
    assert_eq!(times(&mut ordered), [30]);
}

#[test]
fn pages_of_all_cpus_are_one_stream() {
    let mut ordered = Ordered::new();
    for (cpu, range) in [(0, [1, 2]), (1, [3, 4])] {
        let mut page = PageBuilder::new(4096, cpu, 0);
        page.flags(PAGE_SHARED);
        for time in range {
            page.raw(b"", time);
        }
        push(&mut ordered, &page.finish());
    }
    ordered.finish();
    assert_eq!(times(&mut ordered), [1, 2, 3, 4]);
}

proptest! {
    /// Each CPU writes at some times. Its records come in pages, and between them come marks, which promise
    /// no more than what holds.
    #[test]
    fn everything_comes_once_and_in_order(
        mut streams in prop::collection::vec(prop::collection::vec(0u64..1000, 0..40), 1..5),
        choices in prop::collection::vec((0usize..5, 1usize..6, any::<bool>()), 0..200),
    ) {
        for stream in &mut streams {
            stream.sort_unstable();
        }
        let mut wanted: Vec<u64> = streams.iter().flatten().copied().collect();
        wanted.sort_unstable();
        let mut at = vec![0; streams.len()];
        let mut ordered = Ordered::new();
        let mut given = Vec::new();
        for (cpu, count, marked) in choices {
            let cpu = cpu % streams.len();
            let end = (at[cpu] + count).min(streams[cpu].len());
            if at[cpu] < end {
                push(&mut ordered, &page(cpu as u32, &streams[cpu][at[cpu]..end]));
                at[cpu] = end;
            }
            if marked {
                let left = streams.iter().zip(&at).filter_map(|(stream, at)| stream.get(*at));
                let mark = left.min().copied().unwrap_or(1000);
                ordered.advance(mark);
                given.extend(times(&mut ordered));
                // What is kept is not older than the mark.
                let pushed: usize = at.iter().sum();
                prop_assert_eq!(ordered.kept(), pushed - given.len());
                let older = wanted.iter().filter(|time| **time < mark).count();
                prop_assert_eq!(given.len(), older);
            }
        }
        for (cpu, stream) in streams.iter().enumerate() {
            for rest in stream[at[cpu]..].chunks(7) {
                push(&mut ordered, &page(cpu as u32, rest));
            }
        }
        ordered.finish();
        given.extend(times(&mut ordered));
        prop_assert_eq!(given, wanted);
    }
}
