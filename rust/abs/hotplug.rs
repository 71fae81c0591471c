// SPDX-License-Identifier: GPL-2.0

//! Being told that a CPU came online.
//!
//! C API: [CPU hotplug](https://docs.kernel.org/core-api/cpu_hotplug.html), multi-instance states.

use super::bindings;
use core::marker::PhantomPinned;
use kernel::{
    bindings::{
        hlist_node,
        work_struct, //
    },
    container_of,
    error::to_result,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc, //
    },
    types::Opaque, //
};

/// The number of the module's state, once it is there.
static STATE: Atomic<i32> = Atomic::new(0);

/// Wants to know of CPUs that come online.
pub(crate) trait Online: Send + Sync {
    /// `cpu` came online; this runs on it, and may sleep, but not wait for those who wait for CPUs that come and
    /// go. Returns whether [`online_late`](Self::online_late) shall be called soon, which may.
    fn online(&self, cpu: usize) -> bool;

    /// CPUs came online, for which that was asked for.
    fn online_late(&self);
}

/// What all registrations of the module stand on.
///
/// # Invariants
///
/// [`STATE`] was set up, and is not removed before this is dropped.
pub(crate) struct HotplugState(());

impl HotplugState {
    /// Sets it up. There is one. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if too many modules have one.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: The name lives for ever. `Registration::online` is called with nodes that are added.
        let state = unsafe {
            bindings::weir_helper_hotplug_setup(
                c"weir:online".as_char_ptr(),
                Some(Registration::online),
            )
        };
        to_result(state.min(0))?;
        STATE.store(state, Relaxed);
        // INVARIANT: It was set up.
        Ok(Self(()))
    }
}

impl Drop for HotplugState {
    fn drop(&mut self) {
        // SAFETY: By the type invariants. No registration is left: they belong to counters, and this module is
        // not unloaded while a file is open or a module that uses it is there.
        unsafe { bindings::weir_helper_hotplug_remove(STATE.load(Relaxed)) };
    }
}

/// Tells its target of CPUs that come online, until it is dropped.
///
/// # Invariants
///
/// `node` is registered as long as the value lives, and `work` is initialised; both are pinned.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration {
    target: Arc<dyn Online>,
    #[pin]
    node: Opaque<hlist_node>,
    #[pin]
    work: Opaque<work_struct>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The target may be called from any thread, and the rest has locks of its own.
unsafe impl Send for Registration {}
// SAFETY: As above.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers. CPUs that are online by then are not told of. Sleeps; not under `cpus_read_lock()`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(target: Arc<dyn Online>) -> Result<Pin<KBox<Self>>> {
        KBox::try_pin_init(
            try_pin_init!(Self {
                target,
                work <- Opaque::ffi_init(|slot| {
                    // SAFETY: `slot` is valid for writes and stays where it is. `run` is called with this pointer.
                    unsafe { bindings::weir_helper_init_work(slot, Some(Self::run)) }
                }),
                // INVARIANT: The last to be initialised, so that a call finds the rest.
                node <- Opaque::try_ffi_init(|slot: *mut hlist_node| {
                    // SAFETY: As above; there is a state as long as the module is there.
                    to_result(unsafe {
                        slot.write(hlist_node::default());
                        bindings::weir_helper_hotplug_add(STATE.load(Relaxed), slot)
                    })
                }),
                _pin: PhantomPinned,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// # Safety
    ///
    /// `node` is the field of a live [`Registration`].
    unsafe extern "C" fn online(cpu: c_uint, node: *mut hlist_node) -> c_int {
        let node: *mut Opaque<hlist_node> = node.cast();
        // SAFETY: By the safety requirements.
        let this = unsafe { &*container_of!(node, Registration, node) };
        if this.target.online(cpu as usize) {
            // SAFETY: The work is initialised, by the type invariants.
            unsafe { bindings::weir_helper_queue_work(this.work.get()) };
        }
        0
    }

    /// # Safety
    ///
    /// `work` is the field of a live [`Registration`].
    unsafe extern "C" fn run(work: *mut work_struct) {
        let work: *mut Opaque<work_struct> = work.cast();
        // SAFETY: By the safety requirements.
        let this = unsafe { &*container_of!(work, Registration, work) };
        this.target.online_late();
    }
}

#[pinned_drop]
impl PinnedDrop for Registration {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants. No call of `online` comes after the first, so that nobody queues the
        // work any more.
        unsafe {
            bindings::weir_helper_hotplug_delete(STATE.load(Relaxed), self.node.get());
            kernel::bindings::cancel_work_sync(self.work.get());
        }
    }
}
