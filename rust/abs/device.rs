// SPDX-License-Identifier: GPL-2.0

//! A misc device whose files can be polled.
//!
//! `kernel::miscdevice` makes the file operations but has no `poll` and no `splice_read`. They are taken
//! from there, and those are added. C header: `include/linux/miscdevice.h`.

use super::{
    bindings,
    wait_queue::PollTable, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData, //
};
use kernel::{
    error::to_result,
    fs::{
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

/// A registered device. Everybody may open it; what a file may do is for its operations to say.
///
/// # Invariants
///
/// `device` is registered, and its operations are `operations`.
#[pin_data(PinnedDrop)]
pub(crate) struct PolledDevice<T: Poll> {
    #[pin]
    device: Opaque<kernel::bindings::miscdevice>,
    operations: KBox<UnsafeCell<kernel::bindings::file_operations>>,
    _type: PhantomData<T>,
}

// SAFETY: A device may be deregistered by another thread than registered it.
unsafe impl<T: Poll> Send for PolledDevice<T> {}
// SAFETY: There are no methods that change it.
unsafe impl<T: Poll> Sync for PolledDevice<T> {}

impl<T: Poll> PolledDevice<T> {
    /// Registers it.
    pub(crate) fn register(name: &'static CStr) -> impl PinInit<Self, Error> {
        let raw = MiscDeviceOptions { name }.into_raw::<T>();
        // INVARIANT: If this returns `Ok`, the device is registered with `operations`.
        try_pin_init!(Self {
            operations: {
                // SAFETY: `into_raw` points it to a constant.
                let mut operations = unsafe { *raw.fops };
                operations.poll = Some(poll::<T>);
                // By way of `read_iter`.
                operations.splice_read = Some(kernel::bindings::copy_splice_read);
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
impl<T: Poll> PinnedDrop for PolledDevice<T> {
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

/// Whether a read must not block.
pub(crate) fn is_nonblocking<T: ForeignOwnable>(kiocb: &Kiocb<'_, T>) -> bool {
    // SAFETY: The kiocb and its file are valid while this one lives.
    unsafe { bindings::weir_helper_kiocb_nonblocking(kiocb.as_raw()) }
}
