// SPDX-License-Identifier: GPL-2.0

//! Overflows of events.

use super::NmiSafe;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    ffi::{
        c_uint,
        c_void, //
    },
    prelude::*,
    types::NotThreadSafe, //
};

/// `struct weir_overflow`.
#[repr(C)]
pub(super) struct RawOverflow {
    _opaque: [u8; 0],
}

extern "C" {
    fn weir_overflow_event(overflow: *const RawOverflow) -> c_uint;
    fn weir_overflow_ip(overflow: *const RawOverflow) -> u64;
    fn weir_overflow_user(overflow: *const RawOverflow) -> bool;
    fn weir_overflow_address(overflow: *const RawOverflow) -> u64;
    fn weir_overflow_period(overflow: *const RawOverflow) -> u64;
    fn weir_overflow_unthrottle(overflow: *const RawOverflow);
    fn weir_overflow_stop(overflow: *const RawOverflow);
}

/// Called when an event of a [`Counter`](super::Counter) overflows.
pub(crate) trait OverflowHandler: NmiSafe {
    /// Runs with interrupts off, for events of hardware in an NMI: must not sleep, take a lock, allocate, or
    /// print at length. Of one event on one CPU, one call runs at a time.
    fn overflow(&self, overflow: &Overflow<'_>);
}

/// An overflow, during the call that tells of it.
///
/// # Invariants
///
/// `raw` is valid, and belongs to the callback that runs in this context.
pub(crate) struct Overflow<'a> {
    raw: NonNull<RawOverflow>,
    _call: PhantomData<&'a ()>,
    _not_send: NotThreadSafe,
}

impl Overflow<'_> {
    /// Which of the counter's events it is, by its place.
    pub(crate) fn event(&self) -> usize {
        // SAFETY: By the type invariants; so for the others.
        unsafe { weir_overflow_event(self.raw.as_ptr()) as usize }
    }

    /// Where the CPU was.
    pub(crate) fn ip(&self) -> u64 {
        // SAFETY: As above.
        unsafe { weir_overflow_ip(self.raw.as_ptr()) }
    }

    /// It was in user space.
    pub(crate) fn user(&self) -> bool {
        // SAFETY: As above.
        unsafe { weir_overflow_user(self.raw.as_ptr()) }
    }

    /// What was accessed, if the event tells, or 0.
    pub(crate) fn address(&self) -> u64 {
        // SAFETY: As above.
        unsafe { weir_overflow_address(self.raw.as_ptr()) }
    }

    /// Events since the overflow before.
    pub(crate) fn period(&self) -> u64 {
        // SAFETY: As above.
        unsafe { weir_overflow_period(self.raw.as_ptr()) }
    }

    /// Lets perf forget that there were overflows before: it stops an event that overflows too often until the next
    /// tick, and one that watches whether the CPU still has ticks calls this each time.
    pub(crate) fn unthrottle(&self) {
        // SAFETY: As above.
        unsafe { weir_overflow_unthrottle(self.raw.as_ptr()) };
    }

    /// Stops the event on this CPU, or in this task, until it is enabled or refreshed: no other call follows. One that
    /// is inherited counts until a work item has disabled it.
    pub(crate) fn stop(&self) {
        // SAFETY: As above.
        unsafe { weir_overflow_stop(self.raw.as_ptr()) };
    }
}

/// What weir calls.
pub(super) type Callback = unsafe extern "C" fn(*mut RawOverflow, *mut c_void);

/// # Safety
///
/// `handler` points to an `H` that lives during the call; `overflow` is what weir calls its callbacks with.
pub(super) unsafe extern "C" fn callback<H: OverflowHandler>(
    overflow: *mut RawOverflow,
    handler: *mut c_void,
) {
    let Some(raw) = NonNull::new(overflow) else {
        return;
    };
    // INVARIANT: By the safety requirements; it is not given to anybody for longer than the call.
    let overflow = Overflow {
        raw,
        _call: PhantomData,
        _not_send: NotThreadSafe,
    };
    // SAFETY: By the safety requirements. Other CPUs may be here too, as `H` is `Sync`.
    unsafe { &*handler.cast::<H>() }.overflow(&overflow);
}
