// SPDX-License-Identifier: GPL-2.0

//! The ways to read a channel.

use anyhow::{
    Context,
    Result, //
};
use libweir::{
    Channel,
    Errno, //
};
use rustix::{
    fs::OFlags,
    pipe::{
        fcntl_setpipe_size,
        pipe_with,
        splice,
        PipeFlags,
        SpliceFlags, //
    },
};
use std::{
    fs::{
        File,
        OpenOptions, //
    },
    hint::black_box,
    io::Seek,
    os::fd::AsFd,
};

/// Reads what is there now, and gives the number of bytes.
pub type Drain<'a> = Box<dyn FnMut() -> Result<u64> + 'a>;

/// Makes a reader of a channel.
pub type Way = for<'a> fn(&'a Channel) -> Result<Drain<'a>>;

/// All of them, with what they are called.
pub const WAYS: &[(&str, Way)] = &[
    ("read(), 64 pages a call, not looked at", |channel| {
        read(channel, |_| ())
    }),
    ("read(), 64 pages a call, each word added up", |channel| {
        read(channel, |bytes| {
            black_box(sum(bytes));
        })
    }),
    ("mmap(), each word added up", mapped),
    ("splice() by a pipe to /dev/null", |channel| {
        spliced(channel, OpenOptions::new().write(true).open("/dev/null")?)
    }),
    ("splice() by a pipe to a file in memory", |channel| {
        let path = "/tmp/weir-bench.data";
        let file = File::create(path)?;
        std::fs::remove_file(path)?;
        spliced(channel, file)
    }),
];

/// Bytes of the pipe: what a user may have without privileges.
const PIPE: usize = 1 << 20;

/// Adds up all words.
pub fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8);
    words.fold(0, |sum, word| {
        let word = word
            .first_chunk()
            .map_or(0, |word| u64::from_ne_bytes(*word));
        sum.wrapping_add(word)
    })
}

fn read<'a>(channel: &'a Channel, look: fn(&[u8])) -> Result<Drain<'a>> {
    let mut buffer = channel.buffer(64);
    Ok(Box::new(move || {
        let mut total = 0;
        loop {
            match channel.read_pages(&mut buffer) {
                Ok(_) => total += buffer.bytes().len() as u64,
                Err(error) if error.is_would_block() => return Ok(total),
                Err(error) => return Err(error.into()),
            }
            look(buffer.bytes());
        }
    }))
}

fn mapped(channel: &Channel) -> Result<Drain<'_>> {
    let mut reader = channel.map()?;
    Ok(Box::new(move || {
        let mut total = 0;
        while let Some(page) = reader.next_page() {
            black_box(sum(page));
            total += page.len() as u64;
        }
        reader.give_back();
        Ok(total)
    }))
}

/// Splices what is there into a file, by a pipe.
///
/// # Errors
///
/// Where there is no such pipe.
pub fn spliced<'a>(from: impl AsFd + 'a, mut to: File) -> Result<Drain<'a>> {
    let (output, input) = pipe_with(PipeFlags::CLOEXEC).context("cannot make a pipe")?;
    fcntl_setpipe_size(&input, PIPE).context("cannot enlarge the pipe")?;
    rustix::fs::fcntl_setfl(&input, OFlags::NONBLOCK)?;
    Ok(Box::new(move || {
        let mut total = 0;
        loop {
            // Over and over the same place of a file.
            to.rewind()?;
            let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
            let mut left = match splice(&from, None, &input, None, PIPE, flags) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(total),
                Ok(bytes) => bytes,
                Err(error) => return Err(error).context("cannot splice into the pipe"),
            };
            total += left as u64;
            while left > 0 {
                let moved = splice(&output, None, &to, None, left, SpliceFlags::MOVE)
                    .context("cannot splice from the pipe")?;
                anyhow::ensure!(moved > 0, "nothing was moved out of the pipe");
                left -= moved;
            }
        }
    }))
}
