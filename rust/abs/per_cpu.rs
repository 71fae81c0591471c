// SPDX-License-Identifier: GPL-2.0

//! Something for each CPU.

use super::cpus;
use core::ops::Deref;
use kernel::{
    alloc::{
        flags::__GFP_NOWARN,
        KVVec, //
    },
    prelude::*,
};
use weir_core::Pinned;

/// An element for each CPU that may ever be there, in the order of their numbers.
///
/// # Invariants
///
/// There are [`cpus::count`] elements. `table` has the address of each CPU's where that CPU finds it.
pub(crate) struct PerCpu<T> {
    all: KVVec<T>,
    #[cfg(all(CONFIG_X86_64, CONFIG_SMP, not(CONFIG_UML)))]
    table: here::Table,
}

impl<T> PerCpu<T> {
    /// Allocates. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(element: impl Fn(usize) -> T) -> Result<Self> {
        let flags = kernel::alloc::flags::GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
        let mut all = KVVec::with_capacity(cpus::count(), flags)?;
        for cpu in 0..cpus::count() {
            all.push(element(cpu), flags)?;
        }
        // INVARIANT: So many were pushed, and stay where they are.
        Ok(Self {
            #[cfg(all(CONFIG_X86_64, CONFIG_SMP, not(CONFIG_UML)))]
            table: here::Table::new(&all)?,
            all,
        })
    }

    /// That of the CPU that `pin` says.
    #[inline(always)]
    pub(crate) fn of<P: Pinned>(&self, pin: &P) -> &T {
        #[cfg(all(CONFIG_X86_64, CONFIG_SMP, not(CONFIG_UML)))]
        if P::HERE {
            // SAFETY: By the contract of `Pinned` this is the CPU as long as the value lives; by the type
            // invariants that is the address of its element, which lives as long as `self`.
            return unsafe { &*self.table.this().cast::<T>() };
        }
        // SAFETY: By the contract of `Pinned` that is the number of a CPU, and by the type invariants every CPU
        // has an element.
        unsafe { self.all.get_unchecked(pin.cpu()) }
    }
}

impl<T> Deref for PerCpu<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.all
    }
}

/// Where each CPU finds its own without knowing its number, in two instructions.
#[cfg(all(CONFIG_X86_64, CONFIG_SMP, not(CONFIG_UML)))]
mod here {
    use super::super::bindings;
    use core::ptr::NonNull;
    use kernel::{
        ffi::c_void,
        prelude::*, //
    };

    /// A pointer for each CPU.
    ///
    /// # Invariants
    ///
    /// It is memory of `alloc_percpu()`, of a pointer for each CPU, that belongs to the value.
    pub(super) struct Table(NonNull<c_void>);

    // SAFETY: Nobody writes it after it was made, and what it points to is not accessed through it here.
    unsafe impl Send for Table {}
    // SAFETY: As above.
    unsafe impl Sync for Table {}

    impl Table {
        /// Points each CPU to its element of `all`. Sleeps.
        ///
        /// # Errors
        ///
        /// `ENOMEM`.
        pub(super) fn new<T>(all: &[T]) -> Result<Self> {
            // SAFETY: Process context.
            let table = unsafe { bindings::weir_helper_alloc_per_cpu_pointers() };
            // INVARIANT: It was just allocated.
            let table = Self(NonNull::new(table).ok_or(ENOMEM)?);
            for (cpu, element) in all.iter().enumerate() {
                let element = core::ptr::from_ref(element).cast_mut().cast();
                let pointers = table.0.as_ptr();
                // SAFETY: By the type invariants; the function checks that there may be such a CPU.
                unsafe { bindings::weir_helper_set_per_cpu_pointer(pointers, cpu as u32, element) };
            }
            Ok(table)
        }

        /// That of the CPU that runs this.
        #[inline(always)]
        pub(super) fn this(&self) -> *const c_void {
            let element;
            // SAFETY: By the type invariants that is a variable of each CPU, which `gs` points to.
            unsafe {
                core::arch::asm!(
                    "mov {}, qword ptr gs:[{}]",
                    lateout(reg) element,
                    in(reg) self.0.as_ptr(),
                    options(nostack, preserves_flags, readonly)
                );
            }
            element
        }
    }

    impl Drop for Table {
        fn drop(&mut self) {
            // SAFETY: By the type invariants; nobody can use it any more.
            unsafe { bindings::weir_helper_free_per_cpu(self.0.as_ptr()) };
        }
    }
}
