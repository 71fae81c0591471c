// SPDX-License-Identifier: GPL-2.0

//! What the engine stands on when it runs on the host: for tests that interrupt it at every step, for
//! the model checker, and for benchmarks.

pub mod backend;
pub mod memory;
#[cfg(loom)]
pub mod model;
#[cfg(all(not(loom), target_arch = "x86_64"))]
pub mod native;
pub mod records;
#[cfg(not(loom))]
pub mod stepped;
