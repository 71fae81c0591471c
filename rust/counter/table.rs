// SPDX-License-Identifier: GPL-2.0

//! The counters of one open file, by their numbers.

use super::Counter;
use crate::channel::Channel;
use kernel::{
    prelude::*,
    rbtree::RBTree,
    sync::{
        new_mutex,
        Arc,
        Mutex, //
    },
};
use weir_core::uapi::CounterReq;

/// Counters of one file; one for each of many events on each of many CPUs.
const MOST: u32 = 1 << 16;

struct Counters {
    /// Number of the newest. Numbers are not used again, since samples carry them.
    last: u32,
    live: RBTree<u32, Arc<Counter>>,
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

    /// Makes a counter and returns its number.
    ///
    /// # Errors
    ///
    /// As [`Counter::new`], and `ENOSPC` if there are too many.
    pub(crate) fn create(&self, channel: &Arc<Channel>, request: &CounterReq) -> Result<u32> {
        let id = {
            let mut counters = self.counters.lock();
            if counters.count >= MOST || counters.last == u32::MAX {
                return Err(ENOSPC);
            }
            counters.last += 1;
            counters.count += 1;
            counters.last
        };
        let made = Counter::new(channel, request, id)
            .and_then(|counter| Ok(Arc::new(counter, GFP_KERNEL)?));
        let mut counters = self.counters.lock();
        let kept =
            made.and_then(|counter| counters.live.try_create_and_insert(id, counter, GFP_KERNEL));
        match kept {
            Ok(_) => Ok(id),
            Err(error) => {
                counters.count -= 1;
                Err(error)
            }
        }
    }

    /// The counter with number `id`.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is none.
    pub(crate) fn get(&self, id: u32) -> Result<Arc<Counter>> {
        self.counters.lock().live.get(&id).cloned().ok_or(ENOENT)
    }

    /// Releases the counter with number `id`: no sample comes after this returns, unless another call
    /// uses it just now, which then is the last to.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is none.
    pub(crate) fn release(&self, id: u32) -> Result {
        let counter = {
            let mut counters = self.counters.lock();
            let counter = counters.live.remove(&id).ok_or(ENOENT)?;
            counters.count -= 1;
            counter
        };
        // Outside the lock: it waits for the CPU.
        drop(counter);
        Ok(())
    }
}
