// SPDX-License-Identifier: GPL-2.0

//! Acting with the kernel's own rights.

use super::bindings;
use core::ptr::NonNull;
use kernel::types::NotThreadSafe;

/// The current task acts with the rights of the kernel as long as this lives.
///
/// # Invariants
///
/// The pointer is what the task acted with before, which it keeps.
pub(crate) struct KernelCredentials(Option<NonNull<kernel::bindings::cred>>, NotThreadSafe);

impl KernelCredentials {
    /// Takes them. Process context.
    pub(crate) fn new() -> Self {
        // SAFETY: Process context; those of the kernel are never freed; `drop` undoes it. Nobody frees those that
        // are put aside, since the task holds a reference on what it had.
        let before = unsafe { bindings::weir_helper_override_with_kernel_cred() };
        // INVARIANT: As above.
        Self(NonNull::new(before.cast_mut()), NotThreadSafe::default())
    }
}

impl Drop for KernelCredentials {
    fn drop(&mut self) {
        let before = self.0.map_or(core::ptr::null_mut(), NonNull::as_ptr);
        // SAFETY: By the type invariants, in the same task. The guards of a task nest as its calls do.
        unsafe { bindings::weir_helper_revert_creds(before) };
    }
}
