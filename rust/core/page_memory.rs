// SPDX-License-Identifier: GPL-2.0

//! Where the engine touches the memory of pages: the only file of this crate with `unsafe`.

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
/// No two values for the same CPU are used at the same time except so nested.
pub unsafe trait Pinned {
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

    /// `len` bytes at `offset` of `page`, if they are inside of it.
    fn place(&self, page: u32, offset: usize, len: usize) -> Option<Self::Place>;

    /// As [`write`](Self::write), at `offset` of `place`; bytes that do not all fit are not written.
    fn write_at(&self, place: Self::Place, offset: usize, bytes: &[u8]);

    /// Writes `bytes` at `offset` of `page`; what would lie outside the page is not written.
    fn write(&self, page: u32, offset: usize, bytes: &[u8]);

    /// Calls `f` with the bytes at `range` of `page`, with none if that is outside.
    fn read<R>(&self, page: u32, range: Range<usize>, f: impl FnOnce(&[u8]) -> R) -> R;

    /// Copies the beginning of `page` while others may be writing to it: what was being written may be
    /// anything in the copy.
    fn copy(&self, page: u32, to: &mut [u64]);
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
/// `len` bytes from `start` on are inside a page of pages that are still there.
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
/// them).
pub struct MappedPages<T: AsRef<[NonNull<u8>]>> {
    pages: T,
    page_size: usize,
}

// SAFETY: The memory belongs to the value, not to a thread; what may be accessed when is what
// `PageMemory` demands of the engine.
unsafe impl<T: AsRef<[NonNull<u8>]>> Send for MappedPages<T> {}
// SAFETY: As above.
unsafe impl<T: AsRef<[NonNull<u8>]>> Sync for MappedPages<T> {}

impl<T: AsRef<[NonNull<u8>]>> MappedPages<T> {
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

impl<T: AsRef<[NonNull<u8>]>> Addressed for MappedPages<T> {
    #[inline(always)]
    fn address(&self, place: Place, offset: usize) -> Option<NonNull<u8>> {
        if offset > place.len {
            return None;
        }
        // SAFETY: It is inside the place or at its end, by the check above.
        Some(unsafe { place.start.add(offset) })
    }
}

impl<T: AsRef<[NonNull<u8>]>> PageMemory for MappedPages<T> {
    type Place = Place;

    #[inline(always)]
    fn place(&self, page: u32, offset: usize, len: usize) -> Option<Place> {
        let start = self.at(page, &(offset..offset.checked_add(len)?))?;
        // INVARIANT: By the check in `at`.
        Some(Place { start, len })
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
