// SPDX-License-Identifier: GPL-2.0

//! Overflows of events.

use super::{
    super::{
        bindings,
        pin::PinnedCpu, //
    },
    inherited::Inherited,
    stop::Stop, //
};
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What perf sets the count of interrupts of an event to when it stops it: `MAX_INTERRUPTS`.
const THROTTLED: u64 = u64::MAX;

/// Called when an event overflows.
pub(crate) trait OverflowHandler: Send + Sync {
    /// Runs with interrupts off, and in an NMI for hardware events: must not sleep, allocate, or take
    /// a lock.
    fn overflow(&self, pin: &PinnedCpu, overflow: &Overflow<'_>);
}

/// An event that overflows.
///
/// # Invariants
///
/// The pointers are valid for `'a`, in the handler of `event`.
pub(crate) struct Overflow<'a> {
    event: *mut kernel::bindings::perf_event,
    data: *mut bindings::perf_sample_data,
    regs: *mut kernel::bindings::pt_regs,
    stop: &'a Stop,
    inherited: bool,
    _call: PhantomData<*mut ()>,
}

impl Overflow<'_> {
    /// Where the CPU was.
    pub(crate) fn ip(&self) -> u64 {
        // SAFETY: By the type invariants.
        unsafe { bindings::weir_helper_regs_ip(self.regs) }
    }

    /// It was in user space.
    pub(crate) fn is_user(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { bindings::weir_helper_regs_user(self.regs) }
    }

    /// Events since the overflow before.
    pub(crate) fn period(&self) -> u64 {
        // SAFETY: By the type invariants.
        unsafe { bindings::weir_helper_sample_period(self.data) }
    }

    /// The data that was accessed, or zero.
    pub(crate) fn address(&self) -> u64 {
        // SAFETY: By the type invariants.
        unsafe { bindings::weir_helper_sample_address(self.data) }
    }

    /// Whether perf has just stopped the event, for too many overflows, until the next tick.
    pub(crate) fn is_throttled(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { bindings::weir_helper_event_interrupts(self.event) == THROTTLED }
    }

    /// Lets perf forget that there were overflows before, of which many in a short time make it stop the
    /// event until the next tick.
    pub(crate) fn unthrottle(&self) {
        // SAFETY: By the type invariants. Perf counts them on this CPU only.
        unsafe { bindings::weir_helper_event_forget_interrupts(self.event) };
    }

    /// The registers.
    pub(crate) fn regs(&self) -> *mut kernel::bindings::pt_regs {
        self.regs
    }

    /// Calls no more, and counts no more, until the event is enabled again. With children, it calls no more, but
    /// counts until somebody has come to disable it, a moment later.
    pub(crate) fn stop(&self) {
        self.stop.stop();
        if self.inherited {
            return;
        }
        // SAFETY: By the type invariants. Perf itself stops an event in this way just before it calls the handler,
        // when it was enabled for a number of overflows.
        unsafe { bindings::weir_helper_event_stop(self.event) };
    }
}

/// What an event with a handler points to.
#[pin_data]
pub(super) struct Hook<H> {
    handler: H,
    inherited: Option<Arc<Inherited>>,
    #[pin]
    pub(super) stop: Stop,
}

impl<H: OverflowHandler> Hook<H> {
    /// Makes one.
    pub(super) fn new(handler: H, inherited: Option<Arc<Inherited>>) -> impl PinInit<Self> {
        pin_init!(Self {
            handler,
            inherited,
            stop <- Stop::new(),
        })
    }

    /// # Safety
    ///
    /// Called by perf for an event whose context is a live `Hook<H>`, with interrupts off.
    pub(super) unsafe extern "C" fn call(
        event: *mut kernel::bindings::perf_event,
        data: *mut bindings::perf_sample_data,
        regs: *mut kernel::bindings::pt_regs,
    ) {
        // SAFETY: By the safety requirements; `PerfEvent` keeps it alive until the event is released.
        let hook = unsafe { &*bindings::weir_helper_event_context(event).cast::<Self>() };
        // INVARIANT: Perf gives what is valid during the call.
        let overflow = Overflow {
            event,
            data,
            regs,
            stop: &hook.stop,
            inherited: hook.inherited.is_some(),
            _call: PhantomData,
        };
        if let Some(inherited) = &hook.inherited {
            // It is to be disabled, and is so in a way that perf does not know.
            if inherited.is_disabled() || hook.stop.is_stopped() {
                return;
            }
        } else if hook.stop.is_stopped() {
            // The scheduler has put it back on its PMU before it could be disabled.
            overflow.stop();
            return;
        }
        hook.handler.overflow(&PinnedCpu::new(), &overflow);
    }
}
