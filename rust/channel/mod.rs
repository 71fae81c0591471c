// SPDX-License-Identifier: GPL-2.0

//! The output channel: the engine of `weir_core` on the kernel's memory, clock and wake-ups.

mod backend;
mod delivery;
mod mapping;
mod mark;
mod options;
mod show;
mod splice;
mod write;

pub(crate) use delivery::PollTimer;
pub(crate) use options::Options;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) use write::Room;
pub(crate) use write::{
    errno,
    event_len,
    Event, //
};

use crate::abs::{
    clock::Conversion,
    cpus,
    locked_memory::LockedMemory,
    wait_queue::WaitQueue, //
};
use backend::KernelBackend;
use delivery::{
    ChannelReader,
    ProgressTable,
    Scratch, //
};
use kernel::{
    pid_namespace::PidNamespace,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            ordering::{
                Acquire,
                Full,
                Relaxed,
                Release, //
            },
            Atomic, //
        },
        new_mutex,
        Arc,
        Mutex, //
    },
    time::{
        hrtimer::{
            HrTimer,
            RelativeMode, //
        },
        Monotonic, //
    },
};
use weir_core::{
    uapi::ClockReq,
    Mode,
    Pinned,
    Reader,
    Status, //
};

/// A channel. Writers hold a reference; the file that made it is its reader.
#[pin_data]
pub(crate) struct Channel {
    engine: weir_core::Channel<KernelBackend>,
    options: Options,
    /// What makes ns of its times, if they are none.
    conversion: Option<Conversion>,
    /// Numbers of tasks in records are those of this namespace: its maker's.
    namespace: ARef<PidNamespace>,
    #[pin]
    reader: Mutex<ChannelReader>,
    #[pin]
    cpus: cpus::Runner,
    /// Runs while somebody polls and nothing is there; see `delivery`.
    #[pin]
    timer: HrTimer<Self>,
    timer_runs: Atomic<bool>,
    /// Records of open pages have waited for long enough.
    due: Atomic<bool>,
    /// Of a channel that another module has created: it has a reader.
    attached: Atomic<bool>,
    /// Nobody writes any more.
    ended: Atomic<bool>,
    /// Pages are in a mapping, or were once. Set, and looked at, by whoever has `reader`.
    pages_mapped: Atomic<bool>,
}

/// The one reader of a channel that another module has created; it is free for another one when this is
/// dropped.
pub(crate) struct Attachment(Arc<Channel>);

impl Attachment {
    /// Attaches a channel.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it has a reader.
    pub(crate) fn new(channel: Arc<Channel>) -> Result<Self> {
        match channel.attached.cmpxchg(false, true, Full) {
            Ok(_) => Ok(Self(channel)),
            Err(_) => Err(EBUSY),
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.0.attached.store(false, Release);
    }
}

kernel::impl_has_hr_timer! {
    impl HasHrTimer<Self> for Channel {
        mode: RelativeMode<Monotonic>, field: self.timer
    }
}

impl Channel {
    /// Makes a channel, whose memory counts as `locked`. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and `EINTR` on a signal.
    pub(crate) fn new(options: Options, locked: Option<LockedMemory>) -> Result<Arc<Self>> {
        let backend = KernelBackend::new(&options, locked)?;
        let progress = ProgressTable::new(cpus::count())?;
        let scratch = Scratch::new(options.scratch())?;
        let namespace = kernel::current!().active_pid_ns().ok_or(ESRCH)?.into();
        Arc::pin_init(
            try_pin_init!(Self {
                engine: weir_core::Channel::new(
                    backend,
                    options.model,
                    options.mode,
                    options.reserve(),
                ),
                options,
                conversion: options.clock.conversion(),
                namespace,
                reader <- new_mutex!(Reader::new(progress, scratch), "weir_reader"),
                cpus <- cpus::Runner::new(),
                timer <- HrTimer::new(),
                timer_runs: Atomic::new(false),
                due: Atomic::new(false),
                attached: Atomic::new(false),
                ended: Atomic::new(false),
                pages_mapped: Atomic::new(false),
            }),
            GFP_KERNEL,
        )
    }

    /// What CPU `cpu` did so far.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such CPU.
    pub(crate) fn status(&self, cpu: usize) -> Result<Status> {
        self.engine.status(cpu).ok_or(EINVAL)
    }

    /// Says what times in the channel are.
    pub(crate) fn clock(&self, request: &mut ClockReq) {
        if let Some(conversion) = self.conversion {
            request.mult = conversion.mult;
            request.shift = conversion.shift;
            request.base = conversion.base;
            request.ns = conversion.ns;
        }
        request.clock = self.options.clock_number;
    }

    /// Keeps, with one, every page that is not read; overwrites again, with zero.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is another number, or the channel does not overwrite.
    pub(crate) fn freeze(&self, frozen: u32) -> Result {
        if self.options.mode != Mode::Overwrite || frozen > 1 {
            return Err(EINVAL);
        }
        self.engine.freeze(frozen == 1);
        Ok(())
    }

    /// Closes every open page: what was committed before is readable on return. Sleeps.
    ///
    /// # Errors
    ///
    /// `ERESTARTSYS` on a signal.
    pub(crate) fn flush(&self) -> Result {
        self.close_all(pause)
    }

    /// Nobody writes any more: what is there is finished, and behind it comes the end. Sleeps.
    pub(crate) fn end(&self) {
        let closed = self.close_all(|| {
            crate::abs::clock::cond_resched();
            Ok(())
        });
        // Nothing that could fail was given.
        debug_assert!(closed.is_ok());
        self.ended.store(true, Release);
        self.queue().wake();
    }

    /// Whether nobody writes any more.
    fn has_ended(&self) -> bool {
        self.ended.load(Acquire)
    }

    /// Closes every open page, and calls `pause` where there is something to wait for.
    fn close_all(&self, pause: impl Fn() -> Result) -> Result {
        let guard = cpus::ReadGuard::new();
        for cpu in 0..cpus::count() {
            // A CPU that is in the middle of a write does the rest when that ends, which is soon, as
            // it cannot be preempted.
            while self.engine.has_open(cpu) && !self.close_on(&guard, cpu) {
                pause()?;
            }
        }
        // A writer that drew a ticket and was interrupted holds up what comes behind.
        let drawn = self.engine.drawn();
        while !self.engine.is_settled(drawn) {
            pause()?;
        }
        self.due.store(false, Relaxed);
        self.queue().wake();
        Ok(())
    }

    /// Closes the open page of `cpu`, on that CPU, and says whether it is readable.
    fn close_on(&self, guard: &cpus::ReadGuard, cpu: usize) -> bool {
        struct Close<'a> {
            channel: &'a Channel,
            done: bool,
        }
        impl cpus::OnCpu for Close<'_> {
            fn run<P: Pinned>(&mut self, pin: &P) {
                self.done = self.channel.engine.close(pin);
            }
        }
        let mut close = Close {
            channel: self,
            done: false,
        };
        self.cpus.on(guard, cpu, &mut close);
        close.done
    }

    fn queue(&self) -> &WaitQueue {
        self.engine.backend().queue()
    }
}

/// Lets others run, unless a signal is there.
fn pause() -> Result {
    if kernel::current!().signal_pending() {
        return Err(ERESTARTSYS);
    }
    crate::abs::clock::cond_resched();
    Ok(())
}
