// SPDX-License-Identifier: GPL-2.0

//! Requests that may grow: every structure of the interface begins with its size.

use core::marker::PhantomData;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};
use weir_core::uapi::{
    AttachReq,
    ChannelReq,
    ClockReq,
    CounterCtl,
    CounterRead,
    CounterReq,
    FreezeReq,
    InjectReq,
    LayoutReq,
    MarkReq,
    StatusReq, //
};
use zerocopy::{
    FromBytes,
    Immutable,
    IntoBytes, //
};

/// A structure that an ioctl takes.
pub(super) trait Extensible: FromBytes + IntoBytes + Immutable {
    /// Bytes of its first version, which every caller gives.
    const FIRST: usize;
    /// The kernel writes results into it.
    const HAS_RESULTS: bool;
}

macro_rules! extensible {
    ($($type:ty: $first:literal, $results:literal;)+) => {
        $(impl Extensible for $type {
            const FIRST: usize = $first;
            const HAS_RESULTS: bool = $results;
        }
        const _: () = assert!($first <= size_of::<$type>());)+
    };
}

extensible! {
    ChannelReq: 40, true;
    StatusReq: 72, true;
    FreezeReq: 8, false;
    LayoutReq: 48, true;
    ClockReq: 32, true;
    AttachReq: 40, false;
    MarkReq: 16, true;
    InjectReq: 72, true;
    CounterReq: 32, true;
    CounterCtl: 16, false;
    CounterRead: 24, true;
}

/// A request at an address of user space.
pub(super) struct Request<T>(PhantomData<T>);

impl<T: Extensible> Request<T> {
    /// Reads the request at `arg`, lets `f` act on it, and writes it back.
    ///
    /// # Errors
    ///
    /// `EFAULT`; `EINVAL` if it is shorter than its first version; `E2BIG` if it is longer than what is
    /// known and has something there; those of `f`, in which case nothing is written.
    pub(super) fn update(arg: usize, f: impl FnOnce(&mut T) -> Result) -> Result {
        let at = UserPtr::from_addr(arg);
        let mut size = [0; size_of::<u32>()];
        UserSlice::new(at, size.len())
            .reader()
            .read_slice(&mut size)?;
        let size = u32::from_ne_bytes(size) as usize;
        if size < T::FIRST {
            return Err(EINVAL);
        }
        if size > PAGE_SIZE {
            return Err(E2BIG);
        }

        let mut request = T::new_zeroed();
        let known = size.min(size_of::<T>());
        let mut reader = UserSlice::new(at, size).reader();
        let bytes = request.as_mut_bytes().get_mut(..known).ok_or(EINVAL)?;
        reader.read_slice(bytes)?;
        while !reader.is_empty() {
            let mut byte = [0];
            reader.read_slice(&mut byte)?;
            if byte != [0] {
                return Err(E2BIG);
            }
        }

        f(&mut request)?;
        if T::HAS_RESULTS {
            // The size is not a result: the caller may have changed it meanwhile.
            let results = size_of::<u32>()..known;
            UserSlice::new(at.wrapping_byte_add(results.start), results.len())
                .writer()
                .write_slice(request.as_bytes().get(results).ok_or(EINVAL)?)?;
        }
        Ok(())
    }
}
