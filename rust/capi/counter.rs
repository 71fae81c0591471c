// SPDX-License-Identifier: GPL-2.0

//! Counters, for other modules.

use super::{
    overflow::CCallback,
    owned, //
};
use crate::{
    abs::{
        bindings::{
            self,
            weir_counter,
            weir_counter_config,
            weir_counter_value, //
        },
        module_exit::Owner,
        perf_event::Attr,
        trace_event, //
    },
    channel::Channel,
    counter::{
        Config,
        Counter,
        Destination,
        Freshness,
        Part,
        Scope, //
    },
};
use core::{
    mem::offset_of,
    slice, //
};
use kernel::{
    ffi::c_char,
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        ArcBorrow, //
    },
    task::Task, //
};
use weir_core::uapi::{
    CounterValue,
    COUNTER_CACHED,
    COUNTER_EVENTS,
    SCOPE_ALL,
    SCOPE_CPU,
    SCOPE_TASK, //
};

/// See the header.
///
/// # Safety
///
/// Both are strings.
#[no_mangle]
unsafe extern "C" fn weir_tracepoint_id(system: *const c_char, name: *const c_char) -> c_int {
    // SAFETY: By the safety requirements.
    let (system, name) = unsafe { (CStr::from_char_ptr(system), CStr::from_char_ptr(name)) };
    match trace_event::id(system, name) {
        Ok(id) => id as c_int,
        Err(error) => error.to_errno(),
    }
}

/// Copies the events of a caller whose `perf_event_attr` may be shorter or longer.
///
/// # Safety
///
/// `config.events` points to so many, each as long as the first says.
unsafe fn copy_events(config: &weir_counter_config) -> Result<KVec<Attr>> {
    let count = config.nr_events as usize;
    if config.events.is_null() || count == 0 {
        return Err(EINVAL);
    }
    if count > COUNTER_EVENTS as usize {
        return Err(E2BIG);
    }
    let first: *const u8 = config.events.cast();
    let size_at = offset_of!(bindings::perf_event_attr, size);
    // SAFETY: By the safety requirements there is one.
    let size = unsafe { first.add(size_at).cast::<u32>().read() };
    // It was forgotten.
    if size == 0 {
        return Err(EINVAL);
    }
    let length = Attr::length(size)?;
    // SAFETY: By the safety requirements.
    let bytes = unsafe { slice::from_raw_parts(first, length * count) };
    let mut attrs = KVec::with_capacity(count, GFP_KERNEL)?;
    for attr in bytes.chunks(length) {
        let of_this = attr.get(size_at..size_at + size_of::<u32>());
        if of_this != Some(&size.to_ne_bytes()) {
            return Err(EINVAL);
        }
        attrs.push(Attr::from_bytes(attr)?, GFP_KERNEL)?;
    }
    Ok(attrs)
}

/// # Safety
///
/// `config` is as the header says.
unsafe fn create(config: &weir_counter_config) -> Result<Counter> {
    // SAFETY: By the safety requirements.
    let attrs = unsafe { copy_events(config)? };
    if config.flags & !COUNTER_CACHED != 0 {
        return Err(EINVAL);
    }
    let scope = match (config.scope, config.cpu, config.task.is_null()) {
        (SCOPE_ALL, 0, true) => Scope::AllCpus,
        (SCOPE_CPU, cpu, true) => Scope::Cpu(usize::try_from(cpu).map_err(|_| EINVAL)?),
        // SAFETY: By the safety requirements it is a task, which the caller keeps during the call.
        (SCOPE_TASK, 0, false) => Scope::Task(unsafe { &*config.task.cast::<Task>() }.into()),
        _ => return Err(EINVAL),
    };
    let destination = match (config.overflow, config.channel.is_null()) {
        (Some(_), false) => return Err(EINVAL),
        (Some(call), true) => Destination::Call(Arc::new(
            // SAFETY: By the safety requirements it may be called so until the counter is released.
            unsafe { CCallback::new(call, config.data) },
            GFP_KERNEL,
        )?),
        (None, false) => {
            // SAFETY: By the safety requirements it is a channel, on which the caller has a reference.
            let channel = unsafe { ArcBorrow::from_raw(config.channel.cast::<Channel>()) };
            Destination::Channel(channel.into(), 1)
        }
        (None, true) => Destination::Nowhere,
    };
    Counter::new(Config {
        attrs,
        scope,
        destination,
        cached: config.flags & COUNTER_CACHED != 0,
        trusted: true,
    })
}

/// See the header.
///
/// # Safety
///
/// `config` is as the header says; `owner` is the module that calls.
#[no_mangle]
unsafe extern "C" fn __weir_counter_create(
    config: *const weir_counter_config,
    owner: *mut kernel::bindings::module,
) -> *mut weir_counter {
    // SAFETY: By the safety requirements.
    let config = unsafe { &*config };
    let kept = Owner::new(owner).ok_or(EINVAL).and_then(|owner| {
        // SAFETY: By the safety requirements.
        owned::keep(owner, unsafe { create(config)? })
    });
    match kept {
        Ok(counter) => counter.cast_mut().cast(),
        Err(error) => error.to_ptr(),
    }
}

/// See the header.
#[no_mangle]
extern "C" fn weir_counter_release(counter: *mut weir_counter) {
    // What the creator gives instead of a counter.
    if kernel::error::from_err_ptr(counter).map_or(true, |counter| counter.is_null()) {
        return;
    }
    match owned::take(counter.cast()) {
        Some(counter) => drop(counter),
        None => pr_err!("weir_counter_release: this is no counter, or was released before\n"),
    }
}

/// # Safety
///
/// `counter` is from [`__weir_counter_create`], and is not released during `'a`.
unsafe fn get<'a>(counter: *const weir_counter) -> &'a Counter {
    // SAFETY: By the safety requirements.
    unsafe { &*counter.cast::<Counter>() }
}

fn code(result: Result) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// See the header.
///
/// # Safety
///
/// As for [`get`].
#[no_mangle]
unsafe extern "C" fn weir_counter_enable(counter: *mut weir_counter) -> c_int {
    // SAFETY: By the safety requirements.
    code(unsafe { get(counter) }.enable())
}

/// See the header.
///
/// # Safety
///
/// As for [`get`].
#[no_mangle]
unsafe extern "C" fn weir_counter_disable(counter: *mut weir_counter) -> c_int {
    // SAFETY: By the safety requirements.
    code(unsafe { get(counter) }.disable())
}

/// See the header.
///
/// # Safety
///
/// As for [`get`].
#[no_mangle]
unsafe extern "C" fn weir_counter_reset(counter: *mut weir_counter) -> c_int {
    // SAFETY: By the safety requirements.
    code(unsafe { get(counter) }.reset())
}

/// See the header.
///
/// # Safety
///
/// As for [`get`] and [`Values::new`].
#[no_mangle]
unsafe extern "C" fn weir_counter_pause(
    counter: *mut weir_counter,
    values: *mut weir_counter_value,
    nr_values: c_uint,
    reset: bool,
) -> c_int {
    // SAFETY: By the safety requirements.
    let counter = unsafe { get(counter) };
    // SAFETY: By the safety requirements.
    let values = unsafe { Values::new(values, nr_values, counter.events()) };
    code(values.and_then(|mut values| counter.pause(reset, |value| values.push(value))))
}

/// See the header.
///
/// # Safety
///
/// As for [`get`].
#[no_mangle]
unsafe extern "C" fn weir_counter_set_period(
    counter: *mut weir_counter,
    event: c_uint,
    period: u64,
) -> c_int {
    // SAFETY: By the safety requirements.
    code(unsafe { get(counter) }.set_period(event as usize, period))
}

/// See the header.
///
/// # Safety
///
/// As for [`get`].
#[no_mangle]
unsafe extern "C" fn weir_counter_refresh(counter: *mut weir_counter, overflows: c_uint) -> c_int {
    // SAFETY: By the safety requirements.
    code(unsafe { get(counter) }.refresh(overflows))
}

/// Where a caller wants its values.
struct Values<'a> {
    to: slice::IterMut<'a, CounterValue>,
}

impl Values<'_> {
    /// # Safety
    ///
    /// `to` may be written so far, and nobody else uses it meanwhile.
    unsafe fn new(to: *mut weir_counter_value, count: c_uint, wanted: usize) -> Result<Self> {
        if to.is_null() || count as usize != wanted {
            return Err(EINVAL);
        }
        // SAFETY: By the safety requirements; both are the same structure, as `abs` has checked, and every byte
        // is valid in it.
        let to = unsafe { slice::from_raw_parts_mut(to.cast::<CounterValue>(), count as usize) };
        Ok(Self { to: to.iter_mut() })
    }

    fn push(&mut self, value: CounterValue) {
        if let Some(to) = self.to.next() {
            *to = value;
        }
    }
}

/// # Safety
///
/// As for [`get`] and [`Values::new`].
unsafe fn read(
    counter: *const weir_counter,
    part: Part,
    freshness: Freshness,
    values: *mut weir_counter_value,
    count: c_uint,
) -> c_int {
    // SAFETY: By the safety requirements.
    let counter = unsafe { get(counter) };
    // SAFETY: By the safety requirements.
    let values = unsafe { Values::new(values, count, counter.events()) };
    code(values.and_then(|mut values| counter.read(part, freshness, |value| values.push(value))))
}

/// See the header.
///
/// # Safety
///
/// As for [`get`] and [`Values::new`].
#[no_mangle]
unsafe extern "C" fn weir_counter_read(
    counter: *mut weir_counter,
    values: *mut weir_counter_value,
    nr_values: c_uint,
) -> c_int {
    // SAFETY: By the safety requirements.
    unsafe { read(counter, Part::Sum, Freshness::Now, values, nr_values) }
}

/// See the header.
///
/// # Safety
///
/// As for [`get`] and [`Values::new`].
#[no_mangle]
unsafe extern "C" fn weir_counter_read_cpu(
    counter: *mut weir_counter,
    cpu: c_uint,
    values: *mut weir_counter_value,
    nr_values: c_uint,
) -> c_int {
    let part = Part::Cpu(cpu as usize);
    // SAFETY: By the safety requirements.
    unsafe { read(counter, part, Freshness::Now, values, nr_values) }
}

/// See the header.
///
/// # Safety
///
/// As for [`get`] and [`Values::new`].
#[no_mangle]
unsafe extern "C" fn weir_counter_read_cached(
    counter: *mut weir_counter,
    cpu: c_uint,
    values: *mut weir_counter_value,
    nr_values: c_uint,
) -> c_int {
    let part = Part::Cpu(cpu as usize);
    // SAFETY: By the safety requirements.
    unsafe { read(counter, part, Freshness::Cached, values, nr_values) }
}

/// See the header.
///
/// # Safety
///
/// `counters` points to so many, for each of which [`get`] may be called; as for [`Values::new`].
#[no_mangle]
unsafe extern "C" fn weir_counter_read_many(
    counters: *const *mut weir_counter,
    nr_counters: c_uint,
    values: *mut weir_counter_value,
    nr_values: c_uint,
) -> c_int {
    let read = || {
        let mut all = KVec::with_capacity(nr_counters as usize, GFP_KERNEL)?;
        for number in 0..nr_counters as usize {
            // SAFETY: By the safety requirements.
            all.push((0, unsafe { get(*counters.add(number)) }), GFP_KERNEL)?;
        }
        let events = all.iter().map(|(_, counter)| counter.events()).sum();
        // SAFETY: By the safety requirements.
        let mut values = unsafe { Values::new(values, nr_values, events)? };
        Counter::read_all(&all, Part::Sum, Freshness::Now, &mut |value| {
            values.push(value);
            Ok(())
        })
    };
    code(read())
}

/// See the header.
///
/// # Safety
///
/// As for [`get`] and [`Values::new`].
#[no_mangle]
unsafe extern "C" fn weir_counter_read_local(
    counter: *mut weir_counter,
    values: *mut weir_counter_value,
    nr_values: c_uint,
) -> c_int {
    // SAFETY: By the safety requirements.
    let counter = unsafe { get(counter) };
    // SAFETY: By the safety requirements.
    let values = unsafe { Values::new(values, nr_values, counter.events()) };
    code(values.and_then(|mut values| counter.read_local(|value| values.push(value))))
}

// What C declares and what is written above is the same.
const _: () = {
    type Act = unsafe extern "C" fn(*mut weir_counter) -> c_int;
    type Read = unsafe extern "C" fn(*mut weir_counter, *mut weir_counter_value, c_uint) -> c_int;
    type ReadCpu =
        unsafe extern "C" fn(*mut weir_counter, c_uint, *mut weir_counter_value, c_uint) -> c_int;
    type Create = unsafe extern "C" fn(
        *const weir_counter_config,
        *mut kernel::bindings::module,
    ) -> *mut weir_counter;
    type Many = unsafe extern "C" fn(
        *const *mut weir_counter,
        c_uint,
        *mut weir_counter_value,
        c_uint,
    ) -> c_int;
    let _: [unsafe extern "C" fn(*const c_char, *const c_char) -> c_int; 2] =
        [bindings::weir_tracepoint_id, weir_tracepoint_id];
    let _: [Create; 2] = [bindings::__weir_counter_create, __weir_counter_create];
    let _: [unsafe extern "C" fn(*mut weir_counter); 2] =
        [bindings::weir_counter_release, weir_counter_release];
    let _: [Act; 2] = [bindings::weir_counter_enable, weir_counter_enable];
    let _: [Act; 2] = [bindings::weir_counter_disable, weir_counter_disable];
    let _: [Act; 2] = [bindings::weir_counter_reset, weir_counter_reset];
    let _: [unsafe extern "C" fn(*mut weir_counter, *mut weir_counter_value, c_uint, bool) -> c_int;
        2] = [bindings::weir_counter_pause, weir_counter_pause];
    let _: [unsafe extern "C" fn(*mut weir_counter, c_uint, u64) -> c_int; 2] =
        [bindings::weir_counter_set_period, weir_counter_set_period];
    let _: [unsafe extern "C" fn(*mut weir_counter, c_uint) -> c_int; 2] =
        [bindings::weir_counter_refresh, weir_counter_refresh];
    let _: [Read; 2] = [bindings::weir_counter_read, weir_counter_read];
    let _: [Read; 2] = [bindings::weir_counter_read_local, weir_counter_read_local];
    let _: [ReadCpu; 2] = [bindings::weir_counter_read_cpu, weir_counter_read_cpu];
    let _: [ReadCpu; 2] = [bindings::weir_counter_read_cached, weir_counter_read_cached];
    let _: [Many; 2] = [bindings::weir_counter_read_many, weir_counter_read_many];
};
