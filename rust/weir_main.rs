// SPDX-License-Identifier: GPL-2.0

//! The module: what it is made of, and its wiring.

mod abs;
mod capi;
mod channel;
#[cfg(CONFIG_PERF_EVENTS)]
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
    // After the device, whose counters need it.
    #[cfg(CONFIG_PERF_EVENTS)]
    hotplug: abs::hotplug::HotplugState,
    #[cfg(CONFIG_PERF_EVENTS)]
    #[pin]
    module_exit: abs::module_exit::ModuleExit,
}

impl kernel::InPlaceModule for WeirModule {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        capi::named::init();
        #[cfg(CONFIG_PERF_EVENTS)]
        capi::owned::init();
        if cfg!(not(CONFIG_PERF_EVENTS)) {
            pr_info!("this kernel has no perf events: channels and injection only\n");
        }
        try_pin_init!(Self {
            #[cfg(CONFIG_PERF_EVENTS)]
            hotplug: abs::hotplug::HotplugState::new()?,
            #[cfg(CONFIG_PERF_EVENTS)]
            module_exit <- abs::module_exit::ModuleExit::new(capi::owned::release_all),
            device <- abs::device::PolledDevice::register(c"weir"),
        })
    }
}
