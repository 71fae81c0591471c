// SPDX-License-Identifier: GPL-2.0

//! The part of weir that knows no kernel: layouts and algorithms.
//!
//! Kbuild compiles it into `weir.ko`, cargo into tests, benchmarks and `libweir`.
#![cfg_attr(not(any(CONFIG_RUST, test)), no_std)]

mod channel;
#[cfg(any(test, weir_kunit))]
mod channel_tests;
mod commit;
mod cpu_state;
mod free_stack;
mod head;
#[cfg(any(test, weir_kunit))]
mod kind_tests;
mod lent;
#[cfg(any(test, weir_kunit))]
mod lent_tests;
mod lost;
mod mark;
mod open_word;
mod owner;
mod page_header;
mod page_memory;
mod page_state;
mod pool;
mod queue;
mod reader;
mod record_len;
mod reserve;
mod sequence;
pub mod slot;
#[cfg(any(test, weir_kunit))]
mod test_backend;
#[cfg(any(test, weir_kunit))]
mod test_reader;
pub mod uapi;
mod word;

pub use channel::{
    usable_pages,
    Backend,
    Channel,
    Class,
    Mode,
    Model,
    Status,
    HEADER_SIZE, //
};
pub use cpu_state::{
    CpuState,
    MAX_DEPTH, //
};
pub use lost::{
    Cause,
    LostReport, //
};
pub use open_word::PAGES_MAX;
pub use page_memory::{
    Addressed,
    Addresses,
    MappedPages,
    PageMemory,
    Pinned,
    Place, //
};
pub use page_state::PageState;
pub use reader::{
    Chunk,
    Progress,
    Reader, //
};
pub use record_len::{
    RecordLen,
    RECORD_ALIGN, //
};
pub use reserve::{
    Pending,
    Reservation, //
};
pub use sequence::Sequence;
pub use word::Word;
