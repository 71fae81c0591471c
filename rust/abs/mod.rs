// SPDX-License-Identifier: GPL-2.0

//! Safe wrappers for what the `kernel` crate lacks. The only place for `unsafe` and for bindings, but
//! for the entry points of the C interface.

pub(crate) mod bindings;
pub(crate) mod clock;
pub(crate) mod cpus;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod credentials;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod cross_call;
pub(crate) mod device;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod hotplug;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod interrupts;
pub(crate) mod iov;
pub(crate) mod lender;
pub(crate) mod locked_memory;
pub(crate) mod mmap;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod module_exit;
pub(crate) mod module_file;
pub(crate) mod page_array;
pub(crate) mod per_cpu;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod perf_event;
pub(crate) mod pin;
pub(crate) mod pipe;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod rcu_slot;
pub(crate) mod rights;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod stack;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod task_switch;
pub(crate) mod task_walk;
#[cfg(CONFIG_PERF_EVENTS)]
pub(crate) mod trace_event;
mod uapi_check;
pub(crate) mod wait_queue;
pub(crate) mod word;
