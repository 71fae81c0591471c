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
    RecordLen,
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

/// Room for one record.
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) type Room<'a> = Reservation<'a, KernelBackend>;

/// A record that is filled in place.
pub(crate) type Event<'a> = Pending<'a, KernelBackend>;

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

    /// Reserves room for a [`RECORD_EVENT`] of `len` bytes, see [`event_len`], and returns where those behind
    /// its head are. Any context.
    ///
    /// # Errors
    ///
    /// The cause for which it is lost.
    pub(crate) fn reserve_event<'a>(
        &'a self,
        pin: &'a PinnedCpu,
        len: RecordLen,
    ) -> Result<(Event<'a>, NonNull<u8>), Cause> {
        let room = self.engine.reserve_slowly(pin, len, Class::Live)?;
        begin_event(room, len).ok_or(Cause::TooLarge)
    }

    /// As [`reserve_event`](Self::reserve_event), as long as there is an open page with room in it, and so
    /// on: see [`weir_core::Channel::try_reserve`]. If not, nothing was done.
    #[inline(always)]
    pub(crate) fn try_reserve_event<'a>(
        &'a self,
        pin: &'a PinnedCpu,
        len: RecordLen,
        clock: impl FnOnce() -> u64,
        steady: bool,
    ) -> Option<(Event<'a>, NonNull<u8>)> {
        let room = self.engine.try_reserve(pin, len, clock, steady)?;
        begin_event(room, len)
    }
}

/// Bytes of a [`RECORD_EVENT`] with `len` bytes behind its head.
#[inline(always)]
pub(crate) fn event_len(len: usize) -> Option<RecordLen> {
    RecordLen::behind::<{ size_of::<EventHead>() }>(len)
}

/// Writes the head of an event of `len` bytes, and returns where the rest goes.
#[inline(always)]
fn begin_event<'a>(
    room: Reservation<'a, KernelBackend>,
    len: RecordLen,
) -> Option<(Event<'a>, NonNull<u8>)> {
    let address = room.address(size_of::<EventHead>())?;
    // What the caller does not write is not what stood there before.
    room.clear_end();
    let head = EventHead {
        header: RecordHeader {
            type_: RECORD_EVENT,
            misc: room.cpu() as u16,
            // It fits a page.
            size: len.get() as u16,
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
