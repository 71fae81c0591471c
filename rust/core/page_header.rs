// SPDX-License-Identifier: GPL-2.0

//! The parts of a page's header, by who writes them and when.
//!
//! Whoever opens a page writes its beginning. Before it has done so an interrupt may fill and close the
//! page, and writes its end. What is left is written by the outermost writer when it publishes. No two
//! of them write the same byte.

use crate::uapi::{
    PageHeader,
    LOST_CAUSES, //
};
use core::mem::offset_of;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes, //
};

/// Written by whoever opens the page. It begins the header.
#[derive(FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct PageBegin {
    pub(crate) magic: u32,
    pub(crate) stream_id: u32,
    pub(crate) timestamp_begin: u64,
}

/// Written by whoever closes the page.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct PageEnd {
    pub(crate) timestamp_end: u64,
    pub(crate) content_size: u64,
}

impl PageEnd {
    pub(crate) const OFFSET: usize = offset_of!(PageHeader, timestamp_end);
}

/// Written by whoever publishes the page.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
pub(crate) struct PageRest {
    pub(crate) packet_size: u64,
    pub(crate) packet_seq_num: u64,
    pub(crate) events_discarded: u64,
    pub(crate) cpu_id: u32,
    pub(crate) flags: u32,
    pub(crate) lost_begin: u64,
    pub(crate) lost_end: u64,
    pub(crate) lost: [u32; LOST_CAUSES],
}

impl PageRest {
    pub(crate) const OFFSET: usize = offset_of!(PageHeader, packet_size);
}

// The parts are the whole, in this order.
const _: () = {
    assert!(size_of::<PageBegin>() == PageEnd::OFFSET);
    assert!(PageEnd::OFFSET + size_of::<PageEnd>() == PageRest::OFFSET);
    assert!(PageRest::OFFSET + size_of::<PageRest>() == size_of::<PageHeader>());
    let rest = PageRest::OFFSET;
    assert!(rest + offset_of!(PageRest, cpu_id) == offset_of!(PageHeader, cpu_id));
    assert!(rest + offset_of!(PageRest, lost_begin) == offset_of!(PageHeader, lost_begin));
    assert!(rest + offset_of!(PageRest, lost) == offset_of!(PageHeader, lost));
};
