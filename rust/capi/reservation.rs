// SPDX-License-Identifier: GPL-2.0

//! Writing in place: `weir_channel_reserve()` and what ends it.

use crate::{
    abs::{
        bindings,
        clock::Clock,
        pin::{
            PinnedCpu,
            PreemptGuard, //
        },
    },
    channel::{
        errno,
        event_len,
        Channel,
        Event, //
    },
};
use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    ffi::c_void,
    prelude::*, //
};
use weir_core::RecordLen;

/// What stands in a `struct weir_reservation`. The event needs the guard, so it ends first.
struct Reserved {
    event: ManuallyDrop<Event<'static>>,
    guard: PreemptGuard,
}

const _: () = {
    assert!(size_of::<Reserved>() <= size_of::<bindings::weir_reservation>());
    assert!(align_of::<Reserved>() <= align_of::<bindings::weir_reservation>());
};

/// Puts down what was reserved, and returns where the caller writes.
///
/// # Safety
///
/// `reservation` may be written; `event` was reserved with `pin`.
#[inline(always)]
unsafe fn put(
    reservation: *mut bindings::weir_reservation,
    (event, address): (Event<'static>, NonNull<u8>),
    pin: PinnedCpu,
) -> *mut c_void {
    let reserved = Reserved {
        event: ManuallyDrop::new(event),
        guard: pin.into_guard(),
    };
    // SAFETY: By the safety requirements; size and alignment were checked above.
    unsafe { reservation.cast::<Reserved>().write(reserved) };
    address.as_ptr().cast()
}

/// Reserves in the open page, or returns the pin.
///
/// # Safety
///
/// As of [`weir_channel_reserve`].
#[inline(always)]
unsafe fn try_reserve(
    channel: &'static Channel,
    reservation: *mut bindings::weir_reservation,
    len: RecordLen,
    pin: PinnedCpu,
    clock: impl FnOnce() -> u64,
    steady: bool,
) -> Result<*mut c_void, PinnedCpu> {
    // SAFETY: The event ends before the guard that the pin becomes: see `Reserved`. Where the pin stands in
    // memory does not matter to the event.
    let borrowed: &'static PinnedCpu = unsafe { &*core::ptr::from_ref(&pin) };
    match channel.try_reserve_event(borrowed, len, clock, steady) {
        // SAFETY: By the safety requirements.
        Some(reserved) => Ok(unsafe { put(reservation, reserved, pin) }),
        None => Err(pin),
    }
}

/// See the header.
///
/// This, and what is called in the end, are functions of their own so that the shortest way through needs no
/// stack.
///
/// # Safety
///
/// `channel` is one of weir's; `reservation` may be written.
#[no_mangle]
unsafe extern "C" fn weir_channel_reserve(
    channel: *mut bindings::weir_channel,
    reservation: *mut bindings::weir_reservation,
    len: usize,
) -> *mut c_void {
    // SAFETY: By the safety requirements. It stays until the reservation has ended, as the header demands.
    let channel: &'static Channel = unsafe { &*channel.cast::<Channel>() };
    let Some(len) = event_len(len) else {
        // SAFETY: By the safety requirements.
        return unsafe {
            reserve_slowly(channel, reservation, RecordLen::TOO_LARGE, PinnedCpu::new())
        };
    };
    let pin = PinnedCpu::new();
    if !channel.has_inline_clock() {
        // SAFETY: By the safety requirements.
        return unsafe { reserve_with_clock(channel, reservation, len, pin) };
    }
    // SAFETY: By the safety requirements.
    match unsafe { try_reserve(channel, reservation, len, pin, Clock::read_inline, true) } {
        Ok(address) => address,
        // SAFETY: By the safety requirements.
        Err(pin) => unsafe { reserve_slowly(channel, reservation, len, pin) },
    }
}

/// [`weir_channel_reserve`], where reading the clock is a call.
///
/// # Safety
///
/// As of [`weir_channel_reserve`].
#[inline(never)]
unsafe fn reserve_with_clock(
    channel: &'static Channel,
    reservation: *mut bindings::weir_reservation,
    len: RecordLen,
    pin: PinnedCpu,
) -> *mut c_void {
    // SAFETY: By the safety requirements.
    match unsafe {
        try_reserve(
            channel,
            reservation,
            len,
            pin,
            || channel.read_clock(),
            false,
        )
    } {
        Ok(address) => address,
        // SAFETY: By the safety requirements.
        Err(pin) => unsafe { reserve_slowly(channel, reservation, len, pin) },
    }
}

/// [`weir_channel_reserve`], where the page is full, for example.
///
/// # Safety
///
/// As of [`weir_channel_reserve`].
#[cold]
#[inline(never)]
unsafe fn reserve_slowly(
    channel: &'static Channel,
    reservation: *mut bindings::weir_reservation,
    len: RecordLen,
    pin: PinnedCpu,
) -> *mut c_void {
    // SAFETY: As in `try_reserve`.
    let borrowed: &'static PinnedCpu = unsafe { &*core::ptr::from_ref(&pin) };
    match channel.reserve_event(borrowed, len) {
        // SAFETY: By the safety requirements.
        Ok(reserved) => unsafe { put(reservation, reserved, pin) },
        Err(cause) => errno(cause).to_ptr(),
    }
}

/// See the header.
///
/// # Safety
///
/// `reservation` was filled by [`weir_channel_reserve`] in this context, and is not used afterwards.
#[no_mangle]
unsafe extern "C" fn weir_channel_commit(reservation: *mut bindings::weir_reservation) {
    let reserved = reservation.cast::<Reserved>();
    // SAFETY: By the safety requirements.
    if !Event::try_commit(unsafe { &(*reserved).event }) {
        // SAFETY: As above; it has not ended.
        unsafe { commit_slowly(reserved) };
        return;
    }
    // SAFETY: As above; the event has ended.
    drop(unsafe { (&raw const (*reserved).guard).read() });
}

/// # Safety
///
/// As of [`weir_channel_commit`].
#[cold]
#[inline(never)]
unsafe fn commit_slowly(reserved: *mut Reserved) {
    // SAFETY: By the safety requirements.
    let Reserved { event, guard } = unsafe { reserved.read() };
    ManuallyDrop::into_inner(event).commit();
    drop(guard);
}

/// See the header.
///
/// # Safety
///
/// As of [`weir_channel_commit`].
#[no_mangle]
unsafe extern "C" fn weir_channel_discard(reservation: *mut bindings::weir_reservation) {
    // SAFETY: By the safety requirements.
    let Reserved { event, guard } = unsafe { reservation.cast::<Reserved>().read() };
    drop(ManuallyDrop::into_inner(event));
    drop(guard);
}

// What C declares and what is written above is the same.
const _: () = {
    type Reserve = unsafe extern "C" fn(
        *mut bindings::weir_channel,
        *mut bindings::weir_reservation,
        usize,
    ) -> *mut c_void;
    type End = unsafe extern "C" fn(*mut bindings::weir_reservation);
    let _: [Reserve; 2] = [bindings::weir_channel_reserve, weir_channel_reserve];
    let _: [End; 2] = [bindings::weir_channel_commit, weir_channel_commit];
    let _: [End; 2] = [bindings::weir_channel_discard, weir_channel_discard];
};
