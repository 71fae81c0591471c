// SPDX-License-Identifier: GPL-2.0

//! Counters: perf events of the kernel, and their overflows as records.
//!
//! A [`Counter`] is one event or several (`attrs`), in a [`Scope`]. It has a lane for each CPU (one for a
//! task), each lane a slot of perf events, whose readings become values in `read`. `Documentation/counters.rst`
//! tells what locks what.

mod copy;
mod handle;
mod lanes;
mod overflow;
mod read;
mod sampler;
mod slot;
mod table;

pub(crate) use handle::{
    Config,
    Counter, //
};
pub(crate) use lanes::{
    Destination,
    Scope, //
};
pub(crate) use overflow::Callback;
pub(crate) use read::{
    Freshness,
    Part, //
};
pub(crate) use table::Table;
