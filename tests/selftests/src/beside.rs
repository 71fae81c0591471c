// SPDX-License-Identifier: GPL-2.0

//! Counters with perf's own beside them: both must say the same.

use crate::{
    ktap::skip,
    session::absent, //
};
use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use libweir::{
    cpu,
    perf,
    Attr,
    Channel,
    ChannelOptions,
    Counter,
    CounterOptions,
    Errno,
    Scope, //
};
use rustix::fd::OwnedFd;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`.
const READ_FORMAT: u64 = 3;

/// How often work is done over again because something came between two calls.
const TRIES: usize = 20;

/// A channel for counters; a skip where the module is not loaded, or the kernel has no perf events.
///
/// # Errors
///
/// Those of the calls.
pub fn channel() -> Result<Channel> {
    let channel = Channel::create(&ChannelOptions::default()).map_err(absent)?;
    match channel.counter_create(&CounterOptions::default()) {
        Ok(counter) => drop(counter),
        Err(error) if error.errno() == Some(Errno::OPNOTSUPP) => {
            return Err(skip("this kernel has no perf events"))
        }
        Err(error) => return Err(error).context("creating a counter"),
    }
    Ok(channel)
}

/// What perf says of an event: the sum of all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// How often it happened.
    pub value: u64,
    /// ns for which it was enabled.
    pub enabled: u64,
    /// ns for which it was counted.
    pub running: u64,
}

/// Perf's own events of a kind. They count from the beginning, but for those that wait for a program to be
/// executed.
#[derive(Debug)]
pub struct Perf(Vec<OwnedFd>);

impl Perf {
    /// Opens one on each CPU that is online now, or in the task.
    ///
    /// # Errors
    ///
    /// Those of `perf_event_open()`.
    pub fn open(attr: &Attr, scope: Scope) -> Result<Self> {
        let waits = attr.raw().enable_on_exec() != 0;
        let mut attr = attr.disabled(waits);
        attr.raw_mut().read_format = READ_FORMAT;
        let places = match scope {
            Scope::All => cpu::online()?
                .into_iter()
                .map(|cpu| (-1, cpu as i32))
                .collect(),
            Scope::Cpu(cpu) => vec![(-1, cpu as i32)],
            Scope::Task(pid) => vec![(pid, -1)],
        };
        let mut events = Vec::new();
        for (pid, cpu) in places {
            let event = perf::open(&attr, pid, cpu, None)
                .with_context(|| format!("opening perf's {attr:?} {scope:?}"))?;
            events.push(event);
        }
        Ok(Self(events))
    }

    /// Reads them.
    ///
    /// # Errors
    ///
    /// Those of `read()`.
    pub fn read(&self) -> Result<Reading> {
        let mut sum = Reading::default();
        for event in &self.0 {
            let mut words = [[0; 8]; 3];
            let len = rustix::io::read(event, words.as_flattened_mut())?;
            ensure!(len == size_of_val(&words), "perf gave {len} bytes");
            let [value, enabled, running] = words.map(u64::from_ne_bytes);
            sum.value += value;
            sum.enabled += enabled;
            sum.running += running;
        }
        Ok(sum)
    }
}

/// A counter of one event that is enabled, and perf's own.
#[derive(Debug)]
pub struct Beside<'a> {
    /// The counter.
    pub counter: Counter<'a>,
    perf: Perf,
}

/// What a counter and perf have counted. Perf was read before and after the counter at both ends, so that what
/// happened between the calls is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// What the counter says.
    pub value: u64,
    /// What perf says, without what happened between the calls.
    pub least: u64,
    /// With it.
    pub most: u64,
}

impl Compared {
    /// Whether the counter says as much as perf.
    pub fn agrees(&self) -> bool {
        (self.least..=self.most).contains(&self.value)
    }
}

impl<'a> Beside<'a> {
    /// Makes both, and enables them.
    ///
    /// # Errors
    ///
    /// Those of the calls.
    pub fn new(channel: &'a Channel, attr: Attr, scope: Scope) -> Result<Self> {
        Self::unlike(channel, attr, attr, scope)
    }

    /// The same where perf's own event is another one that happens as often.
    ///
    /// # Errors
    ///
    /// Those of the calls.
    pub fn unlike(channel: &'a Channel, attr: Attr, perfs: Attr, scope: Scope) -> Result<Self> {
        let counter = channel.counter_create(&CounterOptions::new(attr, scope))?;
        let perf = Perf::open(&perfs, scope)?;
        if attr.raw().enable_on_exec() == 0 {
            counter.enable()?;
        }
        Ok(Self { counter, perf })
    }

    /// Says what both have counted during `work`.
    ///
    /// # Errors
    ///
    /// Those of the calls; what `work` gives; the two do not agree.
    pub fn during(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<Compared> {
        let before = (
            self.perf.read()?.value,
            self.counter.read_first()?.value,
            self.perf.read()?.value,
        );
        work()?;
        let after = (
            self.perf.read()?.value,
            self.counter.read_first()?.value,
            self.perf.read()?.value,
        );
        let compared = Compared {
            value: after.1 - before.1,
            least: after.0 - before.2,
            most: after.2 - before.0,
        };
        ensure!(
            compared.agrees(),
            "the counter and perf do not agree: {compared:?} of {:?} {:?}",
            self.counter.attrs(),
            self.counter.scope()
        );
        Ok(compared)
    }

    /// Tells whether both say that `work` is `known` events. It is done over again if something came between the
    /// calls, or interrupted it.
    ///
    /// # Errors
    ///
    /// As [`during`](Self::during), and if it is another number every time.
    pub fn exactly(&self, known: u64, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut last = None;
        for _ in 0..TRIES {
            let compared = self.during(work)?;
            ensure!(
                compared.value >= known,
                "{known} events at least, but {compared:?} of {:?} {:?}",
                self.counter.attrs(),
                self.counter.scope()
            );
            if compared.value == known && compared.least == known {
                return Ok(());
            }
            last = Some(compared);
        }
        bail!(
            "it is never {known} events, and {last:?} in the end, of {:?} {:?}",
            self.counter.attrs(),
            self.counter.scope()
        )
    }
}
