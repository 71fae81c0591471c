// SPDX-License-Identifier: GPL-2.0

//! Words at whose every access something else may happen: an interrupt, or another CPU that gets its
//! turn. A test runs a scenario once for each access, so that nothing depends on chance.

use std::{
    cell::RefCell,
    sync::atomic::{
        fence,
        AtomicU64,
        Ordering, //
    },
};
use weir_core::Word;

type Event = Box<dyn FnMut()>;

thread_local! {
    /// What is to happen: after how many accesses from the event before, and what.
    static EVENTS: RefCell<Vec<(u64, Event)>> = const { RefCell::new(Vec::new()) };
}

/// Runs `scenario` with `events`, each after so many accesses from the start or the event before.
/// Returns whether all of them happened. Accesses within an event count for the next.
pub fn run(mut events: Vec<(u64, Event)>, scenario: impl FnOnce()) -> bool {
    events.reverse();
    EVENTS.with_borrow_mut(|list| *list = events);
    scenario();
    EVENTS.with_borrow_mut(|list| {
        let all = list.is_empty();
        list.clear();
        all
    })
}

fn step() {
    let due = EVENTS.with_borrow_mut(|list| match list.last_mut() {
        Some((0, _)) => list.pop(),
        Some((left, _)) => {
            *left -= 1;
            None
        }
        None => None,
    });
    if let Some((_, mut event)) = due {
        event();
    }
}

/// The word.
pub struct SteppedWord(AtomicU64);

impl Word for SteppedWord {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn load(&self) -> u64 {
        step();
        self.0.load(Ordering::Relaxed)
    }

    fn load_acquire(&self) -> u64 {
        step();
        self.0.load(Ordering::Acquire)
    }

    fn store(&self, value: u64) {
        step();
        self.0.store(value, Ordering::Relaxed);
    }

    fn store_release(&self, value: u64) {
        step();
        self.0.store(value, Ordering::Release);
    }

    fn local_compare_exchange(&self, old: u64, new: u64) -> Result<(), u64> {
        self.compare_exchange(old, new)
    }

    fn local_add(&self, value: u64) {
        self.fetch_add(value);
    }

    fn local_swap(&self, value: u64) -> u64 {
        step();
        self.0.swap(value, Ordering::Relaxed)
    }

    fn compare_exchange(&self, old: u64, new: u64) -> Result<(), u64> {
        step();
        self.0
            .compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst)
            .map(|_| ())
    }

    fn fetch_add(&self, value: u64) -> u64 {
        step();
        self.0.fetch_add(value, Ordering::SeqCst)
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}
