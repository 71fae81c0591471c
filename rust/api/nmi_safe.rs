// SPDX-License-Identifier: GPL-2.0

//! What may be used in an NMI.

use super::{
    Channel,
    Value,
    Values, //
};
use core::marker::PhantomData;
use kernel::{
    alloc::Allocator,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            AtomicType, //
        },
        Arc, //
    },
};

/// What code in an NMI may have a shared reference to: whatever is called through it takes no lock, allocates
/// nothing and waits for nothing.
///
/// It is what the state of an [`OverflowHandler`](super::OverflowHandler) is made of, so a handler has no lock at
/// hand, and nothing that it could push to. (No type can keep a function from calling what is at hand
/// everywhere, as an allocator is; that stays the author's affair.)
///
/// A structure is this if all its fields are: [`nmi_safe`] declares such a one.
///
/// # Safety
///
/// No safe function that a shared reference to the type leads to, by its methods or by its fields, takes a lock,
/// allocates, frees, or waits.
pub(crate) unsafe trait NmiSafe: Send + Sync + 'static {}

macro_rules! plain {
    ($($type:ty),*) => {
        // SAFETY: Shared references to them allow nothing but reading.
        $(unsafe impl NmiSafe for $type {})*
    };
}

plain!(
    bool,
    char,
    (),
    u8,
    u16,
    u32,
    u64,
    usize,
    i8,
    i16,
    i32,
    i64,
    isize
);
plain!(&'static str, &'static CStr, Value);

// SAFETY: As above.
unsafe impl<const N: usize> NmiSafe for Values<N> {}

// SAFETY: Atomic operations take no lock, on the architectures on which 64 bits are one word; others have a lock
// around those.
#[cfg(CONFIG_64BIT)]
unsafe impl<T: AtomicType + 'static> NmiSafe for Atomic<T> {}

// SAFETY: Writing to it, whole or in place, is for any context, and never takes a lock.
unsafe impl NmiSafe for Channel {}

// SAFETY: The reference gives what it points to, and nothing else.
unsafe impl<T: NmiSafe + ?Sized> NmiSafe for &'static T {}
// SAFETY: As above. Whoever has it keeps a count in it, so one that was cloned here is not the last.
unsafe impl<T: NmiSafe> NmiSafe for Arc<T> {}
// SAFETY: As above. It is freed by its owner.
unsafe impl<T: NmiSafe, A: Allocator + 'static> NmiSafe for Box<T, A> {}
// SAFETY: As above. It can only be changed by its owner.
unsafe impl<T: NmiSafe, A: Allocator + 'static> NmiSafe for Vec<T, A> {}
// SAFETY: There is nothing behind it.
unsafe impl<T: Send + Sync + 'static> NmiSafe for PhantomData<T> {}
// SAFETY: A shared reference gives shared references to what is in it.
unsafe impl<T: NmiSafe> NmiSafe for Option<T> {}
// SAFETY: As above.
unsafe impl<T: NmiSafe, const N: usize> NmiSafe for [T; N] {}
// SAFETY: As above.
unsafe impl<T: NmiSafe> NmiSafe for [T] {}
// SAFETY: As above.
unsafe impl<A: NmiSafe, B: NmiSafe> NmiSafe for (A, B) {}

/// Declares a structure that is [`NmiSafe`], because each of its fields is: another does not compile.
///
/// The file `weir.rs` must be the module `weir` of the crate's root.
///
/// # Examples
///
/// ```ignore
/// nmi_safe! {
///     /// What the handler keeps.
///     struct Hits {
///         count: Atomic<u64>,
///         channel: weir::Channel,
///     }
/// }
/// ```
macro_rules! nmi_safe {
    (
        $(#[$attribute:meta])*
        $visible:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field_visible:vis $field:ident: $type:ty),* $(,)?
        }
    ) => {
        $(#[$attribute])*
        $visible struct $name {
            $($(#[$field_attribute])* $field_visible $field: $type),*
        }

        const _: () = {
            const fn is_nmi_safe<T: $crate::weir::NmiSafe>() {}
            $(is_nmi_safe::<$type>();)*
        };

        // SAFETY: Each of its fields is, or the lines above would not compile.
        unsafe impl $crate::weir::NmiSafe for $name {}
    };
}

pub(crate) use nmi_safe;
