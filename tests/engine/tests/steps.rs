// SPDX-License-Identifier: GPL-2.0

//! The engine, interrupted at every access to a shared word, by every kind of event, and by every two
//! of them: by writers of the same CPU (interrupts), by a flush, by the reader and by another CPU.
#![cfg(not(loom))]

use std::{
    cell::RefCell,
    rc::Rc,
    sync::atomic::Ordering, //
};
use weir_core::{
    Backend,
    Channel,
    Mode,
    Model,
    PageMemory,
    HEADER_SIZE, //
};
use weir_engine::{
    backend::{
        HostBackend,
        KINDS, //
    },
    memory::{
        CheckedMemory,
        On, //
    },
    records::{
        write,
        Checker,
        RECORD, //
    },
    stepped::{
        run,
        SteppedWord, //
    },
};

const CPUS: usize = 2;
/// Records of a page.
const A_PAGE: usize = 2;
const PAGE: usize = HEADER_SIZE + A_PAGE * RECORD;

type Kind = (Model, Mode);

type Host = HostBackend<SteppedWord, CheckedMemory>;

/// A channel, its reader, and what was written to it.
struct World {
    kind: Kind,
    pages: usize,
    channel: Channel<Host>,
    checker: RefCell<Checker>,
    written: RefCell<Vec<u16>>,
    refused: RefCell<u64>,
    next: RefCell<u16>,
    /// Pages that were lent and are still referred to, as they were then.
    lent: RefCell<Vec<(u32, Vec<u8>)>>,
}

impl World {
    fn new(kind: Kind, pages: usize) -> Rc<Self> {
        let memory = CheckedMemory::new(pages, PAGE);
        Rc::new(Self {
            kind,
            pages,
            channel: Host::channel(kind, CPUS as u32, pages, memory),
            checker: RefCell::new(Checker::new(CPUS, PAGE)),
            written: RefCell::default(),
            refused: RefCell::default(),
            next: RefCell::default(),
            lent: RefCell::default(),
        })
    }

    /// Pages that one CPU can fill.
    fn capacity(&self) -> usize {
        match self.kind {
            // All but the page kept for the other one.
            (Model::Paged, Mode::Discard) => self.pages - 1,
            (Model::Shared, _) => self.pages,
            _ => self.pages / CPUS,
        }
    }

    /// Says whether there was room.
    fn write(&self, cpu: usize) -> bool {
        let number = self.next.replace_with(|next| *next + 1);
        let written = write(&self.channel, cpu, number);
        if written {
            self.written.borrow_mut().push(number);
        } else {
            *self.refused.borrow_mut() += 1;
        }
        written
    }

    fn write_some(&self, cpu: usize, records: usize) {
        for _ in 0..records {
            self.write(cpu);
        }
    }

    /// Reads, unless the reader is what was interrupted: there is one.
    fn read(&self, open: bool) {
        if let Ok(mut checker) = self.checker.try_borrow_mut() {
            while checker.read(&self.channel, open) {}
        }
    }

    /// Marks how far the stream is complete.
    fn mark(&self) {
        if let Ok(mut checker) = self.checker.try_borrow_mut() {
            checker.mark(&self.channel);
        }
    }

    /// As [`World::read`], of finished pages, without a copy where that is possible. The last of them is
    /// in two places afterwards.
    fn lend(&self) {
        let Ok(mut checker) = self.checker.try_borrow_mut() else {
            return;
        };
        let memory = self.channel.backend().memory();
        while let Some(page) = checker.lend(&self.channel, |page| memory.hold(page)) {
            self.lent.borrow_mut().push((page, self.bytes(page)));
        }
        let mut lent = self.lent.borrow_mut();
        if let Some(last) = lent.last().cloned() {
            memory.hold(last.0);
            lent.push(last);
        }
    }

    /// Whoever refers to the pages that were lent has had them: up to now they are as they were.
    fn let_go(&self) {
        for (page, bytes) in self.lent.take() {
            assert_eq!(
                self.bytes(page),
                bytes,
                "page {page} was written while it was lent"
            );
            let memory = self.channel.backend().memory();
            memory.let_go(page, Ordering::Release);
        }
    }

    fn bytes(&self, page: u32) -> Vec<u8> {
        let memory = self.channel.backend().memory();
        memory.read(page, 0..PAGE, <[u8]>::to_vec)
    }

    /// Everything written was read once, or is counted as lost; everything refused is counted; and no page
    /// is gone.
    fn end(&self) {
        let mut checker = self.checker.borrow_mut();
        checker.finish(&self.channel);
        self.let_go();
        let mut written = self.written.borrow().clone();
        written.sort_unstable();
        let read: Vec<_> = checker
            .numbers
            .iter()
            .map(|(&number, &times)| {
                assert_eq!(times, 1);
                number
            })
            .collect();
        let refused = *self.refused.borrow();
        if self.kind.1 == Mode::Discard {
            assert_eq!(read, written);
            assert_eq!(checker.lost(), refused);
            let mut filled = 0;
            while write(&self.channel, 0, u16::MAX) {
                filled += 1;
            }
            assert_eq!(filled, self.capacity() * A_PAGE);
            return;
        }
        assert!(read.iter().all(|number| written.contains(number)));
        let overwritten = (written.len() - read.len()) as u64;
        assert_eq!(checker.lost(), refused + overwritten);
        // The newest pages are what is kept.
        let kept = self.capacity() * A_PAGE;
        let first = self.next.take();
        let last = first + 3 * kept as u16;
        for number in first..last {
            assert!(write(&self.channel, 0, number));
        }
        checker.numbers.clear();
        checker.finish(&self.channel);
        let read: Vec<_> = checker.numbers.keys().copied().collect();
        let newest: Vec<_> = (last - kept as u16..last).collect();
        assert_eq!(read, newest);
    }
}

/// What may happen in the middle of something else.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// An interrupt writes so many records.
    Interrupt(usize),
    /// The CPU is asked to close its page.
    Close,
    /// The reader takes all it can get, from open pages too.
    Read,
    /// Another CPU writes so many records.
    OtherCpu(usize),
    /// The reader asks how far the stream is complete.
    Mark,
    /// The reader takes finished pages without a copy.
    Lend,
    /// What was lent is let go.
    LetGo,
}

impl Event {
    const ALL: [Self; 10] = [
        Self::Interrupt(1),
        Self::Interrupt(A_PAGE),
        Self::Interrupt(2 * A_PAGE + 1),
        Self::Close,
        Self::Read,
        Self::OtherCpu(1),
        Self::OtherCpu(2 * A_PAGE + 1),
        Self::Mark,
        Self::Lend,
        Self::LetGo,
    ];

    /// Rings lend nothing.
    fn all(kind: Kind) -> &'static [Self] {
        match kind {
            (Model::Paged, Mode::Discard) => &Self::ALL,
            _ => &Self::ALL[..8],
        }
    }

    fn happen(self, world: &World) {
        match self {
            Self::Interrupt(records) => world.write_some(0, records),
            Self::Close => {
                world.channel.close(&On(0));
            }
            Self::Read => world.read(true),
            Self::OtherCpu(records) => world.write_some(1, records),
            Self::Mark => world.mark(),
            Self::Lend => world.lend(),
            Self::LetGo => world.let_go(),
        }
    }
}

/// What is interrupted.
#[derive(Clone, Copy, Debug)]
enum Scenario {
    /// Records up to one behind the edge of the first page, and the flush.
    Write,
    /// A record into a channel that is full.
    WriteFull,
    /// The reader, with a page finished and another open.
    Read,
    /// The reader marks how far the stream is complete, with a page finished and another open.
    Mark,
    /// The reader lends a page, and a second one while the first is let go; then all are used again.
    Lend,
}

impl Scenario {
    const ALL: [Self; 5] = [
        Self::Write,
        Self::WriteFull,
        Self::Read,
        Self::Mark,
        Self::Lend,
    ];

    /// Rings lend nothing.
    fn all(kind: Kind) -> &'static [Self] {
        match kind {
            (Model::Paged, Mode::Discard) => &Self::ALL,
            _ => &Self::ALL[..4],
        }
    }

    fn prepare(self, world: &World) {
        let records = match self {
            Self::Write => 0,
            Self::WriteFull => world.capacity() * A_PAGE,
            Self::Read | Self::Mark => A_PAGE + 1,
            Self::Lend => world.capacity() * A_PAGE,
        };
        for _ in 0..records {
            assert!(world.write(0));
        }
    }

    fn run(self, world: &World) {
        match self {
            Self::Write => {
                world.write_some(0, A_PAGE + 1);
                world.channel.close(&On(0));
            }
            Self::WriteFull => {
                world.write(0);
                world.read(false);
                world.write(0);
            }
            Self::Read => world.read(true),
            Self::Mark => {
                world.mark();
                world.write(0);
                world.read(true);
                world.mark();
            }
            Self::Lend => {
                world.lend();
                world.let_go();
                world.write_some(0, A_PAGE);
                world.lend();
            }
        }
    }
}

/// Says what was tried when an assertion fails.
struct Tell<'a>(Kind, Scenario, usize, &'a [(u64, Event)]);

impl Drop for Tell<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(kind, scenario, pages, events) = self;
            eprintln!("{kind:?}, {scenario:?} with {pages} pages and {events:?}");
        }
    }
}

fn try_events(kind: Kind, scenario: Scenario, pages: usize, events: &[(u64, Event)]) -> bool {
    let _told = Tell(kind, scenario, pages, events);
    let world = World::new(kind, pages);
    scenario.prepare(&world);
    let boxed = events
        .iter()
        .map(|&(after, event)| {
            let world = world.clone();
            let happen: Box<dyn FnMut()> = Box::new(move || event.happen(&world));
            (after, happen)
        })
        .collect();
    let happened = run(boxed, || scenario.run(&world));
    world.end();
    happened
}

#[test]
fn one_event_at_every_step() {
    for kind in KINDS {
        for pages in [4, 8] {
            for &scenario in Scenario::all(kind) {
                for &event in Event::all(kind) {
                    let mut after = 0;
                    while try_events(kind, scenario, pages, &[(after, event)]) {
                        after += 1;
                    }
                    assert!(after > 4, "{kind:?}, {scenario:?} has steps");
                }
            }
        }
    }
}

#[test]
fn marks_advance() {
    for kind in KINDS {
        let world = World::new(kind, 4);
        let mut last = 0;
        for _ in 0..3 * A_PAGE {
            world.write(0);
            if kind.0 == Model::Shared {
                // What is in a page of all CPUs cannot be read before it is finished.
                world.channel.close(&On(0));
            }
            world.read(true);
            world.mark();
            let until = world.checker.borrow().complete_until();
            assert!(until > last, "{kind:?}");
            last = until;
        }
        world.end();
    }
}

fn two_events_at_every_two_steps(kind: Kind) {
    let mut tried = 0;
    for &scenario in Scenario::all(kind) {
        for &first in Event::all(kind) {
            for &second in Event::all(kind) {
                let mut after = 0;
                while try_events(kind, scenario, 4, &[(after, first)]) {
                    let mut later = 0;
                    while try_events(kind, scenario, 4, &[(after, first), (later, second)]) {
                        later += 1;
                    }
                    tried += later;
                    after += 1;
                }
            }
        }
    }
    println!("{kind:?}: {tried} runs");
}

#[test]
fn two_events_paged_discard() {
    two_events_at_every_two_steps((Model::Paged, Mode::Discard));
}

#[test]
fn two_events_per_cpu_discard() {
    two_events_at_every_two_steps((Model::PerCpu, Mode::Discard));
}

#[test]
fn two_events_shared_discard() {
    two_events_at_every_two_steps((Model::Shared, Mode::Discard));
}

#[test]
fn two_events_paged_overwrite() {
    two_events_at_every_two_steps((Model::Paged, Mode::Overwrite));
}

#[test]
fn two_events_per_cpu_overwrite() {
    two_events_at_every_two_steps((Model::PerCpu, Mode::Overwrite));
}

#[test]
fn two_events_shared_overwrite() {
    two_events_at_every_two_steps((Model::Shared, Mode::Overwrite));
}
