// SPDX-License-Identifier: GPL-2.0

//! Every wake-up of a task, into a channel called `weir_wakeups`: a sample of weir in Rust.

mod tracepoint;
#[path = "../../rust/api/weir.rs"]
mod weir;

use kernel::{
    bindings,
    ffi::c_void,
    prelude::*, //
};
use tracepoint::Probe;

module! {
    type: Wakeups,
    name: "weir_wakeups",
    authors: ["The Weir authors"],
    description: "Sample of weir in Rust: every wake-up of a task",
    license: "GPL",
}

/// Bytes of a record: who was woken, as `u32` in the byte order of the machine, and its name.
const PID: usize = 4;
const COMM: usize = 16;

struct Wakeups {
    /// It has the channel, which is destroyed after no probe runs any more.
    _probe: Probe<weir::Channel>,
}

impl kernel::Module for Wakeups {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let mut options = weir::Options {
            model: weir::MODEL_SHARED,
            mode: weir::MODE_OVERWRITE,
            ..Default::default()
        };
        let channel = weir::Channel::create(c"weir_wakeups", Some(&mut options))?;
        let probe: unsafe extern "C" fn(*const weir::Channel, *mut bindings::task_struct) = probe;
        // SAFETY: These are the arguments of `TRACE_EVENT(sched_wakeup)`, behind the data.
        let probe = unsafe { Probe::register(c"sched_wakeup", probe as *mut c_void, channel) }?;
        pr_info!("wake-ups go into a channel of {} pages\n", options.pages);
        Ok(Self { _probe: probe })
    }
}

/// # Safety
///
/// Called by the tracepoint alone.
unsafe extern "C" fn probe(channel: *const weir::Channel, task: *mut bindings::task_struct) {
    // SAFETY: The channel is what was registered, and stays while probes run; the task is there during the
    // call.
    let (channel, pid, comm) = unsafe { (&*channel, (*task).pid, (*task).comm) };
    // What there is no room for is counted by the channel.
    if let Ok(mut record) = channel.reserve(PID + COMM) {
        let values = Iterator::chain(pid.to_ne_bytes().into_iter(), comm);
        for (to, from) in record.bytes().iter_mut().zip(values) {
            *to = from;
        }
        record.commit();
    }
}
