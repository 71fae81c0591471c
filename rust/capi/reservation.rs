// SPDX-License-Identifier: GPL-2.0

//! Writing in place: `weir_channel_reserve()` and what ends it.

use crate::{
    abs::{
        bindings,
        pin::PinnedCpu, //
    },
    channel::{
        errno,
        Channel,
        Event, //
    },
};
use kernel::{
    ffi::c_void,
    prelude::*, //
};

/// What stands in a `struct weir_reservation`. The event borrows the pin, so it goes first.
struct Reserved {
    event: Event<'static>,
    _pin: PinnedCpu,
}

const _: () = {
    assert!(size_of::<Reserved>() <= size_of::<bindings::weir_reservation>());
    assert!(align_of::<Reserved>() <= align_of::<bindings::weir_reservation>());
};

/// See the header.
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
    let pin = PinnedCpu::new();
    // SAFETY: The event is dropped before the pin, by the order of the fields of `Reserved`. Where the pin
    // stands in memory does not matter to the event.
    let borrowed: &'static PinnedCpu = unsafe { &*core::ptr::from_ref(&pin) };
    match channel.reserve_event(borrowed, len) {
        Ok((event, address)) => {
            // SAFETY: By the safety requirements; size and alignment were checked above.
            unsafe {
                reservation
                    .cast::<Reserved>()
                    .write(Reserved { event, _pin: pin })
            };
            address.as_ptr().cast()
        }
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
    // SAFETY: By the safety requirements.
    let reserved = unsafe { reservation.cast::<Reserved>().read() };
    reserved.event.commit();
}

/// See the header.
///
/// # Safety
///
/// As of [`weir_channel_commit`].
#[no_mangle]
unsafe extern "C" fn weir_channel_discard(reservation: *mut bindings::weir_reservation) {
    // SAFETY: By the safety requirements.
    drop(unsafe { reservation.cast::<Reserved>().read() });
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
