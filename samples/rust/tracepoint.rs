// SPDX-License-Identifier: GPL-2.0

//! A probe of one of the kernel's tracepoints, found by its name. The `kernel` crate has none yet.

use core::ptr::{
    from_ref,
    null_mut, //
};
use kernel::{
    bindings,
    error::to_result,
    ffi::c_void,
    prelude::*,
    str::CStr, //
};

extern "C" {
    fn weir_sample_tracepoint_synchronize();
}

/// A probe that is registered; it does not run any more once this was dropped. Dropping it sleeps.
///
/// # Invariants
///
/// `probe` is registered with `data` at `tracepoint`.
pub(crate) struct Probe<T: 'static> {
    tracepoint: *mut bindings::tracepoint,
    probe: *mut c_void,
    data: KBox<T>,
}

// SAFETY: A probe may be unregistered by another thread than registered it.
unsafe impl<T: Send> Send for Probe<T> {}
// SAFETY: Shared access is to the data only.
unsafe impl<T: Sync> Sync for Probe<T> {}

struct Search<'a> {
    name: &'a CStr,
    found: *mut bindings::tracepoint,
}

/// # Safety
///
/// `search` points to a [`Search`] that nobody else uses; the tracepoint is one.
unsafe extern "C" fn visit(tracepoint: *mut bindings::tracepoint, search: *mut c_void) {
    // SAFETY: By the safety requirements.
    let (search, name) = unsafe {
        let search = &mut *search.cast::<Search<'_>>();
        (search, CStr::from_char_ptr((*tracepoint).name))
    };
    if name == search.name {
        search.found = tracepoint;
    }
}

impl<T: Sync> Probe<T> {
    /// Registers `probe` at the tracepoint called `name`. It gets a pointer to `data`, and behind that the
    /// arguments of the tracepoint. Sleeps.
    ///
    /// # Safety
    ///
    /// `probe` is an `extern "C"` function of these arguments: a pointer to `T`, then those of the
    /// `TP_PROTO()` of this tracepoint.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is no such tracepoint, `ENOMEM`.
    pub(crate) unsafe fn register(name: &CStr, probe: *mut c_void, data: T) -> Result<Self> {
        let mut search = Search {
            name,
            found: null_mut(),
        };
        let data = KBox::new(data, GFP_KERNEL)?;
        // SAFETY: `visit` gets what it expects, until this returns.
        unsafe {
            let search: *mut Search<'_> = &mut search;
            bindings::for_each_kernel_tracepoint(Some(visit), search.cast());
        }
        if search.found.is_null() {
            return Err(ENOENT);
        }
        let pointer = from_ref(&*data).cast_mut().cast();
        // SAFETY: Tracepoints of the kernel itself stay. The probe fits by the safety requirements, and the
        // data stays where it is until the probe does not run any more.
        to_result(unsafe { bindings::tracepoint_probe_register(search.found, probe, pointer) })?;
        // INVARIANT: It was just registered.
        Ok(Self {
            tracepoint: search.found,
            probe,
            data,
        })
    }
}

impl<T> Drop for Probe<T> {
    fn drop(&mut self) {
        let pointer = from_ref(&*self.data).cast_mut().cast();
        // SAFETY: It is registered so, by the type invariants. After the second call no probe runs any more,
        // so the data may go.
        unsafe {
            bindings::tracepoint_probe_unregister(self.tracepoint, self.probe, pointer);
            weir_sample_tracepoint_synchronize();
        }
    }
}
