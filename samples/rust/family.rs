// SPDX-License-Identifier: GPL-2.0

//! What a task and its children do: a sample of weir in Rust.
//!
//! Whoever opens `/dev/weir_family` is counted until it is closed, and so is every child that it makes, and the
//! children of those. In a shell:
//!
//! ```text
//! exec 3</dev/weir_family; make; cat <&3
//! ```

#[path = "../../rust/api/weir.rs"]
mod weir;

use kernel::{
    fs::{
        File,
        Kiocb, //
    },
    iov::IovIterDest,
    miscdevice::{
        MiscDevice,
        MiscDeviceOptions,
        MiscDeviceRegistration, //
    },
    prelude::*,
    str::CString, //
};
use weir::{
    Counter,
    Event,
    Scope,
    Software, //
};

module! {
    type: Family,
    name: "weir_family",
    authors: ["The Weir authors"],
    description: "Sample of weir in Rust: what a task and its children do",
    license: "GPL",
}

#[pin_data]
struct Family {
    #[pin]
    _device: MiscDeviceRegistration<Watched>,
}

impl kernel::InPlaceModule for Family {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _device <- MiscDeviceRegistration::register(MiscDeviceOptions { name: c"weir_family" }),
        })
    }
}

/// Which events, and what they are called.
const EVENTS: [(&str, Event); 3] = [
    (
        "page-faults",
        Event::software(Software::PageFaults).inherit(),
    ),
    (
        "context-switches",
        Event::software(Software::ContextSwitches).inherit(),
    ),
    ("task-clock", Event::software(Software::TaskClock).inherit()),
];

struct Watched(Counter<{ EVENTS.len() }>);

#[vtable]
impl MiscDevice for Watched {
    type Ptr = KBox<Self>;

    fn open(_file: &File, _device: &MiscDeviceRegistration<Self>) -> Result<Self::Ptr> {
        let events = EVENTS.map(|(_, event)| event);
        let counter = Counter::create(events, Scope::Task(current!()))?;
        counter.enable()?;
        Ok(KBox::new(Self(counter), GFP_KERNEL)?)
    }

    fn read_iter(mut kiocb: Kiocb<'_, Self::Ptr>, iov: &mut IovIterDest<'_>) -> Result<usize> {
        // The whole text in one read; the next one is its end.
        if kiocb.ki_pos() != 0 {
            return Ok(0);
        }
        let values = kiocb.file().0.read()?;
        let mut text = KVec::new();
        for ((name, _), value) in EVENTS.iter().zip(values.iter()) {
            let line = CString::try_from_fmt(fmt!("{name} {}\n", value.count()))?;
            text.extend_from_slice(line.to_bytes(), GFP_KERNEL)?;
        }
        iov.simple_read_from_buffer(kiocb.ki_pos_mut(), &text)
    }
}
