// SPDX-License-Identifier: GPL-2.0

//! An instance of ftrace on the tracepoint, and its ring buffer as it is.

use crate::arrived::{
    Arrived,
    PAYLOAD, //
};
use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use rustix::fs::OFlags;
use std::{
    fs::{
        self,
        File,
        OpenOptions, //
    },
    io::Read,
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};
use weir_selftests::ktap::skip;

const TRACING: &str = "/sys/kernel/tracing";
/// As weir's channels that overwrite have, and as those that discard have.
const FEW_KB: u32 = 256;
const MANY_KB: u32 = 8192;
/// What stands before the fields of every event: type, flags, process.
const COMMON: usize = 8;

/// What happens to new events when the buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// They are lost.
    Discard,
    /// They replace the oldest.
    Overwrite,
}

/// The instance; it goes when this is dropped.
pub struct Instance {
    folder: PathBuf,
}

impl Instance {
    /// Makes one that records the tracepoint, with a clock.
    ///
    /// # Errors
    ///
    /// Where it cannot be made; a skip where this kernel does not have the clock.
    pub fn new(clock: &str, full: Full) -> Result<Self> {
        let clocks = fs::read_to_string(PathBuf::from(TRACING).join("trace_clock"))
            .context("cannot read the clocks of ftrace")?;
        if !clocks
            .split(['[', ']', ' ', '\n'])
            .any(|name| name == clock)
        {
            return Err(skip(format!("this kernel has no clock {clock}")));
        }
        let folder = PathBuf::from(TRACING).join("instances/weir_bench");
        fs::create_dir(&folder).context("cannot make an instance of ftrace")?;
        let instance = Self { folder };
        instance.set("trace_clock", clock)?;
        let (size, overwrite) = match full {
            Full::Discard => (MANY_KB, "0"),
            Full::Overwrite => (FEW_KB, "1"),
        };
        instance.set("buffer_size_kb", &size.to_string())?;
        instance.set("options/overwrite", overwrite)?;
        instance.set("events/weir_bench/weir_bench/enable", "1")?;
        Ok(instance)
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        fs::write(self.folder.join(file), value).with_context(|| format!("cannot write {file}"))
    }

    /// Opens the pages of a CPU, which are read or spliced; without waiting.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn pages(&self, cpu: u32) -> Result<File> {
        let path = self.folder.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(path)
            .context("cannot open the pages of ftrace")
    }

    /// Reads all that was written on a CPU.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, or is no event.
    pub fn drain(&self, cpu: u32) -> Result<Arrived> {
        self.set("events/weir_bench/weir_bench/enable", "0")?;
        let mut arrived = Arrived::default();
        let mut pages = self.pages(cpu)?;
        let mut page = vec![0; rustix::param::page_size()];
        while read_page(&mut pages, &mut page)? {
            events(&page, &mut arrived)?;
        }
        (arrived.overwritten, arrived.lost) = self.losses(cpu)?;
        Ok(arrived)
    }

    /// Events of a CPU that were overwritten, and that were lost otherwise.
    ///
    /// # Errors
    ///
    /// Where they cannot be read.
    pub fn losses(&self, cpu: u32) -> Result<(u64, u64)> {
        let number = |name| self.statistic(cpu, name);
        let lost = number("commit overrun:")? + number("dropped events:")?;
        Ok((number("overrun:")?, lost))
    }

    /// Events of a CPU that were read.
    ///
    /// # Errors
    ///
    /// Where their number cannot be read.
    pub fn read(&self, cpu: u32) -> Result<u64> {
        self.statistic(cpu, "read events:")
    }

    fn statistic(&self, cpu: u32, name: &str) -> Result<u64> {
        let stats = fs::read_to_string(self.folder.join(format!("per_cpu/cpu{cpu}/stats")))?;
        let line = stats.lines().find_map(|line| line.strip_prefix(name));
        let value = line.with_context(|| format!("ftrace does not tell {name}"))?;
        value.trim().parse().context("no number of events")
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.folder) {
            eprintln!("weir-bench: cannot remove the instance of ftrace: {error}");
        }
    }
}

/// Reads the next page, if there is one.
///
/// # Errors
///
/// The kernel's.
pub fn read_page(file: &mut File, page: &mut [u8]) -> Result<bool> {
    match file.read(page) {
        Ok(0) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error).context("cannot read the ring buffer"),
    }
}

/// The events of a page: a time, the number of bytes, and then events, of which `struct ring_buffer_event` of
/// the kernel tells the size.
fn events(page: &[u8], arrived: &mut Arrived) -> Result<()> {
    const HEADER: usize = 16;
    // What is above it says whether something was lost before.
    const SIZE: u64 = (1 << 20) - 1;
    let word = |at: usize| -> Result<u32> {
        let bytes = page
            .get(at..at + 4)
            .context("an event leads out of the page")?;
        Ok(u32::from_ne_bytes(bytes.try_into()?))
    };
    let commit = u64::from_ne_bytes(page[8..16].try_into()?) & SIZE;
    let end = HEADER + commit as usize;
    ensure!(end <= page.len(), "{commit} bytes in a page");
    let mut at = HEADER;
    while at < end {
        let head = word(at)?;
        let (start, size) = match head & 31 {
            // Padding: to the end, or an event that was given up.
            29 if head >> 5 == 0 => return Ok(()),
            29 => {
                at += 4 + word(at + 4)? as usize;
                continue;
            }
            // Times.
            30 | 31 => {
                at += 8;
                continue;
            }
            0 => (at + 8, 4 + word(at + 4)? as usize),
            words => (at + 4, 4 + 4 * words as usize),
        };
        let payload = page.get(start + COMMON..start + COMMON + PAYLOAD);
        let Some(payload) = payload.filter(|_| start + COMMON + PAYLOAD <= at + size) else {
            bail!("an event of {size} bytes");
        };
        arrived.record(payload, size);
        at += size;
    }
    Ok(())
}
