// SPDX-License-Identifier: GPL-2.0

//! Where the engine touches the memory of pages: the only file of this crate with `unsafe`.

use crate::{
    channel::{
        Backend,
        Channel, //
    },
    cpu_state::CpuState,
    open_word::{
        Advance,
        PAGE_SPAN, //
    },
    record_len::RecordLen,
    word::Word, //
};
use core::{
    ops::Range,
    ptr::NonNull, //
};

/// Says that the caller stays on one CPU.
///
/// # Safety
///
/// While the value lives, the code that holds it runs on CPU [`cpu`](Self::cpu), and what else runs
/// there in the meantime are interrupts (softirq, irq, NMI) that run to their end before it goes on.
/// It is one of the CPUs that there may ever be. No two values for the same CPU are used at the same time
/// except so nested. Where [`HERE`](Self::HERE) is true it is the CPU that executes the code.
pub unsafe trait Pinned {
    /// Whether this code itself runs there, and it is not only so that nobody does.
    const HERE: bool = false;

    /// Number of the CPU.
    fn cpu(&self) -> usize;
}

/// The memory of all pages of a channel.
///
/// The engine calls [`write`](Self::write) only for ranges that the caller won by a compare-exchange
/// and has not yet committed, and [`read`](Self::read) only for ranges that are committed or whose
/// page it owns. So no byte is written while anybody else reads or writes it.
pub trait PageMemory: Send + Sync {
    /// Some bytes of a page: see [`place`](Self::place).
    type Place: Copy;

    /// Bytes of a page.
    fn page_size(&self) -> usize;

    /// `len` bytes at `offset` of `page`, if they are inside of it. They are eight or more.
    fn place(&self, page: u32, offset: usize, len: usize) -> Option<Self::Place>;

    /// A word that [`place_from`](Self::place_from) finds `page` by.
    fn anchor(&self, page: u32) -> u64 {
        u64::from(page)
    }

    /// The `len` bytes that begin `fill` bytes behind the anchor, with the end of the page 131064 bytes behind it.
    ///
    /// # Safety
    ///
    /// `anchor` is one of a page of this memory, and the bytes are inside of that page.
    #[inline]
    unsafe fn place_from(&self, anchor: u64, fill: usize, len: RecordLen) -> Option<Self::Place> {
        let offset = fill.wrapping_sub(PAGE_SPAN.wrapping_sub(self.page_size()));
        self.place(anchor as u32, offset, len.get())
    }

    /// Zeroes the last eight bytes of `place`.
    fn clear_end(&self, place: Self::Place);

    /// As [`write`](Self::write), at `offset` of `place`; bytes that do not all fit are not written.
    fn write_at(&self, place: Self::Place, offset: usize, bytes: &[u8]);

    /// Writes `bytes` at `offset` of `page`; what would lie outside the page is not written.
    fn write(&self, page: u32, offset: usize, bytes: &[u8]);

    /// Calls `f` with the bytes at `range` of `page`, with none if that is outside.
    fn read<R>(&self, page: u32, range: Range<usize>, f: impl FnOnce(&[u8]) -> R) -> R;

    /// Copies the beginning of `page` while others may be writing to it: what was being written may be
    /// anything in the copy.
    fn copy(&self, page: u32, to: &mut [u64]);

    /// Whether anybody refers to `page` besides the channel. If not, whoever did has read it before this
    /// call (acquire), and nobody will again before the channel gives it away.
    fn is_held(&self, page: u32) -> bool;
}

/// Pages by their addresses.
pub trait Addresses: AsRef<[NonNull<u8>]> {
    /// As [`PageMemory::is_held`].
    fn is_held(&self, page: u32) -> bool;
}

/// Memory whose pages have addresses, for callers in other languages.
pub trait Addressed: PageMemory {
    /// Where `place` is from `offset` on, if that is inside of it.
    fn address(&self, place: Self::Place, offset: usize) -> Option<NonNull<u8>>;
}

/// Bytes of [`MappedPages`].
///
/// # Invariants
///
/// `len` bytes, eight or more, from `start` on are inside a page of pages that are still there.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: As of `MappedPages`.
unsafe impl Send for Place {}
// SAFETY: As of `MappedPages`.
unsafe impl Sync for Place {}

/// Pages at addresses that stay mapped as long as the value lives.
///
/// # Invariants
///
/// Every element of `pages` points to `page_size` bytes that are valid for reads and writes, are
/// initialised, aligned to eight bytes, and are accessed through this value only (user space may read
/// them, and so may whoever a page was lent to). There is at least one.
///
/// It is the memory of one [`Backend`], all of whose [`CpuState`]s are no other's.
pub struct MappedPages<T: Addresses> {
    pages: T,
    page_size: usize,
}

// SAFETY: The memory belongs to the value, not to a thread; what may be accessed when is what
// `PageMemory` demands of the engine.
unsafe impl<T: Addresses> Send for MappedPages<T> {}
// SAFETY: As above.
unsafe impl<T: Addresses> Sync for MappedPages<T> {}

impl<T: Addresses> MappedPages<T> {
    /// Takes pages.
    ///
    /// # Safety
    ///
    /// The caller guarantees the invariants of the type until the value is dropped.
    pub unsafe fn new(pages: T, page_size: usize) -> Self {
        // INVARIANT: By the caller's guarantee.
        Self { pages, page_size }
    }

    /// The pages.
    pub fn pages(&self) -> &T {
        &self.pages
    }

    #[inline(always)]
    fn at(&self, page: u32, range: &Range<usize>) -> Option<NonNull<u8>> {
        let base = *self.pages.as_ref().get(page as usize)?;
        if range.start > range.end || range.end > self.page_size {
            return None;
        }
        // SAFETY: `range` lies within the page, by the check above, and the page is one allocation,
        // by the type invariants.
        Some(unsafe { base.add(range.start) })
    }
}

impl<T: Addresses> Addressed for MappedPages<T> {
    #[inline(always)]
    fn address(&self, place: Place, offset: usize) -> Option<NonNull<u8>> {
        if offset > place.len {
            return None;
        }
        // SAFETY: It is inside the place or at its end, by the check above.
        Some(unsafe { place.start.add(offset) })
    }
}

impl<T: Addresses> PageMemory for MappedPages<T> {
    type Place = Place;

    #[inline(always)]
    fn place(&self, page: u32, offset: usize, len: usize) -> Option<Place> {
        if len < size_of::<u64>() {
            return None;
        }
        let start = self.at(page, &(offset..offset.checked_add(len)?))?;
        // INVARIANT: By the checks here and in `at`.
        Some(Place { start, len })
    }

    #[inline]
    fn anchor(&self, page: u32) -> u64 {
        let pages = self.pages.as_ref();
        // Not another one's, should there be no such page.
        let page = pages.get(page as usize).or_else(|| pages.first());
        page.map_or(0, |page| {
            let end = page
                .as_ptr()
                .expose_provenance()
                .wrapping_add(self.page_size);
            end.wrapping_sub(PAGE_SPAN) as u64
        })
    }

    #[inline(always)]
    fn clear_end(&self, place: Place) {
        // SAFETY: By the type invariants of `Place` the eight bytes are inside a page, which is valid for writes.
        // Nobody else accesses them, as in `write_at`.
        unsafe {
            place
                .start
                .add(place.len.wrapping_sub(size_of::<u64>()))
                .cast::<u64>()
                .write_unaligned(0)
        };
    }

    #[inline(always)]
    unsafe fn place_from(&self, anchor: u64, fill: usize, len: RecordLen) -> Option<Place> {
        let mut start = (anchor as usize).wrapping_add(fill);
        // SAFETY: No instruction. It keeps the sum in one register; else each access adds up anew, which takes
        // registers that must then be saved.
        unsafe {
            core::arch::asm!(
                "/* {} */",
                inout(reg) start,
                options(pure, nomem, nostack, preserves_flags)
            );
        }
        let start = core::ptr::with_exposed_provenance_mut(start);
        // SAFETY: By the safety requirements it is inside a page, which is not at zero.
        let start = unsafe { NonNull::new_unchecked(start) };
        // INVARIANT: By the safety requirements; a record has eight bytes or more.
        Some(Place {
            start,
            len: len.get(),
        })
    }

    #[inline(always)]
    fn write_at(&self, place: Place, offset: usize, bytes: &[u8]) {
        let fits = place.len.checked_sub(offset);
        if fits.is_some_and(|room| bytes.len() <= room) {
            // SAFETY: By the type invariants of `Place` and the check above the range is inside a page,
            // which is valid for writes. Nobody else accesses it: the engine calls this for ranges only
            // the caller owns. `bytes` is no part of it for the same reason. (A place of other pages
            // would be one of a channel that is borrowed as well, or of none that is left: the engine
            // keeps a place no longer than it borrows the pages.)
            unsafe {
                place
                    .start
                    .add(offset)
                    .copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len())
            };
        }
    }

    #[inline]
    fn page_size(&self) -> usize {
        self.page_size
    }

    #[inline]
    fn write(&self, page: u32, offset: usize, bytes: &[u8]) {
        let Some(end) = offset.checked_add(bytes.len()) else {
            return;
        };
        if let Some(to) = self.at(page, &(offset..end)) {
            // SAFETY: `at` has checked that the range is inside the page, which is valid for writes
            // by the type invariants. Nobody else accesses the range: the engine calls this for
            // ranges only the caller owns. `bytes` is no part of it for the same reason.
            unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        }
    }

    #[inline]
    fn read<R>(&self, page: u32, range: Range<usize>, f: impl FnOnce(&[u8]) -> R) -> R {
        match self.at(page, &range) {
            // SAFETY: `at` has checked that the range is inside the page, which is valid for reads
            // and initialised by the type invariants. Nobody writes it meanwhile: the engine calls
            // this for ranges that are committed or owned by the caller.
            Some(from) => f(unsafe { core::slice::from_raw_parts(from.as_ptr(), range.len()) }),
            None => f(&[]),
        }
    }

    fn copy(&self, page: u32, to: &mut [u64]) {
        for (index, word) in to.iter_mut().enumerate() {
            let start = index.wrapping_mul(size_of::<u64>());
            let Some(from) = self.at(page, &(start..start.wrapping_add(size_of::<u64>()))) else {
                return;
            };
            // SAFETY: `at` has checked that the word is inside the page, which is valid for reads and
            // initialised by the type invariants, and pages are aligned to more than a word. Others may
            // write it meanwhile: this is `READ_ONCE()`, and the caller throws away what was torn.
            *word = unsafe { from.cast::<u64>().read_volatile() };
        }
    }

    #[inline]
    fn is_held(&self, page: u32) -> bool {
        self.pages.is_held(page)
    }
}

impl<B: Backend> Channel<B> {
    /// Lets [`open_place`](Self::open_place) find `page`, from now on.
    pub(crate) fn set_open_page(&self, cpu: &CpuState<B::Word>, page: u32) {
        // INVARIANT: That is an anchor of the memory of the channel.
        cpu.anchor.store(self.backend().memory().anchor(page));
    }

    /// The bytes that `advance` has reserved in the page that was last [set](Self::set_open_page).
    #[inline(always)]
    pub(crate) fn open_place(
        &self,
        cpu: &CpuState<B::Word>,
        advance: &Advance,
    ) -> Option<<B::Memory as PageMemory>::Place> {
        let memory = self.backend().memory();
        // SAFETY: `cpu` is one of the channel's, and by its invariants has an anchor of the channel's memory. By
        // the invariants of `Advance` the bytes end where the page does, or before; and they begin behind its
        // header, since a page is opened so.
        unsafe { memory.place_from(cpu.anchor.load(), advance.fill(), advance.len()) }
    }
}

/// Stands for running on a CPU, in tests of one thread.
#[cfg(any(test, weir_kunit))]
pub(crate) struct TestPin(pub(crate) usize);

#[cfg(any(test, weir_kunit))]
// SAFETY: The tests of this crate have one thread each, and a channel for each; nothing interrupts.
unsafe impl Pinned for TestPin {
    fn cpu(&self) -> usize {
        self.0
    }
}
