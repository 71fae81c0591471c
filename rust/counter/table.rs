// SPDX-License-Identifier: GPL-2.0

//! The counters of one open file, by the numbers of their events.

use super::Counter;
use kernel::{
    prelude::*,
    rbtree::RBTree,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    },
};

struct Entry {
    first: u32,
    counter: Arc<Counter>,
}

struct Counters {
    /// Number of the newest. Numbers are not used again, since samples carry them.
    last: u32,
    /// By the number of the last event of each.
    live: RBTree<u32, Entry>,
    /// Events.
    count: u32,
}

/// The table.
#[pin_data]
pub(crate) struct Table {
    #[pin]
    counters: Mutex<Counters>,
}

impl Table {
    /// An empty one.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            counters <- new_mutex!(
                Counters {
                    last: 0,
                    live: RBTree::new(),
                    count: 0,
                },
                "weir_counters"
            ),
        })
    }

    /// Enters the counter of so many events that `make` makes, which gets the number of the first, and returns
    /// that. There may be `most` events.
    ///
    /// # Errors
    ///
    /// Those of `make`; `EMFILE` if there are too many, `ENOSPC` if there were.
    pub(crate) fn add(
        &self,
        events: u32,
        most: u32,
        make: impl FnOnce(u32) -> Result<Counter>,
    ) -> Result<u32> {
        let (first, last) = {
            let mut counters = self.counters.lock();
            let last = counters.last.checked_add(events).ok_or(ENOSPC)?;
            if events > most.saturating_sub(counters.count) {
                return Err(EMFILE);
            }
            let first = counters.last + 1;
            counters.last = last;
            counters.count += events;
            (first, last)
        };
        let made = make(first).and_then(|counter| {
            let counter = Arc::new(counter, GFP_KERNEL)?;
            Ok(Entry { first, counter })
        });
        let mut counters = self.counters.lock();
        let kept =
            made.and_then(|entry| counters.live.try_create_and_insert(last, entry, GFP_KERNEL));
        match kept {
            Ok(_) => Ok(first),
            Err(error) => {
                counters.count -= events;
                Err(error)
            }
        }
    }

    /// The counter whose first event has number `id`.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is none.
    pub(crate) fn get(&self, id: u32) -> Result<Arc<Counter>> {
        match self.event(id)? {
            (counter, 0) => Ok(counter),
            _ => Err(ENOENT),
        }
    }

    /// The counter that has an event with number `id`, and which of its events that is.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is none.
    pub(crate) fn event(&self, id: u32) -> Result<(Arc<Counter>, usize)> {
        let counters = self.counters.lock();
        let (_, entry) = counters
            .live
            .iter()
            .find(|(last, _)| **last >= id)
            .ok_or(ENOENT)?;
        let event = id.checked_sub(entry.first).ok_or(ENOENT)?;
        Ok((entry.counter.clone(), event as usize))
    }

    /// All counters, with the numbers of their first events, in the order of those.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn all(&self) -> Result<KVVec<(u32, Arc<Counter>)>> {
        let counters = self.counters.lock();
        let mut all = KVVec::new();
        for (_, entry) in counters.live.iter() {
            all.push((entry.first, entry.counter.clone()), GFP_KERNEL)?;
        }
        Ok(all)
    }

    /// Releases the counter with number `id`: no sample comes after this returns, unless another call
    /// uses it just now, which then is the last to.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is none.
    pub(crate) fn release(&self, id: u32) -> Result {
        let events = self.get(id)?.events() as u32;
        let entry = {
            let mut counters = self.counters.lock();
            let last = id.wrapping_add(events).wrapping_sub(1);
            let entry = counters.live.remove(&last).ok_or(ENOENT)?;
            counters.count -= events;
            entry
        };
        // Outside the lock: it waits for CPUs.
        drop(entry);
        Ok(())
    }
}
