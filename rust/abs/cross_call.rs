// SPDX-License-Identifier: GPL-2.0

//! Running something on several CPUs at once.

use super::{
    bindings,
    interrupts::InterruptsOff, //
};
use kernel::{
    ffi::c_void,
    prelude::*, //
};

/// Calls `work` on each CPU that is online and that `wanted` says, on all at about the same time, with
/// interrupts off, and waits for their end. Process context; does not sleep.
pub(crate) fn on_each<F: Fn(&InterruptsOff) + Sync>(wanted: impl Fn(usize) -> bool, work: F) {
    let each = (wanted, work);
    let info = core::ptr::from_ref(&each).cast_mut().cast();
    let (is_wanted, call) = callbacks(&each);
    // SAFETY: Both get the pointer that they expect, to what all CPUs may share, or this one alone uses. It is valid
    // until this returns, which is after all calls did.
    unsafe { bindings::weir_helper_on_each_cpu_cond(Some(is_wanted), Some(call), info) };
}

type Callbacks = (
    unsafe extern "C" fn(c_int, *mut c_void) -> bool,
    unsafe extern "C" fn(*mut c_void),
);

fn callbacks<W: Fn(usize) -> bool, F: Fn(&InterruptsOff) + Sync>(_each: &(W, F)) -> Callbacks {
    (is_wanted::<W, F>, call_each::<W, F>)
}

/// # Safety
///
/// `each` points to such a pair.
unsafe extern "C" fn is_wanted<W: Fn(usize) -> bool, F>(cpu: c_int, each: *mut c_void) -> bool {
    // SAFETY: By the safety requirements. It is called by the one who asks.
    let (wanted, _) = unsafe { &*each.cast::<(W, F)>() };
    wanted(cpu as usize)
}

/// # Safety
///
/// `each` points to such a pair.
unsafe extern "C" fn call_each<W, F: Fn(&InterruptsOff) + Sync>(each: *mut c_void) {
    // SAFETY: By the safety requirements. The function may be called by several at a time.
    let work = unsafe { &(*each.cast::<(W, F)>()).1 };
    work(&InterruptsOff::new());
}
