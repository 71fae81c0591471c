// SPDX-License-Identifier: GPL-2.0

//! Staying on one CPU.

use core::marker::PhantomData;
use kernel::types::NotThreadSafe;
use weir_core::Pinned;

/// Preemption is off as long as this lives. Any context may turn it off, NMI too.
///
/// # Invariants
///
/// It was turned off in this very context, for this value.
pub(crate) struct PreemptGuard(NotThreadSafe);

impl Drop for PreemptGuard {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariants preemption was turned off, in this very context, since the
        // value cannot go to another.
        unsafe { count::enable() };
    }
}

/// Preemption is off as long as this lives, so that the CPU is known.
///
/// # Invariants
///
/// `cpu` is where the code that holds it runs, or nothing where that is looked up as fast as it is kept.
pub(crate) struct PinnedCpu {
    guard: PreemptGuard,
    cpu: count::Cpu,
}

impl PinnedCpu {
    /// Stays on this CPU from now on. Any context.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        let cpu = count::disable();
        // INVARIANT: It was just turned off, and this is the CPU.
        Self {
            guard: PreemptGuard(NotThreadSafe::default()),
            cpu,
        }
    }

    /// Only what keeps it here.
    #[inline(always)]
    pub(crate) fn into_guard(self) -> PreemptGuard {
        self.guard
    }
}

/// As the kernel's inline functions do it, where that takes an instruction each: they are a third of what
/// a record costs if they are called.
#[cfg(all(CONFIG_X86_64, CONFIG_SMP, CONFIG_PREEMPT_COUNT, not(CONFIG_UML)))]
mod count {
    use super::super::bindings;
    use core::arch::asm;

    /// Nothing has to be kept to know the CPU.
    #[derive(Clone, Copy)]
    pub(super) struct Cpu;

    /// `preempt_disable_notrace()`.
    #[inline(always)]
    pub(super) fn disable() -> Cpu {
        // SAFETY: It is a variable of each CPU, which `gs` points to. One instruction is atomic against
        // interrupts of this CPU, and against going to another. What follows is not moved before, as it is
        // no `nomem`.
        unsafe {
            match bindings::WEIR_PREEMPT_COUNT_SIZE {
                8 => asm!("inc qword ptr gs:[rip + {}]", sym bindings::__preempt_count,
                    options(nostack)),
                _ => asm!("inc dword ptr gs:[rip + {}]", sym bindings::__preempt_count,
                    options(nostack)),
            }
        }
        Cpu
    }

    /// `raw_smp_processor_id()`.
    #[inline(always)]
    pub(super) fn number(Cpu: Cpu) -> usize {
        let cpu: usize;
        // SAFETY: A variable of each CPU, too.
        unsafe {
            asm!("mov {:e}, dword ptr gs:[rip + {}]", out(reg) cpu, sym bindings::cpu_number,
                options(nostack, preserves_flags, readonly));
        }
        cpu
    }

    /// `preempt_enable_notrace()`.
    ///
    /// # Safety
    ///
    /// Follows a [`disable`] of this context.
    #[inline(always)]
    pub(super) unsafe fn enable() {
        // SAFETY: As in `disable`. What is called is a function of C's calling convention, which may be called
        // where the count has become zero. There is nothing below the stack pointer that the call could
        // overwrite, as the kernel has no red zone; and nobody in it needs more than its alignment to eight.
        unsafe {
            match bindings::WEIR_PREEMPT_COUNT_SIZE {
                8 => asm!("dec qword ptr gs:[rip + {}]", "jnz 2f", "call {}", "2:",
                    sym bindings::__preempt_count, sym reschedule, clobber_abi("C"),
                    options(nostack)),
                _ => asm!("dec dword ptr gs:[rip + {}]", "jnz 2f", "call {}", "2:",
                    sym bindings::__preempt_count, sym reschedule, clobber_abi("C"),
                    options(nostack)),
            }
        }
    }

    /// It can be preempted, and somebody wants it to be.
    #[cold]
    extern "C" fn reschedule() {
        // SAFETY: Any context. The count is as before, but the kernel's own code sees it become zero.
        unsafe {
            bindings::weir_helper_preempt_disable();
            bindings::weir_helper_preempt_enable();
        }
    }
}

#[cfg(not(all(CONFIG_X86_64, CONFIG_SMP, CONFIG_PREEMPT_COUNT, not(CONFIG_UML))))]
mod count {
    use super::super::bindings;

    /// The number of the CPU.
    pub(super) type Cpu = u32;

    /// `preempt_disable_notrace()`, and `raw_smp_processor_id()`.
    #[inline]
    pub(super) fn disable() -> Cpu {
        // SAFETY: May be called in any context.
        unsafe { bindings::weir_helper_preempt_disable() }
    }

    #[inline]
    pub(super) fn number(cpu: Cpu) -> usize {
        cpu as usize
    }

    /// `preempt_enable_notrace()`.
    ///
    /// # Safety
    ///
    /// Follows a [`disable`] of this context.
    #[inline]
    pub(super) unsafe fn enable() {
        // SAFETY: By the safety requirements.
        unsafe { bindings::weir_helper_preempt_enable() };
    }
}

// SAFETY: With preemption off, only interrupts run on this CPU, and they end before the code that they
// interrupted goes on. Softirqs run in threads with preemption on real-time kernels, but cannot be
// scheduled here while it is off.
unsafe impl Pinned for PinnedCpu {
    const HERE: bool = true;

    #[inline(always)]
    fn cpu(&self) -> usize {
        count::number(self.cpu)
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
