// SPDX-License-Identifier: GPL-2.0

//! Captures: read in any pieces, cut anywhere, and followed from page to page.

use libweir::{
    build::PageBuilder,
    continuity::ContinuityErrorKind,
    page::PageErrorKind,
    uapi,
    Continuity,
    Page,
    Stream,
    StreamError, //
};
use std::io::{
    Error,
    ErrorKind,
    Read, //
};
use zerocopy::{
    FromBytes,
    IntoBytes, //
};

fn page(cpu: u32, sequence: u64, begin: u64, end: u64) -> PageBuilder {
    let mut page = PageBuilder::new(4096, cpu, sequence);
    page.raw(b"first", begin).raw(b"last", end);
    page
}

fn capture() -> Vec<u8> {
    [
        page(0, 0, 10, 20),
        page(1, 0, 5, 30),
        page(0, 1, 20, 25),
        page(0, 2, 26, 27),
    ]
    .iter()
    .flat_map(PageBuilder::finish)
    .collect()
}

/// Gives a few bytes at a time, and is interrupted in between.
struct Trickle<'a> {
    bytes: &'a [u8],
    calls: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        self.calls += 1;
        if self.calls % 3 == 0 {
            return Err(ErrorKind::Interrupted.into());
        }
        let len = buffer.len().min(7 + self.calls % 90).min(self.bytes.len());
        buffer[..len].copy_from_slice(&self.bytes[..len]);
        self.bytes = &self.bytes[len..];
        Ok(len)
    }
}

#[test]
fn pages_come_one_by_one_however_the_input_comes() {
    let bytes = capture();
    let mut stream = Stream::new(Trickle {
        bytes: &bytes,
        calls: 0,
    });
    let mut continuity = Continuity::new();
    let mut offsets = Vec::new();
    while let Some(page) = stream.next_page().unwrap() {
        assert_eq!(page.verify(), Ok(2));
        continuity.follow(&page).unwrap();
        offsets.push(page.offset());
    }
    assert_eq!(offsets, [0, 4096, 8192, 12288]);
    assert_eq!(stream.offset(), 16384);
}

#[test]
fn an_empty_capture_has_no_page() {
    assert!(Stream::new(&[][..]).next_page().unwrap().is_none());
}

#[test]
fn a_capture_that_was_cut_says_where_and_how_much_is_missing() {
    let bytes = capture();
    for (cut, missing) in [(8193, 95), (8192 + 95, 1), (8192 + 96, 4000), (12287, 1)] {
        let mut stream = Stream::new(&bytes[..cut]);
        assert!(stream.next_page().unwrap().is_some());
        assert!(stream.next_page().unwrap().is_some());
        let error = stream.next_page().unwrap_err();
        // One byte is not a magic number yet, so that is all that is known of it.
        assert!(
            matches!(error, StreamError::Truncated { offset: 8192, missing: m } if m == missing),
            "{cut}: {error}"
        );
        assert!(
            error.to_string().contains("offset 8192 (0x2000)"),
            "{error}"
        );
        assert!(stream.next_page().unwrap().is_none());
    }
}

#[test]
fn what_is_no_capture_is_not_taken_for_a_cut_one() {
    let error = Stream::new(&b"PERFILE2"[..]).next_page().unwrap_err();
    assert!(
        matches!(&error, StreamError::Page(page) if matches!(page.kind, PageErrorKind::Magic(_))),
        "{error}"
    );
}

#[test]
fn an_error_of_the_input_is_passed_on_with_its_offset() {
    struct Broken<'a>(&'a [u8]);
    impl Read for Broken<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
            if self.0.is_empty() {
                return Err(ErrorKind::ConnectionReset.into());
            }
            self.0.read(buffer)
        }
    }
    let bytes = capture();
    let mut stream = Stream::new(Broken(&bytes[..5000]));
    stream.next_page().unwrap();
    let error = stream.next_page().unwrap_err();
    assert!(
        matches!(&error, StreamError::Io { offset: 5000, reason } if reason.kind() == ErrorKind::ConnectionReset),
        "{error}"
    );
}

/// Follows pages, and gives the error of the last.
fn follow(pages: &[PageBuilder]) -> ContinuityErrorKind {
    let mut continuity = Continuity::new();
    let mut result = Ok([0; uapi::LOST_CAUSES]);
    for builder in pages {
        result.unwrap();
        let bytes = builder.finish();
        result = continuity.follow(&Page::parse(&bytes).unwrap());
    }
    result.unwrap_err().kind
}

#[test]
fn a_gap_or_a_repetition_is_noticed() {
    use ContinuityErrorKind::Sequence;
    let first = page(0, 0, 1, 2);
    let cases = [
        (vec![page(0, 1, 1, 2)], 0, 1),
        (vec![first.clone(), page(0, 2, 3, 4)], 1, 2),
        (vec![first.clone(), page(1, 0, 3, 4), first.clone()], 1, 0),
    ];
    for (pages, wanted, found) in cases {
        assert_eq!(follow(&pages), Sequence { wanted, found });
    }
}

#[test]
fn time_that_runs_backwards_is_noticed() {
    assert_eq!(
        follow(&[page(0, 0, 5, 9), page(1, 0, 1, 2), page(0, 1, 8, 10)]),
        ContinuityErrorKind::Time { begin: 8, end: 9 }
    );
}

#[test]
fn losses_that_do_not_add_up_are_noticed() {
    use ContinuityErrorKind::{
        Lost,
        LostTime, //
    };
    let mut one = page(0, 0, 1, 2);
    one.lost([1, 0, 0, 0], 1, 1);
    let mut none = page(0, 1, 2, 3);
    none.discarded([1, 0, 0, 0]);
    let mut without_time = page(0, 2, 3, 4);
    without_time.discarded([1, 1, 0, 0]);
    assert_eq!(
        follow(&[one.clone(), none, without_time]),
        LostTime { count: 1, begin: 0 }
    );
    let mut without_loss = page(0, 1, 2, 3);
    without_loss.lost([1, 0, 0, 0], 2, 2);
    assert_eq!(
        follow(&[one.clone(), without_loss]),
        LostTime { count: 0, begin: 2 }
    );
    let mut reset = page(0, 1, 2, 3);
    reset.discarded([0; 4]);
    assert_eq!(
        follow(&[one, reset]),
        Lost {
            wanted: 1 << 32,
            found: 0
        }
    );
}

#[test]
fn losses_are_counted_beyond_what_a_page_can_express() {
    let mut continuity = Continuity::new();
    let mut follow = |builder: &PageBuilder| {
        let bytes = builder.finish();
        continuity.follow(&Page::parse(&bytes).unwrap())
    };
    let mut most = page(0, 0, 1, 2);
    most.lost([u32::MAX, 0, 0, 0], 1, 1);
    assert_eq!(follow(&most), Ok([u64::from(u32::MAX), 0, 0, 0]));
    let mut more = page(0, 1, 2, 3);
    more.lost([1, 3, 0, 0], 2, 2);
    let bytes = more.finish();
    let (mut header, rest) = uapi::PageHeader::read_from_prefix(&bytes).unwrap();
    header.events_discarded = (1 << 32) + 4;
    let bytes = [header.as_bytes(), rest].concat();
    let since = continuity.follow(&Page::parse(&bytes).unwrap());
    assert_eq!(since, Ok([2, 3, 0, 0]));
}

#[test]
fn pages_that_were_overwritten_leave_a_gap() {
    let overwriting = |number, begin| {
        let mut page = page(0, number, begin, begin + 1);
        page.flags(uapi::PAGE_OVERWRITE);
        page
    };
    let mut continuity = Continuity::new();
    let mut later = overwriting(5, 9);
    // The page with the time of the losses was overwritten itself.
    later.discarded([0, 0, 0, 70]);
    for (page, lost) in [(overwriting(0, 1), 0), (later, 70)] {
        let bytes = page.finish();
        let since = continuity.follow(&Page::parse(&bytes).unwrap());
        assert_eq!(since, Ok([0, 0, 0, lost]));
    }
    assert!(matches!(
        follow(&[overwriting(5, 1), overwriting(4, 3)]),
        ContinuityErrorKind::Sequence { .. }
    ));
}

#[test]
fn pages_of_all_cpus_are_one_stream() {
    let shared = |cpu, number, begin| {
        let mut page = page(cpu, number, begin, begin + 1);
        page.flags(uapi::PAGE_SHARED);
        page
    };
    let mut continuity = Continuity::new();
    let mut told = shared(1, 1, 3);
    told.lost([2, 0, 0, 0], 3, 3);
    for page in [shared(0, 0, 1), told, shared(uapi::CPU_NONE, 2, 5)] {
        let bytes = page.finish();
        continuity.follow(&Page::parse(&bytes).unwrap()).unwrap();
    }
    assert!(matches!(
        follow(&[shared(0, 0, 1), shared(1, 0, 3)]),
        ContinuityErrorKind::Sequence { .. }
    ));
}
