// SPDX-License-Identifier: GPL-2.0

//! Clocks that may be read in any context.
//!
//! C API: [timekeeping](https://docs.kernel.org/core-api/timekeeping.html).

use super::bindings;

/// A clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// `CLOCK_MONOTONIC` in ns. In an NMI it may be behind an earlier reading by a few ns.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW` in ns, which nobody adjusts; with the same exception.
    MonotonicRaw,
    /// `CLOCK_BOOTTIME` in ns, which goes on while the machine sleeps; with the same exception.
    Boottime,
    /// What perf stamps its events with, in ns. Each CPU has its own where their counters do not agree.
    Perf,
    /// The time stamp counter of the processor, in cycles.
    Tsc,
}

/// How a reading of a clock becomes ns of [`Clock::MonotonicRaw`]: `ns + ((reading - base) * mult >> shift)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    pub(crate) mult: u32,
    pub(crate) shift: u32,
    pub(crate) base: u64,
    pub(crate) ns: u64,
}

impl Clock {
    /// Reads it.
    #[inline(always)]
    pub(crate) fn now(self) -> u64 {
        match self {
            // SAFETY: May be called in any context.
            Self::Monotonic => unsafe { kernel::bindings::ktime_get_mono_fast_ns() },
            // SAFETY: As above.
            Self::Perf => unsafe { bindings::weir_helper_local_clock() },
            // What is asked for less comes second, so that the others need no table of places to jump to.
            Self::MonotonicRaw | Self::Boottime | Self::Tsc => self.now_of_others(),
        }
    }

    #[inline(never)]
    fn now_of_others(self) -> u64 {
        match self {
            Self::Monotonic | Self::Perf => self.now(),
            // SAFETY: May be called in any context.
            Self::MonotonicRaw => unsafe { kernel::bindings::ktime_get_raw_fast_ns() },
            // SAFETY: As above.
            Self::Boottime => unsafe { kernel::bindings::ktime_get_boot_fast_ns() },
            Self::Tsc => tsc(),
        }
    }

    /// Whether reading it takes no call, but [`read_inline`](Self::read_inline) does it.
    #[inline(always)]
    pub(crate) fn is_inline(self) -> bool {
        self == Self::Tsc
    }

    /// Reads the clock that [is inline](Self::is_inline).
    #[inline(always)]
    pub(crate) fn read_inline() -> u64 {
        tsc()
    }

    /// Whether this machine has it.
    pub(crate) fn is_available(self) -> bool {
        // SAFETY: May be called in any context.
        self != Self::Tsc || unsafe { bindings::weir_helper_tsc_khz() } != 0
    }

    /// How to make ns of it, if it counts something else.
    pub(crate) fn conversion(self) -> Option<Conversion> {
        if self != Self::Tsc {
            return None;
        }
        // SAFETY: May be called in any context.
        let khz = u64::from(unsafe { bindings::weir_helper_tsc_khz() });
        // As precise as 32 bits allow.
        let (mult, shift) = (0..=32).rev().find_map(|shift| {
            let mult = (1_000_000u64 << shift).checked_div(khz)?;
            Some((u32::try_from(mult).ok()?, shift))
        })?;
        Some(Conversion {
            mult,
            shift,
            base: self.now(),
            ns: Self::MonotonicRaw.now(),
        })
    }

    /// How much the clock advances in `ns`, roughly.
    pub(crate) fn advance_in(self, ns: u64) -> u64 {
        if self != Self::Tsc {
            return ns;
        }
        // SAFETY: May be called in any context.
        let khz = u64::from(unsafe { bindings::weir_helper_tsc_khz() });
        (ns / 1_000).saturating_mul(khz) / 1_000
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn tsc() -> u64 {
    let cycles;
    // SAFETY: Every such processor has the instruction. The halves are put together right here, which the compiler
    // would do where it suits the instructions that follow less.
    unsafe {
        core::arch::asm!(
            "rdtsc",
            "shl rdx, 32",
            "or rdx, rax",
            out("rdx") cycles,
            out("rax") _,
            options(nomem, nostack)
        );
    }
    cycles
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc() -> u64 {
    // It is not available.
    0
}

/// Lets others run, if it is their turn. May sleep.
pub(crate) fn cond_resched() {
    // SAFETY: The caller's context may sleep.
    unsafe { bindings::weir_helper_cond_resched() };
}
