// SPDX-License-Identifier: GPL-2.0

//! Safe wrappers for what the `kernel` crate lacks. The only place for `unsafe` and for bindings, but
//! for the entry points of the C interface.

pub(crate) mod bindings;
pub(crate) mod clock;
pub(crate) mod cpus;
pub(crate) mod device;
pub(crate) mod iov;
pub(crate) mod lender;
pub(crate) mod locked_memory;
pub(crate) mod mmap;
pub(crate) mod module_file;
pub(crate) mod page_array;
pub(crate) mod per_cpu;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod perf_event;
pub(crate) mod pin;
pub(crate) mod pipe;
pub(crate) mod rights;
pub(crate) mod task_walk;
mod uapi_check;
pub(crate) mod wait_queue;
pub(crate) mod word;
