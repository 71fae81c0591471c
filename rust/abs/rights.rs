// SPDX-License-Identifier: GPL-2.0

//! What the caller may count and see: perf's own rules.

use super::bindings;
use kernel::{
    error::to_result,
    prelude::*, //
};

/// Whether the current task may see what all CPUs do.
///
/// # Errors
///
/// `EACCES` or `EPERM`, by `perf_event_paranoid`, capabilities, and security modules.
pub(crate) fn allow_cpu() -> Result {
    // SAFETY: May be called by any task.
    to_result(unsafe { bindings::weir_helper_allow_cpu() })
}

/// Whether the current task may see what the kernel does.
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) fn allow_kernel() -> Result {
    // SAFETY: May be called by any task.
    to_result(unsafe { bindings::perf_allow_kernel() })
}

/// How many events the current task may have. Perf takes a descriptor for each, so their number is limited; what
/// they cost is the same here.
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) fn most_events() -> u32 {
    // SAFETY: May be called by any task.
    let most = unsafe { bindings::weir_helper_most_events() };
    u32::try_from(most).unwrap_or(u32::MAX)
}
