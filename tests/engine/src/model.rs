// SPDX-License-Identifier: GPL-2.0

//! The word of the model checker.

use loom::sync::atomic::{
    fence,
    AtomicU64,
    Ordering, //
};
use weir_core::Word;

/// The word. What is local to a CPU is as weak as it may be.
pub struct ModelWord(AtomicU64);

impl Word for ModelWord {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    fn load(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn load_acquire(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn store(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn store_release(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }

    fn local_compare_exchange(&self, old: u64, new: u64) -> Result<(), u64> {
        self.0
            .compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed)
            .map(|_| ())
    }

    fn local_add(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    fn local_swap(&self, value: u64) -> u64 {
        self.0.swap(value, Ordering::Relaxed)
    }

    fn compare_exchange(&self, old: u64, new: u64) -> Result<(), u64> {
        self.0
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
    }

    fn fetch_add(&self, value: u64) -> u64 {
        self.0.fetch_add(value, Ordering::AcqRel)
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}
