// SPDX-License-Identifier: GPL-2.0

//! Overflow callbacks of other modules. Everything here runs with interrupts off, and in NMIs.

use crate::{
    abs::{
        bindings::{
            self,
            weir_overflow, //
        },
        perf_event::Overflow, //
    },
    counter::Callback, //
};
use kernel::{
    bindings::pt_regs,
    ffi::c_void,
    prelude::*, //
};

/// What a callback is given.
struct COverflow<'a> {
    event: usize,
    overflow: &'a Overflow<'a>,
}

type Call = unsafe extern "C" fn(*mut weir_overflow, *mut c_void);

/// A function of C, and what it wants to have.
///
/// # Invariants
///
/// The function may be called with `data`, in any context, as long as this lives.
pub(super) struct CCallback {
    call: Call,
    data: *mut c_void,
}

// SAFETY: By the type invariants.
unsafe impl Send for CCallback {}
// SAFETY: By the type invariants.
unsafe impl Sync for CCallback {}

impl CCallback {
    /// Wraps them.
    ///
    /// # Safety
    ///
    /// The function may be called with `data`, in any context, as long as the value lives.
    pub(super) unsafe fn new(call: Call, data: *mut c_void) -> Self {
        // INVARIANT: By the safety requirements.
        Self { call, data }
    }
}

impl Callback for CCallback {
    fn overflow(&self, event: usize, overflow: &Overflow<'_>) {
        let overflow = COverflow { event, overflow };
        let opaque = core::ptr::from_ref(&overflow).cast_mut().cast();
        // SAFETY: By the type invariants. The first argument is what the functions below expect, during the call.
        unsafe { (self.call)(opaque, self.data) };
    }
}

/// # Safety
///
/// `overflow` is what a callback was given, in that callback.
unsafe fn get<'a>(overflow: *const weir_overflow) -> &'a COverflow<'a> {
    // SAFETY: By the safety requirements.
    unsafe { &*overflow.cast() }
}

macro_rules! accessors {
    ($($name:ident($overflow:ident) -> $type:ty { $value:expr })+) => {
        $(
            /// See the header.
            ///
            /// # Safety
            ///
            /// As for [`get`].
            #[no_mangle]
            unsafe extern "C" fn $name(overflow: *const weir_overflow) -> $type {
                // SAFETY: By the safety requirements.
                let $overflow = unsafe { get(overflow) };
                $value
            }

            // What C declares and what is written above is the same.
            const _: [unsafe extern "C" fn(*const weir_overflow) -> $type; 2] =
                [bindings::$name, $name];
        )+
    };
}

accessors! {
    weir_overflow_event(this) -> c_uint { this.event as c_uint }
    weir_overflow_ip(this) -> u64 { this.overflow.ip() }
    weir_overflow_user(this) -> bool { this.overflow.is_user() }
    weir_overflow_regs(this) -> *mut pt_regs { this.overflow.regs() }
    weir_overflow_address(this) -> u64 { this.overflow.address() }
    weir_overflow_period(this) -> u64 { this.overflow.period() }
    weir_overflow_unthrottle(this) -> () { this.overflow.unthrottle() }
    weir_overflow_stop(this) -> () { this.overflow.stop() }
}
