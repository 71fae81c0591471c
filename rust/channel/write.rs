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
    Backend,
    Cause,
    Class,
    Pending,
    Pinned,
    Reservation,
    HEADER_SIZE,
    LEN_MAX,
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
pub(crate) type Event<'a> = Pending<'a, KernelBackend>;

/// Behind the head of a [`RECORD_EVENT`], more bytes than this fit no page.
const EVENT_LEN_MAX: usize = LEN_MAX - HEADER_SIZE - size_of::<EventHead>();

impl Channel {
    /// Whether [`Clock::read_inline`] is the clock of the channel.
    #[inline(always)]
    pub(crate) fn has_inline_clock(&self) -> bool {
        self.engine.backend().has_inline_clock()
    }

    /// The clock of the channel.
    #[inline(always)]
    pub(crate) fn read_clock(&self) -> u64 {
        self.engine.backend().clock()
    }

    /// Reserves room for a [`RECORD_EVENT`] with `len` bytes behind its head, rounded up, and returns where
    /// they are. Any context.
    ///
    /// # Errors
    ///
    /// The cause for which it is lost.
    pub(crate) fn reserve_event<'a>(
        &'a self,
        pin: &'a PinnedCpu,
        len: usize,
    ) -> Result<(Event<'a>, NonNull<u8>), Cause> {
        // One that is too large is counted as that.
        let size = event_size(len.min(LEN_MAX));
        let room = self.engine.reserve_slowly(pin, size, Class::Live)?;
        begin_event(pin, room, size).ok_or(Cause::TooLarge)
    }

    /// As [`reserve_event`](Self::reserve_event), as long as there is an open page with room in it, and so
    /// on: see [`weir_core::Channel::try_reserve`]. If not, nothing was done.
    #[inline(always)]
    pub(crate) fn try_reserve_event<'a>(
        &'a self,
        pin: &'a PinnedCpu,
        len: usize,
        clock: impl FnOnce() -> u64,
    ) -> Option<(Event<'a>, NonNull<u8>)> {
        if len > EVENT_LEN_MAX {
            return None;
        }
        let size = event_size(len);
        let room = self.engine.try_reserve(pin, size, clock)?;
        begin_event(pin, room, size)
    }
}

/// Bytes of a [`RECORD_EVENT`].
#[inline(always)]
fn event_size(len: usize) -> usize {
    len.wrapping_add(size_of::<EventHead>() + RECORD_ALIGN - 1) & !(RECORD_ALIGN - 1)
}

/// Writes the head of an event of `size` bytes, and returns where the rest goes.
#[inline(always)]
fn begin_event<'a>(
    pin: &PinnedCpu,
    room: Reservation<'a, KernelBackend>,
    size: usize,
) -> Option<(Event<'a>, NonNull<u8>)> {
    let address = room.address(size_of::<EventHead>())?;
    // What the caller does not write is not what stood there before.
    room.write(size.wrapping_sub(RECORD_ALIGN), &[0; RECORD_ALIGN]);
    let head = EventHead {
        header: RecordHeader {
            type_: RECORD_EVENT,
            misc: pin.cpu() as u16,
            // It fits a page.
            size: size as u16,
        },
        time: room.time(),
    };
    room.write(0, head.as_bytes());
    Some((room.into_pending(), address))
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
