// SPDX-License-Identifier: GPL-2.0

//! A small backend for the tests of this crate, on the host and as KUnit, with a clock of its own.

use crate::{
    Backend,
    Channel,
    CpuState,
    Mode,
    Model,
    PageMemory,
    PageState,
    Word,
    HEADER_SIZE, //
};
use core::{
    ops::Range,
    sync::atomic::{
        AtomicU64,
        AtomicU8,
        Ordering, //
    },
};

/// Bytes of a page: room for five records of [`RECORD`] bytes.
pub(crate) const PAGE: usize = HEADER_SIZE + 5 * RECORD;
/// Bytes of a record in these tests.
pub(crate) const RECORD: usize = 32;
/// Pages of the pool.
pub(crate) const PAGES: usize = 8;
/// CPUs.
pub(crate) const CPUS: usize = 2;

/// A word of the language's own atomics. Tests of one thread need no other.
pub(crate) struct TestWord(AtomicU64);

impl Word for TestWord {
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
        self.compare_exchange(old, new)
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
        core::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// Pages of bytes that may be accessed at any time.
pub(crate) struct TestMemory {
    bytes: [[AtomicU8; PAGE]; PAGES],
    /// How many refer to each page.
    pub(crate) holders: [AtomicU64; PAGES],
}

impl PageMemory for TestMemory {
    type Place = (u32, usize, usize);

    fn place(&self, page: u32, offset: usize, len: usize) -> Option<Self::Place> {
        (offset.checked_add(len)? <= PAGE).then_some((page, offset, len))
    }
    fn clear_end(&self, place: Self::Place) {
        let (page, start, len) = place;
        self.write(page, start + len - 8, &[0; 8]);
    }

    fn write_at(&self, place: Self::Place, offset: usize, bytes: &[u8]) {
        let (page, start, len) = place;
        if offset + bytes.len() <= len {
            self.write(page, start + offset, bytes);
        }
    }
    fn page_size(&self) -> usize {
        PAGE
    }
    fn write(&self, page: u32, offset: usize, bytes: &[u8]) {
        for (at, byte) in bytes.iter().enumerate() {
            self.bytes[page as usize][offset + at].store(*byte, Ordering::Relaxed);
        }
    }
    fn read<R>(&self, page: u32, range: Range<usize>, f: impl FnOnce(&[u8]) -> R) -> R {
        let mut copy = [0; PAGE];
        for at in range.clone() {
            copy[at] = self.bytes[page as usize][at].load(Ordering::Relaxed);
        }
        f(&copy[range])
    }
    fn copy(&self, page: u32, to: &mut [u64]) {
        for (at, word) in to.iter_mut().enumerate() {
            *word = self.read(page, at * 8..at * 8 + 8, |bytes| {
                bytes
                    .iter()
                    .rev()
                    .fold(0, |word, byte| word << 8 | u64::from(*byte))
            });
        }
    }
    fn is_held(&self, page: u32) -> bool {
        self.holders[page as usize].load(Ordering::Acquire) != 0
    }
}

/// The backend.
pub(crate) struct TestBackend {
    cpus: [CpuState<TestWord>; CPUS],
    pages: [PageState<TestWord>; PAGES],
    ring: [TestWord; PAGES],
    positions: [TestWord; CPUS],
    memory: TestMemory,
    pub(crate) now: AtomicU64,
    pub(crate) wakes: AtomicU64,
}

impl Backend for TestBackend {
    type Word = TestWord;
    type Memory = TestMemory;

    fn cpus(&self) -> &[CpuState<TestWord>] {
        &self.cpus
    }
    fn pages(&self) -> &[PageState<TestWord>] {
        &self.pages
    }
    fn ring(&self) -> &[TestWord] {
        &self.ring
    }
    fn positions(&self) -> &[TestWord] {
        &self.positions
    }
    fn memory(&self) -> &TestMemory {
        &self.memory
    }
    fn clock(&self) -> u64 {
        self.now.fetch_add(1, Ordering::Relaxed)
    }
    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }
}

/// A channel of [`PAGES`] pages; of a pool, one of them is kept for each CPU.
pub(crate) fn channel(model: Model, mode: Mode) -> Channel<TestBackend> {
    Channel::new(
        TestBackend {
            cpus: core::array::from_fn(|cpu| CpuState::new(cpu as u32)),
            pages: core::array::from_fn(|_| PageState::new()),
            ring: core::array::from_fn(|_| TestWord::new(0)),
            positions: core::array::from_fn(|_| TestWord::new(0)),
            memory: TestMemory {
                bytes: core::array::from_fn(|_| core::array::from_fn(|_| AtomicU8::new(0))),
                holders: core::array::from_fn(|_| AtomicU64::new(0)),
            },
            now: AtomicU64::new(1000),
            wakes: AtomicU64::new(0),
        },
        model,
        mode,
        1,
    )
}
