// SPDX-License-Identifier: GPL-2.0

//! The user side of weir: open a channel, fill it with counters and injected objects, read its pages,
//! and decode the records in them.
//!
//! # Examples
//!
//! Who runs on this machine? Every task is injected, the channel is drained, the names are printed:
//!
//! ```no_run
//! use libweir::{
//!     Channel,
//!     ChannelOptions,
//!     DumpOptions,
//!     Page,
//!     Record, //
//! };
//!
//! let channel = Channel::create(&ChannelOptions::default())?;
//! let mut buffer = channel.buffer(64);
//! channel.dump_tasks(&DumpOptions::default(), &mut buffer, |bytes| {
//!     for record in Page::parse(bytes)?.records() {
//!         if let Record::Comm(comm) = record? {
//!             println!("{} {}", comm.tid, libweir::record::comm_text(&comm.comm));
//!         }
//!     }
//!     Ok::<(), libweir::Error>(())
//! })?;
//! # Ok::<(), libweir::Error>(())
//! ```

pub mod attr;
pub mod buffer;
pub mod build;
pub mod channel;
pub mod clock;
pub mod continuity;
pub mod counter;
pub mod cpu;
pub mod error;
pub mod event;
pub mod held;
pub mod inject;
pub mod ioctl;
pub mod kallsyms;
pub mod mapped;
pub mod ordered;
pub mod page;
pub mod perf;
pub mod record;
pub mod sample;
pub mod stream;
pub mod value;

pub use attr::{
    sample_type,
    Attr,
    Sampling, //
};
pub use buffer::PageBuffer;
pub use channel::{
    Channel,
    ChannelOptions,
    DEVICE, //
};
pub use clock::Clock;
pub use continuity::Continuity;
pub use counter::{
    Counter,
    CounterOptions,
    Scope, //
};
pub use error::{
    Call,
    Error,
    Result, //
};
pub use event::{
    parse_events,
    Event,
    EventError,
    EventPaths,
    EventSet,
    NamedEvent, //
};
pub use held::Held;
pub use inject::{
    DumpOptions,
    DumpTotals,
    TaskDump, //
};
pub use kallsyms::Kallsyms;
pub use mapped::{
    MappedReader,
    Ready, //
};
pub use ordered::{
    Ordered,
    OrderedRecord, //
};
pub use page::{
    Page,
    PageError, //
};
pub use record::{
    Record,
    RecordError, //
};
pub use rustix::io::Errno;
pub use sample::{
    Callchain,
    SampleFields,
    SampleLayouts, //
};
pub use stream::{
    Stream,
    StreamError, //
};
pub use value::{
    ReadOptions,
    Value, //
};
#[path = "../../../rust/core/slot.rs"]
pub mod slot;
#[path = "../../../rust/core/uapi.rs"]
pub mod uapi;
