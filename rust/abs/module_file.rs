// SPDX-License-Identifier: GPL-2.0

//! From a file descriptor to what this module keeps for it.

use kernel::{
    fs::LocalFile,
    miscdevice::MiscDevice,
    prelude::*,
    types::ForeignOwnable, //
};

/// Calls `f` with the private data of descriptor `fd` of the current task, if this module has opened
/// it. This module has one kind of file only, whose private data is `T`'s.
///
/// # Errors
///
/// `EBADF` if there is no such descriptor, `EINVAL` if it is another's.
pub(crate) fn with_file<T: MiscDevice, R>(
    module: &'static ThisModule,
    fd: u32,
    f: impl FnOnce(<T::Ptr as ForeignOwnable>::Borrowed<'_>) -> R,
) -> Result<R> {
    let file = LocalFile::fget(fd)?;
    // SAFETY: The file is open while we hold it, and so are its operations.
    let (owner, private) = unsafe {
        let raw = file.as_ptr();
        ((*(*raw).f_op).owner, (*raw).private_data)
    };
    if owner != module.as_ptr() || private.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: The operations are this module's, so `open` of `T` stored the data, and `release` is not
    // called while we hold the file.
    Ok(f(unsafe { <T::Ptr as ForeignOwnable>::borrow(private) }))
}
