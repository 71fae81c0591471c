// SPDX-License-Identifier: GPL-2.0

//! What the engine stands on in the kernel.

use super::Options;
use crate::abs::{
    clock::Clock,
    cpus,
    locked_memory::LockedMemory,
    mmap::SharedWords,
    page_array::PageArray,
    per_cpu::PerCpu,
    wait_queue::WaitQueue,
    word::KernelWord, //
};
use kernel::{
    alloc::{
        flags::__GFP_NOWARN,
        KVVec, //
    },
    prelude::*,
};
use weir_core::{
    Backend,
    CpuState,
    MappedPages,
    PageState,
    Pinned, //
};

/// Memory, clock and wake-up of a channel.
pub(crate) struct KernelBackend {
    cpus: PerCpu<CpuState<KernelWord>>,
    pages: KVVec<PageState<KernelWord>>,
    ring: SharedWords,
    positions: SharedWords,
    memory: MappedPages<PageArray>,
    clock: Clock,
    queue: Pin<KBox<WaitQueue>>,
    _locked: Option<LockedMemory>,
}

impl KernelBackend {
    /// Allocates everything. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and `EINTR` on a signal.
    pub(super) fn new(options: &Options, locked: Option<LockedMemory>) -> Result<Self> {
        Ok(Self {
            cpus: PerCpu::new(|cpu| CpuState::new(cpu as u32))?,
            pages: fill(options.pages, |_| PageState::new())?,
            ring: SharedWords::new(options.pages.next_power_of_two())?,
            positions: SharedWords::new(cpus::count())?,
            memory: PageArray::allocate(options.pages, options.page_size, |page| {
                cpus::Node::of_cpu(options.cpu_of_page(page))
            })?,
            clock: options.clock,
            _locked: locked,
            queue: KBox::pin_init(WaitQueue::new(), GFP_KERNEL)?,
        })
    }

    /// The slots of finished pages.
    pub(super) fn slot_words(&self) -> &SharedWords {
        &self.ring
    }

    /// What a reader who maps the channel says.
    pub(super) fn position_words(&self) -> &SharedWords {
        &self.positions
    }

    /// Whether [`Clock::read_inline`] is the clock of the channel.
    #[inline(always)]
    pub(super) fn has_inline_clock(&self) -> bool {
        self.clock.is_inline()
    }

    pub(super) fn queue(&self) -> &WaitQueue {
        &self.queue
    }
}

// It is found by a shift.
const _: () = assert!(size_of::<CpuState<KernelWord>>() == 512);

fn fill<T>(count: usize, element: impl Fn(usize) -> T) -> Result<KVVec<T>> {
    let flags = kernel::alloc::flags::GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
    let mut vec = KVVec::with_capacity(count, flags)?;
    for index in 0..count {
        vec.push(element(index), flags)?;
    }
    Ok(vec)
}

impl Backend for KernelBackend {
    type Word = KernelWord;
    type Memory = MappedPages<PageArray>;

    #[inline]
    fn cpus(&self) -> &[CpuState<KernelWord>] {
        &self.cpus
    }

    #[inline(always)]
    fn state<P: Pinned>(&self, pin: &P) -> Option<&CpuState<KernelWord>> {
        Some(self.cpus.of(pin))
    }

    #[inline]
    fn pages(&self) -> &[PageState<KernelWord>] {
        &self.pages
    }

    #[inline]
    fn ring(&self) -> &[KernelWord] {
        &self.ring
    }

    fn positions(&self) -> &[KernelWord] {
        &self.positions
    }

    #[inline]
    fn memory(&self) -> &MappedPages<PageArray> {
        &self.memory
    }

    #[inline]
    fn clock(&self) -> u64 {
        self.clock.now()
    }

    fn wake(&self) {
        self.queue.wake_soon();
    }
}
