// SPDX-License-Identifier: GPL-2.0

//! Channels of a module's own.

use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::{
        null_mut,
        NonNull, //
    },
};
use kernel::{
    error::from_err_ptr,
    ffi::{
        c_char,
        c_void, //
    },
    prelude::*,
    types::NotThreadSafe, //
};

/// `struct weir_channel`.
#[repr(C)]
pub(super) struct RawChannel {
    _opaque: [u8; 0],
}

/// `struct weir_reservation`.
#[repr(C)]
struct RawReservation([u64; 4]);

/// `struct weir_channel_req`: what a channel shall be. Zero takes the default.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Options {
    /// Zero.
    pub(crate) size: u32,
    /// Zero.
    pub(crate) flags: u32,
    /// One of `MODEL_*`.
    pub(crate) model: u32,
    /// One of `MODE_*`.
    pub(crate) mode: u32,
    /// `WEIR_CLOCK_*`.
    pub(crate) clock: u32,
    /// Bytes of a page.
    pub(crate) page_size: u32,
    /// Pages, of all CPUs together.
    pub(crate) pages: u32,
    /// Pages that wake who polls.
    pub(crate) watermark: u32,
    /// Ns after which records of a quiet CPU are readable.
    pub(crate) max_latency_ns: u64,
}

/// Each CPU has pages and a queue of its own.
pub(crate) const MODEL_PER_CPU: u32 = 0;
/// All CPUs write to one page.
pub(crate) const MODEL_SHARED: u32 = 1;
/// Each CPU has pages of its own; they come as one stream.
pub(crate) const MODEL_PAGED: u32 = 2;
/// A full channel loses new records.
pub(crate) const MODE_DISCARD: u32 = 0;
/// A full channel loses the oldest pages.
pub(crate) const MODE_OVERWRITE: u32 = 1;

extern "C" {
    fn weir_channel_create(name: *const c_char, options: *mut Options) -> *mut RawChannel;
    fn weir_channel_destroy(channel: *mut RawChannel);
    fn weir_channel_write(channel: *mut RawChannel, data: *const c_void, len: usize) -> c_int;
    fn weir_channel_reserve(
        channel: *mut RawChannel,
        reservation: *mut RawReservation,
        len: usize,
    ) -> *mut c_void;
    fn weir_channel_commit(reservation: *mut RawReservation);
    fn weir_channel_discard(reservation: *mut RawReservation);
}

/// A channel of this module's own, which user space attaches by its name. Dropping it destroys it: that
/// may sleep, and what was written stays for its reader.
///
/// # Invariants
///
/// The pointer is from `weir_channel_create()`, and was not destroyed.
pub(crate) struct Channel(NonNull<RawChannel>);

// SAFETY: The channel belongs to no thread.
unsafe impl Send for Channel {}
// SAFETY: It is written to from any number of contexts.
unsafe impl Sync for Channel {}

impl Channel {
    pub(super) fn as_raw(&self) -> *mut RawChannel {
        self.0.as_ptr()
    }

    /// Creates one. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` (name, options), `EEXIST` (there is one of this name), `EOPNOTSUPP` (no stable time stamp
    /// counter), `ENOMEM`, `EINTR`.
    pub(crate) fn create(name: &CStr, options: Option<&mut Options>) -> Result<Self> {
        let options = options.map_or(null_mut(), core::ptr::from_mut);
        // SAFETY: The name is a string; the options may be read and written, or are null.
        let channel = from_err_ptr(unsafe { weir_channel_create(name.as_char_ptr(), options) })?;
        // INVARIANT: It was just created.
        Ok(Self(NonNull::new(channel).ok_or(ENOMEM)?))
    }

    /// Reserves room for one record of `len` bytes of its own. Any context, NMI included. Until the
    /// reservation ends, which must be soon, preemption is off.
    ///
    /// # Errors
    ///
    /// With the record counted as lost: `ENOSPC` (no free page), `EDEADLK` (nested too deep), `EMSGSIZE`
    /// (larger than a page takes).
    #[inline]
    pub(crate) fn reserve(&self, len: usize) -> Result<Reservation<'_>> {
        let mut raw = MaybeUninit::uninit();
        // SAFETY: The channel is there, by the type invariants; the reservation may be written.
        let address =
            from_err_ptr(unsafe { weir_channel_reserve(self.0.as_ptr(), raw.as_mut_ptr(), len) })?;
        // INVARIANT: The reservation was just made, and has room for so many bytes.
        Ok(Reservation {
            raw,
            address: NonNull::new(address.cast()).ok_or(ENOSPC)?,
            len,
            committed: false,
            _channel: PhantomData,
            _not_send: PhantomData,
        })
    }

    /// Writes bytes as one record, with the task that writes it. Any context, NMI included.
    ///
    /// # Errors
    ///
    /// As [`Channel::reserve`].
    pub(crate) fn write(&self, bytes: &[u8]) -> Result {
        // SAFETY: The channel is there, by the type invariants, and so are the bytes.
        let result =
            unsafe { weir_channel_write(self.0.as_ptr(), bytes.as_ptr().cast(), bytes.len()) };
        kernel::error::to_result(result)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: It is there, by the type invariants, and nobody uses it any more: reservations borrow it.
        unsafe { weir_channel_destroy(self.0.as_ptr()) };
    }
}

/// Room for one record. It belongs to the context that reserved it; dropping it gives it up.
///
/// # Invariants
///
/// `raw` is a reservation that was not ended, whose room is `len` bytes at `address`.
pub(crate) struct Reservation<'a> {
    raw: MaybeUninit<RawReservation>,
    address: NonNull<u8>,
    len: usize,
    committed: bool,
    _channel: PhantomData<&'a Channel>,
    _not_send: NotThreadSafe,
}

impl Reservation<'_> {
    /// The bytes of the record. What stood there before is of no meaning.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: By the type invariants the room is there, and it is nobody else's. Pages are initialised
        // when they are made.
        unsafe { core::slice::from_raw_parts_mut(self.address.as_ptr(), self.len) }
    }

    /// Ends the record as it was written.
    #[inline]
    pub(crate) fn commit(mut self) {
        self.committed = true;
    }
}

impl Drop for Reservation<'_> {
    #[inline]
    fn drop(&mut self) {
        let raw = self.raw.as_mut_ptr();
        // SAFETY: By the type invariants it was not ended, and this is the context in which it was made.
        unsafe {
            match self.committed {
                true => weir_channel_commit(raw),
                false => weir_channel_discard(raw),
            }
        }
    }
}
