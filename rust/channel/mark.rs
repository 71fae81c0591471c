// SPDX-License-Identifier: GPL-2.0

//! Telling a reader how far the stream is complete.

use super::{
    pause,
    Channel, //
};
use crate::abs::{
    clock::Clock,
    cpus, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::Full,
        barrier::smp_mb, //
    },
};
use weir_core::uapi::MarkReq;

/// How long a write may hold up a mark, ns.
const PATIENCE: u64 = 1_000_000;

/// How long what a CPU has stored may be unseen by others, ns, and by a lot: it is some hundred at most, and
/// a store that a virtual CPU has made is seen when it stops running.
const SLACK: u64 = 10_000;

impl Channel {
    /// Finds a time that no record is older than which is in no finished page and was not read. Sleeps.
    ///
    /// A write reads the clock when it has begun. So what has a time before `now` has begun before this is
    /// called, but for the store that says so, which may be seen a little later; and it has ended once its
    /// CPU was seen without a write.
    ///
    /// # Errors
    ///
    /// `EINVAL` (flags), `EAGAIN` (a write takes too long), `ERESTARTSYS` on a signal.
    pub(crate) fn mark(&self, request: &mut MarkReq) -> Result {
        if request.flags != 0 {
            return Err(EINVAL);
        }
        let clock = self.options.clock;
        let now = clock.now();
        let begin = Clock::Monotonic.now();
        smp_mb(Full);
        for cpu in 0..cpus::count() {
            while !self.engine.is_quiet(cpu) {
                if Clock::Monotonic.now().saturating_sub(begin) > PATIENCE {
                    return Err(EAGAIN);
                }
                pause()?;
            }
        }
        let now = now.saturating_sub(clock.advance_in(SLACK));
        request.time = self.reader.lock().complete_until(&self.engine, now);
        Ok(())
    }
}
