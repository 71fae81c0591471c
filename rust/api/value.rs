// SPDX-License-Identifier: GPL-2.0

//! What was counted.

use core::ops::Deref;

/// All events of the counter ran, all the time.
const TOGETHER: u32 = 1 << 0;
/// The PMU has gone.
const REVOKED: u32 = 1 << 1;
/// A CPU is online and not counted.
const MISSING: u32 = 1 << 2;

/// What one event counted since it was enabled first or reset: `struct weir_counter_value`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Value {
    id: u32,
    cpu: i32,
    value: u64,
    enabled: u64,
    running: u64,
    age: u64,
    lost: u64,
    throttled: u64,
    flags: u32,
    reserved: u32,
}

// What `samples/rust/layout_check.c` says of the structure in C.
const _: () = assert!(size_of::<Value>() == 64);

impl Value {
    pub(super) const ZERO: Self = Self {
        id: 0,
        cpu: -1,
        value: 0,
        enabled: 0,
        running: 0,
        age: 0,
        lost: 0,
        throttled: 0,
        flags: 0,
        reserved: 0,
    };

    /// How many.
    pub(crate) fn count(&self) -> u64 {
        self.value
    }

    /// ns for which it was enabled.
    pub(crate) fn enabled(&self) -> u64 {
        self.enabled
    }

    /// ns for which it really counted: less, where more events were wanted than its PMU can count at once.
    pub(crate) fn running(&self) -> u64 {
        self.running
    }

    /// How many it would have been, had it counted all the time at the same rate. [`None`] if it never ran.
    pub(crate) fn scaled(&self) -> Option<u64> {
        if self.enabled == self.running {
            return Some(self.value);
        }
        // Both times to 32 bits, which keeps more digits than such an estimate has, so that what is left of
        // the division can be multiplied.
        let longer = self.enabled.max(self.running);
        let shift = (u64::BITS - longer.leading_zeros()).saturating_sub(u32::BITS);
        let (enabled, running) = (self.enabled >> shift, self.running >> shift);
        let whole = self.value.checked_div(running)?.saturating_mul(enabled);
        let rest = (self.value.checked_rem(running)? * enabled).checked_div(running)?;
        Some(whole.saturating_add(rest))
    }

    /// ns since it was read from its CPU; of several, since the oldest was.
    pub(crate) fn age(&self) -> u64 {
        self.age
    }

    /// Samples that the channel had no room for.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// How often perf stopped it for too many overflows.
    pub(crate) fn throttled(&self) -> u64 {
        self.throttled
    }

    /// Its PMU has gone: this is what was counted before.
    pub(crate) fn revoked(&self) -> bool {
        self.flags & REVOKED != 0
    }

    /// A CPU is online and not counted.
    pub(crate) fn missing(&self) -> bool {
        self.flags & MISSING != 0
    }
}

/// What each event of a counter counted, in the order in which it was created with them.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Values<const N: usize>([Value; N]);

impl<const N: usize> Values<N> {
    pub(super) const ZERO: Self = Self([Value::ZERO; N]);

    pub(super) fn as_mut_ptr(&mut self) -> *mut Value {
        self.0.as_mut_ptr()
    }

    /// All events ran, all the time, so that they can be divided by each other.
    pub(crate) fn together(&self) -> bool {
        self.0.iter().all(|value| value.flags & TOGETHER != 0)
    }
}

impl<const N: usize> Deref for Values<N> {
    type Target = [Value; N];

    fn deref(&self) -> &[Value; N] {
        &self.0
    }
}
