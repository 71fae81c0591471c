// SPDX-License-Identifier: GPL-2.0

//! The engine at full speed: words as the module has them on x86-64, pages in memory, the processor's
//! own clock.

use crate::backend::Clock;
use std::{
    arch::asm,
    ptr::NonNull,
    sync::atomic::{
        fence,
        AtomicU64,
        Ordering, //
    },
};
use weir_core::{
    Addresses,
    MappedPages,
    Word, //
};

/// The word; what is local to a CPU has no `lock` prefix.
pub struct NativeWord(AtomicU64);

/// `cmpxchg` without `lock`; returns what was found.
#[inline(always)]
pub fn local_compare_exchange(word: &AtomicU64, old: u64, new: u64) -> u64 {
    let found;
    // SAFETY: The word is valid and aligned, and only the CPU that owns it writes it.
    unsafe {
        asm!(
            "cmpxchg qword ptr [{word}], {new}",
            word = in(reg) word.as_ptr(),
            new = in(reg) new,
            inout("rax") old => found,
            options(nostack),
        );
    }
    found
}

impl Word for NativeWord {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    #[inline(always)]
    fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn load_acquire(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn store_release(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    #[inline(always)]
    fn local_compare_exchange(&self, old: u64, new: u64) -> Result<(), u64> {
        match local_compare_exchange(&self.0, old, new) {
            found if found == old => Ok(()),
            found => Err(found),
        }
    }

    fn local_add(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    fn local_swap(&self, value: u64) -> u64 {
        self.0.swap(value, Ordering::Relaxed)
    }

    fn compare_exchange(&self, old: u64, new: u64) -> Result<(), u64> {
        self.0
            .compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst)
            .map(|_| ())
    }

    fn fetch_add(&self, value: u64) -> u64 {
        self.0.fetch_add(value, Ordering::SeqCst)
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// The time stamp counter.
#[derive(Debug, Default)]
pub struct Tsc;

impl Clock for Tsc {
    #[inline(always)]
    fn now(&self) -> u64 {
        // SAFETY: Every x86-64 processor has it, and user space may read it on Linux.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
}

/// Addresses of pages that nobody else refers to.
pub struct Leaked(Vec<NonNull<u8>>);

impl AsRef<[NonNull<u8>]> for Leaked {
    fn as_ref(&self) -> &[NonNull<u8>] {
        &self.0
    }
}

impl Addresses for Leaked {
    fn is_held(&self, _page: u32) -> bool {
        false
    }
}

/// `count` pages of `page_size` bytes that live until the process ends.
pub fn pages(count: usize, page_size: usize) -> MappedPages<Leaked> {
    let memory = Box::leak(vec![0u64; count * page_size / 8].into_boxed_slice());
    let pages = memory
        .chunks_exact_mut(page_size / 8)
        .map(|page| NonNull::from(page).cast())
        .collect();
    // SAFETY: Each is `page_size` bytes, zeroed, of memory that was leaked and is used nowhere else.
    unsafe { MappedPages::new(Leaked(pages), page_size) }
}
