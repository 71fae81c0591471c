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
