// SPDX-License-Identifier: GPL-2.0

//! One perf event.

use super::{
    super::bindings,
    attr::Attr,
    inherited::Inherited,
    overflow::{
        Hook,
        OverflowHandler, //
    },
    pointer::EventPointer, //
};
use core::ptr::{
    null_mut,
    NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::c_void,
    prelude::*,
    sync::{
        rcu,
        Arc, //
    },
    task::Task, //
};

const NSEC_PER_SEC: u64 = 1_000_000_000;

/// What an event counts in.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    /// On a CPU, all tasks.
    Cpu(usize),
    /// In a task, on all CPUs.
    Task(&'a Task),
}

/// Value and times of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Events.
    pub(crate) value: u64,
    /// ns for which it was enabled.
    pub(crate) enabled: u64,
    /// ns for which it really counted.
    pub(crate) running: u64,
}

impl Reading {
    /// `self + other` in all parts. What is added may be less than zero, so it wraps.
    pub(crate) fn wrapping_add(self, other: Self) -> Self {
        Self {
            value: self.value.wrapping_add(other.value),
            enabled: self.enabled.wrapping_add(other.enabled),
            running: self.running.wrapping_add(other.running),
        }
    }

    /// `self - other`, in the same way.
    pub(crate) fn wrapping_sub(self, other: Self) -> Self {
        Self {
            value: self.value.wrapping_sub(other.value),
            enabled: self.enabled.wrapping_sub(other.enabled),
            running: self.running.wrapping_sub(other.running),
        }
    }
}

/// An event, which perf calls a kernel counter.
///
/// # Invariants
///
/// `event` is owned. If it has a hook, that is the context of the event, and knows it.
pub(crate) struct PerfEvent<H: OverflowHandler> {
    event: EventPointer,
    hook: Option<Pin<KBox<Hook<H>>>>,
    pinned: bool,
    frequency: bool,
}

impl<H: OverflowHandler> PerfEvent<H> {
    /// Creates an event, disabled. `handler` is called when it overflows. Sleeps.
    ///
    /// # Errors
    ///
    /// As `perf_event_open()`: `ENOENT` and `EOPNOTSUPP` (no PMU counts this), `EINVAL`, `ENODEV` (the
    /// CPU is offline), `ESRCH` (the task has gone), `EACCES`, `EBUSY`, `EOVERFLOW`, `ENOMEM`.
    pub(crate) fn new(attr: &Attr, target: Target<'_>, handler: Option<H>) -> Result<Self> {
        let inherited = match target {
            Target::Task(_) if attr.is_inherited() => {
                let inherited = Inherited::new(attr.is_enabled_on_exec());
                Some(Arc::pin_init(inherited, GFP_KERNEL)?)
            }
            Target::Task(_) | Target::Cpu(_) => None,
        };
        let hook = match handler {
            Some(handler) => Some(KBox::pin_init(
                Hook::new(handler, inherited.clone()),
                GFP_KERNEL,
            )?),
            None => None,
        };
        let mut raw = attr.to_raw(inherited.is_none() || attr.is_enabled_on_exec());
        let (cpu, task) = match target {
            Target::Cpu(cpu) => (i32::try_from(cpu).map_err(|_| EINVAL)?, null_mut()),
            Target::Task(task) => (-1, task.as_ptr()),
        };
        let (call, context): (bindings::perf_overflow_handler_t, *mut c_void) = match &hook {
            Some(hook) => (
                Some(Hook::<H>::call),
                core::ptr::from_ref::<Hook<H>>(hook).cast_mut().cast(),
            ),
            None => (None, null_mut()),
        };
        // SAFETY: The attributes are valid, and the task is there. The handler expects the context that it gets,
        // which lives until the event is released, as `Self` holds it; on failure it is never called.
        let event = from_err_ptr(unsafe {
            bindings::perf_event_create_kernel_counter(&mut raw, cpu, task, call, context)
        })?;
        let event = EventPointer::new(NonNull::new(event).ok_or(EINVAL)?, inherited);
        if let Some(hook) = &hook {
            // SAFETY: `drop` takes it out before it releases the event.
            unsafe { hook.stop.set(Some(event.clone())) };
        }
        // INVARIANT: The event is new and ours, and the hook knows it.
        let this = Self {
            event,
            hook,
            pinned: attr.is_pinned(),
            frequency: attr.is_frequency(),
        };
        // There it would not get past the access, which is stepped over for perf's own handler only.
        if cfg!(CONFIG_ARM64) && this.hook.is_some() && attr.is_breakpoint() {
            return Err(EOPNOTSUPP);
        }
        Ok(this)
    }

    /// Whether `frequency` is one that the administrator allows. Sleeps.
    ///
    /// The limit is checked by the system call, but not where kernel code creates an event, and its
    /// variable is not for modules. Changing the frequency of an event does check it, so an event that
    /// counts nothing is asked. (Not the one that is wanted: perf turns the frequency of some into a
    /// period when it creates them.)
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is zero or too high, and those of [`PerfEvent::new`].
    pub(crate) fn check_frequency(frequency: u64) -> Result {
        let dummy = Self::new(&Attr::dummy(), Target::Task(kernel::current!()), None)?;
        dummy.set_period(frequency)
    }

    /// Its address, for the calls of this folder.
    pub(super) fn as_ptr(&self) -> *mut kernel::bindings::perf_event {
        self.event.as_ptr()
    }

    /// Whether what it counts in children of its task is part of its value.
    pub(crate) fn is_inherited(&self) -> bool {
        self.event.is_inherited()
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pinned
    }

    /// Its state: one of `PERF_EVENT_STATE_*`.
    pub(super) fn state(&self) -> i32 {
        // SAFETY: The event is ours, by the type invariants.
        unsafe { self.event.state() }
    }

    /// Whether it counts, or waits for its turn.
    pub(crate) fn is_enabled(&self) -> bool {
        // SAFETY: The event is ours, by the type invariants.
        unsafe { self.event.is_enabled() }
    }

    /// Whether its PMU has gone. What it counted before can be read.
    pub(crate) fn is_revoked(&self) -> bool {
        self.state() <= bindings::perf_event_state_PERF_EVENT_STATE_REVOKED
    }

    /// The CPU that it counts on just now.
    pub(crate) fn active_cpu(&self) -> Option<usize> {
        if self.state() != bindings::perf_event_state_PERF_EVENT_STATE_ACTIVE {
            return None;
        }
        // SAFETY: The event is ours, by the type invariants.
        usize::try_from(unsafe { bindings::weir_helper_event_oncpu(self.as_ptr()) }).ok()
    }

    /// Counts from now on. Sleeps.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it is pinned and got no place on its PMU, `ENODEV` if its PMU or its CPU has gone, `ESRCH` if
    /// its task has.
    pub(crate) fn enable(&self) -> Result {
        self.check_attached()?;
        // SAFETY: The event is ours, by the type invariants.
        self.restart(false, || unsafe { self.event.enable() });
        self.check_enabled()
    }

    /// Counts from now on, until it has overflowed so many times. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it does not overflow, or is inherited; those of [`enable`](Self::enable).
    pub(crate) fn refresh(&self, overflows: u32) -> Result {
        let overflows = i32::try_from(overflows).map_err(|_| EINVAL)?;
        if self.is_inherited() || overflows == 0 {
            return Err(EINVAL);
        }
        self.check_attached()?;
        to_result(self.restart(true, || {
            // SAFETY: The event is ours, by the type invariants.
            unsafe { bindings::perf_event_refresh(self.as_ptr(), overflows) }
        }))?;
        self.check_enabled()
    }

    fn is_attached(&self) -> bool {
        // SAFETY: The event is ours, by the type invariants.
        unsafe { bindings::weir_helper_event_attached(self.as_ptr()) }
    }

    /// Whether children count for it, which they may when its own task has gone.
    fn has_children(&self) -> bool {
        // SAFETY: The event is ours, by the type invariants.
        self.is_inherited() && unsafe { bindings::weir_helper_event_has_children(self.as_ptr()) }
    }

    /// Whether its CPU or its task has gone. It does not come back with that.
    pub(crate) fn has_gone(&self) -> bool {
        !self.is_attached() && !self.is_revoked()
    }

    /// Perf would say of an event that has gone that it is enabled.
    fn check_attached(&self) -> Result {
        match self.is_attached() || self.has_children() {
            true => Ok(()),
            false if self.state() == bindings::perf_event_state_PERF_EVENT_STATE_EXIT => Err(ESRCH),
            false => Err(ENODEV),
        }
    }

    fn restart<R>(&self, limited: bool, enable: impl FnOnce() -> R) -> R {
        match &self.hook {
            Some(hook) => hook.stop.restart(limited, enable),
            None => enable(),
        }
    }

    fn check_enabled(&self) -> Result {
        match self.state() {
            state if state >= bindings::perf_event_state_PERF_EVENT_STATE_INACTIVE => Ok(()),
            // It may have overflowed, and stopped itself.
            bindings::perf_event_state_PERF_EVENT_STATE_OFF if self.hook.is_some() => Ok(()),
            bindings::perf_event_state_PERF_EVENT_STATE_ERROR => Err(EBUSY),
            bindings::perf_event_state_PERF_EVENT_STATE_EXIT if self.has_children() => Ok(()),
            bindings::perf_event_state_PERF_EVENT_STATE_EXIT => Err(ESRCH),
            _ => Err(ENODEV),
        }
    }

    /// Counts no more, and no overflow is being handled when this returns. Sleeps.
    pub(crate) fn disable(&self) {
        // SAFETY: The event is ours, by the type invariants.
        unsafe { self.event.disable() };
        if self.is_inherited() && self.hook.is_some() {
            // Handlers run with interrupts off, which is a read-side section: those that were too early to see that
            // it is disabled are done now. (Of other events perf has waited for them.)
            rcu::synchronize_rcu();
        }
    }

    /// Overflows after so many events from now on, or so often a second. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it does not overflow, or cannot so; `ENODEV` if its PMU has gone.
    pub(crate) fn set_period(&self, period: u64) -> Result {
        if self.is_revoked() {
            return Err(ENODEV);
        }
        // SAFETY: The event is ours, by the type invariants.
        let is_frequency = unsafe { bindings::weir_helper_event_is_frequency(self.as_ptr()) };
        let period = match self.frequency && !is_frequency {
            // Of a clock's frequency, perf has made a period.
            true => NSEC_PER_SEC.checked_div(period).ok_or(EINVAL)?,
            false => period,
        };
        // SAFETY: As above.
        to_result(unsafe { bindings::perf_event_period(self.as_ptr(), period) })
    }

    /// Value and times, children of its task included. Sleeps; interrupts the CPU on which it counts just
    /// now.
    pub(crate) fn read(&self) -> Reading {
        // SAFETY: The event is ours, by the type invariants.
        unsafe { self.event.read() }
    }
}

impl<H: OverflowHandler> Drop for PerfEvent<H> {
    fn drop(&mut self) {
        if let Some(hook) = &self.hook {
            // SAFETY: There is no event any more that would have to be valid.
            unsafe { hook.stop.set(None) };
        }
        // SAFETY: The event is ours, by the type invariants, and is not used any more. Perf calls the
        // handler with interrupts off and for an event that is on its CPU only, and takes the event off
        // there by an interrupt, so no call runs after this returns, and the hook can go.
        unsafe { bindings::perf_event_release_kernel(self.as_ptr()) };
    }
}
