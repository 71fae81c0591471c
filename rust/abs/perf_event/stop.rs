// SPDX-License-Identifier: GPL-2.0

//! Disabling an event from its own overflow.
//!
//! `perf_event_disable()` sleeps, and the call that does not is not for modules. So the handler takes the
//! event off its PMU, and asks a work item, by way of an irq_work, to disable it.

use super::{
    super::bindings,
    pointer::EventPointer, //
};
use core::marker::PhantomPinned;
use kernel::{
    container_of,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        new_mutex,
        Mutex, //
    },
    types::Opaque, //
};

/// Disables an event from any context.
///
/// # Invariants
///
/// `event`, if there is one, is not released before it is taken out of here. `irq_work` and `work` are
/// initialised and pinned; they call [`Stop::queue`] and [`Stop::run`].
#[pin_data(PinnedDrop)]
pub(super) struct Stop {
    #[pin]
    event: Mutex<Option<EventPointer>>,
    /// It was asked for, and the event was not enabled since.
    stopped: Atomic<bool>,
    /// It was enabled for a number of overflows.
    limited: Atomic<bool>,
    #[pin]
    irq_work: Opaque<kernel::bindings::irq_work>,
    #[pin]
    work: Opaque<kernel::bindings::work_struct>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: All its methods may be called from any thread.
unsafe impl Send for Stop {}
// SAFETY: All its methods may be called in parallel: its parts have locks or atomics of their own.
unsafe impl Sync for Stop {}

impl Stop {
    /// Makes one, of no event yet.
    pub(super) fn new() -> impl PinInit<Self> {
        // INVARIANT: Both are initialised in place, and there is no event.
        pin_init!(Self {
            event <- new_mutex!(None, "weir_stop"),
            stopped: Atomic::new(false),
            limited: Atomic::new(false),
            irq_work <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes and stays where it is. `queue` is called with this pointer.
                unsafe { bindings::weir_helper_init_irq_work(slot, Some(Self::queue)) }
            }),
            work <- Opaque::ffi_init(|slot| {
                // SAFETY: As above, with `run`.
                unsafe { bindings::weir_helper_init_work(slot, Some(Self::run)) }
            }),
            _pin: PhantomPinned,
        })
    }

    /// From now on this stops `event`, or none any more.
    ///
    /// # Safety
    ///
    /// The event is valid until this is called again.
    pub(super) unsafe fn set(&self, event: Option<EventPointer>) {
        // INVARIANT: By the safety requirements.
        *self.event.lock() = event;
    }

    /// Whether it was asked for, and the event was not enabled since.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Asks for it. Any context.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
        // SAFETY: The work is initialised, by the type invariants. If it is queued already, it runs after this.
        unsafe { kernel::bindings::irq_work_queue(self.irq_work.get()) };
    }

    /// Enables the event by `enable`, with `limited` for a number of overflows. A stop that was asked for before is
    /// forgotten, and a limit from before; a stop that comes now is not.
    pub(super) fn restart<R>(&self, limited: bool, enable: impl FnOnce() -> R) -> R {
        let event = self.event.lock();
        if let Some(event) = &*event {
            // SAFETY: By the type invariants it is not released while the lock is held. Whoever else enables
            // it takes the lock, so that it stays disabled where it is.
            unsafe {
                // Perf enables nothing that is enabled, which an event that has stopped itself is until somebody
                // has come to disable it.
                if self.is_stopped() || self.limited.load(Relaxed) {
                    event.disable();
                }
                if event.state() <= bindings::perf_event_state_PERF_EVENT_STATE_OFF {
                    bindings::weir_helper_event_forget_stop(event.as_ptr());
                }
            }
        }
        self.stopped.store(false, Relaxed);
        self.limited.store(limited, Relaxed);
        enable()
    }

    /// # Safety
    ///
    /// `irq_work` is the field of a live [`Stop`].
    unsafe extern "C" fn queue(irq_work: *mut kernel::bindings::irq_work) {
        let irq_work: *mut Opaque<kernel::bindings::irq_work> = irq_work.cast();
        // SAFETY: By the safety requirements.
        let this = unsafe { &*container_of!(irq_work, Stop, irq_work) };
        // SAFETY: The work is initialised, by the type invariants.
        unsafe { bindings::weir_helper_queue_work(this.work.get()) };
    }

    /// # Safety
    ///
    /// `work` is the field of a live [`Stop`].
    unsafe extern "C" fn run(work: *mut kernel::bindings::work_struct) {
        let work: *mut Opaque<kernel::bindings::work_struct> = work.cast();
        // SAFETY: By the safety requirements.
        let this = unsafe { &*container_of!(work, Stop, work) };
        let event = this.event.lock();
        if let Some(event) = event.as_ref().filter(|_| this.is_stopped()) {
            // SAFETY: By the type invariants it is not released while the lock is held.
            unsafe { event.disable() };
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Stop {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Both are initialised. The event was released, so nobody queues the first any more; it queues
        // the second, which comes after it here.
        unsafe {
            kernel::bindings::irq_work_sync(self.irq_work.get());
            kernel::bindings::cancel_work_sync(self.work.get());
        }
    }
}
