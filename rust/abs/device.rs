// SPDX-License-Identifier: GPL-2.0

//! A misc device whose files can be polled and spliced from.
//!
//! `kernel::miscdevice` makes the file operations but has no `poll` and no `splice_read`. They are taken
//! from there, and those are added. C header: `include/linux/miscdevice.h`.

use super::{
    bindings,
    pipe::Pipe,
    wait_queue::PollTable, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    fs::{
        file::flags::O_NONBLOCK,
        File,
        Kiocb, //
    },
    miscdevice::{
        MiscDevice,
        MiscDeviceOptions, //
    },
    prelude::*,
    types::{
        ForeignOwnable,
        Opaque, //
    },
};

/// What `poll()` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// Nothing to read.
    Idle,
    /// `read()` does not block.
    Readable,
    /// Where the reader maps the channel: there are finished pages, or records in open ones, or both.
    Mapped { pages: bool, open: bool },
    /// Nothing will be written any more; perhaps there are pages.
    Ended { pages: bool },
    /// There is nothing on this file that could ever be read.
    Error,
}

/// Private data of an open file that can be polled.
pub(crate) trait Poll: MiscDevice {
    /// Enters the caller into a wait queue and says what there is. Must not block.
    fn poll(
        device: <Self::Ptr as ForeignOwnable>::Borrowed<'_>,
        file: &File,
        table: &mut PollTable<'_>,
    ) -> Readiness;
}

/// Private data of an open file that pages can be spliced from.
pub(crate) trait Splice: MiscDevice {
    /// Puts at most `len` bytes into `pipe`, and returns how many; none, at the end. May sleep unless
    /// `nonblocking`.
    ///
    /// # Errors
    ///
    /// As of a read.
    fn splice(
        device: <Self::Ptr as ForeignOwnable>::Borrowed<'_>,
        pipe: &mut Pipe<'_>,
        len: usize,
        nonblocking: bool,
    ) -> Result<usize>;
}

/// A registered device. Everybody may open it; what a file may do is for its operations to say.
///
/// # Invariants
///
/// `device` is registered, and its operations are `operations`.
#[pin_data(PinnedDrop)]
pub(crate) struct PolledDevice<T: Poll + Splice> {
    #[pin]
    device: Opaque<kernel::bindings::miscdevice>,
    operations: KBox<UnsafeCell<kernel::bindings::file_operations>>,
    _type: PhantomData<T>,
}

// SAFETY: A device may be deregistered by another thread than registered it.
unsafe impl<T: Poll + Splice> Send for PolledDevice<T> {}
// SAFETY: There are no methods that change it.
unsafe impl<T: Poll + Splice> Sync for PolledDevice<T> {}

impl<T: Poll + Splice> PolledDevice<T> {
    /// Registers it.
    pub(crate) fn register(name: &'static CStr) -> impl PinInit<Self, Error> {
        let raw = MiscDeviceOptions { name }.into_raw::<T>();
        // INVARIANT: If this returns `Ok`, the device is registered with `operations`.
        try_pin_init!(Self {
            operations: {
                // SAFETY: `into_raw` points it to a constant.
                let mut operations = unsafe { *raw.fops };
                operations.poll = Some(poll::<T>);
                operations.splice_read = Some(splice_read::<T>);
                KBox::new(UnsafeCell::new(operations), GFP_KERNEL)?
            },
            device <- Opaque::try_ffi_init(|slot: *mut kernel::bindings::miscdevice| {
                let mut raw = raw;
                raw.fops = operations.get();
                raw.mode = 0o666;
                // SAFETY: `slot` is valid for writes.
                unsafe { slot.write(raw) };
                // SAFETY: The device is complete. It and its operations stay where they are until
                // `drop` deregisters it; files that are open hold the module.
                to_result(unsafe { kernel::bindings::misc_register(slot) })
            }),
            _type: PhantomData,
        })
    }
}

#[pinned_drop]
impl<T: Poll + Splice> PinnedDrop for PolledDevice<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: It is registered, by the type invariants.
        unsafe { kernel::bindings::misc_deregister(self.device.get()) };
    }
}

/// # Safety
///
/// `file` is open and was opened by the operations of `T`; `table` is valid or null.
unsafe extern "C" fn poll<T: Poll>(
    file: *mut kernel::bindings::file,
    table: *mut kernel::bindings::poll_table,
) -> kernel::bindings::__poll_t {
    // SAFETY: `open` stored the data there, and `release` is not called before this returns.
    let device = unsafe { <T::Ptr as ForeignOwnable>::borrow((*file).private_data) };
    // SAFETY: The file is valid for this call, in which there is no fdget_pos region.
    let file = unsafe { File::from_raw_file(file) };
    // SAFETY: By the safety requirements.
    let mut table = unsafe { PollTable::from_raw(table) };
    const READABLE: u32 = kernel::bindings::POLLIN | kernel::bindings::POLLRDNORM;
    let mask = match T::poll(device, file, &mut table) {
        Readiness::Idle => 0,
        Readiness::Readable => READABLE,
        Readiness::Mapped { pages, open } => {
            let pages = if pages { READABLE } else { 0 };
            pages | if open { kernel::bindings::POLLPRI } else { 0 }
        }
        Readiness::Ended { pages } => kernel::bindings::POLLHUP | if pages { READABLE } else { 0 },
        Readiness::Error => kernel::bindings::POLLERR,
    };
    mask as kernel::bindings::__poll_t
}

/// # Safety
///
/// `file` is open and was opened by the operations of `T`; `pipe` is valid, and locked by the caller.
unsafe extern "C" fn splice_read<T: Splice>(
    file: *mut kernel::bindings::file,
    _position: *mut kernel::bindings::loff_t,
    pipe: *mut kernel::bindings::pipe_inode_info,
    len: usize,
    flags: kernel::ffi::c_uint,
) -> isize {
    // SAFETY: `open` stored the data there, and `release` is not called before this returns.
    let device = unsafe { <T::Ptr as ForeignOwnable>::borrow((*file).private_data) };
    // SAFETY: The file is valid for this call, in which there is no fdget_pos region.
    let file = unsafe { File::from_raw_file(file) };
    let nonblocking = file.flags() & O_NONBLOCK != 0 || flags & bindings::SPLICE_F_NONBLOCK != 0;
    let Some(pipe) = NonNull::new(pipe) else {
        return EINVAL.to_errno() as isize;
    };
    // SAFETY: By the safety requirements.
    let mut pipe = unsafe { Pipe::from_raw(pipe) };
    match T::splice(device, &mut pipe, len, nonblocking) {
        // It is no more than `len`, which the caller has limited to less.
        Ok(count) => count as isize,
        Err(error) => error.to_errno() as isize,
    }
}

/// Whether a read must not block.
pub(crate) fn is_nonblocking<T: ForeignOwnable>(kiocb: &Kiocb<'_, T>) -> bool {
    // SAFETY: The kiocb and its file are valid while this one lives.
    unsafe { bindings::weir_helper_kiocb_nonblocking(kiocb.as_raw()) }
}
