// SPDX-License-Identifier: GPL-2.0

//! Who writes to a variable of the kernel: a sample of weir in Rust.
//!
//! A breakpoint on every CPU, also on those that come online later, reports each write into a channel called
//! `weir_writers`: where the code is that wrote, by which task, on which CPU and when. For example,
//!
//! ```text
//! insmod weir_writers.ko address=0x$(grep ' nr_threads$' /proc/kallsyms | cut -d' ' -f1)
//! ```
//!
//! tells who starts tasks and who ends them. Compare `samples/hw_breakpoint/data_breakpoint.c` of the kernel.

#[path = "../../rust/api/weir.rs"]
mod weir;

use kernel::prelude::*;
use weir::{
    Access,
    Channel,
    Counter,
    Event,
    Length,
    Overflow,
    OverflowHandler,
    Scope, //
};

module! {
    type: Writers,
    name: "weir_writers",
    authors: ["The Weir authors"],
    description: "Sample of weir in Rust: who writes to a variable",
    license: "GPL",
    params: {
        address: usize {
            default: 0,
            description: "Address of the variable, of 4 bytes",
        },
    },
}

weir::nmi_safe! {
    struct Report {
        channel: Channel,
    }
}

impl OverflowHandler for Report {
    fn overflow(&self, overflow: &Overflow<'_>) {
        // The record says which task it was, where and when. The channel counts what it has no room for.
        let _ = self.channel.write(&overflow.ip().to_ne_bytes());
    }
}

struct Writers {
    writes: Counter<1, Report>,
}

impl kernel::Module for Writers {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let address = module_parameters::address.value();
        let event = Event::breakpoint(address, Length::Four, Access::Write).period(1);
        let report = Report {
            channel: Channel::create(c"weir_writers", None)?,
        };
        let writes = Counter::build([event], Scope::AllCpus).create_with(report)?;
        writes.enable()?;
        Ok(Self { writes })
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        if let Ok(values) = self.writes.read() {
            pr_info!("{} writes\n", values[0].count());
        }
    }
}
