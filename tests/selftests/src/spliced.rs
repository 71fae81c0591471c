// SPDX-License-Identifier: GPL-2.0

//! Pipes with pages of a channel in them.

use crate::{
    exercise::{
        ledger,
        small, //
    },
    ktap::Verdict,
    ledger::{
        Ledger,
        RunTotals, //
    },
    session::Session,
    torture::{
        Source,
        Start,
        Torture,
        PAYLOAD_MIN, //
    },
};
use anyhow::{
    ensure,
    Context,
    Result, //
};
use libweir::{
    Channel,
    ChannelOptions, //
};
use rustix::{
    fd::{
        AsFd,
        AsRawFd,
        BorrowedFd,
        OwnedFd, //
    },
    io::Errno,
    pipe::{
        fcntl_setpipe_size,
        splice,
        tee,
        SpliceFlags, //
    },
};
use std::{
    fs::{
        read_to_string,
        File, //
    },
    io::Read,
    time::Duration, //
};

/// How long writers of a few records may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A pipe that channels are spliced to.
#[derive(Debug)]
pub struct Pipe {
    from: File,
    to: OwnedFd,
}

impl Pipe {
    /// A pipe for at least so many bytes.
    ///
    /// # Errors
    ///
    /// Those of `pipe()` and `F_SETPIPE_SZ`.
    pub fn new(size: usize) -> Result<Self> {
        let (from, to) = rustix::pipe::pipe().context("making a pipe")?;
        fcntl_setpipe_size(&to, size).with_context(|| format!("a pipe of {size} bytes"))?;
        Ok(Pipe {
            from: File::from(from),
            to,
        })
    }

    /// The end to read from.
    pub fn from(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }

    /// The end to write to.
    pub fn to(&self) -> BorrowedFd<'_> {
        self.to.as_fd()
    }

    /// Puts at most `len` bytes of `channel` into it, waiting for nothing.
    ///
    /// # Errors
    ///
    /// Those of `splice()`.
    pub fn fill(&self, channel: impl AsFd, len: usize) -> Result<usize, Errno> {
        splice(channel, None, &self.to, None, len, SpliceFlags::NONBLOCK)
    }

    /// The same, and waits.
    ///
    /// # Errors
    ///
    /// Those of `splice()`.
    pub fn wait_and_fill(&self, channel: impl AsFd, len: usize) -> Result<usize, Errno> {
        splice(channel, None, &self.to, None, len, SpliceFlags::empty())
    }

    /// Puts what is in it into `other` too, where it must fit.
    ///
    /// # Errors
    ///
    /// Those of `tee()`, or it did not fit.
    pub fn tee(&self, other: &Pipe) -> Result<()> {
        let holds = self.holds()?;
        let count = tee(&self.from, &other.to, holds, SpliceFlags::NONBLOCK)?;
        ensure!(count == holds, "tee() gave {count} of {holds} bytes");
        Ok(())
    }

    /// Puts what is in it elsewhere, waiting for nothing.
    ///
    /// # Errors
    ///
    /// Those of `splice()`.
    pub fn empty_to(&self, other: impl AsFd) -> Result<()> {
        let mut left = self.holds()?;
        while left > 0 {
            left -= splice(&self.from, None, &other, None, left, SpliceFlags::NONBLOCK)?;
        }
        Ok(())
    }

    /// Bytes in it.
    ///
    /// # Errors
    ///
    /// That of `FIONREAD`.
    pub fn holds(&self) -> Result<usize> {
        Ok(rustix::io::ioctl_fionread(&self.from)? as usize)
    }

    /// Reads what is in it.
    ///
    /// # Errors
    ///
    /// Those of `read()`.
    pub fn empty(&mut self) -> Result<Vec<u8>> {
        self.take(self.holds()?)
    }

    /// Reads so many bytes.
    ///
    /// # Errors
    ///
    /// Those of `read()`.
    pub fn take(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.from.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

/// Pages of a channel that are lent, as `/proc/self/fdinfo` says.
///
/// # Errors
///
/// It says nothing of them.
pub fn lent(channel: impl AsFd) -> Result<u64> {
    let path = format!("/proc/self/fdinfo/{}", channel.as_fd().as_raw_fd());
    let text = read_to_string(&path).with_context(|| path.clone())?;
    let lent = text
        .lines()
        .find_map(|line| line.strip_prefix("weir-lent:\t"))
        .with_context(|| format!("{path} has no weir-lent"))?;
    lent.parse().with_context(|| format!("{path}: {lent}"))
}

/// What uses the module.
///
/// # Errors
///
/// It is not in `/proc/modules`.
pub fn module_users() -> Result<u32> {
    let modules = read_to_string("/proc/modules").context("reading /proc/modules")?;
    let users = modules
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .find(|fields| fields.first() == Some(&"weir"))
        .and_then(|fields| fields.get(2)?.parse().ok());
    users.context("weir is not in /proc/modules")
}

/// So many pages are lent now.
///
/// # Errors
///
/// They are not.
pub fn check_lent(channel: &Channel, wanted: usize, when: &str) -> Verdict {
    let lent = lent(channel)?;
    ensure!(
        lent == wanted as u64,
        "{lent} pages are lent {when}, not {wanted}"
    );
    Ok(())
}

/// A small pool from which only finished pages come.
pub fn finished_only() -> ChannelOptions {
    ChannelOptions {
        max_latency: Duration::from_secs(3600),
        ..small()
    }
}

/// The same, of which half are more pages than [`Books::write`] fills with 60 records of each CPU.
pub fn roomy() -> ChannelOptions {
    let small = finished_only();
    ChannelOptions {
        pages: 8 * small.pages,
        ..small
    }
}

/// A channel and the books of what was written to it.
#[derive(Debug)]
pub struct Books {
    /// The channel.
    pub session: Session,
    /// The books.
    pub ledger: Ledger,
    /// Bytes of a page.
    pub page_size: usize,
}

impl Books {
    /// Makes a channel.
    ///
    /// # Errors
    ///
    /// That of the creation.
    pub fn open(options: &ChannelOptions) -> Result<Self> {
        let session = Session::open(options, 64)?;
        Ok(Books {
            page_size: session.channel().granted().page_size as usize,
            ledger: ledger(options),
            session,
        })
    }

    /// The channel.
    pub fn channel(&self) -> &Channel {
        self.session.channel()
    }

    /// Writes so many records with every CPU, and finishes their pages.
    ///
    /// # Errors
    ///
    /// The writers do not end, or that of the flush.
    pub fn write(&mut self, torture: &Torture, records: u64) -> Verdict {
        let request = Start::new(&[Source::Task], PAYLOAD_MIN..=500).records(records);
        let run = torture.start(self.session.channel(), request)?;
        run.wait(PATIENCE)?;
        self.ledger.expect(run.statuses()?);
        Ok(self.session.channel().flush()?)
    }

    /// Takes pages that came out of a pipe.
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub fn take(&mut self, bytes: &[u8]) -> Verdict {
        ensure!(
            bytes.len() % self.page_size == 0,
            "{} bytes are no pages",
            bytes.len()
        );
        for page in bytes.chunks_exact(self.page_size) {
            self.session
                .page(page, |cpu, record| self.ledger.record(cpu, record))?;
        }
        Ok(())
    }

    /// Reads what there is without a pipe.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn drain(&mut self) -> Verdict {
        self.session
            .drain(|cpu, record| self.ledger.record(cpu, record))?;
        Ok(())
    }

    /// Closes the books of what was written so far, all of which was taken.
    ///
    /// # Errors
    ///
    /// They do not add up.
    pub fn close(&mut self) -> Result<RunTotals> {
        let totals = self.ledger.close_expected()?;
        self.ledger.check_channel(&self.session)?;
        Ok(totals)
    }
}
