// SPDX-License-Identifier: GPL-2.0

//! The atomic words that the engine is written on.
//!
//! The module, the host tests and the model checker each bring their own; the algorithms are the
//! same source for all of them.

/// A 64-bit word that CPUs share.
///
/// The names are those of the kernel's memory model: a plain `load` or `store` is relaxed, the others
/// order as they say. The `local_` operations are atomic against interrupts of the CPU that owns the
/// word, but not against other CPUs; only the owner may call them, and only the owner writes the word
/// by any other means.
pub trait Word: Send + Sync {
    /// Makes a word.
    fn new(value: u64) -> Self;

    /// Loads, relaxed.
    fn load(&self) -> u64;

    /// Loads; what follows is not done before.
    fn load_acquire(&self) -> u64;

    /// Stores, relaxed.
    fn store(&self, value: u64);

    /// Stores; what precedes is done before.
    fn store_release(&self, value: u64);

    /// Replaces `old` by `new`, atomic on this CPU only; fails with the value found.
    fn local_compare_exchange(&self, old: u64, new: u64) -> Result<(), u64>;

    /// Adds, atomic on this CPU only.
    fn local_add(&self, value: u64);

    /// Replaces the value and returns the one before, atomic on this CPU only.
    fn local_swap(&self, value: u64) -> u64;

    /// Replaces `old` by `new`, fully ordered; fails with the value found.
    fn compare_exchange(&self, old: u64, new: u64) -> Result<(), u64>;

    /// Adds and returns the value before, fully ordered.
    fn fetch_add(&self, value: u64) -> u64;

    /// Orders everything before against everything after.
    fn fence();
}
