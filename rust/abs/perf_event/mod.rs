// SPDX-License-Identifier: GPL-2.0

//! Perf events that kernel code creates.
//!
//! C header: `include/linux/perf_event.h`.

mod attr;
mod descriptor;
mod event;
mod inherited;
mod local;
mod overflow;
mod pointer;
mod stop;

pub(crate) use attr::{
    Attr,
    SAMPLE_ADDR,
    SAMPLE_CALLCHAIN,
    SAMPLE_CPU,
    SAMPLE_ID,
    SAMPLE_IDENTIFIER,
    SAMPLE_IP,
    SAMPLE_PERIOD,
    SAMPLE_STREAM_ID,
    SAMPLE_TID,
    SAMPLE_TIME, //
};
pub(crate) use descriptor::TaskDescriptor;
pub(crate) use event::{
    PerfEvent,
    Reading,
    Target, //
};
pub(crate) use overflow::{
    Overflow,
    OverflowHandler, //
};
