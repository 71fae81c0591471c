// SPDX-License-Identifier: GPL-2.0

//! The counter of a kernel without perf events: there is none.

use super::Value;
use crate::channel::Channel;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use weir_core::uapi::CounterReq;

/// Cannot be made.
pub(crate) enum Counter {}

impl Counter {
    /// Fails.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP`, always.
    pub(crate) fn new(_channel: &Arc<Channel>, _request: &CounterReq, _id: u32) -> Result<Self> {
        Err(EOPNOTSUPP)
    }

    pub(crate) fn enable(&self) -> Result {
        match *self {}
    }

    pub(crate) fn disable(&self) {
        match *self {}
    }

    pub(crate) fn read(&self) -> Value {
        match *self {}
    }
}
