// SPDX-License-Identifier: GPL-2.0

//! The part of weir that knows no kernel: layouts and algorithms.
//!
//! Kbuild compiles it into `weir.ko`, cargo into tests, benchmarks and `libweir`.
#![cfg_attr(not(any(CONFIG_RUST, test)), no_std)]

pub mod uapi;
