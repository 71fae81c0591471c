// SPDX-License-Identifier: GPL-2.0

//! A channel: what it stands on, and what it shares between CPUs.

use crate::{
    cpu_state::CpuState,
    lost::LostReport,
    open_word::OpenWord,
    owner::{
        ByAll,
        SharedState, //
    },
    page_memory::{
        PageMemory,
        Pinned, //
    },
    page_state::PageState,
    pool::Pool,
    queue::{
        Pages,
        Queue, //
    },
    uapi::PageHeader,
    word::Word, //
};

/// Bytes of a page's header.
pub const HEADER_SIZE: usize = size_of::<PageHeader>();

/// What a channel stands on: memory, a clock, a way to wake the reader.
pub trait Backend {
    /// The shared words.
    type Word: Word;
    /// The pages.
    type Memory: PageMemory;

    /// One element for each CPU that may ever write: always the same ones, which are no other channel's.
    fn cpus(&self) -> &[CpuState<Self::Word>];

    /// That of the CPU that `pin` says.
    #[inline(always)]
    fn state<P: Pinned>(&self, pin: &P) -> Option<&CpuState<Self::Word>> {
        self.cpus().get(pin.cpu())
    }

    /// One element for each page.
    fn pages(&self) -> &[PageState<Self::Word>];

    /// The slots of finished pages: a power of two of words, as many as pages or more, made with zero.
    fn ring(&self) -> &[Self::Word];

    /// How many pages of each queue a reader says that it has had who maps the channel. Such a reader may
    /// store anything there, at any time.
    fn positions(&self) -> &[Self::Word];

    /// The pages, whose size is a power of two.
    fn memory(&self) -> &Self::Memory;

    /// The time in ns, in any context; not zero.
    fn clock(&self) -> u64;

    /// Wakes the reader, soon and from any context.
    fn wake(&self);
}

/// Whom an open page belongs to, and where a finished one goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// A CPU; that CPU's queue.
    PerCpu,
    /// All CPUs; the one queue.
    Shared,
    /// A CPU; the one queue.
    Paged,
}

/// What is lost when there is no free page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The new record.
    Discard,
    /// The oldest page of whom the open page belongs to.
    Overwrite,
}

/// Whose records these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What happens: may take any free page; what finds none is counted as lost.
    Live,
    /// What existed before: leaves pages to live records, and can be written later.
    Injected,
}

/// What a CPU did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Pages published.
    pub pages: u64,
    /// Records written inside another's write.
    pub nested: u64,
    /// What was lost; the times are those of losses that no page reports yet.
    pub lost: LostReport,
}

/// How many of `pages` pages each owner has, or [`None`] if any page may be anybody's.
fn share(model: Model, mode: Mode, cpus: usize, pages: usize) -> Option<usize> {
    let most = match (model, mode) {
        (Model::Paged, Mode::Discard) => return None,
        (Model::Paged | Model::PerCpu, _) => pages.checked_div(cpus).unwrap_or(0),
        (Model::Shared, _) => pages,
    };
    // The largest power of two that is not larger.
    Some(most.checked_ilog2().map_or(0, |log| 1 << log))
}

/// How many of `pages` pages a channel of so many CPUs makes use of.
pub fn usable_pages(model: Model, mode: Mode, cpus: usize, pages: usize) -> usize {
    match share(model, mode, cpus, pages) {
        Some(share) if model == Model::Shared => share,
        Some(share) => share.saturating_mul(cpus),
        None => pages,
    }
}

/// A channel. `Documentation/engine.rst` has the argument why what follows is correct.
pub struct Channel<B: Backend> {
    backend: B,
    model: Model,
    pub(crate) pages: Pages<B::Word>,
    /// Whether pages may ever be overwritten: the reader then takes nothing for its own before it has
    /// copied it.
    pub(crate) may_overwrite: bool,
    /// Whether they are now.
    pub(crate) overwrite: B::Word,
    /// The open page of all CPUs, if there is one.
    pub(crate) shared: SharedState<B::Word>,
    /// The one queue, if there is one.
    pub(crate) queue: Queue<B::Word>,
    /// Finished pages that are worth a wake-up; zero while the reader waits for none.
    pub(crate) wanted: B::Word,
    /// Not zero when the reader maps the channel.
    pub(crate) mapped: B::Word,
}

impl<B: Backend> Channel<B> {
    /// Makes a channel of the pages of `backend`. In the model *paged* and the mode *discard* every CPU
    /// keeps `reserve_size` of them for itself; else each owner has an equal share, a power of two.
    pub fn new(backend: B, model: Model, mode: Mode, reserve_size: u64) -> Self {
        let (pages, cpus) = (backend.pages(), backend.cpus());
        let pages = match share(model, mode, cpus.len(), pages.len()) {
            Some(share) => Pages::Ring(share as u32),
            None => Pages::Pool(Pool::new(pages, cpus, reserve_size)),
        };
        let channel = Self {
            backend,
            model,
            pages,
            may_overwrite: mode == Mode::Overwrite,
            overwrite: B::Word::new(u64::from(mode == Mode::Overwrite)),
            shared: SharedState::new(),
            queue: Queue::new(),
            wanted: B::Word::new(0),
            mapped: B::Word::new(0),
        };
        for cpu in channel.backend.cpus() {
            // INVARIANT: Each has some anchor of the memory from the beginning.
            channel.set_open_page(cpu, 0);
        }
        channel
    }

    /// What the channel stands on.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Its model.
    pub fn model(&self) -> Model {
        self.model
    }

    /// Whether all CPUs write to one page.
    #[inline]
    pub(crate) fn is_shared(&self) -> bool {
        self.model == Model::Shared
    }

    pub(crate) fn cpu(&self, cpu: usize) -> Option<&CpuState<B::Word>> {
        self.backend.cpus().get(cpu)
    }

    /// Offset up to which the page of `open`, which is open, is reserved.
    #[inline(always)]
    pub(crate) fn offset(&self, open: OpenWord) -> usize {
        open.offset(self.backend.memory().page_size())
    }

    /// The page of all CPUs, as `cpu` sees it.
    pub(crate) fn by_all<'a>(&'a self, cpu: &'a CpuState<B::Word>) -> ByAll<'a, B::Word> {
        ByAll {
            shared: &self.shared,
            queue: &self.queue,
            cpu,
        }
    }

    /// Keeps, or keeps no longer, every page that is not read: a channel that overwrites then loses new
    /// records instead of old ones, as soon as there is no page to put them in.
    ///
    /// Has no effect on a channel that does not overwrite.
    pub fn freeze(&self, frozen: bool) {
        self.overwrite
            .store(u64::from(self.may_overwrite && !frozen));
    }

    /// What `cpu` did so far, or [`None`] if there is no such CPU.
    pub fn status(&self, cpu: usize) -> Option<Status> {
        let cpu = self.cpu(cpu)?;
        Some(Status {
            pages: cpu.pages().load(),
            nested: cpu.nested().load(),
            lost: cpu.lost().snapshot(),
        })
    }

    /// Says that a reader waits for `pages` finished pages of a queue; zero for none. The caller looks
    /// again after that, and waits only if there still is nothing.
    pub fn want(&self, pages: u64) {
        self.wanted.store(pages);
        B::Word::fence();
    }
}
