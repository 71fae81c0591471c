// SPDX-License-Identifier: GPL-2.0

//! The CPUs of the machine, and running something on one of them.

use super::{
    bindings,
    pin::{
        DeadCpu,
        PinnedCpu, //
    },
};
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::{
        new_mutex,
        Mutex, //
    },
};
use weir_core::Pinned;

/// Number of CPUs that may ever be there; their numbers are smaller.
pub(crate) fn count() -> usize {
    kernel::cpu::nr_cpu_ids() as usize
}

/// Whether `cpu` is online; without a [`ReadGuard`] that may change at once.
pub(crate) fn is_online(cpu: usize) -> bool {
    // SAFETY: `cpu` is smaller than the number of CPUs, by the left side.
    cpu < count() && unsafe { bindings::weir_helper_cpu_online(cpu as u32) }
}

/// A part of the machine's memory, or any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node(c_int);

impl Node {
    /// The one that is nearest to `cpu`.
    pub(crate) fn of_cpu(cpu: usize) -> Self {
        // SAFETY: May be called for any number.
        Self(unsafe { bindings::weir_helper_cpu_to_node(cpu as u32) })
    }

    /// Its number in C.
    pub(super) fn as_raw(self) -> c_int {
        self.0
    }
}

/// No CPU comes or goes while this lives. Sleeps.
///
/// C API: `cpus_read_lock()`.
pub(crate) struct ReadGuard(());

impl ReadGuard {
    /// Waits until no CPU is coming or going.
    pub(crate) fn new() -> Self {
        // SAFETY: The callers are in process context; `drop` undoes it.
        unsafe { bindings::weir_helper_cpus_read_lock() };
        Self(())
    }

    /// Whether `cpu` is online.
    pub(crate) fn is_online(&self, cpu: usize) -> bool {
        is_online(cpu)
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        // SAFETY: Taken in `new`.
        unsafe { bindings::weir_helper_cpus_read_unlock() };
    }
}

/// Something to do on a CPU: it may be done there, or for it while it is offline.
pub(crate) trait OnCpu {
    /// Does it. Runs with interrupts off, and must not sleep.
    fn run<P: Pinned>(&mut self, pin: &P);
}

/// Runs things on CPUs, one at a time.
#[pin_data]
pub(crate) struct Runner {
    #[pin]
    one: Mutex<()>,
}

impl Runner {
    /// Makes one.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            one <- new_mutex!((), "weir_cpus"),
        })
    }

    /// Runs `work` on `cpu`, or here if it is offline, and waits for its end. Sleeps.
    pub(crate) fn on<W: OnCpu>(&self, guard: &ReadGuard, cpu: usize, work: &mut W) {
        // Two that act for the same CPU while it is offline would meet on it.
        let _one = self.one.lock();
        if let Some(pin) = DeadCpu::new(guard, cpu) {
            work.run(&pin);
            return;
        }
        let info: *mut W = work;
        // SAFETY: The CPU is online and stays so, by the guard. `call` gets the pointer it expects,
        // valid until this returns, which is after `call` did, since it waits. Interrupts are on.
        let done = unsafe {
            kernel::bindings::smp_call_function_single(
                cpu as c_int,
                Some(call::<W>),
                info.cast(),
                true,
            )
        };
        debug_assert!(done == 0);
    }
}

/// # Safety
///
/// `info` points to a `W` that nobody else uses meanwhile.
unsafe extern "C" fn call<W: OnCpu>(info: *mut c_void) {
    // SAFETY: By the safety requirements.
    let work = unsafe { &mut *info.cast::<W>() };
    work.run(&PinnedCpu::new());
}
