// SPDX-License-Identifier: GPL-2.0

//! From the channel to user space: `read()` and `poll()`.
//!
//! Finished pages come first. When there are none, and records of a CPU have waited in its open page
//! for the channel's latency, they are delivered from there, without asking that CPU. Who reads and
//! blocks waits for that long and then looks. Who polls is woken by a timer, which runs on the CPU
//! that polled and only while there is nothing to read.

use super::Channel;
use crate::abs::{
    clock, cpus,
    device::Readiness,
    iov,
    pin::PinnedCpu,
    wait_queue::{
        PollTable,
        Woken, //
    },
};
use kernel::{
    alloc::KVVec,
    fs::File,
    iov::IovIterDest,
    prelude::*,
    sync::{
        atomic::ordering::{
            Full,
            Relaxed, //
        },
        barrier::smp_mb,
        Arc,
        ArcBorrow, //
    },
    time::hrtimer::{
        ArcHrTimerHandle,
        HrTimerCallback,
        HrTimerCallbackContext,
        HrTimerPointer,
        HrTimerRestart, //
    },
};
use weir_core::{
    Chunk,
    Progress,
    Reader, //
};
use zerocopy::IntoBytes;

/// How far the reader is, for every CPU.
pub(super) struct ProgressTable(KVVec<Progress>);

impl ProgressTable {
    pub(super) fn new(cpus: usize) -> Result<Self> {
        let mut table = KVVec::with_capacity(cpus, GFP_KERNEL)?;
        for _ in 0..cpus {
            table.push(Progress::new(), GFP_KERNEL)?;
        }
        Ok(Self(table))
    }
}

impl AsMut<[Progress]> for ProgressTable {
    fn as_mut(&mut self) -> &mut [Progress] {
        &mut self.0
    }
}

/// Room for the page that is being read.
pub(super) struct Scratch(KVVec<u64>);

impl Scratch {
    pub(super) fn new(words: usize) -> Result<Self> {
        Ok(Self(KVVec::from_elem(0, words, GFP_KERNEL)?))
    }
}

impl AsMut<[u64]> for Scratch {
    fn as_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

/// The reader of a channel.
pub(super) type ChannelReader = Reader<ProgressTable, Scratch>;

/// Where pages go.
pub(super) trait Sink {
    /// Whether `len` bytes fit.
    fn takes(&self, len: usize) -> bool;

    /// Takes `chunk`, which fits, out of the channel and puts it there. [`false`] if it was overwritten
    /// meanwhile: then nothing is put there.
    ///
    /// # Errors
    ///
    /// It cannot be put there. It stays in the channel, so it comes again.
    fn put(&mut self, channel: &Channel, reader: &mut ChannelReader, chunk: Chunk) -> Result<bool>;
}

impl Sink for IovIterDest<'_> {
    fn takes(&self, len: usize) -> bool {
        len <= self.len()
    }

    fn put(&mut self, channel: &Channel, reader: &mut ChannelReader, chunk: Chunk) -> Result<bool> {
        let mut fault = false;
        let kept = iov::keep_if(self, |iov| {
            let put = |bytes: &[u8]| (iov.copy_to_iter(bytes) == bytes.len()).then_some(());
            fault = channel.copy(reader, &chunk, put).is_none();
            !fault && reader.consume(&channel.engine, chunk)
        });
        if fault {
            return Err(EFAULT);
        }
        Ok(kept)
    }
}

/// The timer of whoever polls.
pub(crate) type PollTimer = Option<RunningTimer>;

/// A timer that may run; it is stopped when this is dropped, and whoever polls next starts another.
pub(crate) struct RunningTimer {
    handle: Option<ArcHrTimerHandle<Channel>>,
    channel: Arc<Channel>,
}

impl Drop for RunningTimer {
    fn drop(&mut self) {
        // This waits until it has ended, so that it does not say afterwards that it has.
        self.handle = None;
        self.channel.timer_runs.store(false, Relaxed);
    }
}

impl Channel {
    /// Reads as many whole pages as there are and fit, at least one; none, at the end. May sleep.
    ///
    /// # Errors
    ///
    /// `EBUSY` (the reader maps the channel), `EINVAL` (not even one page fits), `EAGAIN` (there is none, and the caller does not wait),
    /// `EFAULT` (the page stays in the channel), `ERESTARTSYS` (signal).
    pub(crate) fn read(&self, iov: &mut IovIterDest<'_>, nonblocking: bool) -> Result<usize> {
        if !iov.takes(self.options.page_size) {
            return Err(EINVAL);
        }
        self.take(iov, nonblocking)
    }

    /// As [`Self::read`], to any place for at least one page.
    pub(super) fn take(&self, sink: &mut impl Sink, nonblocking: bool) -> Result<usize> {
        let mut waited = false;
        loop {
            // Records are old enough if they are so by their time, or if the caller or the timer has
            // waited for that long.
            let before = if waited || self.due.load(Relaxed) {
                u64::MAX
            } else {
                let clock = self.options.clock;
                clock
                    .now()
                    .saturating_sub(clock.advance_in(self.options.max_latency_ns))
            };
            // What was written before the end is there once the end is seen.
            let ended = self.has_ended();
            let delivered = self.deliver(sink, before)?;
            if delivered != 0 {
                return Ok(delivered);
            }
            self.due.store(false, Relaxed);
            if ended {
                return Ok(0);
            }
            if nonblocking {
                return Err(EAGAIN);
            }
            let woken = self.queue().wait(self.options.max_latency(), || {
                self.engine.want(1);
                self.engine.is_readable(1) || self.engine.is_mapped() || self.has_ended()
            })?;
            waited = woken == Woken::Timeout;
        }
    }

    /// Delivers pages while there are some, and returns how many bytes.
    fn deliver(&self, sink: &mut impl Sink, before: u64) -> Result<usize> {
        let mut reader = self.reader.lock();
        if self.engine.is_mapped() {
            return Err(EBUSY);
        }
        let mut delivered = 0;
        let mut cpu = 0;
        while sink.takes(self.options.page_size) {
            let Some(chunk) = self.next_chunk(&mut reader, &mut cpu, before) else {
                break;
            };
            match sink.put(self, &mut reader, chunk) {
                Ok(true) => {
                    delivered += self.options.page_size;
                    continue;
                }
                // The next one takes its place.
                Ok(false) => {}
                Err(error) if delivered == 0 => return Err(error),
                Err(_) => break,
            }
            if kernel::current!().signal_pending() {
                break;
            }
            clock::cond_resched();
        }
        Ok(delivered)
    }

    /// The next finished page, or what the CPUs from `cpu` on have in open ones.
    fn next_chunk(
        &self,
        reader: &mut ChannelReader,
        cpu: &mut usize,
        before: u64,
    ) -> Option<Chunk> {
        loop {
            if let Some(chunk) = reader.next(&self.engine) {
                return Some(chunk);
            }
            if *cpu >= cpus::count() {
                return None;
            }
            // A page of all CPUs can be closed from here.
            if self
                .engine
                .shared_since()
                .is_some_and(|begin| begin < before)
            {
                *cpu = cpus::count();
                self.engine.close(&PinnedCpu::new());
                continue;
            }
            let chunk = reader.next_open(&self.engine, *cpu, before);
            *cpu += 1;
            if chunk.is_some() {
                return chunk;
            }
        }
    }

    /// Gives `put` all bytes of a page, one part after the other; [`None`] if it does not take one.
    pub(super) fn copy(
        &self,
        reader: &mut ChannelReader,
        chunk: &Chunk,
        mut put: impl FnMut(&[u8]) -> Option<()>,
    ) -> Option<()> {
        put(chunk.header().as_bytes())?;
        reader.records(&self.engine, chunk, &mut put)?;
        let (nop, mut rest) = chunk.nop();
        if rest != 0 {
            put(nop.as_bytes())?;
            rest = rest.saturating_sub(size_of_val(&nop));
        }
        // What stands in the page behind the records is not for user space.
        const ZEROS: [u8; 256] = [0; 256];
        while rest != 0 {
            let part = rest.min(ZEROS.len());
            put(ZEROS.get(..part)?)?;
            rest -= part;
        }
        Some(())
    }

    /// Takes back what a reader who maps the channel is done with.
    fn reclaim(&self) {
        for queue in 0..self.engine.queues() {
            while self.engine.reclaim(queue) {}
        }
    }

    fn has_unread(&self) -> bool {
        (0..cpus::count()).any(|cpu| self.engine.has_unread(cpu))
    }

    /// Whether records have waited for long enough, and still wait.
    fn is_due(&self) -> bool {
        if !self.due.load(Relaxed) {
            return false;
        }
        // They may have been read with what was finished.
        let due = self.has_unread() || self.engine.is_readable(1);
        if !due {
            self.due.store(false, Relaxed);
        }
        due
    }

    fn readiness(&self) -> Readiness {
        if self.has_ended() {
            return Readiness::Ended {
                pages: self.engine.is_readable(1),
            };
        }
        if self.engine.is_mapped() {
            let pages = self.engine.is_readable(self.options.watermark);
            let open = self.is_due();
            return match pages || open {
                true => Readiness::Mapped { pages, open },
                false => Readiness::Idle,
            };
        }
        if self.engine.is_readable(self.options.watermark) || self.is_due() {
            Readiness::Readable
        } else {
            Readiness::Idle
        }
    }

    /// Enters the caller into the wait queue and says whether `read()` has something.
    pub(crate) fn poll(
        self: &Arc<Self>,
        file: &File,
        table: &mut PollTable<'_>,
        timer: &mut PollTimer,
    ) -> Readiness {
        self.queue().poll(file, table);
        self.reclaim();
        self.engine.want(self.options.watermark);
        let readiness = self.readiness();
        if readiness == Readiness::Idle && !self.timer_runs.load(Relaxed) {
            // The old one says that no timer runs when it goes, so it goes first.
            *timer = None;
            self.timer_runs.store(true, Relaxed);
            *timer = Some(RunningTimer {
                handle: Some(self.clone().start(self.options.max_latency())),
                channel: self.clone(),
            });
        }
        readiness
    }
}

impl HrTimerCallback for Channel {
    type Pointer<'a> = Arc<Self>;

    fn run(
        this: ArcBorrow<'_, Self>,
        mut context: HrTimerCallbackContext<'_, Self>,
    ) -> HrTimerRestart {
        let readable = this.has_unread() || this.engine.is_readable(1);
        if readable {
            this.due.store(true, Relaxed);
        }
        // Whoever enters the queue later starts another.
        this.timer_runs.store(false, Relaxed);
        smp_mb(Full);
        if readable {
            this.queue().wake();
        }
        if readable || !this.queue().has_waiters() {
            return HrTimerRestart::NoRestart;
        }
        this.timer_runs.store(true, Relaxed);
        context.forward_now(this.options.max_latency());
        HrTimerRestart::Restart
    }
}
