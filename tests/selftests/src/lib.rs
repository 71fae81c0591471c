// SPDX-License-Identifier: GPL-2.0

//! What the test programs of weir share.
//!
//! Each program under `src/bin` prints KTAP and exits as kernel self-tests do: 0 when it passed, 1 when
//! something failed, 4 when it could not run here. They need no harness: load the module and start
//! them as root.

pub mod affinity;
pub mod agreement;
pub mod beside;
pub mod child;
pub mod counters;
pub mod dump;
pub mod exercise;
pub mod hotplug;
pub mod icount;
pub mod ktap;
pub mod ledger;
pub mod loaded;
pub mod mapping;
pub mod paranoid;
pub mod payload;
pub mod requests;
pub mod rounds;
pub mod sampled;
pub mod session;
pub mod spliced;
pub mod stat;
pub mod stat_work;
pub mod syscall;
pub mod tasks;
pub mod times;
pub mod torture;
pub mod verifier;
pub mod work;
pub mod worker;
