// SPDX-License-Identifier: GPL-2.0

//! The word of the model checker, and words that are wrong.

use loom::sync::atomic::{
    fence,
    AtomicU64,
    Ordering, //
};
use weir_core::Word;

/// Which guarantee a word does not give, for tests of the tests.
pub trait Flaw: Send + Sync + 'static {
    /// A store with release is one without.
    const STORE_RELEASE: bool = false;
    /// An exchange between CPUs orders nothing.
    const EXCHANGE: bool = false;
    /// A fence does nothing.
    const FENCE: bool = false;
}

/// Gives all of them.
pub struct Sound;
impl Flaw for Sound {}

/// See [`Flaw::STORE_RELEASE`].
pub struct NoRelease;
impl Flaw for NoRelease {
    const STORE_RELEASE: bool = true;
}

/// See [`Flaw::EXCHANGE`].
pub struct NoOrderOfExchanges;
impl Flaw for NoOrderOfExchanges {
    const EXCHANGE: bool = true;
}

/// See [`Flaw::FENCE`].
pub struct NoFence;
impl Flaw for NoFence {
    const FENCE: bool = true;
}

/// The word. What is local to a CPU is as weak as it may be.
pub struct ModelWord<F = Sound>(AtomicU64, std::marker::PhantomData<F>);

impl<F: Flaw> Word for ModelWord<F> {
    fn new(value: u64) -> Self {
        Self(AtomicU64::new(value), std::marker::PhantomData)
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
        let ordering = match F::STORE_RELEASE {
            true => Ordering::Relaxed,
            false => Ordering::Release,
        };
        self.0.store(value, ordering);
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
        let (success, failure) = match F::EXCHANGE {
            true => (Ordering::Relaxed, Ordering::Relaxed),
            false => (Ordering::AcqRel, Ordering::Acquire),
        };
        self.0
            .compare_exchange(old, new, success, failure)
            .map(|_| ())
    }

    fn fetch_add(&self, value: u64) -> u64 {
        let ordering = match F::EXCHANGE {
            true => Ordering::Relaxed,
            false => Ordering::AcqRel,
        };
        self.0.fetch_add(value, ordering)
    }

    fn fence() {
        if !F::FENCE {
            fence(Ordering::SeqCst);
        }
    }
}
