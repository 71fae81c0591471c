// SPDX-License-Identifier: GPL-2.0

//! Channels that other modules have created, by the names that user space attaches them with.

use crate::channel::Channel;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weir_core::uapi::NAME_LEN;

/// A name, filled with zeros, of which there is one at least.
pub(crate) type Name = [u8; NAME_LEN];

struct Named {
    name: Name,
    channel: Arc<Channel>,
}

kernel::sync::global_lock! {
    // SAFETY: The module's `init` calls `init` below before anybody can call anything else here.
    unsafe(uninit) static CHANNELS: Mutex<KVec<Named>> = KVec::new();
}

/// Makes the list. Only for the module's `init`, before it makes itself known to anybody.
pub(crate) fn init() {
    // SAFETY: The module's `init` calls this once, before there is anybody who could use the lock.
    unsafe { CHANNELS.init() };
}

/// Checks a name that a caller gives.
///
/// # Errors
///
/// `EINVAL` if it is empty or does not end.
pub(crate) fn check(name: &Name) -> Result {
    let end = name.iter().position(|byte| *byte == 0).ok_or(EINVAL)?;
    let rest = name.get(end..).unwrap_or(&[]);
    if end == 0 || rest.iter().any(|byte| *byte != 0) {
        return Err(EINVAL);
    }
    Ok(())
}

/// Enters a channel.
///
/// # Errors
///
/// `EEXIST` if there is one of this name, `ENOMEM`.
pub(super) fn add(name: Name, channel: Arc<Channel>) -> Result {
    let mut channels = CHANNELS.lock();
    if channels.iter().any(|named| named.name == name) {
        return Err(EEXIST);
    }
    channels.push(Named { name, channel }, GFP_KERNEL)?;
    Ok(())
}

/// Takes a channel out, if it is there.
pub(super) fn remove(channel: &Channel) {
    let mut channels = CHANNELS.lock();
    let index = channels
        .iter()
        .position(|named| core::ptr::eq(&*named.channel, channel));
    if let Some(index) = index {
        // It is there.
        let removed = channels.remove(index);
        debug_assert!(removed.is_ok());
    }
    if channels.is_empty() {
        // Nothing of it is left when the module goes.
        *channels = KVec::new();
    }
}

/// The channel of a name.
///
/// # Errors
///
/// `ENOENT`.
pub(crate) fn find(name: &Name) -> Result<Arc<Channel>> {
    CHANNELS
        .lock()
        .iter()
        .find(|named| named.name == *name)
        .map(|named| named.channel.clone())
        .ok_or(ENOENT)
}
