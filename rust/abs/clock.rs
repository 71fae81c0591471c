// SPDX-License-Identifier: GPL-2.0

//! Clocks that may be read in any context.

use super::bindings;

/// `CLOCK_MONOTONIC` in ns. In an NMI it may be behind an earlier reading by a few ns.
///
/// C API: [`ktime_get_mono_fast_ns`](https://docs.kernel.org/core-api/timekeeping.html).
#[inline]
pub(crate) fn monotonic() -> u64 {
    // SAFETY: May be called in any context.
    unsafe { kernel::bindings::ktime_get_mono_fast_ns() }
}

/// Lets others run, if it is their turn. May sleep.
pub(crate) fn cond_resched() {
    // SAFETY: The caller's context may sleep.
    unsafe { bindings::weir_helper_cond_resched() };
}
