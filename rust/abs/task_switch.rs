// SPDX-License-Identifier: GPL-2.0

//! Being told when a CPU switches from one task to another.

use super::{
    bindings,
    interrupts::InterruptsOff, //
};
use core::marker::PhantomPinned;
use kernel::{
    container_of,
    error::to_result,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// Wants to know of switches.
pub(crate) trait TaskSwitch: Send + Sync {
    /// This CPU is about to run another task, or none: then it becomes idle. Interrupts are off, and locks
    /// of the scheduler are held: must not sleep, wake anybody, or take a lock.
    fn switch(&self, off: &InterruptsOff, idle: bool);
}

/// Tells its target of switches, until it is dropped.
///
/// # Invariants
///
/// `probe` is registered as long as the value lives, and pinned.
#[pin_data(PinnedDrop)]
pub(crate) struct SwitchProbe {
    target: Arc<dyn TaskSwitch>,
    #[pin]
    probe: Opaque<bindings::weir_switch_probe>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The target may be called from any thread.
unsafe impl Send for SwitchProbe {}
// SAFETY: As above.
unsafe impl Sync for SwitchProbe {}

impl SwitchProbe {
    /// Registers. Sleeps.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if the kernel has no tracepoints, `ENOMEM`.
    pub(crate) fn new(target: Arc<dyn TaskSwitch>) -> Result<Pin<KBox<Self>>> {
        KBox::try_pin_init(
            try_pin_init!(Self {
                target,
                // INVARIANT: Registered in place, after the target is there.
                probe <- Opaque::try_ffi_init(|slot: *mut bindings::weir_switch_probe| {
                    // SAFETY: `slot` is valid for writes and stays where it is. `switched` gets this pointer.
                    to_result(unsafe {
                        slot.write(bindings::weir_switch_probe { call: Some(Self::switched) });
                        bindings::weir_helper_switch_register(slot)
                    })
                }),
                _pin: PhantomPinned,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// # Safety
    ///
    /// `probe` is the field of a live [`SwitchProbe`].
    unsafe extern "C" fn switched(probe: *mut bindings::weir_switch_probe, idle: bool) {
        let probe: *mut Opaque<bindings::weir_switch_probe> = probe.cast();
        // SAFETY: By the safety requirements.
        let this = unsafe { &*container_of!(probe, SwitchProbe, probe) };
        this.target.switch(&InterruptsOff::new(), idle);
    }
}

#[pinned_drop]
impl PinnedDrop for SwitchProbe {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants. It returns when no call runs any more.
        unsafe { bindings::weir_helper_switch_unregister(self.probe.get()) };
    }
}
