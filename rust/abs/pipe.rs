// SPDX-License-Identifier: GPL-2.0

//! Putting pages into a pipe, as `splice()` wants it.
//!
//! C header: [`include/linux/pipe_fs_i.h`](srctree/include/linux/pipe_fs_i.h)

use super::{
    bindings,
    lender::{
        Lend,
        Lender, //
    },
    page_array::PageArray, //
};
use core::{
    marker::PhantomData,
    mem::forget,
    ptr::NonNull, //
};
use kernel::{
    alloc::flags::__GFP_NOWARN,
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*,
};

/// The pipe that a splice is to fill, which it has locked.
///
/// # Invariants
///
/// The pipe is valid and locked by the caller for `'a`, and nobody else uses it for that long.
pub(crate) struct Pipe<'a> {
    raw: NonNull<kernel::bindings::pipe_inode_info>,
    _locked: PhantomData<&'a mut kernel::bindings::pipe_inode_info>,
}

impl Pipe<'_> {
    /// # Safety
    ///
    /// The pipe is valid, and locked as long as the value lives.
    pub(super) unsafe fn from_raw(raw: NonNull<kernel::bindings::pipe_inode_info>) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            raw,
            _locked: PhantomData,
        }
    }

    /// Bytes that it can hold when it is empty, in whole buffers.
    pub(crate) fn capacity(&self) -> usize {
        // SAFETY: It is valid and locked, by the type invariants.
        let buffers = unsafe { bindings::weir_helper_pipe_capacity(self.raw.as_ptr()) };
        (buffers as usize).saturating_mul(PAGE_SIZE)
    }

    /// Bytes that it can take now, in whole buffers.
    pub(crate) fn room(&self) -> usize {
        // SAFETY: It is valid and locked, by the type invariants.
        let buffers = unsafe { bindings::weir_helper_pipe_room(self.raw.as_ptr()) };
        (buffers as usize).saturating_mul(PAGE_SIZE)
    }

    /// Room for `len` bytes, a multiple of [`PAGE_SIZE`], if it has that.
    pub(crate) fn reserve(&mut self, len: usize) -> Option<Room<'_>> {
        // INVARIANT: By the check; nothing else is put into the pipe while it is borrowed.
        (len <= self.room()).then_some(Room {
            pipe: self.raw,
            buffers: len / PAGE_SIZE,
            _pipe: PhantomData,
        })
    }
}

/// Room in a pipe.
///
/// # Invariants
///
/// The pipe has at least so many free buffers, and is borrowed exclusively.
pub(crate) struct Room<'a> {
    pipe: NonNull<kernel::bindings::pipe_inode_info>,
    buffers: usize,
    _pipe: PhantomData<&'a mut ()>,
}

impl Room<'_> {
    /// Puts a page of a channel there without copying it. Until the pipe, and whoever gets it from there,
    /// have done with it, the page is referred to, and `lender` is there.
    pub(crate) fn lend<T: Lend>(self, pages: &PageArray, page: u32, lender: &Lender<T>) {
        for part in pages.parts_of(page).take(self.buffers) {
            let file = lender.hold();
            // SAFETY: The page is valid, and stays so since it gets a reference for the buffer.
            unsafe { bindings::weir_helper_get_page(part.as_ptr()) };
            // SAFETY: There is a free buffer, by the type invariants. The page and the file have references
            // for it, which these operations give up.
            unsafe { self.add(part, Lender::<T>::BUFFER, file.as_ptr() as usize) };
        }
    }

    /// Puts a copy there.
    pub(crate) fn give(self, copy: PageCopy) {
        for part in copy.parts.into_iter().take(self.buffers) {
            if let Some(page) = NonNull::new(part.as_ptr()) {
                // SAFETY: There is a free buffer, by the type invariants. The reference to the page is now the
                // buffer's, and these operations give it up.
                unsafe { self.add(page, &bindings::nosteal_pipe_buf_ops, 0) };
                forget(part);
            }
        }
    }

    /// # Safety
    ///
    /// Called for no more than [`Self::buffers`]. What `operations` give up belongs to the buffer.
    unsafe fn add(
        &self,
        page: NonNull<kernel::bindings::page>,
        operations: *const bindings::pipe_buf_operations,
        private: usize,
    ) {
        // SAFETY: The pipe is valid and locked by the type invariants, and has a free buffer by the safety
        // requirements.
        unsafe {
            bindings::weir_helper_pipe_add(self.pipe.as_ptr(), page.as_ptr(), operations, private)
        };
    }
}

/// A page of a channel, copied.
pub(crate) struct PageCopy {
    parts: KVec<Page>,
    len: usize,
}

impl PageCopy {
    /// Memory for `len` bytes, a multiple of [`PAGE_SIZE`]. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(len: usize) -> Result<Self> {
        let flags = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
        let count = len / PAGE_SIZE;
        let mut parts = KVec::with_capacity(count, flags)?;
        for _ in 0..count {
            parts.push(Page::alloc_page(flags)?, flags)?;
        }
        Ok(Self { parts, len: 0 })
    }

    /// Appends `bytes`; [`None`] if they do not all fit.
    pub(crate) fn append(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let offset = self.len % PAGE_SIZE;
            let (now, later) = bytes.split_at(bytes.len().min(PAGE_SIZE.saturating_sub(offset)));
            let part = self.parts.get(self.len / PAGE_SIZE)?;
            // SAFETY: The source is a slice, and nobody else has the page yet.
            unsafe { part.write_raw(now.as_ptr(), offset, now.len()) }.ok()?;
            self.len = self.len.saturating_add(now.len());
            bytes = later;
        }
        Some(())
    }
}
