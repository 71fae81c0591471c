// SPDX-License-Identifier: GPL-2.0

//! The module: what it is made of, and its wiring.

mod abs;
mod capi;
mod channel;
mod counter;
mod device;
mod inject;

use kernel::prelude::*;

module! {
    type: WeirModule,
    name: "weir",
    authors: ["The Weir authors"],
    description: "Counters, page streams and injected objects for profiling the kernel",
    license: "GPL",
}

#[pin_data]
struct WeirModule {
    #[pin]
    device: abs::device::PolledDevice<device::OpenFile>,
}

impl kernel::InPlaceModule for WeirModule {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        capi::named::init();
        if !counter::SUPPORTED {
            pr_info!("this kernel has no perf events: channels and injection only\n");
        }
        try_pin_init!(Self {
            device <- abs::device::PolledDevice::register(c"weir"),
        })
    }
}
