// SPDX-License-Identifier: GPL-2.0

//! The books of a channel whose readers are killed: every page came once, or, of the last page that a reader had
//! when it was killed, it is found out whether it was taken out of the channel.
//!
//! Such a page is held until the next one of its stream comes. If it was not taken, it comes again, and does not
//! go before that one. If it was taken, and the channel does not overwrite, the next one follows it. So there is
//! always one answer only; but in a channel that overwrites the page may also have been overwritten while it was
//! copied, and then the next one follows too. Its records are either read or overwritten, as a whole, and the
//! channel's own count has to be that of one of both.

use super::{
    losses::Losses,
    marks::Marks, //
};
use crate::{
    ledger::{
        Ledger,
        RunTotals, //
    },
    payload,
    times::Times,
    torture::Status,
    verifier::Verifier, //
};
use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use libweir::{
    uapi::{
        RecordHeader,
        RECORD_NOP, //
    },
    Channel,
    Page,
    Record, //
};
use zerocopy::FromBytes;

/// What became of the last pages of readers that were killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Not copied as a whole, so not taken.
    pub torn: u64,
    /// Not taken: it came again, or was overwritten.
    pub left: u64,
    /// Taken.
    pub taken: u64,
    /// Taken or overwritten.
    pub either: u64,
}

/// What was read so far.
#[derive(Clone, Debug)]
struct State {
    verifier: Verifier,
    ledger: Ledger,
    losses: Losses,
    /// Reservations that were given up, which are NOPs.
    given_up: u64,
}

impl State {
    fn take(&mut self, bytes: &[u8], now: u64) -> Result<()> {
        let (ledger, losses) = (&mut self.ledger, &mut self.losses);
        self.verifier.page(bytes, now, |cpu, record| {
            let head = ledger.take(cpu, record)?;
            let time = record.time().context("a record without a time")?;
            losses.record(cpu, head.source, time, head.refused);
            Ok(())
        })?;
        let page = Page::parse(bytes)?;
        self.losses.page(page.header());
        self.given_up += given_up(&page);
        Ok(())
    }

    /// What this has had of a channel that may count as overwritten.
    fn reserved(&self) -> u64 {
        self.ledger.read_in_all() + self.given_up
    }
}

/// The books.
#[derive(Debug)]
pub struct Books {
    state: State,
    times: Option<Times>,
    marks: Marks,
    overwrites: bool,
    /// Last pages of readers that were killed, at most one of a stream.
    held: Vec<Vec<u8>>,
    doubts: Doubts,
}

impl Books {
    /// Begins with a channel that was created after [`times::before`](crate::times::before) gave `before`.
    ///
    /// # Errors
    ///
    /// Those of asking the channel what it is.
    pub fn open(channel: &Channel, before: u64, overwrites: bool) -> Result<Self> {
        let times = Times::of(channel)?;
        let layout = channel.layout()?;
        let marks = Marks::new(
            layout.queues,
            u64::from(channel.granted().pages / layout.queues.max(1)),
        );
        let page_size = channel.granted().page_size as usize;
        let mut books = Self::new(page_size, times.begin(before), overwrites, marks);
        books.times = Some(times);
        Ok(books)
    }

    /// Begins with a channel of pages of `page_size` bytes that was created at `begin`.
    fn new(page_size: usize, begin: u64, overwrites: bool, marks: Marks) -> Self {
        Books {
            times: None,
            marks,
            state: State {
                verifier: Verifier::new(page_size, begin),
                ledger: if overwrites {
                    Ledger::overwriting()
                } else {
                    Ledger::new()
                },
                losses: Losses::default(),
                given_up: 0,
            },
            overwrites,
            held: Vec::new(),
            doubts: Doubts::default(),
        }
    }

    /// Takes a page that was surely taken out of the channel.
    ///
    /// # Errors
    ///
    /// What is wrong with it, or with what comes before it.
    pub fn page(&mut self, page: &[u8]) -> Result<()> {
        self.settle(page);
        let now = self.now();
        self.state.take(page, now)?;
        self.marks.page(&Page::parse(page)?)
    }

    /// The marks that readers got.
    pub fn marks(&mut self) -> &mut Marks {
        &mut self.marks
    }

    /// No time of the channel is after this.
    fn now(&self) -> u64 {
        self.times.map_or(u64::MAX, |times| times.now())
    }

    /// Takes what a killed reader had of its last call.
    ///
    /// # Errors
    ///
    /// As [`Books::page`].
    pub fn left_behind(&mut self, mut pages: Vec<Vec<u8>>) -> Result<()> {
        let last = pages.pop();
        for page in pages {
            self.page(&page)
                .context("a page that a killed reader had, which is not its last one")?;
        }
        if let Some(last) = last {
            if is_whole(&last).is_ok() {
                self.settle(&last);
                self.held.push(last);
            } else {
                self.doubts.torn += 1;
            }
        }
        Ok(())
    }

    /// Finds out about the page that is held of the stream of `next`.
    fn settle(&mut self, next: &[u8]) {
        let Some(index) = self.held.iter().position(|held| is_one_stream(held, next)) else {
            return;
        };
        let held = self.held.remove(index);
        let mut with = self.state.clone();
        let (before, now) = (with.reserved(), self.now());
        if with.take(&held, now).is_err() || with.clone().take(next, now).is_err() {
            self.doubts.left += 1;
            return;
        }
        if self.overwrites {
            self.doubts.either += 1;
            let records = with.reserved() - before;
            with.ledger.doubt(records);
        } else {
            self.doubts.taken += 1;
        }
        self.state = with;
    }

    /// Records that were read, those of held pages included.
    pub fn read(&self) -> u64 {
        let held = self.held.iter().filter_map(|page| is_whole(page).ok());
        self.state.ledger.read_in_all() + held.sum::<u64>()
    }

    /// What came out of the channel.
    pub fn verifier(&self) -> &Verifier {
        &self.state.verifier
    }

    /// Ends, when all that is in the channel was flushed and read.
    ///
    /// # Errors
    ///
    /// The writers' own counts, or the channel's, are not what was read.
    pub fn close(&mut self, channel: &Channel, statuses: &[Status]) -> Result<(RunTotals, Doubts)> {
        // Nothing came behind these: if they were still there, or had been overwritten, something had.
        for held in std::mem::take(&mut self.held) {
            let now = self.now();
            self.state
                .take(&held, now)
                .context("the last page of a killed reader, which did not come again")?;
            self.doubts.taken += 1;
        }
        let state = &mut self.state;
        let given_up: u64 = statuses.iter().map(|status| status.given_up).sum();
        let unseen = given_up.checked_sub(state.given_up);
        ensure!(
            unseen == Some(0) || (self.overwrites && unseen.is_some()),
            "{} NOPs came of {given_up} reservations that were given up",
            state.given_up
        );
        state.ledger.unseen(unseen.unwrap_or(0));
        let totals = state.ledger.close_run(statuses)?;
        state.ledger.check(channel, &state.verifier)?;
        // Of a channel that overwrites, pages that told of losses may be gone.
        if let Some(times) = self.times.filter(|_| !self.overwrites) {
            state
                .losses
                .check(statuses, |time, ns| times.shifted(time, ns))
                .context("the times of what was lost")?;
        }
        Ok((totals, self.doubts))
    }
}

/// Whether two whole pages are of one stream: of one CPU, or of all.
fn is_one_stream(one: &[u8], other: &[u8]) -> bool {
    match (Page::parse(one), Page::parse(other)) {
        (Ok(one), Ok(other)) => one.is_shared() || one.header().cpu_id == other.header().cpu_id,
        // Whatever is wrong with it is found when it is taken.
        _ => false,
    }
}

/// Whether a page was copied to its end: its number of records.
fn is_whole(page: &[u8]) -> Result<u64> {
    let page = Page::parse(page)?;
    let records = page.verify()?;
    for record in page.records() {
        match record? {
            Record::Raw { data, .. } => payload::check(data)?,
            Record::Event { data, .. } => payload::check(payload::without_filling(data)?)?,
            record => bail!("{record:?} where only torture records are written"),
        };
    }
    Ok(records)
}

/// How many NOPs are among the records of a page that was verified.
fn given_up(page: &Page<'_>) -> u64 {
    let content = (page.header().content_size / 8) as usize;
    let mut rest = &page.bytes()[libweir::page::HEADER_SIZE..content];
    let mut count = 0;
    while let Ok((header, _)) = RecordHeader::read_from_prefix(rest) {
        count += u64::from(header.type_ == RECORD_NOP);
        // No size is zero, and none leads out of the content.
        rest = rest.get(usize::from(header.size)..).unwrap_or(&[]);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verifier::build::{
        edit,
        page as build,
        raw,
        PAGE, //
    };
    use libweir::uapi::PAGE_OVERWRITE;

    /// Page `number` of a CPU, with records `from` to `to`.
    fn page(cpu: u32, number: u64, from: u64, to: u64) -> Vec<u8> {
        let records: Vec<_> = (from..to)
            .map(|sequence| raw(cpu, 1 + sequence, &payload::make(cpu, 0, sequence, 0, 40)))
            .collect();
        build(cpu, number, (1 + from, to), &records)
    }

    fn over(page: &[u8]) -> Vec<u8> {
        edit(page, |header| header.flags |= PAGE_OVERWRITE)
    }

    fn books(overwrites: bool) -> Books {
        Books::new(PAGE, 1, overwrites, Marks::new(1, 100))
    }

    #[test]
    fn a_page_that_comes_again_was_left() {
        let mut books = books(false);
        books.page(&page(0, 0, 0, 2)).unwrap();
        books
            .left_behind(vec![page(0, 1, 2, 4), page(0, 2, 4, 6)])
            .unwrap();
        // Another stream says nothing of it.
        books.page(&page(1, 0, 0, 2)).unwrap();
        assert_eq!(books.doubts, Doubts::default());
        assert_eq!(books.read(), 8);
        books.page(&page(0, 2, 4, 7)).unwrap();
        assert_eq!(books.doubts.left, 1);
        assert_eq!(books.read(), 9);
    }

    #[test]
    fn a_page_that_another_follows_was_taken() {
        let mut books = books(false);
        books.left_behind(vec![page(0, 0, 0, 2)]).unwrap();
        books.page(&page(0, 1, 2, 4)).unwrap();
        assert_eq!(books.doubts.taken, 1);
        assert_eq!(books.read(), 4);
        // The same when the next one is in doubt itself, and comes again.
        books.left_behind(vec![page(0, 2, 4, 5)]).unwrap();
        books.left_behind(vec![page(0, 3, 5, 6)]).unwrap();
        assert_eq!(books.doubts.taken, 2);
        books.left_behind(vec![page(0, 3, 5, 6)]).unwrap();
        assert_eq!(books.doubts.left, 1);
        books.page(&page(0, 4, 6, 7)).unwrap();
        assert_eq!(books.doubts.taken, 3);
        assert_eq!(books.read(), 7);
    }

    #[test]
    fn a_lost_or_repeated_page_is_found_all_the_same() {
        // Lost: the one after the doubtful one.
        let mut lost = books(false);
        lost.left_behind(vec![page(0, 0, 0, 2)]).unwrap();
        assert!(lost.page(&page(0, 2, 4, 6)).is_err());
        // Repeated: one that is not the last.
        let mut repeated = books(false);
        let pages = vec![page(0, 0, 0, 2), page(0, 1, 2, 4)];
        repeated.left_behind(pages).unwrap();
        assert!(repeated.page(&page(0, 0, 0, 2)).is_err());
        // Torn, but taken.
        let mut torn = books(false);
        let mut half = page(0, 0, 0, 2);
        half[200..].fill(0);
        torn.left_behind(vec![half.clone()]).unwrap();
        assert_eq!(torn.doubts.torn, 1);
        assert!(torn.page(&page(0, 1, 2, 4)).is_err());
        // Torn, but not the last.
        assert!(books(false)
            .left_behind(vec![half, page(0, 1, 2, 4)])
            .is_err());
    }

    #[test]
    fn where_pages_are_overwritten_it_may_have_been_that() {
        let mut books = books(true);
        books.left_behind(vec![over(&page(0, 0, 0, 2))]).unwrap();
        books.page(&over(&page(0, 3, 6, 8))).unwrap();
        assert_eq!(books.doubts.either, 1);
        // A part of an open page, which comes again with all of it and under another number.
        books.left_behind(vec![over(&page(0, 4, 9, 11))]).unwrap();
        books.page(&over(&page(0, 7, 9, 14))).unwrap();
        assert_eq!(books.doubts.left, 1);
        assert_eq!(books.read(), 9);
    }
}
