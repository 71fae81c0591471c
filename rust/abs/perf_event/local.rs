// SPDX-License-Identifier: GPL-2.0

//! Reading an event on the CPU where it counts, without an interrupt.
//!
//! What `perf_event_read_local()` does, which is not for modules. With interrupts off, perf neither puts
//! events on the PMU of this CPU nor takes them off, nor can a PMU go away that has one there: all of these
//! are done on the CPU itself.

use super::{
    super::{
        bindings,
        interrupts::InterruptsOff, //
    },
    event::{
        PerfEvent,
        Reading, //
    },
    overflow::OverflowHandler, //
};
use kernel::prelude::*;

impl<H: OverflowHandler> PerfEvent<H> {
    /// Whether it is of this CPU, or of the current task: nobody else can say so meanwhile. Any context.
    pub(crate) fn is_here(&self, interrupts: &InterruptsOff) -> bool {
        let event = self.as_ptr();
        // SAFETY: The event is ours. These look at what does not change while it is alive.
        unsafe {
            match bindings::weir_helper_event_of_task(event) {
                true => bindings::weir_helper_event_of_current(event),
                false => bindings::weir_helper_event_cpu(event) == interrupts.cpu() as i32,
            }
        }
    }

    /// Value and times, on its own CPU, or for its own task. Any context.
    ///
    /// The time of a context runs while an event of it is enabled, as one is here; so what is added to times
    /// needs no more than its offset. (Time that a guest has the PMU for itself is not taken off.)
    ///
    /// # Errors
    ///
    /// `ENODEV` if its PMU has gone; `EOPNOTSUPP` if children of the task count for it; `EINVAL` on another CPU,
    /// or in another task; `EBUSY` if it is pinned and not on its PMU.
    pub(crate) fn read_local(&self, interrupts: &InterruptsOff) -> Result<Reading> {
        let event = self.as_ptr();
        let state = self.state();
        if state <= bindings::perf_event_state_PERF_EVENT_STATE_REVOKED {
            return Err(ENODEV);
        }
        if self.is_inherited() {
            return Err(EOPNOTSUPP);
        }
        if !self.is_here(interrupts) {
            return Err(EINVAL);
        }
        let here = interrupts.cpu() as i32;
        // SAFETY: The event is ours.
        let on_this_cpu = unsafe { bindings::weir_helper_event_oncpu(event) } == here;
        let is_active = state == bindings::perf_event_state_PERF_EVENT_STATE_ACTIVE;
        let is_enabled = state >= bindings::perf_event_state_PERF_EVENT_STATE_INACTIVE;
        let failed = state == bindings::perf_event_state_PERF_EVENT_STATE_ERROR;
        if failed || (self.is_pinned() && is_enabled && !on_this_cpu) {
            return Err(EBUSY);
        }
        // SAFETY: The event is ours, it is of this CPU or of the current task, and interrupts are off, so that it
        // is not moved, and its PMU stays, as it has an event here; it is asked if the event is on it.
        unsafe {
            if on_this_cpu {
                bindings::weir_helper_event_update(event);
            }
            let since = match is_enabled {
                true => bindings::weir_helper_event_since(event),
                false => 0,
            };
            Ok(Reading {
                value: bindings::weir_helper_event_count(event),
                enabled: bindings::weir_helper_event_enabled(event).wrapping_add(since),
                running: bindings::weir_helper_event_running(event).wrapping_add(match is_active {
                    true => since,
                    false => 0,
                }),
            })
        }
    }
}
