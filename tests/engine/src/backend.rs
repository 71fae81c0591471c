// SPDX-License-Identifier: GPL-2.0

//! A backend of any words and any memory, with a clock that counts.

use std::sync::atomic::{
    AtomicBool,
    AtomicU64,
    Ordering, //
};
use weir_core::{
    Backend,
    Channel,
    CpuState,
    Mode,
    Model,
    PageMemory,
    PageState,
    Word, //
};

/// Tells the time, in any unit but never zero.
pub trait Clock {
    /// The time.
    fn now(&self) -> u64;
}

/// A clock that counts how often it is read. It is no word of the engine, so it is never a step of its
/// own.
#[derive(Debug)]
pub struct Count(AtomicU64);

impl Default for Count {
    fn default() -> Self {
        Self(AtomicU64::new(1))
    }
}

impl Clock for Count {
    fn now(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Every model in every mode.
pub const KINDS: [(Model, Mode); 6] = [
    (Model::Paged, Mode::Discard),
    (Model::PerCpu, Mode::Discard),
    (Model::Shared, Mode::Discard),
    (Model::Paged, Mode::Overwrite),
    (Model::PerCpu, Mode::Overwrite),
    (Model::Shared, Mode::Overwrite),
];

/// The backend.
pub struct HostBackend<W, M, C = Count> {
    cpus: Vec<CpuState<W>>,
    pages: Vec<PageState<W>>,
    ring: Vec<W>,
    positions: Vec<W>,
    memory: M,
    clock: C,
    woken: AtomicBool,
}

impl<W: Word, M: PageMemory, C: Clock + Default> HostBackend<W, M, C> {
    /// A channel of `pages` pages in `memory`; of a pool, one of them is kept for each of `cpus` CPUs.
    pub fn channel(
        (model, mode): (Model, Mode),
        cpus: u32,
        pages: usize,
        memory: M,
    ) -> Channel<Self> {
        Channel::new(
            Self {
                cpus: (0..cpus).map(CpuState::new).collect(),
                pages: (0..pages).map(|_| PageState::new()).collect(),
                ring: (0..pages.next_power_of_two()).map(|_| W::new(0)).collect(),
                positions: (0..cpus).map(|_| W::new(0)).collect(),
                memory,
                clock: C::default(),
                woken: AtomicBool::new(false),
            },
            model,
            mode,
            1,
        )
    }

    /// Whether the reader was ever woken.
    pub fn was_woken(&self) -> bool {
        self.woken.load(Ordering::Relaxed)
    }
}

impl<W: Word, M: PageMemory, C: Clock> Backend for HostBackend<W, M, C> {
    type Word = W;
    type Memory = M;

    fn cpus(&self) -> &[CpuState<W>] {
        &self.cpus
    }

    fn pages(&self) -> &[PageState<W>] {
        &self.pages
    }

    fn ring(&self) -> &[W] {
        &self.ring
    }

    fn positions(&self) -> &[W] {
        &self.positions
    }

    fn memory(&self) -> &M {
        &self.memory
    }

    fn clock(&self) -> u64 {
        self.clock.now()
    }

    fn wake(&self) {
        self.woken.store(true, Ordering::Relaxed);
    }
}
