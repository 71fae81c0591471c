// SPDX-License-Identifier: GPL-2.0

//! The counters of a kernel without perf events: there are none.

use super::request::Request;
use crate::channel::Channel;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weir_core::uapi::{
    self,
    CounterCtl,
    CounterRead,
    CounterReq, //
};

/// No counters.
#[pin_data]
pub(crate) struct Counters {}

impl Counters {
    /// None.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {})
    }

    /// Does what the ioctl with number `nr` asks for, as far as that needs no counter.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` to make one, `ENOENT` for what needs one; `EFAULT`, `EINVAL` and `E2BIG` as ever.
    pub(crate) fn ioctl(&self, _channel: &Arc<Channel>, nr: u32, arg: usize) -> Result {
        match nr {
            uapi::IOC_COUNTER_CREATE => {
                Request::<CounterReq>::update(arg, |_request| Err(EOPNOTSUPP))
            }
            uapi::IOC_COUNTER_READ => Request::<CounterRead>::update(arg, |request| {
                // All that there are.
                if request.id != 0 {
                    return Err(ENOENT);
                }
                request.count = 0;
                Ok(())
            }),
            _ => Request::<CounterCtl>::update(arg, |_request| Err(ENOENT)),
        }
    }
}
