// SPDX-License-Identifier: GPL-2.0

//! Weir for other kernel modules written in Rust.
//!
//! A module takes this file in by `#[path]`, as the module `weir` of its crate's root; `samples/rust/` does. It
//! stands on the functions that `weir.ko` exports (`linux/weir.h`) and on nothing else of weir, so the two
//! modules need not be compiled together.

// Hardly any module needs all of it.
#![allow(dead_code, unused_imports, unused_macros)]

mod channel;
mod counter;
mod event;
mod nmi_safe;
mod overflow;
mod value;

pub(crate) use channel::{
    Channel,
    Options,
    Reservation,
    MODEL_PAGED,
    MODEL_PER_CPU,
    MODEL_SHARED,
    MODE_DISCARD,
    MODE_OVERWRITE, //
};
pub(crate) use counter::{
    Builder,
    Counter,
    Scope, //
};
pub(crate) use event::{
    Access,
    Cache,
    Event,
    Fields,
    Hardware,
    Length,
    Op,
    Outcome,
    Software, //
};
pub(crate) use nmi_safe::{
    nmi_safe,
    NmiSafe, //
};
pub(crate) use overflow::{
    Overflow,
    OverflowHandler, //
};
pub(crate) use value::{
    Value,
    Values, //
};
