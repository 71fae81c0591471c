// SPDX-License-Identifier: GPL-2.0

//! The memory of a channel's pages.

use super::{
    bindings,
    clock::cond_resched,
    cpus::Node, //
};
use core::ptr::NonNull;
use kernel::{
    alloc::{
        flags::{
            __GFP_NOWARN, //
            GFP_KERNEL_ACCOUNT,
        },
        KVVec, //
    },
    page::PAGE_SIZE,
    prelude::*,
};
use weir_core::{
    Addresses,
    MappedPages, //
};

/// Pages of `PAGE_SIZE << order` bytes each, zeroed, accounted to the caller's memory cgroup.
///
/// # Invariants
///
/// `addresses` has the address of each of `pages` in the kernel's linear mapping, in the same order,
/// and each is an allocation of `order` that this value owns.
pub(crate) struct PageArray {
    pages: KVVec<NonNull<kernel::bindings::page>>,
    addresses: KVVec<NonNull<u8>>,
    order: u32,
}

// SAFETY: The pages belong to the value, not to a thread.
unsafe impl Send for PageArray {}
// SAFETY: Shared access only reads the addresses.
unsafe impl Sync for PageArray {}

/// Pages between two chances for others to run.
const BATCH: usize = 256;

impl PageArray {
    /// Allocates `count` pages, each in the memory that `node` says. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and `EINTR` on a signal.
    fn new(count: usize, order: u32, node: impl Fn(usize) -> Node) -> Result<Self> {
        // INVARIANT: Nothing is owned yet.
        let mut array = Self {
            pages: KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?,
            addresses: KVVec::with_capacity(count, GFP_KERNEL_ACCOUNT | __GFP_NOWARN)?,
            order,
        };
        for allocated in 0..count {
            if allocated % BATCH == 0 {
                if kernel::current!().signal_pending() {
                    return Err(EINTR);
                }
                cond_resched();
            }
            // SAFETY: The callers may sleep.
            let page =
                unsafe { bindings::weir_helper_alloc_pages(node(allocated).as_raw(), order) };
            let page = NonNull::new(page).ok_or(ENOMEM)?;
            // SAFETY: The page was just allocated, from memory that is mapped always.
            let address = unsafe { bindings::weir_helper_page_address(page.as_ptr()) };
            // INVARIANT: Both grow by the same page. There is capacity for them, so neither fails.
            array.pages.push(page, GFP_KERNEL_ACCOUNT)?;
            array.addresses.push(
                NonNull::new(address.cast()).ok_or(ENOMEM)?,
                GFP_KERNEL_ACCOUNT,
            )?;
        }
        Ok(array)
    }

    /// Allocates `count` pages of `page_size` bytes, a power of two of [`PAGE_SIZE`], each in the memory
    /// that `node` says, as the memory of a channel. Sleeps.
    ///
    /// # Errors
    ///
    /// As [`PageArray::new`].
    pub(crate) fn allocate(
        count: usize,
        page_size: usize,
        node: impl Fn(usize) -> Node,
    ) -> Result<MappedPages<Self>> {
        let order = (page_size / PAGE_SIZE).trailing_zeros();
        let array = Self::new(count, order, node)?;
        // SAFETY: Every address is that of an allocation of `page_size` bytes, which was zeroed, and
        // which lives as long as the array, by the type invariants. Nobody else has the addresses; who maps or
        // was lent a page reads it.
        Ok(unsafe { MappedPages::new(array, page_size) })
    }
}

impl PageArray {
    /// Every part of `PAGE_SIZE` bytes, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = NonNull<kernel::bindings::page>> + '_ {
        (0..self.pages.len()).flat_map(|page| self.parts_of(page as u32))
    }

    /// The parts of `PAGE_SIZE` bytes of one page; none if it does not exist.
    pub(super) fn parts_of(
        &self,
        page: u32,
    ) -> impl Iterator<Item = NonNull<kernel::bindings::page>> + '_ {
        let parts = 1usize << self.order;
        self.pages
            .get(page as usize)
            .into_iter()
            .flat_map(move |page| {
                // SAFETY: By the type invariants it is an allocation of so many pages, whose descriptors stand
                // one behind the other.
                (0..parts).map(move |part| unsafe { page.add(part) })
            })
    }

    /// Bytes of all pages.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.len().saturating_mul(PAGE_SIZE << self.order)
    }
}

impl AsRef<[NonNull<u8>]> for PageArray {
    #[inline]
    fn as_ref(&self) -> &[NonNull<u8>] {
        &self.addresses
    }
}

impl Addresses for PageArray {
    fn is_held(&self, page: u32) -> bool {
        self.pages.get(page as usize).is_some_and(|page| {
            // SAFETY: By the type invariants it is a page of ours; references to a part count at the first.
            unsafe { bindings::weir_helper_page_is_held(page.as_ptr()) }
        })
    }
}

impl Drop for PageArray {
    fn drop(&mut self) {
        for page in &self.pages {
            // SAFETY: By the type invariants it is ours, and of this order. What others still refer to is freed
            // when they do no more.
            unsafe { bindings::weir_helper_free_pages(page.as_ptr(), self.order) };
        }
    }
}
