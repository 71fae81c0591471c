// SPDX-License-Identifier: GPL-2.0

//! Injection: making the kernel write its existing objects into a channel.

use crate::{
    channel::retry,
    error::{
        Error,
        Result, //
    },
    uapi, Channel, PageBuffer,
};
use std::time::Duration;

/// How tasks shall be dumped.
#[derive(Clone, Copy, Debug, Default)]
pub struct DumpOptions {
    /// At most so many objects a call; zero for no limit.
    pub len: u64,
    /// Thread group leaders only.
    pub processes: bool,
}

/// What a whole dump came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DumpTotals {
    /// Objects written.
    pub read: u64,
    /// Objects left out for lack of rights.
    pub skipped: u64,
    /// Calls it took.
    pub calls: u64,
    /// Calls that stopped at a full channel.
    pub full: u64,
    /// Pages that were drained.
    pub pages: u64,
}

/// The calls of one dump. Each item is a finished call; the last one stopped at
/// [`uapi::STOP_END`] or failed. After a failure with `EINTR` the dump can go on.
///
/// Where an item stopped at [`uapi::STOP_FULL`], pages must be read before the next: otherwise it stops
/// there again at once.
#[derive(Debug)]
pub struct TaskDump<'a> {
    channel: &'a Channel,
    options: DumpOptions,
    next: uapi::Cursor,
    ended: bool,
}

impl Iterator for TaskDump<'_> {
    type Item = Result<uapi::InjectReq>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let mut req = task_request(&self.options);
        req.start = self.next;
        let result = self.channel.inject(&mut req);
        match &result {
            Ok(()) => {
                self.next = req.next;
                self.ended = req.stop == uapi::STOP_END;
            }
            Err(error) => self.ended = !error.is_interrupted(),
        }
        Some(result.map(|()| req))
    }
}

impl Channel {
    /// Begins a dump of all tasks, one call at a time.
    pub fn task_dump(&self, options: &DumpOptions) -> TaskDump<'_> {
        TaskDump {
            channel: self,
            options: *options,
            next: uapi::Cursor::default(),
            ended: false,
        }
    }

    /// Dumps all tasks, and reads the channel whenever it is full and at the end. Each page that comes
    /// out goes to `take`; it may hold records of counters, too.
    ///
    /// It must be the channel's only reader.
    ///
    /// # Errors
    ///
    /// [`crate::Call::Inject`], the errors of reading, [`Error::Stalled`], and whatever `take` gives.
    pub fn dump_tasks<E: From<Error>>(
        &self,
        options: &DumpOptions,
        buffer: &mut PageBuffer,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<DumpTotals, E> {
        let mut totals = DumpTotals::default();
        for call in self.task_dump(options) {
            totals.calls += 1;
            let call = match call {
                Ok(call) => call,
                Err(error) if error.is_interrupted() => continue,
                Err(error) => return Err(error.into()),
            };
            totals.read += call.read;
            totals.skipped += call.skipped;
            if call.stop == uapi::STOP_FULL {
                totals.full += 1;
                totals.pages += self.make_room(buffer, &mut take)?;
            }
        }
        self.flush()?;
        totals.pages += self.drain(buffer, &mut take)?;
        Ok(totals)
    }

    /// Reads at least one page out of a channel that is too full to inject into, and hands what comes
    /// to `take`. Returns the number of pages.
    ///
    /// # Errors
    ///
    /// The errors of reading, [`Error::Stalled`] where no page comes for a second, and whatever `take`
    /// gives.
    pub fn make_room<E: From<Error>>(
        &self,
        buffer: &mut PageBuffer,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let pages = self.drain(buffer, &mut take)?;
        if pages > 0 {
            return Ok(pages);
        }
        // Fewer pages than the watermark are finished, or all are open.
        self.flush()?;
        let latency = Duration::from_nanos(self.granted().max_latency_ns);
        let patience = latency.saturating_mul(2) + Duration::from_secs(1);
        if !retry(|| self.poll(Some(patience)))? {
            return Err(Error::Stalled.into());
        }
        match self.drain(buffer, take)? {
            0 => Err(Error::Stalled.into()),
            pages => Ok(pages),
        }
    }
}

/// A request that begins a dump of tasks, for programs that call [`Channel::inject`] themselves.
pub fn task_request(options: &DumpOptions) -> uapi::InjectReq {
    uapi::InjectReq {
        size: size_of::<uapi::InjectReq>() as u32,
        collection: uapi::COLLECTION_TASK,
        flags: if options.processes {
            uapi::INJECT_PROCESS
        } else {
            0
        },
        len: options.len,
        ..Default::default()
    }
}
