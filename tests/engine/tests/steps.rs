// SPDX-License-Identifier: GPL-2.0

//! The engine, interrupted at every access to a shared word, by every kind of event, and by every two
//! of them: by writers of the same CPU (interrupts), by a flush, by the reader and by another CPU.
#![cfg(not(loom))]

use std::{
    cell::RefCell,
    rc::Rc, //
};
use weir_core::{
    Channel,
    HEADER_SIZE, //
};
use weir_engine::{
    backend::HostBackend,
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

type Host = HostBackend<SteppedWord, CheckedMemory>;

/// A channel, its reader, and what was written to it.
struct World {
    channel: Channel<Host>,
    checker: RefCell<Checker>,
    written: RefCell<Vec<u64>>,
    refused: RefCell<u64>,
    next: RefCell<u64>,
}

impl World {
    fn new(pages: usize) -> Rc<Self> {
        let memory = CheckedMemory::new(pages, PAGE);
        Rc::new(Self {
            channel: Host::channel(CPUS as u32, pages, memory),
            checker: RefCell::new(Checker::new(CPUS)),
            written: RefCell::default(),
            refused: RefCell::default(),
            next: RefCell::default(),
        })
    }

    fn write(&self, cpu: usize) {
        let number = self.next.replace_with(|next| *next + 1);
        if write(&self.channel, cpu, number) {
            self.written.borrow_mut().push(number);
        } else {
            *self.refused.borrow_mut() += 1;
        }
    }

    /// Reads, unless the reader is what was interrupted: there is one.
    fn read(&self, open: bool) {
        if let Ok(mut checker) = self.checker.try_borrow_mut() {
            while checker.read(&self.channel, open) {}
        }
    }

    /// Everything written was read once, everything refused was counted, and no page is gone.
    fn end(&self, pages: usize) {
        let mut checker = self.checker.borrow_mut();
        checker.finish(&self.channel);
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
        assert_eq!(read, written);
        assert_eq!(checker.lost, *self.refused.borrow());
        // All pages but the one kept for the other CPU can be filled again.
        let mut filled = 0;
        while write(&self.channel, 0, u64::MAX) {
            filled += 1;
        }
        assert_eq!(filled, (pages - 1) * A_PAGE);
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
}

impl Event {
    const ALL: [Self; 7] = [
        Self::Interrupt(1),
        Self::Interrupt(A_PAGE),
        Self::Interrupt(2 * A_PAGE + 1),
        Self::Close,
        Self::Read,
        Self::OtherCpu(1),
        Self::OtherCpu(2 * A_PAGE + 1),
    ];

    fn happen(self, world: &World) {
        match self {
            Self::Interrupt(records) => (0..records).for_each(|_| world.write(0)),
            Self::Close => {
                world.channel.close(&On(0));
            }
            Self::Read => world.read(true),
            Self::OtherCpu(records) => (0..records).for_each(|_| world.write(1)),
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
}

impl Scenario {
    const ALL: [Self; 3] = [Self::Write, Self::WriteFull, Self::Read];

    fn prepare(self, world: &World, pages: usize) {
        match self {
            Self::Write => {}
            Self::WriteFull => (0..(pages - 1) * A_PAGE).for_each(|_| world.write(0)),
            Self::Read => (0..A_PAGE + 1).for_each(|_| world.write(0)),
        }
    }

    fn run(self, world: &World) {
        match self {
            Self::Write => {
                (0..A_PAGE + 1).for_each(|_| world.write(0));
                world.channel.close(&On(0));
            }
            Self::WriteFull => {
                world.write(0);
                world.read(false);
                world.write(0);
            }
            Self::Read => world.read(true),
        }
    }
}

/// Says what was tried when an assertion fails.
struct Tell<'a>(Scenario, usize, &'a [(u64, Event)]);

impl Drop for Tell<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?} with {} pages and {:?}", self.0, self.1, self.2);
        }
    }
}

fn try_events(scenario: Scenario, pages: usize, events: &[(u64, Event)]) -> bool {
    let _told = Tell(scenario, pages, events);
    let world = World::new(pages);
    scenario.prepare(&world, pages);
    let boxed = events
        .iter()
        .map(|&(after, event)| {
            let world = world.clone();
            let happen: Box<dyn FnMut()> = Box::new(move || event.happen(&world));
            (after, happen)
        })
        .collect();
    let happened = run(boxed, || scenario.run(&world));
    world.end(pages);
    happened
}

#[test]
fn one_event_at_every_step() {
    let mut tried = 0;
    for pages in [4, 6] {
        for scenario in Scenario::ALL {
            for event in Event::ALL {
                let mut after = 0;
                while try_events(scenario, pages, &[(after, event)]) {
                    after += 1;
                    tried += 1;
                }
                assert!(after > 10, "{scenario:?} has steps");
            }
        }
    }
    assert!(tried > 1000);
}

#[test]
fn two_events_at_every_two_steps() {
    for scenario in Scenario::ALL {
        for first in Event::ALL {
            for second in Event::ALL {
                let mut after = 0;
                while try_events(scenario, 4, &[(after, first)]) {
                    let mut later = 0;
                    while try_events(scenario, 4, &[(after, first), (later, second)]) {
                        later += 1;
                    }
                    after += 1;
                }
            }
        }
    }
}
