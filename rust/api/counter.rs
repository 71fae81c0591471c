// SPDX-License-Identifier: GPL-2.0

//! Counters.

use super::{
    channel::RawChannel,
    overflow::{
        callback,
        Callback,
        OverflowHandler, //
    },
    Channel,
    Event,
    Value,
    Values, //
};
use core::{
    marker::PhantomData,
    ptr::{
        from_ref,
        null_mut,
        NonNull, //
    },
};
use kernel::{
    cpu::CpuId,
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::{
        c_uint,
        c_void, //
    },
    module::this_module,
    prelude::*,
    task::Task, //
};

/// `struct weir_counter`.
#[repr(C)]
struct RawCounter {
    _opaque: [u8; 0],
}

/// `struct weir_counter_config`.
#[repr(C)]
struct Config {
    events: *const Event,
    nr_events: c_uint,
    scope: u32,
    flags: u32,
    cpu: c_int,
    task: *mut c_void,
    overflow: Option<Callback>,
    data: *mut c_void,
    channel: *mut RawChannel,
}

// What `samples/rust/layout_check.c` says of the structure in C.
const _: () = assert!(size_of::<Config>() == 56);

const SCOPE_ALL: u32 = 0;
const SCOPE_CPU: u32 = 1;
const SCOPE_TASK: u32 = 2;
const FLAG_CACHED: u32 = 1 << 0;

extern "C" {
    fn __weir_counter_create(config: *const Config, owner: *mut c_void) -> *mut RawCounter;
    fn weir_counter_release(counter: *mut RawCounter);
    fn weir_counter_enable(counter: *mut RawCounter) -> c_int;
    fn weir_counter_disable(counter: *mut RawCounter) -> c_int;
    fn weir_counter_pause(
        counter: *mut RawCounter,
        values: *mut Value,
        len: c_uint,
        reset: bool,
    ) -> c_int;
    fn weir_counter_reset(counter: *mut RawCounter) -> c_int;
    fn weir_counter_set_period(counter: *mut RawCounter, event: c_uint, period: u64) -> c_int;
    fn weir_counter_refresh(counter: *mut RawCounter, overflows: c_uint) -> c_int;
    fn weir_counter_read(counter: *mut RawCounter, values: *mut Value, len: c_uint) -> c_int;
    fn weir_counter_read_cpu(
        counter: *mut RawCounter,
        cpu: c_uint,
        values: *mut Value,
        len: c_uint,
    ) -> c_int;
    fn weir_counter_read_many(
        counters: *const *mut RawCounter,
        nr_counters: c_uint,
        values: *mut Value,
        len: c_uint,
    ) -> c_int;
    fn weir_counter_read_local(counter: *mut RawCounter, values: *mut Value, len: c_uint) -> c_int;
    fn weir_counter_read_cached(
        counter: *mut RawCounter,
        cpu: c_uint,
        values: *mut Value,
        len: c_uint,
    ) -> c_int;
}

/// Where events are counted.
#[derive(Clone, Copy)]
pub(crate) enum Scope<'a> {
    /// On every CPU, and on those that come online later.
    AllCpus,
    /// On one CPU, until it goes offline.
    Cpu(CpuId),
    /// In one task; and with [`Event::inherit`] in the children that it makes from then on.
    Task(&'a Task),
}

/// A counter that is not made yet: [`Counter::build`].
pub(crate) struct Builder<'a, const N: usize> {
    events: [Event; N],
    scope: Scope<'a>,
    flags: u32,
    channel: Option<&'a Channel>,
}

impl<'a, const N: usize> Builder<'a, N> {
    /// Every CPU keeps a copy of its values, for [`Counter::read_cached`].
    pub(crate) fn cached(mut self) -> Self {
        self.flags |= FLAG_CACHED;
        self
    }

    /// Overflows go into `channel`, as samples with the fields of [`Event::sample`]. Weir keeps a reference.
    pub(crate) fn channel(mut self, channel: &'a Channel) -> Self {
        self.channel = Some(channel);
        self
    }

    /// Makes it, disabled: all of its events, or none. Sleeps.
    ///
    /// # Errors
    ///
    /// Those of `perf_event_open()`, such as `ENOENT` (no PMU counts this), `EINVAL`, `ENODEV` (the CPU is
    /// offline), `ESRCH` (the task has gone), `EBUSY`, `ENOSPC`; `EINVAL` also for an event with a period, and
    /// neither a handler nor a channel; `EOPNOTSUPP` (no perf events in this kernel; what weir does not do);
    /// `ENOMEM`.
    pub(crate) fn create(self) -> Result<Counter<N>> {
        let handler = KBox::new((), GFP_KERNEL)?;
        // SAFETY: It is not called.
        unsafe { self.make(None, handler) }
    }

    /// Makes it, disabled, with a handler for its overflows, which the counter owns. Sleeps.
    ///
    /// # Errors
    ///
    /// As [`Builder::create`].
    pub(crate) fn create_with<H: OverflowHandler>(self, handler: H) -> Result<Counter<N, H>> {
        let handler = KBox::new(handler, GFP_KERNEL)?;
        // SAFETY: `callback` expects the handler and what weir calls it with.
        unsafe { self.make(Some(callback::<H>), handler) }
    }

    /// # Safety
    ///
    /// `overflow` may be called with what it expects from weir and a pointer to an `H`, from any context.
    unsafe fn make<H>(self, overflow: Option<Callback>, handler: KBox<H>) -> Result<Counter<N, H>> {
        let mut config = Config {
            events: self.events.as_ptr(),
            nr_events: N as c_uint,
            scope: SCOPE_ALL,
            flags: self.flags,
            cpu: 0,
            task: null_mut(),
            overflow,
            data: from_ref(&*handler).cast_mut().cast(),
            channel: self.channel.map_or(null_mut(), Channel::as_raw),
        };
        match self.scope {
            Scope::AllCpus => {}
            Scope::Cpu(cpu) => {
                config.scope = SCOPE_CPU;
                config.cpu = cpu.into();
            }
            Scope::Task(task) => {
                config.scope = SCOPE_TASK;
                config.task = task.as_ptr().cast();
            }
        }
        let owner = this_module::<crate::LocalModule>().as_ptr().cast();
        // SAFETY: The events are so many, the task and the channel are borrowed and there, and weir takes
        // references of its own. The callback fits by the safety requirements; its data stays where it is until
        // the counter is released, as `Counter` keeps it, and on failure it is not called.
        let raw = from_err_ptr(unsafe { __weir_counter_create(&config, owner) })?;
        // INVARIANT: It was just created.
        Ok(Counter {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            handler,
            _events: PhantomData,
        })
    }
}

/// A counter of `N` events, which are read together. Dropping it releases it: that sleeps, and no handler runs
/// afterwards.
///
/// # Invariants
///
/// `raw` is from `__weir_counter_create()`, with `N` events, and was not released. Its callback, if it has one,
/// has the address of what is in `handler`.
pub(crate) struct Counter<const N: usize, H = ()> {
    raw: NonNull<RawCounter>,
    handler: KBox<H>,
    _events: PhantomData<[Event; N]>,
}

// SAFETY: A counter belongs to no thread, and its handler goes with it.
unsafe impl<const N: usize, H: Send> Send for Counter<N, H> {}
// SAFETY: The calls lock what they must, and of the handler there are shared references only.
unsafe impl<const N: usize, H: Sync> Sync for Counter<N, H> {}

impl<const N: usize> Counter<N> {
    /// Begins one, with what is optional to follow.
    pub(crate) fn build(events: [Event; N], scope: Scope<'_>) -> Builder<'_, N> {
        Builder {
            events,
            scope,
            flags: 0,
            channel: None,
        }
    }

    /// Makes one, disabled. Sleeps.
    ///
    /// # Errors
    ///
    /// As [`Builder::create`].
    pub(crate) fn create(events: [Event; N], scope: Scope<'_>) -> Result<Self> {
        Self::build(events, scope).create()
    }
}

impl<const N: usize, H: OverflowHandler> Counter<N, H> {
    /// What is called when an event overflows.
    pub(crate) fn handler(&self) -> &H {
        &self.handler
    }
}

impl<const N: usize, H> Counter<N, H> {
    /// Counts from now on. Sleeps.
    ///
    /// # Errors
    ///
    /// Then nothing is enabled. `EBUSY`: an event is pinned and its PMU has no room. `ENODEV`: its PMU or its CPU
    /// has gone. `ESRCH`: its task has. `ENOMEM`.
    pub(crate) fn enable(&self) -> Result {
        // SAFETY: By the type invariants; so for the other calls.
        to_result(unsafe { weir_counter_enable(self.raw.as_ptr()) })
    }

    /// Counts no more, and keeps what it has. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and it goes on counting.
    pub(crate) fn disable(&self) -> Result {
        // SAFETY: As above.
        to_result(unsafe { weir_counter_disable(self.raw.as_ptr()) })
    }

    /// Begins at zero again, at one instant on each CPU; it goes on counting if it does. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and nothing was reset.
    pub(crate) fn reset(&self) -> Result {
        // SAFETY: As above.
        to_result(unsafe { weir_counter_reset(self.raw.as_ptr()) })
    }

    /// Counts until every event has overflowed so often on each CPU, then stops. Sleeps.
    ///
    /// # Errors
    ///
    /// As [`Counter::enable`]; `EINVAL`: an event has no period, or is inherited.
    pub(crate) fn refresh(&self, overflows: u32) -> Result {
        // SAFETY: As above.
        to_result(unsafe { weir_counter_refresh(self.raw.as_ptr(), overflows) })
    }

    /// Changes after how many events the one at place `event` overflows, or how often a second. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL`: no such event, it has no period, or not this one. `ENODEV`: its PMU has gone.
    pub(crate) fn set_period(&self, event: usize, period: u64) -> Result {
        let event = c_uint::try_from(event).map_err(|_| EINVAL)?;
        // SAFETY: As above.
        to_result(unsafe { weir_counter_set_period(self.raw.as_ptr(), event, period) })
    }

    /// What all CPUs counted together. Each that counts just now is interrupted once. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn read(&self) -> Result<Values<N>> {
        // SAFETY: As above, and there is room for so many values; so for the other reads.
        Self::values(|values, len| unsafe { weir_counter_read(self.raw.as_ptr(), values, len) })
    }

    /// Counts no more, and says what was counted; with `reset`, it begins at zero when it is enabled again.
    /// Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn pause(&self, reset: bool) -> Result<Values<N>> {
        // SAFETY: As above.
        Self::values(|values, len| unsafe {
            weir_counter_pause(self.raw.as_ptr(), values, len, reset)
        })
    }

    /// What one CPU counted. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENODEV`: it never counted on this CPU. `ENOMEM`.
    pub(crate) fn read_cpu(&self, cpu: CpuId) -> Result<Values<N>> {
        // SAFETY: As above.
        Self::values(|values, len| unsafe {
            weir_counter_read_cpu(self.raw.as_ptr(), cpu.as_u32(), values, len)
        })
    }

    /// What this CPU, or the current task, counted: no CPU is interrupted, and nothing waits. Any context, NMI
    /// included.
    ///
    /// # Errors
    ///
    /// `EINVAL`: it counts on another CPU, or in another task. `EOPNOTSUPP`: what children of the task count is
    /// not here. `EBUSY`: it is just being changed on this CPU, or is pinned and not on its PMU. `ENODEV`: its PMU
    /// has gone.
    pub(crate) fn read_local(&self) -> Result<Values<N>> {
        // SAFETY: As above.
        Self::values(|values, len| unsafe {
            weir_counter_read_local(self.raw.as_ptr(), values, len)
        })
    }

    /// What a CPU counted when it last kept a copy, which [`Value::age`] tells: no CPU is interrupted or woken.
    /// Sleeps, but waits for no CPU.
    ///
    /// # Errors
    ///
    /// `EINVAL`: it was made without [`Builder::cached`]. `ENODEV`: it never counted on this CPU. `ENOMEM`.
    pub(crate) fn read_cached(&self, cpu: CpuId) -> Result<Values<N>> {
        // SAFETY: As above.
        Self::values(|values, len| unsafe {
            weir_counter_read_cached(self.raw.as_ptr(), cpu.as_u32(), values, len)
        })
    }

    /// Reads several counters, with one interrupt to each CPU for all of them. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn read_many<const M: usize>(counters: [&Self; M]) -> Result<[Values<N>; M]> {
        let raw = counters.map(|counter| counter.raw.as_ptr());
        let mut values = [Values::ZERO; M];
        // SAFETY: All are borrowed and there, by the type invariants, and there is room for the values of each:
        // `Values` is an array of them and nothing else.
        to_result(unsafe {
            weir_counter_read_many(
                raw.as_ptr(),
                M as c_uint,
                values.as_mut_ptr().cast(),
                (M * N) as c_uint,
            )
        })?;
        Ok(values)
    }

    fn values(read: impl FnOnce(*mut Value, c_uint) -> c_int) -> Result<Values<N>> {
        let mut values = Values::ZERO;
        to_result(read(values.as_mut_ptr(), N as c_uint))?;
        Ok(values)
    }
}

impl<const N: usize, H> Drop for Counter<N, H> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, and nobody uses it any more. No callback runs after this returns, so
        // the handler, which is dropped next, is not used any more either.
        unsafe { weir_counter_release(self.raw.as_ptr()) };
    }
}
