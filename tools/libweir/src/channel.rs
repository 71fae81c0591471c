// SPDX-License-Identifier: GPL-2.0

//! A channel: one open of the device, and the pages that come out of it.

use crate::{
    error::{
        Call,
        Error,
        Result, //
    },
    ioctl, uapi, PageBuffer,
};
use rustix::{
    event::{
        PollFd,
        PollFlags,
        Timespec, //
    },
    fd::{
        AsFd,
        BorrowedFd,
        OwnedFd, //
    },
    fs::{
        Mode,
        OFlags, //
    },
    io::Errno,
};
use std::{
    path::{
        Path,
        PathBuf, //
    },
    time::Duration,
};

/// Where the device is.
pub const DEVICE: &str = "/dev/weir";

/// What a channel shall be. Zero leaves the choice to the kernel.
#[derive(Clone, Debug)]
pub struct ChannelOptions {
    /// The device; [`DEVICE`] by default.
    pub path: PathBuf,
    /// [`uapi::MODEL_PAGED`] by default.
    pub model: u32,
    /// [`uapi::MODE_DISCARD`] by default.
    pub mode: u32,
    /// [`uapi::CLOCK_MONOTONIC`] by default.
    pub clock: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages of the pool, for all CPUs together.
    pub pages: u32,
    /// Finished pages that make [`Channel::poll`] return.
    pub watermark: u32,
    /// Time after which records of a quiet CPU are readable.
    pub max_latency: Duration,
    /// Whether a read gives `EAGAIN` instead of waiting.
    pub nonblocking: bool,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        ChannelOptions {
            path: DEVICE.into(),
            model: uapi::MODEL_PAGED,
            mode: uapi::MODE_DISCARD,
            clock: uapi::CLOCK_MONOTONIC,
            page_size: 0,
            pages: 0,
            watermark: 0,
            max_latency: Duration::ZERO,
            nonblocking: false,
        }
    }
}

impl ChannelOptions {
    /// The request that asks for this.
    pub fn request(&self) -> uapi::ChannelReq {
        uapi::ChannelReq {
            size: size_of::<uapi::ChannelReq>() as u32,
            flags: 0,
            model: self.model,
            mode: self.mode,
            clock: self.clock,
            page_size: self.page_size,
            pages: self.pages,
            watermark: self.watermark,
            // More than 500 years is for ever.
            max_latency_ns: u64::try_from(self.max_latency.as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// Opens the device without creating a channel: for programs that make the calls of
/// [`crate::ioctl`] themselves.
///
/// # Errors
///
/// [`Call::Open`].
pub fn open_device(path: &Path, nonblocking: bool) -> Result<OwnedFd> {
    let mut flags = OFlags::RDWR | OFlags::CLOEXEC;
    flags.set(OFlags::NONBLOCK, nonblocking);
    rustix::fs::open(path, flags, Mode::empty())
        .map_err(|errno| Error::call(Call::Open(path.to_owned()), errno))
}

/// A channel. Closing it, by dropping it, ends it together with its counters.
#[derive(Debug)]
pub struct Channel {
    fd: OwnedFd,
    granted: uapi::ChannelReq,
}

impl Channel {
    /// Opens the device and creates the channel.
    ///
    /// # Errors
    ///
    /// [`Call::Open`] and [`Call::ChannelCreate`], with the kernel's error number.
    pub fn create(options: &ChannelOptions) -> Result<Self> {
        let fd = open_device(&options.path, options.nonblocking)?;
        let mut granted = options.request();
        ioctl::channel_create(&fd, &mut granted)
            .map_err(|errno| Error::call(Call::ChannelCreate, errno))?;
        Ok(Channel { fd, granted })
    }

    /// Attaches the channel that a kernel module has created under `name`, to read it.
    ///
    /// # Errors
    ///
    /// [`Call::Open`] and [`Call::ChannelAttach`], with `ENOENT` where there is none of this name, and
    /// `EBUSY` where it has a reader.
    pub fn attach(path: &Path, name: &str, nonblocking: bool) -> Result<Self> {
        let error = |errno| Error::call(Call::ChannelAttach(name.to_owned()), errno);
        let fd = open_device(path, nonblocking)?;
        let mut request = uapi::AttachReq {
            size: size_of::<uapi::AttachReq>() as u32,
            ..Default::default()
        };
        request
            .name
            .get_mut(..name.len())
            .ok_or(error(Errno::INVAL))?
            .copy_from_slice(name.as_bytes());
        ioctl::channel_attach(&fd, &mut request).map_err(error)?;
        Self::from_fd(fd)
    }

    /// Takes over a channel that was made by, or attached to, a descriptor: one that another process gave.
    /// [`Channel::granted`] knows its pages only.
    ///
    /// # Errors
    ///
    /// [`Call::ChannelLayout`], with `ENOTTY` and `EBADFD` where the descriptor has no channel.
    pub fn from_fd(fd: OwnedFd) -> Result<Self> {
        let layout = layout(&fd)?;
        let granted = uapi::ChannelReq {
            page_size: layout.page_size,
            pages: (layout.pages_size / u64::from(layout.page_size.max(1))) as u32,
            ..Default::default()
        };
        Ok(Channel { fd, granted })
    }

    /// What the kernel took: every default filled in.
    pub fn granted(&self) -> &uapi::ChannelReq {
        &self.granted
    }

    /// Its queues and pages, as they are mapped.
    ///
    /// # Errors
    ///
    /// [`Call::ChannelLayout`].
    pub fn layout(&self) -> Result<uapi::LayoutReq> {
        layout(&self.fd)
    }

    /// Makes room for `pages` pages of this channel.
    pub fn buffer(&self, pages: usize) -> PageBuffer {
        PageBuffer::new(self.granted.page_size as usize, pages)
    }

    /// Reads as many finished pages as are there and fit; waits for the first unless the channel is
    /// nonblocking. Returns their number, which is never zero.
    ///
    /// # Errors
    ///
    /// [`Call::Read`] with `EAGAIN` (nonblocking, and nothing is there), `EINTR` (a signal came first),
    /// `EINVAL` (the buffer's pages are smaller than the channel's); [`Error::NotPages`].
    pub fn read_pages(&self, buffer: &mut PageBuffer) -> Result<usize> {
        let page_size = self.granted.page_size as usize;
        let bytes = rustix::io::read(&self.fd, buffer.room())
            .map_err(|errno| Error::call(Call::Read, errno))?;
        if bytes == 0 || bytes % page_size != 0 || page_size != buffer.page_size() {
            return Err(Error::NotPages { bytes, page_size });
        }
        let pages = bytes / page_size;
        buffer.set_filled(pages);
        Ok(pages)
    }

    /// Waits until there is something to read, for ever where `timeout` is `None`. Returns whether
    /// there is.
    ///
    /// # Errors
    ///
    /// [`Call::Poll`], with `EINTR` where a signal came first and `EIO` where the kernel reports the
    /// descriptor broken.
    pub fn poll(&self, timeout: Option<Duration>) -> Result<bool> {
        let error = |errno| Error::call(Call::Poll, errno);
        // Longer than the kernel's 64-bit seconds is for ever.
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds = [PollFd::new(&self.fd, PollFlags::IN)];
        rustix::event::poll(&mut fds, timeout.as_ref()).map_err(error)?;
        let events = fds[0].revents();
        if events.contains(PollFlags::IN) {
            return Ok(true);
        }
        if events.is_empty() {
            return Ok(false);
        }
        Err(error(Errno::IO))
    }

    /// Reads what is there now and hands each page to `take`, without ever waiting, whatever the
    /// watermark is. Returns the number of pages.
    ///
    /// A blocking channel is made nonblocking for so long, and so are reads in other threads.
    ///
    /// # Errors
    ///
    /// As [`Channel::read_pages`], and whatever `take` gives.
    pub fn drain<E: From<Error>>(
        &self,
        buffer: &mut PageBuffer,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let _guard = Nonblocking::set(&self.fd)?;
        let mut total = 0;
        loop {
            match self.read_pages(buffer) {
                Ok(pages) => total += pages as u64,
                Err(error) if error.is_would_block() => return Ok(total),
                Err(error) if error.is_interrupted() => continue,
                Err(error) => return Err(error.into()),
            }
            buffer.pages().try_for_each(&mut take)?;
        }
    }

    /// Makes everything readable that was committed before the call.
    ///
    /// # Errors
    ///
    /// [`Call::ChannelFlush`].
    pub fn flush(&self) -> Result<()> {
        ioctl::channel_flush(&self.fd).map_err(|errno| Error::call(Call::ChannelFlush, errno))
    }

    /// How far the channel is complete: who reads all that is there after this call has every record that
    /// is older. `None` where a write takes too long to tell: ask again later. See [`crate::Ordered`].
    ///
    /// # Errors
    ///
    /// [`Call::ChannelMark`].
    pub fn mark(&self) -> Result<Option<u64>> {
        let mut request = uapi::MarkReq {
            size: size_of::<uapi::MarkReq>() as u32,
            ..Default::default()
        };
        match ioctl::channel_mark(&self.fd, &mut request) {
            Ok(()) => Ok(Some(request.time)),
            Err(Errno::AGAIN) => Ok(None),
            Err(errno) => Err(Error::call(Call::ChannelMark, errno)),
        }
    }

    /// Keeps every page that is not read, or overwrites them again: of a channel that overwrites, so that
    /// what was written before this can be read without haste.
    ///
    /// # Errors
    ///
    /// [`Call::ChannelFreeze`] with `EINVAL` where the channel does not overwrite.
    pub fn freeze(&self, frozen: bool) -> Result<()> {
        let mut request = uapi::FreezeReq {
            size: size_of::<uapi::FreezeReq>() as u32,
            frozen: u32::from(frozen),
        };
        ioctl::channel_freeze(&self.fd, &mut request)
            .map_err(|errno| Error::call(Call::ChannelFreeze, errno))
    }

    /// What one CPU wrote and lost so far.
    ///
    /// # Errors
    ///
    /// [`Call::ChannelStatus`] with `EINVAL` where there is no such CPU.
    pub fn status(&self, cpu: u32) -> Result<uapi::StatusReq> {
        let mut status = uapi::StatusReq {
            size: size_of::<uapi::StatusReq>() as u32,
            cpu,
            ..Default::default()
        };
        ioctl::channel_status(&self.fd, &mut status)
            .map_err(|errno| Error::call(Call::ChannelStatus(cpu), errno))?;
        Ok(status)
    }

    /// Makes one injection call, as `req` says it.
    ///
    /// # Errors
    ///
    /// [`Call::Inject`].
    pub fn inject(&self, req: &mut uapi::InjectReq) -> Result<()> {
        ioctl::inject(&self.fd, req).map_err(|errno| Error::call(Call::Inject, errno))
    }
}

fn layout(fd: &OwnedFd) -> Result<uapi::LayoutReq> {
    let mut layout = uapi::LayoutReq {
        size: size_of::<uapi::LayoutReq>() as u32,
        ..Default::default()
    };
    ioctl::channel_layout(fd, &mut layout)
        .map_err(|errno| Error::call(Call::ChannelLayout, errno))?;
    Ok(layout)
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Keeps a descriptor nonblocking while it lives.
struct Nonblocking<'a> {
    fd: &'a OwnedFd,
    before: OFlags,
}

impl<'a> Nonblocking<'a> {
    fn set(fd: &'a OwnedFd) -> Result<Self> {
        let error = |errno| Error::call(Call::Read, errno);
        let before = rustix::fs::fcntl_getfl(fd).map_err(error)?;
        if !before.contains(OFlags::NONBLOCK) {
            rustix::fs::fcntl_setfl(fd, before | OFlags::NONBLOCK).map_err(error)?;
        }
        Ok(Nonblocking { fd, before })
    }
}

impl Drop for Nonblocking<'_> {
    fn drop(&mut self) {
        if !self.before.contains(OFlags::NONBLOCK) {
            // The same call succeeded with one flag more.
            let _ = rustix::fs::fcntl_setfl(self.fd, self.before);
        }
    }
}

/// Calls again as long as a signal interrupts.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match call() {
            Err(error) if error.is_interrupted() => continue,
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_is_named() {
        let options = ChannelOptions {
            path: "/nonexistent/weir".into(),
            ..Default::default()
        };
        let error = Channel::create(&options).unwrap_err();
        assert_eq!(error.errno(), Some(Errno::NOENT));
        assert_eq!(
            error.to_string(),
            "cannot open /nonexistent/weir: no /nonexistent/weir: load the module (insmod weir.ko)"
        );
    }

    #[test]
    fn another_device_is_told_from_weirs() {
        let options = ChannelOptions {
            path: "/dev/null".into(),
            ..Default::default()
        };
        let error = Channel::create(&options).unwrap_err();
        assert_eq!(error.errno(), Some(Errno::NOTTY));
        assert!(error.to_string().contains("not weir's device"), "{error}");
    }

    #[test]
    fn a_descriptor_without_a_channel_is_refused() {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty()).unwrap();
        let error = Channel::from_fd(null).unwrap_err();
        assert_eq!(error.errno(), Some(Errno::NOTTY));
    }

    #[test]
    fn the_default_request_leaves_sizes_to_the_kernel() {
        let request = ChannelOptions::default().request();
        assert_eq!(
            request,
            uapi::ChannelReq {
                size: 40,
                model: uapi::MODEL_PAGED,
                ..Default::default()
            }
        );
    }
}
