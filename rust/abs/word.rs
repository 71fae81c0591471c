// SPDX-License-Identifier: GPL-2.0

//! The engine's atomic word, on the kernel's atomics.
//!
//! The `kernel` crate calls a C function for every operation, even a load, and has none that are
//! atomic on one CPU only. For each record the engine needs some loads and stores and one such
//! compare-exchange, so on x86-64 those are instructions here; elsewhere they are the kernel's.

use kernel::sync::{
    atomic::{
        ordering,
        Atomic, //
    },
    barrier::smp_mb,
};
use weir_core::Word;

/// A word that CPUs share.
#[repr(transparent)]
pub(crate) struct KernelWord(Atomic<u64>);

impl KernelWord {
    /// `READ_ONCE()`.
    #[inline(always)]
    fn read_once(&self) -> u64 {
        // SAFETY: The pointer is valid and aligned. A volatile access of a machine word is what the
        // kernel's `READ_ONCE()` is, so it does not race with the atomic operations on the word.
        unsafe { self.0.as_ptr().read_volatile() }
    }

    /// `WRITE_ONCE()`.
    #[inline(always)]
    fn write_once(&self, value: u64) {
        // SAFETY: As in `read_once`.
        unsafe { self.0.as_ptr().write_volatile(value) };
    }
}

/// Keeps the compiler from moving memory accesses across.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn barrier() {
    // SAFETY: No instruction at all.
    unsafe { core::arch::asm!("", options(nostack, preserves_flags)) };
}

impl Word for KernelWord {
    fn new(value: u64) -> Self {
        Self(Atomic::new(value))
    }

    #[inline(always)]
    fn load(&self) -> u64 {
        self.read_once()
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        self.write_once(value);
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn load_acquire(&self) -> u64 {
        // The processor does not move loads or stores before a load.
        let value = self.read_once();
        barrier();
        value
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn load_acquire(&self) -> u64 {
        self.0.load(ordering::Acquire)
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn store_release(&self, value: u64) {
        // The processor does not move loads or stores behind a store.
        barrier();
        self.write_once(value);
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn store_release(&self, value: u64) {
        self.0.store(value, ordering::Release);
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn local_compare_exchange(&self, old: u64, new: u64) -> Result<(), u64> {
        let found: u64;
        // SAFETY: The pointer is valid, aligned and writable. One instruction is atomic against
        // interrupts of this CPU, and by the contract of the trait no other CPU writes the word.
        unsafe {
            core::arch::asm!(
                "cmpxchg qword ptr [{word}], {new}",
                word = in(reg) self.0.as_ptr(),
                new = in(reg) new,
                inout("rax") old => found,
                options(nostack),
            );
        }
        if found == old {
            Ok(())
        } else {
            Err(found)
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn local_compare_exchange(&self, old: u64, new: u64) -> Result<(), u64> {
        self.0.cmpxchg(old, new, ordering::Relaxed).map(|_| ())
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn local_add(&self, value: u64) {
        // SAFETY: As in `local_compare_exchange`.
        unsafe {
            core::arch::asm!(
                "add qword ptr [{word}], {value}",
                word = in(reg) self.0.as_ptr(),
                value = in(reg) value,
                options(nostack),
            );
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn local_add(&self, value: u64) {
        self.0.fetch_add(value, ordering::Relaxed);
    }

    fn local_swap(&self, value: u64) -> u64 {
        self.0.xchg(value, ordering::Relaxed)
    }

    fn compare_exchange(&self, old: u64, new: u64) -> Result<(), u64> {
        self.0.cmpxchg(old, new, ordering::Full).map(|_| ())
    }

    fn fetch_add(&self, value: u64) -> u64 {
        self.0.fetch_add(value, ordering::Full)
    }

    fn fence() {
        smp_mb(ordering::Full);
    }
}
