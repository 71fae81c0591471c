// SPDX-License-Identifier: GPL-2.0

//! Counters that user space opens through a channel.

use crate::{
    attr::Attr,
    error::{
        Call,
        Error,
        Result, //
    },
    ioctl, perf, uapi,
    value::{
        ReadOptions,
        Value, //
    },
    Channel,
};
use rustix::{
    fd::{
        AsRawFd,
        BorrowedFd, //
    },
    io::Errno,
    ioctl::Opcode,
};
use std::ops::Range;

/// Where a counter counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// On every CPU, and on those that come online later.
    #[default]
    All,
    /// On one CPU.
    Cpu(u32),
    /// In the task of this number, which is a thread; 0 is the caller. With [`Attr::inherit`], in those that it
    /// makes as well.
    Task(i32),
}

/// What a counter shall be. By default it is `cpu-clock` on every CPU, without samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterOptions {
    /// Its events: one, or a set that is counted and read together.
    pub attrs: Vec<Attr>,
    /// Where they count.
    pub scope: Scope,
    /// Whether each CPU keeps a copy for [`ReadOptions::cached`].
    pub cached: bool,
}

impl Default for CounterOptions {
    fn default() -> Self {
        CounterOptions {
            attrs: vec![Attr::default()],
            scope: Scope::default(),
            cached: false,
        }
    }
}

impl CounterOptions {
    /// A counter of one event.
    pub fn new(attr: impl Into<Attr>, scope: Scope) -> Self {
        CounterOptions {
            attrs: vec![attr.into()],
            scope,
            cached: false,
        }
    }

    /// The request that asks for this, without the events, which [`ioctl::counter_create`] fills in. `task` is the
    /// descriptor that names the task of [`Scope::Task`]; without it, the kernel refuses that scope.
    pub fn request(&self, task: Option<BorrowedFd<'_>>) -> uapi::CounterReq {
        let (scope, target) = match self.scope {
            Scope::All => (uapi::SCOPE_ALL, 0),
            // No kernel has so many CPUs; a wrapped number is refused.
            Scope::Cpu(cpu) => (uapi::SCOPE_CPU, cpu as i32),
            Scope::Task(_) => (uapi::SCOPE_TASK, task.map_or(-1, |task| task.as_raw_fd())),
        };
        uapi::CounterReq {
            size: size_of::<uapi::CounterReq>() as u32,
            flags: if self.cached { uapi::COUNTER_CACHED } else { 0 },
            scope,
            target,
            ..Default::default()
        }
    }
}

/// A counter. Dropping it releases it; so does closing its channel.
#[derive(Debug)]
pub struct Counter<'a> {
    channel: &'a Channel,
    id: u32,
    attrs: Vec<Attr>,
    scope: Scope,
    released: bool,
}

impl Channel {
    /// Creates a counter, disabled: all its events or none.
    ///
    /// # Errors
    ///
    /// [`Call::CounterCreate`], with what `perf_event_open()` gives; `EOPNOTSUPP` where the kernel has
    /// no perf events or weir lacks what was asked for, `ENOSPC` where the channel has too many counters.
    /// [`Call::OpenTask`] where the task may not be observed, or there is none.
    pub fn counter_create(&self, options: &CounterOptions) -> Result<Counter<'_>> {
        let task = match options.scope {
            Scope::Task(pid) => Some(
                perf::open_task(pid).map_err(|errno| Error::call(Call::OpenTask(pid), errno))?,
            ),
            _ => None,
        };
        let mut req = options.request(task.as_ref().map(std::os::fd::AsFd::as_fd));
        let mut attrs = options.attrs.clone();
        ioctl::counter_create(self, &mut req, &mut attrs)
            .map_err(|errno| Error::call(Call::CounterCreate(options.scope), errno))?;
        Ok(Counter {
            channel: self,
            id: req.id,
            attrs,
            scope: options.scope,
            released: false,
        })
    }
}

impl Counter<'_> {
    /// What names it on this channel. It is the id of its first event, too.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What names its events, in values and in samples, in the order in which they were given.
    pub fn event_ids(&self) -> Range<u32> {
        self.id..self.id.saturating_add(self.attrs.len() as u32)
    }

    /// Its events, as they were asked for.
    pub fn attrs(&self) -> &[Attr] {
        &self.attrs
    }

    /// Where it counts.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Starts to count.
    ///
    /// # Errors
    ///
    /// [`Call::CounterEnable`] with `EBUSY` where it is pinned and got no place on its PMU.
    pub fn enable(&self) -> Result<()> {
        self.control(ioctl::COUNTER_ENABLE, Call::CounterEnable)
    }

    /// Stops counting.
    ///
    /// # Errors
    ///
    /// [`Call::CounterDisable`].
    pub fn disable(&self) -> Result<()> {
        self.control(ioctl::COUNTER_DISABLE, Call::CounterDisable)
    }

    /// Makes zero what the next read gives.
    ///
    /// # Errors
    ///
    /// [`Call::CounterReset`].
    pub fn reset(&self) -> Result<()> {
        self.control(ioctl::COUNTER_RESET, Call::CounterReset)
    }

    /// Changes the period, or the frequency, of the event with this index.
    ///
    /// # Errors
    ///
    /// [`Call::CounterPeriod`] with `EINVAL` where it is out of range, or the event has none; with `ENOENT` where there
    /// is no such event.
    pub fn period(&self, index: usize, period: u64) -> Result<()> {
        let id = self.event_ids().nth(index);
        // The kernel's answer to a number that nothing has.
        let id = id.ok_or(Error::call(Call::CounterPeriod(self.id), Errno::NOENT))?;
        ioctl::counter_control(self.channel, ioctl::COUNTER_PERIOD, id, period)
            .map_err(|errno| Error::call(Call::CounterPeriod(id), errno))
    }

    /// Counts until so many overflows more have happened.
    ///
    /// # Errors
    ///
    /// [`Call::CounterRefresh`].
    pub fn refresh(&self, overflows: u64) -> Result<()> {
        ioctl::counter_control(self.channel, ioctl::COUNTER_REFRESH, self.id, overflows)
            .map_err(|errno| Error::call(Call::CounterRefresh(self.id), errno))
    }

    /// Reads its events, in order.
    ///
    /// # Errors
    ///
    /// [`Call::CounterRead`].
    pub fn read(&self) -> Result<Vec<Value>> {
        self.read_with(ReadOptions::default())
    }

    /// Reads its first event.
    ///
    /// # Errors
    ///
    /// [`Call::CounterRead`].
    pub fn read_first(&self) -> Result<Value> {
        // The kernel gives one at least, or an error.
        self.read()?
            .first()
            .copied()
            .ok_or(Error::call(Call::CounterRead(self.id), Errno::NOENT))
    }

    /// Reads its events on each CPU on which they ever counted.
    ///
    /// # Errors
    ///
    /// [`Call::CounterRead`].
    pub fn read_per_cpu(&self) -> Result<Vec<Value>> {
        self.read_with(ReadOptions {
            per_cpu: true,
            ..Default::default()
        })
    }

    /// Reads its events without an interrupt anywhere.
    ///
    /// # Errors
    ///
    /// [`Call::CounterRead`] with `EINVAL` where it was not created with [`CounterOptions::cached`].
    pub fn read_cached(&self) -> Result<Vec<Value>> {
        self.read_with(ReadOptions {
            cached: true,
            ..Default::default()
        })
    }

    /// The same on each CPU.
    ///
    /// # Errors
    ///
    /// As [`read_cached`](Self::read_cached).
    pub fn read_cached_per_cpu(&self) -> Result<Vec<Value>> {
        self.read_with(ReadOptions {
            per_cpu: true,
            cached: true,
        })
    }

    /// Reads its events.
    ///
    /// # Errors
    ///
    /// [`Call::CounterRead`].
    pub fn read_with(&self, options: ReadOptions) -> Result<Vec<Value>> {
        self.channel
            .read_values(self.id, options, self.attrs.len() * 4)
    }

    /// Releases it, and says whether that worked; dropping it does not say.
    ///
    /// # Errors
    ///
    /// [`Call::CounterRelease`].
    pub fn release(mut self) -> Result<()> {
        self.released = true;
        self.control(ioctl::COUNTER_RELEASE, Call::CounterRelease)
    }

    fn control(&self, opcode: Opcode, call: fn(u32) -> Call) -> Result<()> {
        ioctl::counter_control(self.channel, opcode, self.id, 0)
            .map_err(|errno: Errno| Error::call(call(self.id), errno))
    }
}

impl Drop for Counter<'_> {
    fn drop(&mut self) {
        if !self.released {
            // It can only fail for a counter that is gone already, and then there is nothing to do.
            let _ = self.control(ioctl::COUNTER_RELEASE, Call::CounterRelease);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs::File,
        os::fd::AsFd, //
    };

    #[test]
    fn options_become_a_request() {
        let request = CounterOptions {
            scope: Scope::Cpu(3),
            cached: true,
            ..Default::default()
        }
        .request(None);
        assert_eq!(
            request,
            uapi::CounterReq {
                size: 32,
                flags: uapi::COUNTER_CACHED,
                scope: uapi::SCOPE_CPU,
                target: 3,
                attrs: 0,
                count: 0,
                id: 0,
            }
        );
        let request = CounterOptions::default().request(None);
        assert_eq!((request.scope, request.target), (uapi::SCOPE_ALL, 0));
    }

    #[test]
    fn a_task_is_named_by_a_descriptor() {
        let file = File::open("/dev/null").unwrap();
        let options = CounterOptions::new(Attr::default(), Scope::Task(0));
        let request = options.request(Some(file.as_fd()));
        assert_eq!(request.scope, uapi::SCOPE_TASK);
        assert_eq!(request.target, file.as_raw_fd());
        assert_eq!(options.request(None).target, -1);
    }
}
