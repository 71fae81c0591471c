// SPDX-License-Identifier: GPL-2.0

//! Memory that user space may map.
//!
//! C API: [`vm_insert_page()`](https://docs.kernel.org/core-api/mm-api.html): a mapped page stays as long as
//! it is mapped, whatever becomes of its owner.

use super::{
    page_array::PageArray,
    word::KernelWord, //
};
use core::ops::Deref;
use kernel::{
    alloc::{
        flags::{
            __GFP_NOWARN,
            __GFP_ZERO,
            GFP_KERNEL_ACCOUNT, //
        },
        VVec, //
    },
    error::to_result,
    mm::virt::{
        flags,
        VmaNew, //
    },
    page::PAGE_SIZE,
    prelude::*,
};
use weir_core::Word;

/// Words in pages of their own, so that user space may map them: all of them are zero at first, and there is
/// nothing else in those pages.
///
/// # Invariants
///
/// The words fill whole pages, which were allocated by vmalloc.
pub(crate) struct SharedWords(VVec<KernelWord>);

impl SharedWords {
    /// At least `count` words, as many as fill their pages. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(count: usize) -> Result<Self> {
        const A_PAGE: usize = PAGE_SIZE / size_of::<KernelWord>();
        let count = count.max(1).next_multiple_of(A_PAGE);
        let flags = GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_ZERO;
        let mut words = VVec::with_capacity(count, flags)?;
        for _ in 0..count {
            words.push(KernelWord::new(0), flags)?;
        }
        // INVARIANT: It was rounded up to whole pages, and `VVec` is made by vmalloc.
        Ok(Self(words))
    }

    /// Bytes of the pages.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

impl Deref for SharedWords {
    type Target = [KernelWord];

    #[inline]
    fn deref(&self) -> &[KernelWord] {
        &self.0
    }
}

/// What may be done with a mapping.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is read, for ever.
    Read,
    /// It is read and written.
    Write,
}

/// A mapping that is being made, of the size of what it is to show.
pub(crate) struct Mapping<'a>(&'a VmaNew);

impl<'a> Mapping<'a> {
    /// Where in the file it begins, in bytes.
    pub(crate) fn offset(vma: &VmaNew) -> u64 {
        // SAFETY: The area is valid, by the type invariants of `VmaNew`.
        let pages = unsafe { (*vma.as_ptr()).vm_pgoff };
        (pages as u64).saturating_mul(PAGE_SIZE as u64)
    }

    /// Checks that `vma` is as long as `len`, shared, and wants no more than `access`, and sees to it that
    /// it never gets more: neither by `mprotect()`, nor by `mremap()`, nor in a child.
    ///
    /// # Errors
    ///
    /// `EINVAL` for another size, or a private mapping; `EACCES`.
    pub(crate) fn new(vma: &'a VmaNew, len: usize, access: Access) -> Result<Self> {
        if vma.end().wrapping_sub(vma.start()) != len || vma.flags() & flags::SHARED == 0 {
            return Err(EINVAL);
        }
        if vma.executable() {
            return Err(EACCES);
        }
        vma.try_clear_mayexec()?;
        match access {
            Access::Read if vma.writable() => return Err(EACCES),
            Access::Read => vma.try_clear_maywrite()?,
            Access::Write if !vma.writable() => return Err(EACCES),
            Access::Write => {}
        }
        vma.set_dontexpand();
        vma.set_dontcopy();
        vma.set_dontdump();
        vma.set_mixedmap();
        Ok(Self(vma))
    }

    /// Shows words.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, `EINVAL`.
    pub(crate) fn words(&self, words: &SharedWords) -> Result {
        let start: *const KernelWord = words.0.as_ptr();
        for offset in (0..words.bytes()).step_by(PAGE_SIZE) {
            // SAFETY: By the type invariants of `SharedWords` there is a page of vmalloc at this offset.
            let page = unsafe { kernel::bindings::vmalloc_to_page(start.byte_add(offset).cast()) };
            // SAFETY: The page is valid. It is full of words that are only accessed atomically, so user space
            // may read and write it.
            unsafe { self.insert(offset, page) }?;
        }
        Ok(())
    }

    /// Shows the pages of a channel, one behind the other.
    ///
    /// # Errors
    ///
    /// As [`Self::words`].
    pub(crate) fn pages(&self, pages: &PageArray) -> Result {
        let mut offset = 0;
        for page in pages.parts() {
            // SAFETY: The page is valid. All of it was zeroed and is written with what is for user space. It
            // is not written by user space, by `new`.
            unsafe { self.insert(offset, page.as_ptr()) }?;
            offset += PAGE_SIZE;
        }
        Ok(())
    }

    /// # Safety
    ///
    /// `page` is valid, and user space may do with it what the mapping allows.
    unsafe fn insert(&self, offset: usize, page: *mut kernel::bindings::page) -> Result {
        let address = self.0.start().wrapping_add(offset);
        // SAFETY: The area is being made, so nobody else uses it; it is a mixed map, by `new`. The page is
        // valid by the safety requirements. An address outside of the area is refused.
        to_result(unsafe { kernel::bindings::vm_insert_page(self.0.as_ptr(), address, page) })
    }
}
