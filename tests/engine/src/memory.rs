// SPDX-License-Identifier: GPL-2.0

//! Page memory that notices when it is used against the rules.

use std::{
    ops::Range,
    sync::atomic::Ordering, //
};
use weir_core::PageMemory;

#[cfg(loom)]
use loom::{
    cell::UnsafeCell,
    sync::atomic::AtomicU64, //
};
#[cfg(not(loom))]
use racy::UnsafeCell;
#[cfg(not(loom))]
use std::sync::atomic::AtomicU64;

const UNIT: usize = 8;

/// Pages of cells of eight bytes, which is what records are aligned to. The model checker fails when
/// one is written while another thread reads or writes it, or may not have seen it written.
pub struct CheckedMemory {
    cells: Vec<Vec<UnsafeCell<[u8; UNIT]>>>,
    /// How many refer to each page besides the channel. No word of the engine, as the clock is none.
    holders: Vec<AtomicU64>,
    page_size: usize,
}

// SAFETY: Under the model checker, its cells find every access that is not ordered. Else the tests have
// one thread.
unsafe impl Send for CheckedMemory {}
// SAFETY: As above.
unsafe impl Sync for CheckedMemory {}

impl CheckedMemory {
    /// `pages` pages of `page_size` bytes.
    pub fn new(pages: usize, page_size: usize) -> Self {
        Self {
            cells: (0..pages)
                .map(|_| {
                    (0..page_size / UNIT)
                        .map(|_| UnsafeCell::new([0; UNIT]))
                        .collect()
                })
                .collect(),
            holders: (0..pages).map(|_| AtomicU64::new(0)).collect(),
            page_size,
        }
    }

    /// One more refers to `page`, as a pipe's buffer does.
    pub fn hold(&self, page: u32) {
        self.holders[page as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// One less does. The last reference to a page is given up with release.
    pub fn let_go(&self, page: u32, ordering: Ordering) {
        self.holders[page as usize].fetch_sub(1, ordering);
    }
}

impl PageMemory for CheckedMemory {
    type Place = (u32, usize, usize);

    fn place(&self, page: u32, offset: usize, len: usize) -> Option<Self::Place> {
        (offset.checked_add(len)? <= self.page_size).then_some((page, offset, len))
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
        self.page_size
    }

    fn write(&self, page: u32, offset: usize, bytes: &[u8]) {
        let mut at = offset;
        let mut bytes = bytes;
        while !bytes.is_empty() {
            let start = at % UNIT;
            let (part, rest) = bytes.split_at(bytes.len().min(UNIT - start));
            self.cells[page as usize][at / UNIT].with_mut(|cell| {
                // SAFETY: The cell says so.
                unsafe { (&mut *cell)[start..start + part.len()].copy_from_slice(part) };
            });
            at += part.len();
            bytes = rest;
        }
    }

    fn read<R>(&self, page: u32, range: Range<usize>, f: impl FnOnce(&[u8]) -> R) -> R {
        let mut copy = Vec::with_capacity(range.len() + UNIT);
        for cell in &self.cells[page as usize][range.start / UNIT..range.end.div_ceil(UNIT)] {
            // SAFETY: The cell says so.
            cell.with(|cell| copy.extend_from_slice(unsafe { &*cell }));
        }
        let start = range.start % UNIT;
        f(&copy[start..start + range.len()])
    }

    /// For tests of one thread: under the model checker it fails where somebody writes meanwhile.
    fn copy(&self, page: u32, to: &mut [u64]) {
        for (cell, word) in self.cells[page as usize].iter().zip(to) {
            // SAFETY: The cell says so.
            *word = cell.with(|cell| u64::from_ne_bytes(unsafe { *cell }));
        }
    }

    fn is_held(&self, page: u32) -> bool {
        self.holders[page as usize].load(Ordering::Acquire) != 0
    }
}

/// The cell of the model checker, for tests of one thread.
#[cfg(not(loom))]
mod racy {
    pub(super) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(super) fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        pub(super) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        pub(super) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

/// Pages that may be copied while they are written, for the model checker: each write makes a version of
/// the page, and a copy is any version that the reader may see. Whatever else a copy might be, being
/// torn, has a part of a version that is as new.
#[cfg(loom)]
pub struct VersionedMemory {
    pages: Vec<(
        loom::sync::atomic::AtomicU64,
        std::sync::Mutex<Vec<Vec<u8>>>,
    )>,
    page_size: usize,
}

#[cfg(loom)]
impl VersionedMemory {
    /// `pages` pages of `page_size` bytes.
    pub fn new(pages: usize, page_size: usize) -> Self {
        Self {
            pages: (0..pages)
                .map(|_| {
                    let first = vec![vec![0; page_size]];
                    (
                        loom::sync::atomic::AtomicU64::new(0),
                        std::sync::Mutex::new(first),
                    )
                })
                .collect(),
            page_size,
        }
    }

    fn seen(&self, page: u32) -> Vec<u8> {
        let (version, versions) = &self.pages[page as usize];
        let seen = version.load(loom::sync::atomic::Ordering::Relaxed);
        versions.lock().expect("no panic")[seen as usize].clone()
    }
}

#[cfg(loom)]
impl PageMemory for VersionedMemory {
    type Place = (u32, usize, usize);

    fn place(&self, page: u32, offset: usize, len: usize) -> Option<Self::Place> {
        (offset.checked_add(len)? <= self.page_size).then_some((page, offset, len))
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
        self.page_size
    }

    fn write(&self, page: u32, offset: usize, bytes: &[u8]) {
        let (version, versions) = &self.pages[page as usize];
        let number = {
            let mut versions = versions.lock().expect("no panic");
            let mut next = versions.last().expect("there is the first").clone();
            next[offset..offset + bytes.len()].copy_from_slice(bytes);
            versions.push(next);
            versions.len() as u64 - 1
        };
        version.store(number, loom::sync::atomic::Ordering::Relaxed);
    }

    fn read<R>(&self, page: u32, range: Range<usize>, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&self.seen(page)[range])
    }

    fn copy(&self, page: u32, to: &mut [u64]) {
        for (bytes, word) in self.seen(page).chunks_exact(UNIT).zip(to) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        }
    }

    /// What may be overwritten is never lent.
    fn is_held(&self, _page: u32) -> bool {
        false
    }
}

/// Stands for running on a CPU.
pub struct On(pub usize);

// SAFETY: The tests use a value for a CPU on one thread only, and what they call in the middle of another
// call runs to its end before that goes on.
unsafe impl weir_core::Pinned for On {
    fn cpu(&self) -> usize {
        self.0
    }
}
