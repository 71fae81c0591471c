// SPDX-License-Identifier: GPL-2.0

//! Torture in rounds: every CPU writes, readers are killed and stopped, CPUs go and come back, and the books have
//! to be right all the same.
//!
//! One process checks and does the harm; it is [`Round`]. Each reader is a process of its own ([`reader`]). What
//! a round is follows from a seed and its number ([`plan`]); what happens in it depends on who is faster, too.

mod books;
mod handover;
mod losses;
mod marks;
pub mod plan;
pub mod reader;
mod requests;
mod summary;
mod tools;

pub use summary::Summary;

use crate::{
    hotplug::Hotplug,
    ledger::RunTotals,
    session::absent,
    times,
    torture::{
        Run,
        Torture, //
    },
};
use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use books::Books;
use handover::{
    Handover,
    Task, //
};
use libweir::{
    Channel,
    DEVICE, //
};
use plan::{
    Ask,
    Harm,
    Plan,
    Way, //
};
use rustix::fd::AsFd;
use std::{
    sync::atomic::{
        AtomicBool,
        Ordering, //
    },
    thread::{
        scope,
        sleep, //
    },
    time::{
        Duration,
        Instant, //
    },
};
use tools::{
    Drained,
    Pipe,
    Victim, //
};

/// The name of channels that readers attach.
const NAME: &str = "weir_rounds";

/// How long the checker waits before it looks for something else to do.
const MOMENT: Duration = Duration::from_micros(500);

/// Calls of a reader that are checked before the checker looks for something else to do.
const AT_ONCE: usize = 4;

/// How long a reader that nobody disturbs may take to read what is there.
const PATIENCE: Duration = Duration::from_secs(60);

/// A round that goes on.
struct Round<'a> {
    plan: &'a Plan,
    books: Books,
    handover: Handover,
    pipe: Pipe,
    /// The channel, except one that readers attach while they do.
    channel: Option<Channel>,
    reader: Option<Victim>,
    summary: Summary,
}

/// Makes the channel of a plan. What it has taken of it, and the books.
fn create(plan: &Plan, torture: &Torture) -> Result<(Channel, Books)> {
    let before = times::before(plan.options.clock);
    let channel = if plan.named {
        torture
            .create_with(NAME, &plan.options)
            .context("creating the module's own channel")?;
        attach(plan)?
    } else {
        Channel::create(&plan.options).map_err(absent)?
    };
    let books = Books::open(&channel, before, plan.overwrites())?;
    Ok((channel, books))
}

fn attach(plan: &Plan) -> Result<Channel> {
    let channel = Channel::attach(DEVICE.as_ref(), NAME, plan.options.nonblocking);
    channel.context("attaching after the reader before has ended")
}

/// Runs a round.
///
/// # Errors
///
/// Whatever is wrong with what was read, or with what the channel says of it.
pub fn run(torture: &Torture, plan: &Plan, cpus: &[Hotplug]) -> Result<Summary> {
    let (channel, books) = create(plan, torture)?;
    let pipe = Pipe::new(plan.way == Way::Splice)?;
    let handover = Handover::new(Task {
        way: plan.way,
        page_size: channel.granted().page_size as usize,
        pages: plan.pages as usize,
        rest: plan.rest,
        nonblocking: plan.options.nonblocking,
        named: plan.named,
        pipe: pipe.number(),
    })?;
    let writers = torture.start(&channel, plan.start)?;
    let mut round = Round {
        plan,
        books,
        handover,
        pipe,
        channel: Some(channel),
        reader: None,
        summary: Summary::default(),
    };
    let result = round.run(&writers, cpus);
    if plan.named {
        // Whoever has it attached sees its end.
        torture.destroy().context("destroying the channel")?;
    }
    result?;
    round.summary.rounds = 1;
    Ok(round.summary)
}

impl Round<'_> {
    fn run(&mut self, writers: &Run<'_>, cpus: &[Hotplug]) -> Result<()> {
        let over = AtomicBool::new(false);
        let plan = self.plan;
        // Of a channel that readers attach, they are asked to make the calls.
        let channel = self.channel.take();
        let asker = match &channel {
            Some(channel) if !plan.named => {
                let fd = channel.as_fd().try_clone_to_owned()?;
                Some(Channel::from_fd(fd)?)
            }
            _ => None,
        };
        self.channel = channel.filter(|_| !plan.named);
        scope(|scope| {
            let over = &over;
            let asks = scope.spawn(move || match asker {
                Some(channel) => requests::ask_all(&channel, &plan.asks, over),
                None => Ok((0, 0)),
            });
            let toggles = scope.spawn(move || requests::toggle_all(cpus, &plan.toggles, over));
            let result = self.torment();
            over.store(true, Ordering::Relaxed);
            let asks = asks.join().expect("it does not panic");
            let toggles = toggles.join().expect("it does not panic");
            result?;
            let (asked, unanswered) = asks?;
            self.summary.asked += asked;
            self.summary.unanswered += unanswered;
            self.summary.toggled += toggles.context("taking CPUs off and back")?;
            anyhow::Ok(())
        })?;
        writers.stop()?;
        self.rest(writers)?;
        self.close(writers)
    }

    /// Kills, stops and replaces readers for as long as the round takes.
    fn torment(&mut self) -> Result<()> {
        let begin = Instant::now();
        let plan = self.plan;
        let mut harms = plan.harms.iter();
        // A mark is worth most to whoever reads.
        let mut asks = plan
            .asks
            .iter()
            .filter(|(_, ask)| plan.named || *ask == Ask::Mark);
        let (mut harm, mut harm_time) = (harms.next(), begin);
        let (mut ask, mut ask_time) = (asks.next(), begin);
        while begin.elapsed() < plan.length {
            if self.reader.is_none() {
                self.reader = Some(self.start_reader()?);
                harm_time = Instant::now();
            }
            if let Some((_, what)) = harm.filter(|(delay, _)| harm_time.elapsed() >= *delay) {
                harm_time = Instant::now();
                self.harm(*what)?;
                harm = harms.next();
            }
            if let Some((_, what)) = ask.filter(|(delay, _)| ask_time.elapsed() >= *delay) {
                ask_time = Instant::now();
                self.handover.ask(*what);
                ask = asks.next();
            }
            self.work()?;
        }
        Ok(())
    }

    fn start_reader(&self) -> Result<Victim> {
        let channel = self.channel.as_ref().filter(|_| !self.plan.named);
        Ok(Victim::new(reader::start(&self.handover, channel)?))
    }

    fn harm(&mut self, harm: Harm) -> Result<()> {
        match harm {
            Harm::Kill => self.kill(),
            Harm::Pause(time) => {
                let Some(reader) = &self.reader else {
                    return Ok(());
                };
                reader.stop()?;
                self.summary.pauses += 1;
                let begin = Instant::now();
                while begin.elapsed() < time {
                    self.check_some()?;
                    sleep(MOMENT);
                }
                self.reader.as_ref().map_or(Ok(()), Victim::go_on)
            }
        }
    }

    /// Kills the reader, and takes what it had.
    fn kill(&mut self) -> Result<()> {
        let Some(reader) = self.reader.take() else {
            return Ok(());
        };
        reader.kill()?;
        self.summary.kills += 1;
        while self.check_some()? {}
        if let Some(pages) = self.handover.left_behind()? {
            self.summary.kills_in_calls += 1;
            self.books.left_behind(pages)?;
        }
        Ok(())
    }

    /// Checks what has come, or waits a moment; sees whether the reader is still there.
    fn work(&mut self) -> Result<()> {
        if !self.check_some()? {
            sleep(MOMENT);
        }
        match &mut self.reader {
            Some(reader) => reader.check(),
            None => Ok(()),
        }
    }

    /// Checks what has come, but not for ever where more comes all the time. Whether there was something.
    fn check_some(&mut self) -> Result<bool> {
        let (made, emptied) = self.handover.marks();
        let books = &mut self.books;
        let (mut any, mut all) = (false, false);
        for _ in 0..AT_ONCE {
            all = !self.handover.take(|page| books.page(page))?;
            if all {
                break;
            }
            any = true;
        }
        let page_size = self.handover.task().page_size;
        let drained = self
            .pipe
            .drain(page_size, AT_ONCE, |page| books.page(page))?;
        any |= drained != Drained::Nothing;
        if all && drained != Drained::Some {
            books.marks().seen(made, emptied);
        }
        Ok(any)
    }

    /// When nobody writes any more, a reader whom nobody disturbs and who asks for nothing has everything before
    /// long, if nothing is overwritten.
    fn rest(&mut self, writers: &Run<'_>) -> Result<()> {
        if !self.plan.overwrites() {
            if self.reader.is_none() {
                self.reader = Some(self.start_reader()?);
            }
            let written: u64 = writers
                .statuses()?
                .iter()
                .map(|status| status.written)
                .sum();
            let begin = Instant::now();
            while self.books.read() < written {
                ensure!(
                    begin.elapsed() < PATIENCE,
                    "{} of {written} records have not been read {PATIENCE:?} after the last one",
                    written - self.books.read()
                );
                self.work()?;
            }
        }
        self.kill()
    }

    /// Reads what is left and checks the books.
    fn close(&mut self, writers: &Run<'_>) -> Result<()> {
        let channel = match self.channel.take() {
            Some(channel) => channel,
            None => attach(self.plan)?,
        };
        if self.plan.overwrites() {
            requests::ask(&channel, Ask::Thaw)?;
        }
        // Losses that there was no page to tell of are told by the second.
        for _ in 0..2 {
            channel.flush()?;
            self.drain(&channel)?;
        }
        let torn = self.pipe.rest();
        ensure!(torn == 0, "{torn} bytes in the pipe are no page");
        let statuses = writers.statuses()?;
        let (totals, doubts) = self.books.close(&channel, &statuses)?;
        self.count(&totals);
        self.summary.doubts(&doubts);
        let (asked, unanswered) = self.handover.answers();
        self.summary.asked += asked;
        self.summary.unanswered += unanswered;
        for status in &statuses {
            self.summary.source(status);
        }
        Ok(())
    }

    fn drain(&mut self, channel: &Channel) -> Result<()> {
        let books = &mut self.books;
        if self.plan.way == Way::Map {
            let mut reader = channel.map()?;
            while let Some(page) = reader.next_page() {
                books.page(page)?;
            }
            return Ok(());
        }
        let mut buffer = channel.buffer(16);
        channel.drain(&mut buffer, |page| books.page(page))?;
        Ok(())
    }

    fn count(&mut self, totals: &RunTotals) {
        let sum = self.books.verifier().sum();
        let summary = &mut self.summary;
        summary.attempted = totals.attempted;
        summary.written = totals.written;
        summary.read = sum.records;
        summary.overwritten = totals.overwritten;
        summary.refused = totals.refused;
        summary.inside = totals.inside;
        summary.pages = sum.pages;
        summary.bytes = sum.pages * self.handover.task().page_size as u64;
        summary.calls = self.handover.calls();
        summary.marked = self.books.marks().compared();
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        // A round that failed leaves no reader behind: the failure that it reports is the first one.
        self.reader = None;
    }
}

/// Says that a program cannot be what it is asked to be.
pub fn role(name: &str) -> Result<()> {
    match name {
        reader::ROLE => reader::run(),
        _ => bail!("there is no role `{name}`"),
    }
}
