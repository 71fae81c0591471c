// SPDX-License-Identifier: GPL-2.0

//! What pages in pipes belong to: it is there, and so is this module, until the last of them is not.
//!
//! A pipe's buffer is let go by a function of this module. It cannot give up the reference to the module itself,
//! since it would have to return afterwards, into code that may be gone. So what it holds is a file that nobody
//! has a descriptor of: `fput()` puts off the rest until the task returns to user space, and then the kernel
//! calls `release` and gives up the file's module itself, as it does for every file.
//!
//! C headers: [`include/linux/pipe_fs_i.h`](srctree/include/linux/pipe_fs_i.h),
//! [`include/linux/anon_inodes.h`](srctree/include/linux/anon_inodes.h)

use super::bindings;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::from_err_ptr,
    fs::File,
    module::this_module,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    },
    types::ForeignOwnable,
};

/// Something whose pages are lent.
pub(crate) trait Lend: Send + Sync + 'static {
    /// Somebody has let go of a page, or of a part of one. The caller may be anybody, but can sleep.
    fn let_go(&self);
}

/// A reference to what pages belong to, from which each of them gets another one.
///
/// # Invariants
///
/// The file has [`Self::FILE`] as operations, and its private data is an `Arc<T>` that is its own.
pub(crate) struct Lender<T: Lend> {
    file: ARef<File>,
    _owner: PhantomData<Arc<T>>,
}

impl<T: Lend> Lender<T> {
    const FILE: kernel::bindings::file_operations = kernel::bindings::file_operations {
        owner: this_module::<crate::LocalModule>().as_ptr(),
        release: Some(release_file::<T>),
        ..pin_init::zeroed()
    };

    /// What is done with a buffer whose page is lent and whose private data is [`Self::hold`]'s. The page cannot
    /// be stolen.
    pub(super) const BUFFER: &'static bindings::pipe_buf_operations =
        &bindings::pipe_buf_operations {
            confirm: None,
            release: Some(release_buffer::<T>),
            try_steal: None,
            get: Some(get_buffer),
        };

    /// Lends what belongs to `owner`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `ENFILE`.
    pub(crate) fn new(owner: Arc<T>) -> Result<Self> {
        let owner = owner.into_foreign();
        // SAFETY: The name is a string, and the operations are a constant.
        let file = from_err_ptr(unsafe {
            bindings::anon_inode_getfile(
                c"[weir]".as_char_ptr(),
                &Self::FILE,
                owner,
                kernel::bindings::O_RDONLY as kernel::ffi::c_int,
            )
        })
        .and_then(|file| NonNull::new(file).ok_or(ENOMEM));
        match file {
            // INVARIANT: It was made so.
            Ok(file) => Ok(Self {
                // SAFETY: The file is new, and the reference ours. No task has a descriptor of it.
                file: unsafe { ARef::from_raw(file.cast()) },
                _owner: PhantomData,
            }),
            Err(error) => {
                // SAFETY: It came from `into_foreign`, and there is no file that has it.
                drop(unsafe { Arc::<T>::from_foreign(owner) });
                Err(error)
            }
        }
    }

    /// A reference for a buffer.
    pub(super) fn hold(&self) -> NonNull<kernel::bindings::file> {
        ARef::into_raw(self.file.clone()).cast()
    }
}

/// The last reference is gone.
///
/// # Safety
///
/// `file` was made by [`Lender::new`] for `T`, and this is the end of it.
unsafe extern "C" fn release_file<T: Lend>(
    _inode: *mut kernel::bindings::inode,
    file: *mut kernel::bindings::file,
) -> kernel::ffi::c_int {
    // SAFETY: By the safety requirements it came from `into_foreign`, and nobody borrows it any more.
    drop(unsafe { Arc::<T>::from_foreign((*file).private_data) });
    0
}

/// A second buffer with the same page, as `tee()` makes it: [`false`] if there are too many already.
///
/// # Safety
///
/// `buffer` has the operations [`Lender::BUFFER`].
unsafe extern "C" fn get_buffer(
    _pipe: *mut kernel::bindings::pipe_inode_info,
    buffer: *mut bindings::pipe_buffer,
) -> bool {
    // SAFETY: By the safety requirements the buffer has a reference to both, so they are valid.
    unsafe {
        if !bindings::weir_helper_try_get_page((*buffer).page) {
            return false;
        }
        bindings::weir_helper_get_file((*buffer).private as *mut kernel::bindings::file);
    }
    true
}

/// A pipe is done with a buffer.
///
/// # Safety
///
/// `buffer` has the operations [`Lender::BUFFER`] of `T`, and nobody uses it afterwards.
unsafe extern "C" fn release_buffer<T: Lend>(
    _pipe: *mut kernel::bindings::pipe_inode_info,
    buffer: *mut bindings::pipe_buffer,
) {
    // SAFETY: By the safety requirements.
    let (page, file) = unsafe {
        (
            (*buffer).page,
            (*buffer).private as *mut kernel::bindings::file,
        )
    };
    // SAFETY: The buffer's reference to the page is given up once, here.
    unsafe { bindings::weir_helper_put_page(page) };
    {
        // SAFETY: The buffer still has a reference to the file, whose private data is an `Arc<T>`.
        let owner = unsafe { <Arc<T> as ForeignOwnable>::borrow((*file).private_data) };
        owner.let_go();
    }
    // SAFETY: The buffer's reference to the file is given up once, here, and nothing is borrowed from it.
    unsafe { kernel::bindings::fput(file) };
}
