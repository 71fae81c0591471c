// SPDX-License-Identifier: GPL-2.0

//! Writing records. Everything here may be called in any context.

use super::{
    backend::KernelBackend,
    Channel, //
};
use crate::abs::{
    pin::PinnedCpu,
    task_walk, //
};
use core::ptr::NonNull;
use kernel::prelude::*;
use weir_core::{
    uapi::{
        EventHead,
        Raw,
        RecordHeader,
        SampleId,
        RECORD_EVENT,
        RECORD_RAW, //
    },
    Cause,
    Class,
    Pinned,
    Reservation,
    RECORD_ALIGN, //
};
use zerocopy::IntoBytes;

impl Channel {
    /// Reserves room for `len` bytes of records.
    ///
    /// # Errors
    ///
    /// The cause for which there is none; a loss of a live record is counted.
    #[inline(always)]
    pub(crate) fn reserve<'a>(
        &'a self,
        pin: &'a PinnedCpu,
        len: usize,
        class: Class,
    ) -> Result<Reservation<'a, KernelBackend>, Cause> {
        self.engine.reserve(pin, len, class)
    }

    /// Process and thread number of the current task, in the namespace of whoever made the channel.
    #[inline]
    pub(crate) fn current_ids(&self) -> (u32, u32) {
        task_walk::current_ids(&self.namespace)
    }

    /// What ends a record that the current task writes at `time`.
    #[inline]
    pub(crate) fn sample_id(&self, pin: &PinnedCpu, time: u64) -> SampleId {
        let (pid, tid) = self.current_ids();
        SampleId {
            pid,
            tid,
            time,
            cpu: pin.cpu() as u32,
            ..SampleId::default()
        }
    }

    /// Writes the `len` bytes that `data` returns as one [`RECORD_RAW`]. It is called only if there is
    /// room for them.
    ///
    /// # Errors
    ///
    /// The cause for which it is lost.
    pub(crate) fn write_raw<'d>(
        &self,
        len: usize,
        data: impl FnOnce() -> &'d [u8],
    ) -> Result<(), Cause> {
        const PADDING: [u8; RECORD_ALIGN] = [0; RECORD_ALIGN];
        let pin = PinnedCpu::new();
        let unpadded = size_of::<Raw>().saturating_add(len);
        let room = self.reserve(&pin, unpadded, Class::Live)?;
        let padding = unpadded.wrapping_neg() % RECORD_ALIGN;
        let head = Raw {
            header: RecordHeader {
                type_: RECORD_RAW,
                misc: 0,
                // It fits a page, or there would be no room.
                size: unpadded.wrapping_add(padding) as u16,
            },
            len: len as u32,
            reserved: 0,
            sample_id: self.sample_id(&pin, room.time()),
        };
        room.write(0, head.as_bytes());
        room.write(size_of::<Raw>(), data());
        room.write(unpadded, PADDING.get(..padding).unwrap_or(&[]));
        room.commit();
        Ok(())
    }
}

/// A record that is filled in place.
pub(crate) struct Event<'a>(Reservation<'a, KernelBackend>);

impl Event<'_> {
    /// Ends it as written.
    #[inline(always)]
    pub(crate) fn commit(self) {
        self.0.commit();
    }
}

impl Channel {
    /// Reserves room for a [`RECORD_EVENT`] with `len` bytes behind its head, rounded up, and returns where
    /// they are. Any context.
    ///
    /// # Errors
    ///
    /// The cause for which it is lost.
    #[inline(always)]
    pub(crate) fn reserve_event<'a>(
        &'a self,
        pin: &'a PinnedCpu,
        len: usize,
    ) -> Result<(Event<'a>, NonNull<u8>), Cause> {
        let size = size_of::<EventHead>().saturating_add(len);
        let room = self.reserve(pin, size, Class::Live)?;
        let size = size.next_multiple_of(RECORD_ALIGN);
        if len % RECORD_ALIGN != 0 {
            // What the caller does not write is not what stood there before.
            room.write(size.wrapping_sub(RECORD_ALIGN), &[0; RECORD_ALIGN]);
        }
        let head = EventHead {
            header: RecordHeader {
                type_: RECORD_EVENT,
                misc: pin.cpu() as u16,
                // It fits a page, or there would be no room.
                size: size as u16,
            },
            time: room.time(),
        };
        room.write(0, head.as_bytes());
        let address = room
            .address(size_of::<EventHead>())
            .ok_or(Cause::TooLarge)?;
        Ok((Event(room), address))
    }
}

/// The error number that stands for a cause.
pub(crate) fn errno(cause: Cause) -> Error {
    match cause {
        // Nobody is refused for a page that was overwritten.
        Cause::Full | Cause::Overwritten => ENOSPC,
        Cause::Nested => EDEADLK,
        Cause::TooLarge => EMSGSIZE,
    }
}
