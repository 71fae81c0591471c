// SPDX-License-Identifier: GPL-2.0

//! A shared value that may be replaced while code that cannot wait looks at it.

use super::interrupts::InterruptsOff;
use core::ptr::null_mut;
use kernel::sync::{
    atomic::{
        ordering::{
            Acquire,
            Full, //
        },
        Atomic, //
    },
    rcu,
    Arc, //
};

/// A reference, or none.
///
/// # Invariants
///
/// The pointer is from `Arc::into_raw`, and that reference is the slot's; or null.
pub(crate) struct RcuSlot<T>(Atomic<*mut T>);

// SAFETY: It is an `Option<Arc<T>>`, which is `Send` for these.
unsafe impl<T: Send + Sync> Send for RcuSlot<T> {}
// SAFETY: As above; who replaces takes the whole reference.
unsafe impl<T: Send + Sync> Sync for RcuSlot<T> {}

impl<T> RcuSlot<T> {
    /// An empty one.
    pub(crate) fn new() -> Self {
        // INVARIANT: Null.
        Self(Atomic::new(null_mut()))
    }

    /// Calls `f` with the value, if there is one. Any context.
    pub(crate) fn with<R>(&self, _off: &InterruptsOff, f: impl FnOnce(&T) -> R) -> Option<R> {
        let value = self.0.load(Acquire);
        // SAFETY: With interrupts off this is a read-side section of RCU, and `replace` gives the reference
        // back only after all that began before the exchange. `f` cannot keep it.
        unsafe { value.as_ref() }.map(f)
    }

    /// Puts `value` here, and waits until nobody looks at the one before. Sleeps.
    pub(crate) fn replace(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
        let raw = value.map_or(null_mut(), |value| Arc::into_raw(value).cast_mut());
        // INVARIANT: The reference is the slot's now, and the one before is ours.
        let before = self.0.xchg(raw, Full);
        if before.is_null() {
            return None;
        }
        rcu::synchronize_rcu();
        // SAFETY: By the type invariants, and as above.
        Some(unsafe { Arc::from_raw(before) })
    }
}

impl<T> Drop for RcuSlot<T> {
    fn drop(&mut self) {
        let value = *self.0.get_mut();
        if !value.is_null() {
            // SAFETY: By the type invariants; nobody can look at it, as nobody else has the slot.
            drop(unsafe { Arc::from_raw(value) });
        }
    }
}
