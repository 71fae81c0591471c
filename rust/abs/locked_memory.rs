// SPDX-License-Identifier: GPL-2.0

//! Memory that is counted as locked by the process that asked for it.

use super::bindings;
use core::ptr::{
    null_mut,
    NonNull, //
};
use kernel::{
    error::to_result,
    page::PAGE_SIZE,
    prelude::*, //
};

/// So many pages of the system count against `RLIMIT_MEMLOCK` of a process while this lives; of a process with
/// `CAP_IPC_LOCK` too, but there without a limit.
///
/// C API: `account_locked_vm()`.
///
/// # Invariants
///
/// `mm` has a reference of ours, and `pages` were counted there.
pub(crate) struct LockedMemory {
    pages: usize,
    mm: Option<NonNull<kernel::bindings::mm_struct>>,
}

// SAFETY: The reference and the count belong to the value, not to a thread.
unsafe impl Send for LockedMemory {}
// SAFETY: There are no methods.
unsafe impl Sync for LockedMemory {}

impl LockedMemory {
    /// Counts `bytes`, rounded up, for the current process. Sleeps.
    ///
    /// # Errors
    ///
    /// `EPERM` if that is more than it may lock.
    pub(crate) fn charge(bytes: usize) -> Result<Self> {
        let pages = bytes.div_ceil(PAGE_SIZE);
        let mut mm = null_mut();
        // SAFETY: `mm` may be written, and the caller may sleep.
        to_result(unsafe { bindings::weir_helper_lock_pages(pages, &mut mm) })
            .map_err(|_| EPERM)?;
        // INVARIANT: The helper has counted them, and taken a reference, unless there is no process.
        Ok(Self {
            pages,
            mm: NonNull::new(mm),
        })
    }
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        if let Some(mm) = self.mm {
            // SAFETY: By the type invariants. The last reference to a channel is given up where one may
            // sleep.
            unsafe { bindings::weir_helper_unlock_pages(self.pages, mm.as_ptr()) };
        }
    }
}
