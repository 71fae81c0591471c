// SPDX-License-Identifier: GPL-2.0

//! Writing at full speed while somebody reads, and the books afterwards.

use crate::{
    ktap::note,
    ledger::{
        Ledger,
        RunTotals, //
    },
    session::{
        now,
        Session, //
    },
    spliced::{
        lent,
        Pipe, //
    },
    torture::{
        Run,
        Source,
        Start,
        Torture, //
    },
};
use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    uapi::MODE_OVERWRITE,
    ChannelOptions,
    Errno,
    MappedReader,
    Ready, //
};
use std::{
    thread::sleep,
    time::{
        Duration,
        Instant, //
    },
};

/// How somebody reads while the writers write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A page at a time, with rests in between: the channel is full nearly always.
    Slow,
    /// As fast as it can.
    Fast,
    /// The same from a mapping, without a system call for each page.
    Mapped,
    /// By `splice()` into pipes, each of which is read only when the next one is full.
    Spliced,
}

/// A small pool, so that a slow reader surely loses.
pub fn small() -> ChannelOptions {
    let cpus = libweir::cpu::possible().map_or(1, |cpus| cpus.len());
    ChannelOptions {
        pages: 8 * cpus as u32,
        ..Default::default()
    }
}

/// How long a writer may take to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// Books of a channel made with `options`.
pub fn ledger(options: &ChannelOptions) -> Ledger {
    match options.mode {
        MODE_OVERWRITE => Ledger::overwriting(),
        _ => Ledger::new(),
    }
}

/// What the programs have whose tests write at full speed.
pub struct Context {
    /// The writers.
    pub torture: Torture,
    /// Where this machine can write from.
    pub sources: Vec<Source>,
    /// How long a test writes.
    pub duration: Duration,
}

impl Context {
    /// Finds the writers, whose tests take so many seconds each.
    ///
    /// # Errors
    ///
    /// The torture module is not there, or `seconds` is no time.
    pub fn open(seconds: f64) -> Result<Self> {
        let torture = Torture::open()?;
        Ok(Self {
            sources: torture.sources()?,
            torture,
            duration: Duration::try_from_secs_f64(seconds)?,
        })
    }

    /// Writes as `request` says, reads, and checks the books: every record was read once, whole and in order, or
    /// counts as lost.
    ///
    /// # Errors
    ///
    /// The books are wrong, or a writer did nothing.
    pub fn exercise(
        &self,
        options: &ChannelOptions,
        request: Start,
        reading: Reading,
    ) -> Result<RunTotals> {
        let mut session = Session::open(options, if reading == Reading::Slow { 1 } else { 256 })?;
        let mut ledger = ledger(options);
        let run = self.torture.start(session.channel(), request)?;
        let begin = Instant::now();
        let is_over = || -> Result<bool> {
            let elapsed = begin.elapsed();
            // On a busy machine it takes a thread its time to run at all.
            Ok(elapsed >= self.duration && (elapsed >= PATIENCE || everybody_wrote(&run)?))
        };
        if reading == Reading::Mapped {
            read_mapped(&mut session, &mut ledger, is_over, || run.stop())?;
        } else if reading == Reading::Spliced {
            read_spliced(&mut session, &mut ledger, is_over, || run.stop())?;
        } else {
            while !is_over()? {
                session.read_within(Duration::from_millis(100), |cpu, record| {
                    ledger.record(cpu, record)
                })?;
                if reading == Reading::Slow {
                    sleep(Duration::from_millis(5));
                }
            }
            run.stop()?;
            // Where pages were overwritten, losses may have to be told again when there is room for that.
            for _ in 0..2 {
                session.flush(|cpu, record| ledger.record(cpu, record))?;
            }
        }

        let statuses = run.statuses()?;
        let totals = ledger.close_run(&statuses)?;
        ledger.check_channel(&session)?;
        let sum = session.verifier().sum();
        let read = totals.written - totals.overwritten;
        note(format_args!(
            "{} attempted, {read} read in {} pages ({} of them parts), {:?} refused, {} overwritten, {} written inside of another",
            totals.attempted, sum.pages, sum.partial, totals.refused, totals.overwritten, session.nested()?
        ));
        ensure!(sum.records == read, "{} records in the pages", sum.records);
        for status in &statuses {
            ensure!(status.attempted > 0, "this writer did nothing: {status:?}");
        }
        Ok(totals)
    }
}

/// Whether every writer has tried to write.
fn everybody_wrote(run: &Run<'_>) -> Result<bool> {
    let statuses = run.statuses()?;
    Ok(statuses.iter().all(|status| status.attempted > 0))
}

/// Splices until `is_over`, calls `stop`, and splices what is left.
///
/// # Errors
///
/// Those of splicing and waiting, of `stop`, and what is wrong with a page.
pub fn read_spliced(
    session: &mut Session,
    ledger: &mut Ledger,
    is_over: impl Fn() -> Result<bool>,
    stop: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let (channel, verifier) = session.split();
    let page_size = channel.granted().page_size as usize;
    let size = 16 * page_size;
    let mut pipes = [Pipe::new(size)?, Pipe::new(size)?];
    let mut turn = 0;
    // Fills one pipe, then reads the other, which was filled before. Returns whether there was anything.
    let mut take = || -> Result<bool> {
        let filled = match pipes[turn].fill(channel, size) {
            Err(Errno::AGAIN) => 0,
            result => result.context("splice()")?,
        };
        turn = 1 - turn;
        let bytes = pipes[turn].empty()?;
        for page in bytes.chunks_exact(page_size) {
            verifier.page(page, now(), |cpu, record| ledger.record(cpu, record))?;
        }
        Ok(filled + bytes.len() > 0)
    };
    while !is_over()? {
        channel.poll(Some(Duration::from_millis(100)))?;
        take()?;
    }
    stop()?;
    // Losses that there was no page to tell of are told by the second.
    for _ in 0..2 {
        channel.flush()?;
        while take()? {}
    }
    ensure!(lent(channel)? == 0, "pages are lent that nobody has");
    Ok(())
}

/// Reads from a mapping until `is_over`, calls `stop`, and reads what is left.
///
/// # Errors
///
/// Those of mapping and waiting, of `stop`, and what is wrong with a page.
pub fn read_mapped(
    session: &mut Session,
    ledger: &mut Ledger,
    is_over: impl Fn() -> Result<bool>,
    stop: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let (channel, verifier) = session.split();
    let mut reader = channel.map()?;
    // Writers may be faster, so that there are always more.
    let mut take = |reader: &mut MappedReader<'_>, most: usize| -> Result<()> {
        for _ in 0..most {
            let Some(page) = reader.next_page() else {
                break;
            };
            verifier.page(page, now(), |cpu, record| ledger.record(cpu, record))?;
        }
        Ok(())
    };
    while !is_over()? {
        if reader.wait(Some(Duration::from_millis(100)))? == Ready::Open {
            channel.flush()?;
        }
        take(&mut reader, 64)?;
    }
    stop()?;
    // Losses that there was no page to tell of are told by the second.
    for _ in 0..2 {
        channel.flush()?;
        take(&mut reader, usize::MAX)?;
    }
    Ok(())
}
