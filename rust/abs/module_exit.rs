// SPDX-License-Identifier: GPL-2.0

//! Being told that a module is gone, after its own exit has run.

use core::{
    marker::PhantomPinned,
    ptr::NonNull, //
};
use kernel::{
    bindings::{
        self,
        notifier_block, //
    },
    error::to_result,
    ffi::{
        c_ulong,
        c_void, //
    },
    prelude::*,
    types::Opaque, //
};

/// A module, which may be gone: it is only compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(usize);

impl Owner {
    /// The module at `module`; none for code of the kernel itself.
    pub(crate) fn new(module: *mut bindings::module) -> Option<Self> {
        NonNull::new(module).map(|module| Self(module.as_ptr().addr()))
    }
}

/// Calls a function for each module that goes, until it is dropped.
///
/// # Invariants
///
/// `block` is registered as long as the value lives, and pinned.
#[pin_data(PinnedDrop)]
pub(crate) struct ModuleExit {
    call: fn(Owner),
    #[pin]
    block: Opaque<notifier_block>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: Nothing of it is used after it was made, but by the notifier, which locks.
unsafe impl Send for ModuleExit {}
// SAFETY: As above.
unsafe impl Sync for ModuleExit {}

impl ModuleExit {
    /// Registers. Sleeps.
    ///
    /// # Errors
    ///
    /// Those of `register_module_notifier()`.
    pub(crate) fn new(call: fn(Owner)) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            call,
            // INVARIANT: Registered in place, after what it calls is there.
            block <- Opaque::try_ffi_init(|slot: *mut notifier_block| {
                // SAFETY: `slot` is valid for writes and stays where it is. `notify` gets this pointer.
                to_result(unsafe {
                    slot.write(notifier_block {
                        notifier_call: Some(Self::notify),
                        ..notifier_block::default()
                    });
                    bindings::register_module_notifier(slot)
                })
            }),
            _pin: PhantomPinned,
        }? Error)
    }

    /// # Safety
    ///
    /// `block` is the field of a live [`ModuleExit`]; `module` is what the notifier of modules tells.
    unsafe extern "C" fn notify(
        block: *mut notifier_block,
        state: c_ulong,
        module: *mut c_void,
    ) -> c_int {
        let block: *mut Opaque<notifier_block> = block.cast();
        // SAFETY: By the safety requirements.
        let this = unsafe { &*kernel::container_of!(block, ModuleExit, block) };
        if state == bindings::module_state_MODULE_STATE_GOING as c_ulong {
            if let Some(owner) = Owner::new(module.cast()) {
                (this.call)(owner);
            }
        }
        bindings::NOTIFY_DONE as c_int
    }
}

#[pinned_drop]
impl PinnedDrop for ModuleExit {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants. It returns when no call runs any more. It fails only for what is not
        // registered.
        unsafe { bindings::unregister_module_notifier(self.block.get()) };
    }
}
