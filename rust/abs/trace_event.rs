// SPDX-License-Identifier: GPL-2.0

//! Tracepoints by their names.

use super::bindings;
use kernel::{
    prelude::*,
    str::CStr, //
};

/// The number by which perf knows a tracepoint. Sleeps.
///
/// # Errors
///
/// `ENOENT` if there is none of this name, `EBUSY` if its module is going away, `EOPNOTSUPP` if the kernel has
/// no trace events.
pub(crate) fn id(system: &CStr, name: &CStr) -> Result<u32> {
    // SAFETY: Both are strings; process context.
    let id =
        unsafe { bindings::weir_helper_trace_event_id(system.as_char_ptr(), name.as_char_ptr()) };
    u32::try_from(id).map_err(|_| match Error::from_errno(id) {
        error if error == EINVAL => ENOENT,
        error => error,
    })
}
