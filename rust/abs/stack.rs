// SPDX-License-Identifier: GPL-2.0

//! Where the code that an event interrupted was called from, as perf tells it.

use super::{
    bindings,
    interrupts,
    per_cpu::PerCpu,
    perf_event::Overflow,
    pin::PinnedCpu, //
};
use core::{
    cell::UnsafeCell,
    mem::size_of, //
};
use kernel::prelude::*;

/// Most callers: perf's own default, `perf_event_max_stack`.
pub(crate) const MOST: usize = 127;

/// Markers in front of them: of the kernel, and of user space.
const MARKERS: usize = 2;

/// Functions of perf and of this module between the code that was interrupted and the walk: more than there are.
const HANDLERS: usize = 33;

/// What follows is of the kernel: `PERF_CONTEXT_KERNEL`.
const CONTEXT_KERNEL: u64 = (-128i64) as u64;
/// What follows is of user space: `PERF_CONTEXT_USER`.
const CONTEXT_USER: u64 = (-512i64) as u64;

/// Which parts are wanted, and how much.
#[derive(Clone, Copy)]
pub(crate) struct Depth {
    /// The kernel's functions.
    pub(crate) kernel: bool,
    /// Those of the program.
    pub(crate) user: bool,
    /// Most callers, of the kernel and of user space, without the markers.
    pub(crate) callers: usize,
}

struct Buffer {
    walked: UnsafeCell<[usize; MOST + HANDLERS]>,
    chain: UnsafeCell<[u64; MOST + MARKERS]>,
}

/// Room for the call chains of the overflows of a counter.
///
/// # Invariants
///
/// On each CPU, one overflow that is no NMI has the first buffer, and one that is has the second.
pub(crate) struct ChainBuffers(PerCpu<[Buffer; 2]>);

// SAFETY: A buffer is used on its CPU only, by one at a time.
unsafe impl Sync for ChainBuffers {}

impl ChainBuffers {
    /// Allocates. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        let buffer = || Buffer {
            walked: UnsafeCell::new([0; MOST + HANDLERS]),
            chain: UnsafeCell::new([0; MOST + MARKERS]),
        };
        // INVARIANT: Nobody has them.
        Ok(Self(PerCpu::new(|_| [buffer(), buffer()])?))
    }

    /// Calls `f` with the chain of what an event interrupted. Only from the handler of that event.
    pub(crate) fn with<R>(
        &self,
        pin: &PinnedCpu,
        overflow: &Overflow<'_>,
        depth: Depth,
        f: impl FnOnce(&[u64]) -> R,
    ) -> R {
        let [task, nmi] = self.0.of(pin);
        let buffer = match interrupts::in_nmi() {
            true => nmi,
            false => task,
        };
        // INVARIANT: Handlers run with interrupts off, which only an NMI comes through, and NMIs do not nest.
        // SAFETY: By the type invariants nobody else has them. `f` cannot take the slice out of here.
        let (walked, chain) = unsafe { (&mut *buffer.walked.get(), &mut *buffer.chain.get()) };
        let mut chain = Chain {
            to: chain,
            len: 0,
            left: depth.callers.min(MOST),
        };
        if depth.kernel && !overflow.is_user() {
            chain.push_kernel(walked, overflow.ip());
        }
        if depth.user {
            chain.push_user(overflow);
        }
        let Chain { to, len, .. } = chain;
        f(to.get(..len).unwrap_or(&[]))
    }
}

struct Chain<'a> {
    to: &'a mut [u64],
    len: usize,
    /// Callers that may be added.
    left: usize,
}

impl Chain<'_> {
    /// Adds a marker.
    fn mark(&mut self, context: u64) {
        if let Some(to) = self.to.get_mut(self.len) {
            *to = context;
            self.len += 1;
        }
    }

    /// Adds a caller. Returns whether it may be added.
    fn push(&mut self, caller: u64) -> bool {
        match (self.to.get_mut(self.len), self.left.checked_sub(1)) {
            (Some(to), Some(left)) => {
                *to = caller;
                self.len += 1;
                self.left = left;
                true
            }
            _ => false,
        }
    }

    /// The walk begins here, in the handler; the code that was interrupted is where `ip` is met.
    fn push_kernel(&mut self, walked: &mut [usize], ip: u64) {
        // SAFETY: The entries may be written so far. Any context.
        let count =
            unsafe { bindings::weir_helper_kernel_stack(walked.as_mut_ptr(), walked.len() as u32) };
        let walked = walked.get(..count as usize).unwrap_or(&[]);
        let interrupted = walked.iter().position(|entry| *entry as u64 == ip);
        self.mark(CONTEXT_KERNEL);
        match interrupted.and_then(|at| walked.get(at..)) {
            Some(frames) => {
                for frame in frames {
                    if !self.push(*frame as u64) {
                        break;
                    }
                }
            }
            // The walk did not get so far: where it was is known all the same.
            None => {
                self.push(ip);
            }
        }
    }

    /// Follows the frame pointers of the program, each of which points to the one before, with the address to
    /// return to behind it.
    fn push_user(&mut self, overflow: &Overflow<'_>) {
        let regs = match overflow.is_user() {
            true => overflow.regs(),
            // SAFETY: Any context.
            false => unsafe { bindings::weir_helper_user_regs() },
        };
        if regs.is_null() {
            return;
        }
        // SAFETY: They are valid during the overflow.
        let (ip, mut frame, is_native) = unsafe {
            (
                bindings::weir_helper_regs_ip(regs),
                bindings::weir_helper_regs_frame(regs),
                bindings::weir_helper_regs_native(regs),
            )
        };
        self.mark(CONTEXT_USER);
        if !self.push(ip) || !is_native {
            return;
        }
        // A frame lies above the one that it calls, so this ends.
        while frame != 0 && frame % size_of::<u64>() as u64 == 0 {
            let mut words = [0u64; 2];
            // SAFETY: The words may be written. It copies what can be had without a fault, in any context.
            let failed = unsafe {
                kernel::bindings::copy_from_user_nofault(
                    words.as_mut_ptr().cast(),
                    frame as *const kernel::ffi::c_void,
                    size_of::<[u64; 2]>(),
                )
            };
            let [next, return_address] = words;
            if failed != 0 || return_address == 0 || !self.push(return_address) || next <= frame {
                return;
            }
            frame = next;
        }
    }
}
