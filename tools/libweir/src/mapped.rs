// SPDX-License-Identifier: GPL-2.0

//! Reading a channel where it stands: without a system call and without a copy for each page.

use crate::{
    channel::{
        retry,
        Channel, //
    },
    error::{
        Call,
        Error,
        Result, //
    },
    slot::Slots,
    uapi, //
};
use rustix::{
    event::{
        PollFd,
        PollFlags,
        Timespec, //
    },
    fd::AsFd,
    io::Errno,
    mm::{
        MapFlags,
        ProtFlags, //
    },
};
use std::{
    ptr::NonNull,
    sync::atomic::{
        AtomicU64,
        Ordering, //
    },
    time::Duration,
};

/// A part of the channel in this process's memory.
///
/// # Invariants
///
/// `len` bytes from `start` on are mapped until this is dropped.
#[derive(Debug)]
struct Map {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: The mapping belongs to the process, not to a thread.
unsafe impl Send for Map {}
// SAFETY: Shared access is by atomic words, or to bytes that nobody writes.
unsafe impl Sync for Map {}

impl Map {
    fn new(channel: &Channel, offset: u64, len: u64, access: ProtFlags) -> Result<Self> {
        let error = |errno| Error::call(Call::Map, errno);
        let len = usize::try_from(len).map_err(|_| error(Errno::NOMEM))?;
        // SAFETY: The kernel chooses the place, so nothing that is there is replaced.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                access,
                MapFlags::SHARED,
                channel,
                offset,
            )
        };
        let start = NonNull::new(start.map_err(error)?.cast()).ok_or(error(Errno::FAULT))?;
        // INVARIANT: It was just mapped.
        Ok(Self { start, len })
    }

    /// The mapping as words.
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: It is mapped as long as this lives, and at the beginning of a page, so it is aligned. All
        // who access it, the kernel too, do so atomically.
        unsafe {
            std::slice::from_raw_parts(
                self.start.as_ptr().cast(),
                self.len / size_of::<AtomicU64>(),
            )
        }
    }

    /// Bytes of the mapping.
    ///
    /// # Safety
    ///
    /// Nobody writes them while the slice lives.
    unsafe fn bytes(&self, start: usize, len: usize) -> Option<&[u8]> {
        if start.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: They are within the mapping, by the check above, and by the caller's guarantee they do not
        // change.
        Some(unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(start), len) })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: It is mapped, by the type invariants, and nothing refers to it any more.
        // It fails for arguments that were never mapped only.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// What there is to do for a reader who waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// The time was over.
    Nothing,
    /// There are pages.
    Pages,
    /// Records have waited in open pages for the channel's latency: [`Channel::flush`] finishes those.
    Open,
}

/// The reader of a channel that is mapped. There can be one, and `read()` works no more.
#[derive(Debug)]
pub struct MappedReader<'a> {
    channel: &'a Channel,
    how: Slots,
    queues: u32,
    slots: Map,
    positions: Map,
    pages: Map,
    /// Pages of each queue that this reader has had.
    had: Vec<u64>,
    /// The queue whose turn it is.
    turn: u32,
    /// Whether the page of `turn` was given out and has not been given back.
    held: bool,
}

impl Channel {
    /// Maps the channel to read it.
    ///
    /// # Errors
    ///
    /// [`Call::ChannelLayout`] and [`Call::Map`], with `EINVAL` where the channel overwrites.
    pub fn map(&self) -> Result<MappedReader<'_>> {
        let layout = self.layout()?;
        let read = ProtFlags::READ;
        let slots = Map::new(self, uapi::MMAP_SLOTS, layout.slots_size, read)?;
        let pages = Map::new(self, uapi::MMAP_PAGES, layout.pages_size, read)?;
        let write = read | ProtFlags::WRITE;
        let positions = Map::new(self, uapi::MMAP_POSITIONS, layout.positions_size, write)?;
        let had = positions
            .words()
            .iter()
            .take(layout.queues as usize)
            .map(|position| position.load(Ordering::Acquire))
            .collect();
        Ok(MappedReader {
            channel: self,
            how: match layout.share {
                0 => Slots::Pool(layout.slots),
                share => Slots::Ring(share),
            },
            queues: layout.queues,
            slots,
            positions,
            pages,
            had,
            turn: 0,
            held: false,
        })
    }
}

impl MappedReader<'_> {
    /// The next finished page, in place; `None` if there is none now. The one before goes back to the
    /// channel.
    pub fn next_page(&mut self) -> Option<&[u8]> {
        self.give_back();
        let (queue, page) = (0..self.queues)
            .map(|index| (self.turn + index) % self.queues)
            .find_map(|queue| Some((queue, self.finished(queue)?)))?;
        self.turn = queue;
        self.held = true;
        let size = self.channel.granted().page_size as usize;
        // SAFETY: The page is finished, and the kernel does not write into it before it is given back, for
        // which the slice must be gone.
        unsafe { self.pages.bytes(page as usize * size, size) }
    }

    /// The page that a queue has next, if it is finished.
    fn finished(&self, queue: u32) -> Option<u32> {
        let position = *self.had.get(queue as usize)?;
        let index = self.how.index(queue, position);
        let slot = self.slots.words().get(index as usize)?;
        self.how.page(index, slot.load(Ordering::Acquire), position)
    }

    /// Gives the page that was taken last back to the channel. So does taking another, and dropping this.
    pub fn give_back(&mut self) {
        if !std::mem::take(&mut self.held) {
            return;
        }
        let queue = self.turn as usize;
        if let (Some(had), Some(position)) =
            (self.had.get_mut(queue), self.positions.words().get(queue))
        {
            *had += 1;
            position.store(*had, Ordering::Release);
        }
    }

    /// Waits until there is something to do, for ever where `timeout` is `None`.
    ///
    /// # Errors
    ///
    /// [`Call::Poll`], with `EIO` where the kernel reports the descriptor broken.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Ready> {
        let error = |errno| Error::call(Call::Poll, errno);
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let fd = self.channel.as_fd();
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN | PollFlags::PRI)];
        retry(|| rustix::event::poll(&mut fds, timeout.as_ref()).map_err(error))?;
        let events = fds[0].revents();
        if events.contains(PollFlags::IN) {
            Ok(Ready::Pages)
        } else if events.contains(PollFlags::PRI) {
            Ok(Ready::Open)
        } else if events.is_empty() {
            Ok(Ready::Nothing)
        } else {
            Err(error(Errno::IO))
        }
    }
}

impl Drop for MappedReader<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}
