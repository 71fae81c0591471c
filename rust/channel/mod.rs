// SPDX-License-Identifier: GPL-2.0

//! The output channel: the engine of `weir_core` on the kernel's memory, clock and wake-ups.

mod backend;
mod delivery;
mod mapping;
mod options;
mod show;
mod write;

pub(crate) use delivery::PollTimer;
pub(crate) use options::Options;
pub(crate) use write::errno;

use crate::abs::{
    clock::Conversion,
    cpus,
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
            ordering::Relaxed,
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
}

kernel::impl_has_hr_timer! {
    impl HasHrTimer<Self> for Channel {
        mode: RelativeMode<Monotonic>, field: self.timer
    }
}

impl Channel {
    /// Makes a channel. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and `EINTR` on a signal.
    pub(crate) fn new(options: Options) -> Result<Arc<Self>> {
        let backend = KernelBackend::new(&options)?;
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
