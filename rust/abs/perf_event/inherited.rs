// SPDX-License-Identifier: GPL-2.0

//! Enabling and disabling an event that children of its task inherit.
//!
//! `perf_event_enable()` and `perf_event_disable()` do that to the event of the task alone; the calls that go
//! on to its children are not for modules, nor can a module go through the children itself: each may end at any
//! moment, and what would keep its event is perf's own. And a child that is made while the event of its parent is
//! disabled has one that stays so.
//!
//! So such an event is enabled when it is created, and with it those of all children to come; and what is
//! counted while it is to be disabled is taken off its value. That costs as much as counting.

use super::event::Reading;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        new_mutex,
        Mutex, //
    },
};

struct State {
    /// Counted while it was to be disabled, up to the last time that it was enabled.
    hidden: Reading,
    /// What it had counted when it was disabled, if it is.
    disabled_at: Option<Reading>,
}

/// Whether an inherited event is enabled.
#[pin_data]
pub(super) struct Inherited {
    disabled: Atomic<bool>,
    #[pin]
    state: Mutex<State>,
}

impl Inherited {
    /// Of an event that is new. With `on_exec` perf enables it when a program is executed; otherwise it is to
    /// be disabled.
    pub(super) fn new(on_exec: bool) -> impl PinInit<Self> {
        pin_init!(Self {
            disabled: Atomic::new(!on_exec),
            state <- new_mutex!(
                State {
                    hidden: Reading::default(),
                    disabled_at: (!on_exec).then(Reading::default),
                },
                "weir_inherited"
            ),
        })
    }

    /// Whether it is to be disabled: then its overflows are nobody's. Any context.
    pub(super) fn is_disabled(&self) -> bool {
        self.disabled.load(Relaxed)
    }

    /// What it counted while it was enabled, where `read` is all that it counted. Sleeps.
    pub(super) fn read(&self, read: impl FnOnce() -> Reading) -> Reading {
        let state = self.state.lock();
        let counted = match state.disabled_at {
            Some(counted) => counted,
            None => read(),
        };
        counted.wrapping_sub(state.hidden)
    }

    /// From now on, what it counts is part of its value. Sleeps.
    pub(super) fn enable(&self, read: impl FnOnce() -> Reading) {
        let mut state = self.state.lock();
        if let Some(counted) = state.disabled_at.take() {
            let hidden = read().wrapping_sub(counted);
            state.hidden = state.hidden.wrapping_add(hidden);
        }
        self.disabled.store(false, Relaxed);
    }

    /// From now on, it is not. Handlers that run already may still think otherwise. Sleeps.
    pub(super) fn disable(&self, read: impl FnOnce() -> Reading) {
        let mut state = self.state.lock();
        if state.disabled_at.is_some() {
            return;
        }
        state.disabled_at = Some(read());
        self.disabled.store(true, Relaxed);
    }
}
