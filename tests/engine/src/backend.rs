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
    PageMemory,
    Word, //
};

/// The backend.
pub struct HostBackend<W, M> {
    cpus: Vec<CpuState<W>>,
    links: Vec<W>,
    ring: Vec<W>,
    memory: M,
    /// What the clock reads next. It is no word of the engine, so it is never a step of its own.
    now: AtomicU64,
    woken: AtomicBool,
}

impl<W: Word, M: PageMemory> HostBackend<W, M> {
    /// A channel of `pages` pages in `memory`, one of them kept for each of `cpus` CPUs.
    pub fn channel(cpus: u32, pages: usize, memory: M) -> Channel<Self> {
        Channel::new(
            Self {
                cpus: (0..cpus).map(CpuState::new).collect(),
                links: (0..pages).map(|_| W::new(0)).collect(),
                ring: (0..pages.next_power_of_two()).map(|_| W::new(0)).collect(),
                memory,
                now: AtomicU64::new(1),
                woken: AtomicBool::new(false),
            },
            1,
        )
    }

    /// Whether the reader was ever woken.
    pub fn was_woken(&self) -> bool {
        self.woken.load(Ordering::Relaxed)
    }
}

impl<W: Word, M: PageMemory> Backend for HostBackend<W, M> {
    type Word = W;
    type Memory = M;

    fn cpus(&self) -> &[CpuState<W>] {
        &self.cpus
    }

    fn links(&self) -> &[W] {
        &self.links
    }

    fn ring(&self) -> &[W] {
        &self.ring
    }

    fn memory(&self) -> &M {
        &self.memory
    }

    fn clock(&self) -> u64 {
        self.now.fetch_add(1, Ordering::Relaxed)
    }

    fn wake(&self) {
        self.woken.store(true, Ordering::Relaxed);
    }
}
