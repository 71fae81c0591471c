// SPDX-License-Identifier: GPL-2.0

//! One perf event, created by kernel code.
//!
//! C header: `include/linux/perf_event.h`.

use super::{
    bindings,
    pin::PinnedCpu, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::c_void,
    prelude::*,
    sync::Arc, //
};

/// `PERF_TYPE_TRACEPOINT`.
pub(crate) const TYPE_TRACEPOINT: u32 = bindings::perf_type_id_PERF_TYPE_TRACEPOINT;

/// What to count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes {
    /// `PERF_TYPE_*`, or the number of a PMU.
    pub(crate) kind: u32,
    /// What to count, in terms of the PMU.
    pub(crate) config: [u64; 3],
    /// Events between two overflows, or overflows a second; zero for none.
    pub(crate) sample_period: u64,
    /// `sample_period` is a frequency.
    pub(crate) freq: bool,
    /// Do not count in user space.
    pub(crate) exclude_user: bool,
    /// Do not count in the kernel.
    pub(crate) exclude_kernel: bool,
    /// Always on the PMU, or in error.
    pub(crate) pinned: bool,
}

impl Attributes {
    fn into_raw(self) -> bindings::perf_event_attr {
        let mut raw = bindings::perf_event_attr {
            type_: self.kind,
            size: size_of::<bindings::perf_event_attr>() as u32,
            config: self.config[0],
            ..Default::default()
        };
        raw.__bindgen_anon_1.sample_period = self.sample_period;
        raw.__bindgen_anon_3.config1 = self.config[1];
        raw.__bindgen_anon_4.config2 = self.config[2];
        raw.set_disabled(1);
        raw.set_freq(self.freq.into());
        raw.set_exclude_user(self.exclude_user.into());
        raw.set_exclude_kernel(self.exclude_kernel.into());
        raw.set_pinned(self.pinned.into());
        raw
    }
}

/// An event that overflows.
pub(crate) struct Overflow<'a> {
    /// Where the CPU was.
    pub(crate) ip: u64,
    /// It was in user space.
    pub(crate) user: bool,
    /// Events since the overflow before.
    pub(crate) period: u64,
    _sample: PhantomData<&'a ()>,
}

/// Called when an event overflows.
pub(crate) trait OverflowHandler: Send + Sync {
    /// Runs with interrupts off, and in an NMI for hardware events: must not sleep, allocate, or take
    /// a lock.
    fn overflow(&self, pin: &PinnedCpu, overflow: &Overflow<'_>);
}

/// Value and times of an event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// Events.
    pub(crate) value: u64,
    /// ns for which it was enabled.
    pub(crate) enabled: u64,
    /// ns for which it really counted.
    pub(crate) running: u64,
}

/// An event on one CPU, of all tasks.
///
/// # Invariants
///
/// `event` is owned. If it has a handler, `handler` keeps that alive, and its address is the context
/// of the event.
pub(crate) struct PerfEvent<H: OverflowHandler> {
    event: NonNull<kernel::bindings::perf_event>,
    _handler: Option<Arc<H>>,
}

// SAFETY: An event may be used and released by any thread.
unsafe impl<H: OverflowHandler> Send for PerfEvent<H> {}
// SAFETY: The calls lock the event themselves.
unsafe impl<H: OverflowHandler> Sync for PerfEvent<H> {}

impl<H: OverflowHandler> PerfEvent<H> {
    /// Creates an event on `cpu`, disabled. `handler` is called when it overflows. Sleeps.
    ///
    /// # Errors
    ///
    /// As `perf_event_open()`: `ENOENT` and `EOPNOTSUPP` (no PMU counts this), `EINVAL`, `ENODEV` (the
    /// CPU is offline), `EACCES`, `EBUSY`, `ENOMEM`.
    pub(crate) fn new(attributes: Attributes, cpu: i32, handler: Option<Arc<H>>) -> Result<Self> {
        let mut raw = attributes.into_raw();
        let (callback, context): (bindings::perf_overflow_handler_t, *mut c_void) = match &handler {
            Some(handler) => (Some(overflow::<H>), Arc::as_ptr(handler).cast_mut().cast()),
            None => (None, core::ptr::null_mut()),
        };
        // SAFETY: The attributes are valid. The handler expects the context that it gets, which lives
        // until the event is released, as `Self` holds it; on failure it is never called.
        let event = from_err_ptr(unsafe {
            bindings::perf_event_create_kernel_counter(
                &mut raw,
                cpu,
                core::ptr::null_mut(),
                callback,
                context,
            )
        })?;
        // INVARIANT: The event is new and ours.
        Ok(Self {
            event: NonNull::new(event).ok_or(EINVAL)?,
            _handler: handler,
        })
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
    /// `EINVAL` if it is too high, and those of [`PerfEvent::new`].
    pub(crate) fn check_frequency(frequency: u64, cpu: i32) -> Result {
        let dummy = Attributes {
            kind: bindings::perf_type_id_PERF_TYPE_SOFTWARE,
            config: [bindings::perf_sw_ids_PERF_COUNT_SW_DUMMY.into(), 0, 0],
            sample_period: 1,
            freq: true,
            ..Attributes::default()
        };
        let dummy = Self::new(dummy, cpu, None)?;
        // SAFETY: The event is ours, by the type invariants.
        to_result(unsafe { bindings::perf_event_period(dummy.event.as_ptr(), frequency) })
    }

    /// Counts from now on. Sleeps.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it got no place on its PMU and will get none.
    pub(crate) fn enable(&self) -> Result {
        // SAFETY: The event is ours, by the type invariants.
        unsafe { bindings::perf_event_enable(self.event.as_ptr()) };
        // SAFETY: As above.
        let state = unsafe { bindings::weir_helper_event_state(self.event.as_ptr()) };
        if state < bindings::perf_event_state_PERF_EVENT_STATE_INACTIVE {
            return Err(EBUSY);
        }
        Ok(())
    }

    /// Counts no more. Sleeps.
    pub(crate) fn disable(&self) {
        // SAFETY: The event is ours, by the type invariants.
        unsafe { bindings::perf_event_disable(self.event.as_ptr()) };
    }

    /// Value and times. Sleeps; asks the CPU, if it counts just now.
    pub(crate) fn read(&self) -> Reading {
        let mut reading = Reading::default();
        // SAFETY: The event is ours, by the type invariants, and the pointers are valid.
        reading.value = unsafe {
            bindings::perf_event_read_value(
                self.event.as_ptr(),
                &mut reading.enabled,
                &mut reading.running,
            )
        };
        reading
    }
}

impl<H: OverflowHandler> Drop for PerfEvent<H> {
    fn drop(&mut self) {
        // SAFETY: The event is ours, by the type invariants, and is not used any more. Perf calls the
        // handler with interrupts off only, and takes the event off its CPU there, so none runs after
        // this returns, and the handler can go.
        unsafe { bindings::perf_event_release_kernel(self.event.as_ptr()) };
    }
}

/// # Safety
///
/// Called by perf for an event whose context is a live `H`, with interrupts off.
unsafe extern "C" fn overflow<H: OverflowHandler>(
    event: *mut kernel::bindings::perf_event,
    data: *mut bindings::perf_sample_data,
    regs: *mut kernel::bindings::pt_regs,
) {
    // SAFETY: By the safety requirements; `PerfEvent` keeps it alive until the event is released.
    let handler = unsafe { &*bindings::weir_helper_event_context(event).cast::<H>() };
    // SAFETY: All are valid for this call.
    let overflow = unsafe {
        Overflow {
            ip: bindings::weir_helper_regs_ip(regs),
            user: bindings::weir_helper_regs_user(regs),
            period: bindings::weir_helper_sample_period(data),
            _sample: PhantomData,
        }
    };
    handler.overflow(&PinnedCpu::new(), &overflow);
}
