// SPDX-License-Identifier: GPL-2.0

//! Interrupts off on this CPU.

use super::bindings;
use kernel::types::NotThreadSafe;

/// Interrupts are off as long as this lives, but for NMIs. Any context.
///
/// `kernel::interrupt` counts how often they were turned off in a variable that an NMI must not touch in
/// between; this keeps what was before.
///
/// # Invariants
///
/// They were turned off in this very context, for this value.
pub(crate) struct InterruptsOff {
    flags: usize,
    _not_send: NotThreadSafe,
}

impl InterruptsOff {
    /// Turns them off.
    pub(crate) fn new() -> Self {
        // SAFETY: May be called in any context; `drop` undoes it.
        let flags = unsafe { bindings::weir_helper_local_irq_save() };
        // INVARIANT: They were just turned off.
        Self {
            flags,
            _not_send: NotThreadSafe::default(),
        }
    }

    /// The number of this CPU.
    pub(crate) fn cpu(&self) -> usize {
        kernel::cpu::CpuId::current().as_u32() as usize
    }
}

impl Drop for InterruptsOff {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, and the value cannot go to another context.
        unsafe { bindings::weir_helper_local_irq_restore(self.flags) };
    }
}

/// Whether this is an NMI.
pub(crate) fn in_nmi() -> bool {
    // SAFETY: Any context.
    unsafe { bindings::weir_helper_in_nmi() }
}
