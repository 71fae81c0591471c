// SPDX-License-Identifier: GPL-2.0

//! The C interface of `rust/include/linux/weir.h`, for other modules.

#[cfg(CONFIG_PERF_EVENTS)]
mod counter;
pub(crate) mod named;
#[cfg(CONFIG_PERF_EVENTS)]
mod overflow;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod owned;
mod reservation;

use crate::{
    abs::{
        bindings,
        module_file, //
    },
    channel::{
        errno,
        Channel,
        Options, //
    },
    device::OpenFile,
};
use kernel::{
    ffi::{
        c_char,
        c_void, //
    },
    module::this_module,
    prelude::*,
    str::CStr,
    sync::Arc, //
};
use weir_core::uapi::{
    ChannelReq,
    NAME_LEN, //
};

/// Creates a channel, and enters it under `name`.
fn create(name: &CStr, request: &mut ChannelReq) -> Result<Arc<Channel>> {
    let mut padded = [0; NAME_LEN];
    let bytes = name.to_bytes();
    padded
        .get_mut(..bytes.len())
        .ok_or(EINVAL)?
        .copy_from_slice(bytes);
    named::check(&padded)?;
    let options = Options::new(request)?;
    let channel = Channel::new(options, None)?;
    named::add(padded, channel.clone())?;
    options.grant(request);
    Ok(channel)
}

/// See the header.
///
/// # Safety
///
/// `name` is a string; `options` may be read and written, or is null.
#[no_mangle]
unsafe extern "C" fn weir_channel_create(
    name: *const c_char,
    options: *mut bindings::weir_channel_req,
) -> *mut bindings::weir_channel {
    // SAFETY: By the safety requirements.
    let name = unsafe { CStr::from_char_ptr(name) };
    let mut defaults = ChannelReq {
        model: weir_core::uapi::MODEL_PAGED,
        ..ChannelReq::default()
    };
    // SAFETY: By the safety requirements, and both are the same structure, as `abs` has checked.
    let options = unsafe { options.cast::<ChannelReq>().as_mut() };
    match create(name, options.unwrap_or(&mut defaults)) {
        Ok(channel) => Arc::into_raw(channel).cast_mut().cast(),
        Err(error) => error.to_ptr(),
    }
}

/// See the header.
///
/// # Safety
///
/// `channel` is from [`weir_channel_create`] and is not used afterwards.
#[no_mangle]
unsafe extern "C" fn weir_channel_destroy(channel: *mut bindings::weir_channel) {
    // SAFETY: By the safety requirements it is the reference that was made there.
    let channel = unsafe { Arc::from_raw(channel.cast::<Channel>()) };
    named::remove(&channel);
    channel.end();
}

fn get(fd: c_int) -> Result<Arc<Channel>> {
    let fd = u32::try_from(fd).map_err(|_| EBADF)?;
    module_file::with_file::<OpenFile, _>(this_module::<crate::LocalModule>(), fd, |file| {
        file.channel().cloned()
    })?
}

/// See the header.
#[no_mangle]
extern "C" fn weir_channel_get(fd: c_int) -> *mut bindings::weir_channel {
    match get(fd) {
        Ok(channel) => Arc::into_raw(channel).cast_mut().cast(),
        Err(error) => error.to_ptr(),
    }
}

/// See the header.
///
/// # Safety
///
/// `channel` is from [`weir_channel_get`] and is not used afterwards.
#[no_mangle]
unsafe extern "C" fn weir_channel_put(channel: *mut bindings::weir_channel) {
    // SAFETY: By the safety requirements it is the reference that was taken there.
    drop(unsafe { Arc::from_raw(channel.cast::<Channel>()) });
}

/// See the header.
///
/// # Safety
///
/// `channel` is from [`weir_channel_get`]; `data` points to `len` bytes.
#[no_mangle]
unsafe extern "C" fn weir_channel_write(
    channel: *mut bindings::weir_channel,
    data: *const c_void,
    len: usize,
) -> c_int {
    // SAFETY: By the safety requirements; the caller's reference keeps it.
    let channel = unsafe { &*channel.cast::<Channel>() };
    let bytes = || match len {
        0 => &[],
        // SAFETY: By the safety requirements; there is room for it in a page, so it is not too long
        // for a slice.
        _ => unsafe { core::slice::from_raw_parts(data.cast::<u8>(), len) },
    };
    match channel.write_raw(len, bytes) {
        Ok(()) => 0,
        Err(cause) => errno(cause).to_errno(),
    }
}

// What C declares and what is written above is the same.
const _: () = {
    let _: [unsafe extern "C" fn(c_int) -> *mut bindings::weir_channel; 2] =
        [bindings::weir_channel_get, weir_channel_get];
    let _: [unsafe extern "C" fn(*mut bindings::weir_channel); 2] =
        [bindings::weir_channel_put, weir_channel_put];
    let _: [unsafe extern "C" fn(*mut bindings::weir_channel); 2] =
        [bindings::weir_channel_destroy, weir_channel_destroy];
    let _: [unsafe extern "C" fn(
        *const c_char,
        *mut bindings::weir_channel_req,
    ) -> *mut bindings::weir_channel; 2] = [bindings::weir_channel_create, weir_channel_create];
    let _: [unsafe extern "C" fn(*mut bindings::weir_channel, *const c_void, usize) -> c_int; 2] =
        [bindings::weir_channel_write, weir_channel_write];
};
