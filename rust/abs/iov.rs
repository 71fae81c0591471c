// SPDX-License-Identifier: GPL-2.0

//! Taking back what was written to user space.

use kernel::iov::IovIterDest;

/// Calls `f`, and if it returns [`false`], lets `iov` stand where it did before: what comes next is
/// written over what `f` wrote.
pub(crate) fn keep_if(
    iov: &mut IovIterDest<'_>,
    f: impl FnOnce(&mut IovIterDest<'_>) -> bool,
) -> bool {
    let before = iov.len();
    let keep = f(iov);
    if !keep {
        let written = before.saturating_sub(iov.len());
        // SAFETY: `f` has advanced it by so many bytes, as nothing makes it longer.
        unsafe { iov.revert(written) };
    }
    keep
}
