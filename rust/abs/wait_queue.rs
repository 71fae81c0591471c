// SPDX-License-Identifier: GPL-2.0

//! Waiting for a channel, and waking from any context.
//!
//! `kernel::sync::CondVar` waits with a lock held that the waker takes too, and no writer of a channel
//! takes a lock. So this is the kernel's own way: a condition that is looked at after the task is in
//! the queue, and an irq_work that wakes it, which may be queued in an NMI.

use super::bindings;
use core::{
    cell::UnsafeCell,
    marker::PhantomPinned, //
};
use kernel::{
    container_of,
    error::to_result,
    ffi::c_void,
    fs::File,
    prelude::*,
    time::Delta,
    types::Opaque, //
};

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The condition holds.
    Ready,
    /// The time is over.
    Timeout,
}

/// A wait queue with an irq_work that wakes it.
///
/// # Invariants
///
/// `queue` and `work` are initialised and pinned; `work` calls [`WaitQueue::wake_work`].
#[pin_data(PinnedDrop)]
pub(crate) struct WaitQueue {
    #[pin]
    queue: Opaque<kernel::bindings::wait_queue_head>,
    #[pin]
    work: Opaque<kernel::bindings::irq_work>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: All its methods may be called from any thread.
unsafe impl Send for WaitQueue {}
// SAFETY: All its methods may be called in parallel: both parts have locks or atomics of their own.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// Makes one.
    pub(crate) fn new() -> impl PinInit<Self> {
        // INVARIANT: Both are initialised in place.
        pin_init!(Self {
            queue <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes and stays where it is.
                unsafe { bindings::weir_helper_init_waitqueue_head(slot) }
            }),
            work <- Opaque::ffi_init(|slot| {
                // SAFETY: As above. `wake_work` is called with this very pointer.
                unsafe { bindings::weir_helper_init_irq_work(slot, Some(Self::wake_work)) }
            }),
            _pin: PhantomPinned,
        })
    }

    /// # Safety
    ///
    /// `work` is the field of a live [`WaitQueue`].
    unsafe extern "C" fn wake_work(work: *mut kernel::bindings::irq_work) {
        let work: *mut Opaque<kernel::bindings::irq_work> = work.cast();
        // SAFETY: By the safety requirements.
        let this = unsafe { &*container_of!(work, WaitQueue, work) };
        this.wake();
    }

    /// Wakes who waits. Any context but NMI.
    pub(crate) fn wake(&self) {
        // SAFETY: The queue is initialised, by the type invariants.
        unsafe { bindings::weir_helper_wake_up(self.queue.get()) };
    }

    /// Wakes who waits, from an irq_work of this CPU. Any context.
    pub(crate) fn wake_soon(&self) {
        // SAFETY: The work is initialised, by the type invariants. If it is queued already, nothing
        // happens, and it runs after this call.
        unsafe { kernel::bindings::irq_work_queue(self.work.get()) };
    }

    /// Whether anybody waits; it may change at once.
    pub(crate) fn has_waiters(&self) -> bool {
        // SAFETY: As in `wake`.
        unsafe { bindings::weir_helper_waitqueue_active(self.queue.get()) }
    }

    /// Sleeps until `condition` holds after a wake, or for `timeout`.
    ///
    /// # Errors
    ///
    /// `ERESTARTSYS` on a signal.
    pub(crate) fn wait<F: FnMut() -> bool>(&self, timeout: Delta, condition: F) -> Result<Woken> {
        let condition = UnsafeCell::new(condition);
        let nanoseconds = timeout.as_nanos().max(0).unsigned_abs();
        // SAFETY: The queue is initialised. `check` gets the pointer that it expects, which is valid
        // until this returns, and is called by this task only.
        let result = unsafe {
            bindings::weir_helper_wait_event(
                self.queue.get(),
                Some(check::<F>),
                condition.get().cast(),
                nanoseconds,
            )
        };
        match to_result(result as c_int) {
            Ok(()) => Ok(Woken::Ready),
            Err(error) if error == ETIME => Ok(Woken::Timeout),
            Err(error) => Err(error),
        }
    }

    /// Puts whoever polls into the queue.
    pub(crate) fn poll(&self, file: &File, table: &mut PollTable<'_>) {
        // SAFETY: File and table are valid for the call. The queue stays while the file is open: it
        // belongs to a channel that the file holds.
        unsafe {
            bindings::weir_helper_poll_wait(file.as_ptr(), self.queue.get(), table.0);
        }
    }
}

/// # Safety
///
/// `arg` points to an `F` that nobody else uses meanwhile.
unsafe extern "C" fn check<F: FnMut() -> bool>(arg: *mut c_void) -> bool {
    // SAFETY: By the safety requirements.
    unsafe { (*arg.cast::<F>())() }
}

#[pinned_drop]
impl PinnedDrop for WaitQueue {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The work is initialised. Nobody queues it any more, as nobody has a reference.
        unsafe { kernel::bindings::irq_work_sync(self.work.get()) };
    }
}

/// The table of one call of `poll()`.
///
/// # Invariants
///
/// The pointer is valid for `'a`.
pub(crate) struct PollTable<'a>(
    *mut kernel::bindings::poll_table,
    core::marker::PhantomData<&'a mut kernel::bindings::poll_table>,
);

impl PollTable<'_> {
    /// Wraps a table.
    ///
    /// # Safety
    ///
    /// It is valid for the lifetime of the value.
    pub(super) unsafe fn from_raw(table: *mut kernel::bindings::poll_table) -> Self {
        // INVARIANT: By the safety requirements.
        Self(table, core::marker::PhantomData)
    }
}
