// SPDX-License-Identifier: GPL-2.0

//! The counters of other modules, so that none outlives its module.

use crate::{
    abs::module_exit::Owner,
    counter::Counter, //
};
use kernel::prelude::*;

struct Owned {
    owner: Owner,
    counter: KBox<Counter>,
}

kernel::sync::global_lock! {
    // SAFETY: The module's `init` calls `init` below before anybody can call anything else here.
    unsafe(uninit) static COUNTERS: Mutex<KVec<Owned>> = KVec::new();
}

/// Makes the list. Only for the module's `init`, before it makes itself known to anybody.
pub(crate) fn init() {
    // SAFETY: The module's `init` calls this once, before there is anybody who could use the lock.
    unsafe { COUNTERS.init() };
}

/// Keeps a counter for `owner`, and returns where it is until it is taken.
///
/// # Errors
///
/// `ENOMEM`.
pub(super) fn keep(owner: Owner, counter: Counter) -> Result<*const Counter> {
    let counter = KBox::new(counter, GFP_KERNEL)?;
    let address = core::ptr::from_ref(&*counter);
    let mut counters = COUNTERS.lock();
    // If there is no room, the counter is released, which waits for CPUs; by then the lock is let go.
    counters.reserve(1, GFP_KERNEL)?;
    counters.push(Owned { owner, counter }, GFP_KERNEL)?;
    Ok(address)
}

/// Takes a counter, if it is there.
pub(super) fn take(counter: *const Counter) -> Option<KBox<Counter>> {
    let is_this = |owned: &Owned| core::ptr::eq(&*owned.counter, counter);
    take_first(is_this).map(|owned| owned.counter)
}

fn take_first(is_wanted: impl Fn(&Owned) -> bool) -> Option<Owned> {
    let mut counters = COUNTERS.lock();
    let at = counters.iter().position(is_wanted)?;
    let taken = counters.remove(at).ok();
    if counters.is_empty() {
        // Nothing of it is left when the module goes.
        *counters = KVec::new();
    }
    taken
}

/// Releases what a module has left behind.
pub(crate) fn release_all(owner: Owner) {
    let mut count = 0u32;
    loop {
        let left = take_first(|owned| owned.owner == owner);
        match left {
            // Outside the lock: it waits for CPUs.
            Some(owned) => drop(owned),
            None => break,
        }
        count += 1;
    }
    if count != 0 {
        pr_warn!(
            "a module has left {count} of its counters behind: they are released now that it is gone\n"
        );
    }
}
