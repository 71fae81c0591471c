// SPDX-License-Identifier: GPL-2.0

//! A channel under test: everything that is read from it goes through the verifier.

use crate::{
    ktap::skip,
    verifier::Verifier, //
};
use anyhow::{
    ensure,
    Context,
    Result, //
};
use libweir::{
    Channel,
    ChannelOptions,
    Errno,
    Error,
    PageBuffer,
    Record, //
};
use nix::time::{
    clock_gettime,
    ClockId, //
};
use std::time::Duration;

/// Now, in ns of a clock that every kernel has.
pub(crate) fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).expect("every kernel has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Now, in ns of the channel's clock.
pub fn now() -> u64 {
    nanoseconds(ClockId::CLOCK_MONOTONIC)
}

/// A channel, a buffer, and the verifier of all its pages.
#[derive(Debug)]
pub struct Session {
    channel: Channel,
    buffer: PageBuffer,
    verifier: Verifier,
}

impl Session {
    /// Creates a channel whose pages are read into a buffer for `buffer` of them at a time.
    ///
    /// # Errors
    ///
    /// That of the creation; a skip where the module is not loaded.
    pub fn open(options: &ChannelOptions, buffer: usize) -> Result<Self> {
        let begin = now();
        let channel = Channel::create(options).map_err(absent)?;
        let page_size = channel.granted().page_size as usize;
        ensure!(page_size > 0, "the size of a page was not written back");
        Ok(Session {
            buffer: channel.buffer(buffer),
            verifier: Verifier::new(page_size, begin),
            channel,
        })
    }

    /// Attaches a channel that a kernel module has created after `begin`.
    ///
    /// # Errors
    ///
    /// That of attaching.
    pub fn attach(name: &str, buffer: usize, begin: u64) -> Result<Self, Error> {
        let channel = Channel::attach(libweir::DEVICE.as_ref(), name, true)?;
        let page_size = channel.granted().page_size as usize;
        Ok(Session {
            buffer: channel.buffer(buffer),
            verifier: Verifier::new(page_size, begin),
            channel,
        })
    }

    /// The channel.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The channel and the verifier, for a reader of another kind.
    pub fn split(&mut self) -> (&Channel, &mut Verifier) {
        (&self.channel, &mut self.verifier)
    }

    /// What came out of it.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Makes one `read()` and gives each record to `take`, with its CPU. Returns the number of pages.
    ///
    /// # Errors
    ///
    /// That of the read, what is wrong with a page, and what `take` gives.
    pub fn read(&mut self, mut take: impl FnMut(u32, &Record<'_>) -> Result<()>) -> Result<usize> {
        let pages = self.channel.read_pages(&mut self.buffer)?;
        let now = now();
        for page in self.buffer.pages() {
            self.verifier.page(page, now, &mut take)?;
        }
        Ok(pages)
    }

    /// Checks a page that was read by other means, as [`Session::read`] does.
    ///
    /// # Errors
    ///
    /// As [`Session::read`].
    pub fn page(
        &mut self,
        bytes: &[u8],
        take: impl FnMut(u32, &Record<'_>) -> Result<()>,
    ) -> Result<()> {
        self.verifier.page(bytes, now(), take)
    }

    /// Waits up to `timeout` for pages, then reads once. Returns the number of pages.
    ///
    /// # Errors
    ///
    /// As [`Session::read`], and that of `poll()`.
    pub fn read_within(
        &mut self,
        timeout: Duration,
        take: impl FnMut(u32, &Record<'_>) -> Result<()>,
    ) -> Result<usize> {
        if self.channel.poll(Some(timeout))? {
            self.read(take)
        } else {
            Ok(0)
        }
    }

    /// Reads all that is there, without waiting. Returns the number of pages.
    ///
    /// # Errors
    ///
    /// As [`Session::read`].
    pub fn drain(&mut self, mut take: impl FnMut(u32, &Record<'_>) -> Result<()>) -> Result<u64> {
        let verifier = &mut self.verifier;
        self.channel.drain(&mut self.buffer, |page| {
            verifier.page(page, now(), &mut take)
        })
    }

    /// Reads up to the end of a channel whose module has destroyed it.
    ///
    /// # Errors
    ///
    /// As [`Session::read`], but the end.
    pub fn drain_to_the_end(
        &mut self,
        mut take: impl FnMut(u32, &Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut buffer = vec![0; 16 * self.buffer.page_size()];
        loop {
            let read = rustix::io::read(&self.channel, &mut buffer[..])?;
            if read == 0 {
                return Ok(());
            }
            for page in buffer[..read].chunks_exact(self.buffer.page_size()) {
                self.verifier.page(page, now(), &mut take)?;
            }
        }
    }

    /// Flushes, then reads all that is there. Returns the number of pages.
    ///
    /// # Errors
    ///
    /// As [`Session::read`], and that of the flush.
    pub fn flush(&mut self, take: impl FnMut(u32, &Record<'_>) -> Result<()>) -> Result<u64> {
        self.channel.flush()?;
        self.drain(take)
    }

    /// Records of all CPUs that were written inside of another write.
    ///
    /// # Errors
    ///
    /// That of `WEIR_IOC_CHANNEL_STATUS`.
    pub fn nested(&self) -> Result<u64> {
        let mut nested = 0;
        for cpu in libweir::cpu::possible()? {
            nested += self.channel.status(cpu)?.nested;
        }
        Ok(nested)
    }
}

/// Makes a skip of the error that says that the module is not loaded.
pub fn absent(error: Error) -> anyhow::Error {
    if error.errno() == Some(Errno::NOENT) {
        skip("weir.ko is not loaded")
    } else {
        error.into()
    }
}

/// Opens the device without creating a channel.
///
/// # Errors
///
/// That of the call; a skip where the module is not loaded.
pub fn open_device() -> Result<rustix::fd::OwnedFd> {
    libweir::channel::open_device(libweir::DEVICE.as_ref(), true)
        .map_err(absent)
        .context("opening the device")
}
