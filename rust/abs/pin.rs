// SPDX-License-Identifier: GPL-2.0

//! Staying on one CPU.

use super::bindings;
use core::marker::PhantomData;
use kernel::types::NotThreadSafe;
use weir_core::Pinned;

/// Preemption is off as long as this lives. Any context may take it, NMI too.
///
/// # Invariants
///
/// The code that holds it runs on CPU `cpu` with preemption off.
pub(crate) struct PinnedCpu {
    cpu: usize,
    _not_send: NotThreadSafe,
}

impl PinnedCpu {
    /// Stays on this CPU from now on.
    #[inline]
    pub(crate) fn new() -> Self {
        // SAFETY: May be called in any context; `drop` undoes it.
        let cpu = unsafe { bindings::weir_helper_pin_cpu() };
        // INVARIANT: Preemption was just turned off, and this is the CPU.
        Self {
            cpu: cpu as usize,
            _not_send: PhantomData,
        }
    }
}

impl Drop for PinnedCpu {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants preemption was turned off, in this very context, since the
        // value cannot go to another.
        unsafe { bindings::weir_helper_unpin_cpu() };
    }
}

// SAFETY: With preemption off, only interrupts run on this CPU, and they end before the code that they
// interrupted goes on. Softirqs run in threads with preemption on real-time kernels, but cannot be
// scheduled here while it is off.
unsafe impl Pinned for PinnedCpu {
    #[inline]
    fn cpu(&self) -> usize {
        self.cpu
    }
}

/// Stands for a CPU that is offline, on behalf of which somebody else acts.
///
/// # Invariants
///
/// CPU `cpu` is offline and stays so while the value lives.
pub(crate) struct DeadCpu<'a> {
    cpu: usize,
    _guard: PhantomData<&'a super::cpus::ReadGuard>,
}

impl<'a> DeadCpu<'a> {
    /// `cpu`, if it is offline. Two values for the same CPU must not be used at the same time.
    pub(super) fn new(guard: &'a super::cpus::ReadGuard, cpu: usize) -> Option<Self> {
        if guard.is_online(cpu) {
            return None;
        }
        // INVARIANT: It is offline, and the guard keeps it so.
        Some(Self {
            cpu,
            _guard: PhantomData,
        })
    }
}

// SAFETY: Nothing runs on a CPU that is offline, and `cpus::Cpus::on` sees to it that only one at a time
// acts for it.
unsafe impl Pinned for DeadCpu<'_> {
    fn cpu(&self) -> usize {
        self.cpu
    }
}
