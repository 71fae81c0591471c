// SPDX-License-Identifier: GPL-2.0

//! A reader: a process of its own, that may be killed or stopped at any time.

use super::{
    handover::{
        Handover,
        Task, //
    },
    plan::{
        Ask,
        Way, //
    },
    requests::{
        ask,
        mark, //
    },
    NAME, //
};
use crate::child;
use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use libweir::{
    Channel,
    Errno,
    MappedReader,
    DEVICE, //
};
use rustix::{
    event::{
        poll,
        PollFd,
        PollFlags,
        Timespec, //
    },
    fd::{
        AsFd,
        OwnedFd, //
    },
    fs::{
        Mode,
        OFlags, //
    },
    pipe::{
        splice,
        SpliceFlags, //
    },
    process::{
        set_parent_process_death_signal,
        Signal, //
    },
};
use std::{
    process::{
        Child,
        Stdio, //
    },
    thread::sleep,
    time::Duration, //
};

/// The role of such a process.
pub const ROLE: &str = "reader";
/// Where it finds the [`Handover`].
const HANDOVER: &str = "WEIR_TEST_HANDOVER";

/// How long it waits before it looks for something else to do.
const MOMENT: Duration = Duration::from_millis(1);
const LONGER: Duration = Duration::from_millis(50);

/// Calls after which the channel is not empty and is not going to be.
const ATTEMPTS: usize = 64;

/// Starts one. It inherits `channel`, or attaches one itself.
///
/// # Errors
///
/// There is no process to be had.
pub fn start(handover: &Handover, channel: Option<&Channel>) -> Result<Child> {
    let stdin = match channel {
        Some(channel) => Stdio::from(channel.as_fd().try_clone_to_owned()?),
        None => Stdio::null(),
    };
    child::command(ROLE)?
        .env(HANDOVER, handover.path())
        .stdin(stdin)
        .spawn()
        .context("starting a reader")
}

/// What such a process does: it reads until it is killed.
///
/// # Errors
///
/// Everything that is not to be.
pub fn run() -> Result<()> {
    // Nobody else would end it.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let path = std::env::var(HANDOVER).context("this is for the test's own use")?;
    let handover = Handover::open(&path)?;
    let task = *handover.task();
    let channel = if task.named {
        Channel::attach(DEVICE.as_ref(), NAME, task.nonblocking)?
    } else {
        Channel::from_fd(std::io::stdin().as_fd().try_clone_to_owned()?)?
    };
    // One before this may have been killed in the middle of [`mark_and_empty`].
    set_nonblocking(&channel, task.nonblocking)?;
    match task.way {
        Way::Read => calls(&handover, &channel, || read(&handover, &channel)),
        Way::Splice => {
            // Beside the checker's memory are the checker's other descriptors.
            let folder = path.rsplit_once('/').context("no descriptor")?.0;
            let pipe = format!("{folder}/{}", task.pipe);
            let pipe = rustix::fs::open(&pipe, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
                .with_context(|| format!("opening {pipe}"))?;
            calls(&handover, &channel, || {
                splice_some(&handover, &channel, &pipe)
            })
        }
        Way::Map => {
            let mut reader = channel.map()?;
            calls(&handover, &channel, || take(&handover, &mut reader))
        }
    }
}

/// What a call found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Pages.
    Some,
    /// There was nothing in the channel.
    Nothing,
    /// It was not looked for, or not to the end.
    Unknown,
}

fn set_nonblocking(channel: &Channel, nonblocking: bool) -> Result<()> {
    let mut flags = rustix::fs::fcntl_getfl(channel)?;
    flags.set(OFlags::NONBLOCK, nonblocking);
    Ok(rustix::fs::fcntl_setfl(channel, flags)?)
}

/// Calls again and again, and makes the calls that it is asked for in between.
fn calls(
    handover: &Handover,
    channel: &Channel,
    mut call: impl FnMut() -> Result<Found>,
) -> Result<()> {
    let task = *handover.task();
    loop {
        for what in handover.asked() {
            let answered = match what {
                Ask::Mark => mark_and_empty(handover, channel, &mut call),
                _ => ask(channel, what),
            };
            handover.answer(answered.with_context(|| format!("{what:?}"))?);
        }
        if is_ready(&task, channel)? {
            call()?;
        }
        if !task.rest.is_zero() {
            sleep(task.rest);
        }
    }
}

/// Asks for a mark, and takes what is in the channel then. Whether there was one.
fn mark_and_empty(
    handover: &Handover,
    channel: &Channel,
    mut call: impl FnMut() -> Result<Found>,
) -> Result<bool> {
    let Some(mark) = mark(channel)? else {
        return Ok(false);
    };
    handover.made(mark);
    set_nonblocking(channel, true)?;
    // Where more comes all the time, the checker waits for as many pages as there can be.
    for _ in 0..ATTEMPTS {
        if call()? == Found::Nothing {
            handover.emptied(mark);
            break;
        }
    }
    set_nonblocking(channel, handover.task().nonblocking)?;
    Ok(true)
}

/// Waits for pages, where that is not the call's own affair; and finishes what has waited for too long, where
/// nobody else does. Whether a call is worth it.
fn is_ready(task: &Task, channel: &Channel) -> Result<bool> {
    if task.way != Way::Map && !task.nonblocking {
        return Ok(true);
    }
    let timeout = Timespec::try_from(LONGER)?;
    let mut fds = [PollFd::new(channel, PollFlags::IN | PollFlags::PRI)];
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno).context("poll()"),
    }
    let events = fds[0].revents();
    ensure!(
        events.difference(PollFlags::IN | PollFlags::PRI).is_empty(),
        "poll() gave {events:?}"
    );
    if task.way == Way::Map && events == PollFlags::PRI {
        channel.flush()?;
        return Ok(true);
    }
    Ok(events.contains(PollFlags::IN))
}

/// A call to read into the next slot.
fn read(handover: &Handover, channel: &Channel) -> Result<Found> {
    let Some(call) = handover.begin() else {
        sleep(MOMENT);
        return Ok(Found::Unknown);
    };
    let (found, bytes) = match handover.read(call, channel) {
        Ok(0) => bail!("read() says that nobody writes any more"),
        Ok(bytes) => (Found::Some, bytes),
        Err(Errno::AGAIN) => (Found::Nothing, 0),
        Err(Errno::INTR) => (Found::Unknown, 0),
        Err(errno) => return Err(errno).context("read()"),
    };
    handover.end(call, bytes);
    Ok(found)
}

/// A call to splice into the pipe, which outlives this process: what is spliced is not lost with it.
fn splice_some(handover: &Handover, channel: &Channel, pipe: &OwnedFd) -> Result<Found> {
    let task = handover.task();
    let len = task.pages * task.page_size;
    // Nobody else writes to it.
    let empty = rustix::io::ioctl_fionread(pipe)? == 0;
    match splice(channel, None, pipe, None, len, SpliceFlags::NONBLOCK) {
        Ok(0) => bail!("splice() says that nobody writes any more"),
        Ok(bytes) => {
            ensure!(
                bytes % task.page_size == 0,
                "splice() gave {bytes} bytes, which are no pages"
            );
            return Ok(Found::Some);
        }
        Err(Errno::INTR) => {}
        // One of both has no room, or nothing.
        Err(Errno::AGAIN) if empty => return Ok(Found::Nothing),
        Err(Errno::AGAIN) => sleep(MOMENT),
        // There is room, but not for a page.
        Err(Errno::INVAL) if !empty => sleep(MOMENT),
        Err(errno) => return Err(errno).context("splice()"),
    }
    Ok(Found::Unknown)
}

/// Copies pages from the mapping into the next slot.
fn take(handover: &Handover, reader: &mut MappedReader<'_>) -> Result<Found> {
    let task = handover.task();
    let Some(call) = handover.begin() else {
        sleep(MOMENT);
        return Ok(Found::Unknown);
    };
    let mut pages = 0;
    while pages < task.pages {
        // This gives the one before it back: so when there is a copy of one, all before it are given back.
        let Some(page) = reader.next_page() else {
            break;
        };
        handover.fill(call, pages, page)?;
        pages += 1;
    }
    reader.give_back();
    handover.end(call, pages * task.page_size);
    Ok(match pages {
        0 => Found::Nothing,
        _ => Found::Some,
    })
}
