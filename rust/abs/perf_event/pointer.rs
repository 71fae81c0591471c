// SPDX-License-Identifier: GPL-2.0

//! An event of perf's, and how it is switched on and off.

use super::{
    super::bindings,
    event::Reading, //
    inherited::Inherited,
};
use core::ptr::NonNull;
use kernel::sync::Arc;

/// An event, and what is needed to do something to its children as well, if it has any.
#[derive(Clone)]
pub(super) struct EventPointer {
    event: NonNull<kernel::bindings::perf_event>,
    inherited: Option<Arc<Inherited>>,
}

// SAFETY: An event may be used by any thread.
unsafe impl Send for EventPointer {}
// SAFETY: The calls lock the event themselves.
unsafe impl Sync for EventPointer {}

impl EventPointer {
    /// Of an event that was just created, enabled if it is inherited.
    pub(super) fn new(
        event: NonNull<kernel::bindings::perf_event>,
        inherited: Option<Arc<Inherited>>,
    ) -> Self {
        Self { event, inherited }
    }

    pub(super) fn as_ptr(&self) -> *mut kernel::bindings::perf_event {
        self.event.as_ptr()
    }

    /// Whether children of its task have events that belong to it.
    pub(super) fn is_inherited(&self) -> bool {
        self.inherited.is_some()
    }

    /// Its own state, not that of its children: one of `PERF_EVENT_STATE_*`.
    ///
    /// # Safety
    ///
    /// The event is valid.
    pub(super) unsafe fn state(&self) -> i32 {
        // SAFETY: By the safety requirements.
        unsafe { bindings::weir_helper_event_state(self.as_ptr()) }
    }

    /// Whether it counts, or waits for its turn.
    ///
    /// # Safety
    ///
    /// The event is valid.
    pub(super) unsafe fn is_enabled(&self) -> bool {
        match &self.inherited {
            Some(inherited) => !inherited.is_disabled(),
            None => {
                // SAFETY: By the safety requirements.
                let state = unsafe { self.state() };
                state >= bindings::perf_event_state_PERF_EVENT_STATE_INACTIVE
            }
        }
    }

    /// Value and times, children of its task included. Sleeps; interrupts the CPU on which it counts.
    ///
    /// # Safety
    ///
    /// The event is valid.
    pub(super) unsafe fn read(&self) -> Reading {
        // SAFETY: By the safety requirements.
        let read = || unsafe { Self::read_all(self.as_ptr()) };
        match &self.inherited {
            Some(inherited) => inherited.read(read),
            None => read(),
        }
    }

    /// Counts from now on. Sleeps.
    ///
    /// # Safety
    ///
    /// The event is valid.
    pub(super) unsafe fn enable(&self) {
        // SAFETY: By the safety requirements.
        let enable = || unsafe { bindings::perf_event_enable(self.as_ptr()) };
        let Some(inherited) = &self.inherited else {
            return enable();
        };
        // SAFETY: As above.
        match unsafe { self.state() } {
            // It waits for a program, or found no place on its PMU.
            bindings::perf_event_state_PERF_EVENT_STATE_OFF
            | bindings::perf_event_state_PERF_EVENT_STATE_ERROR => enable(),
            _ => {}
        }
        // SAFETY: As above.
        inherited.enable(|| unsafe { Self::read_all(self.as_ptr()) });
    }

    /// Counts no more. Sleeps.
    ///
    /// # Safety
    ///
    /// The event is valid.
    pub(super) unsafe fn disable(&self) {
        // SAFETY: By the safety requirements.
        unsafe {
            match &self.inherited {
                // It waits for a program, and goes on waiting, as with perf.
                Some(_) if self.state() == bindings::perf_event_state_PERF_EVENT_STATE_OFF => {}
                Some(inherited) => inherited.disable(|| Self::read_all(self.as_ptr())),
                None => bindings::perf_event_disable(self.as_ptr()),
            }
        }
    }

    /// # Safety
    ///
    /// The event is valid.
    unsafe fn read_all(event: *mut kernel::bindings::perf_event) -> Reading {
        let mut reading = Reading::default();
        // SAFETY: By the safety requirements; the other pointers are valid.
        reading.value = unsafe {
            bindings::perf_event_read_value(event, &mut reading.enabled, &mut reading.running)
        };
        reading
    }
}
