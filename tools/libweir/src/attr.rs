// SPDX-License-Identifier: GPL-2.0

//! What an event shall be: perf's own `struct perf_event_attr`.

use crate::{
    uapi,
    Event, //
};
use perf_event_open_sys::bindings::{
    self,
    perf_event_attr, //
};
use std::fmt;

/// When an event writes a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// Never: it only counts.
    #[default]
    None,
    /// Every so many events.
    Period(u64),
    /// About so often a second.
    Frequency(u64),
}

/// Fields of a sample: `PERF_SAMPLE_*`.
pub mod sample_type {
    use perf_event_open_sys::bindings;

    /// Where the code was.
    pub const IP: u64 = bindings::PERF_SAMPLE_IP as u64;
    /// Which process and thread.
    pub const TID: u64 = bindings::PERF_SAMPLE_TID as u64;
    /// When, in the channel's clock.
    pub const TIME: u64 = bindings::PERF_SAMPLE_TIME as u64;
    /// The address that was accessed.
    pub const ADDR: u64 = bindings::PERF_SAMPLE_ADDR as u64;
    /// Who called: the kernel's functions, and those of user space.
    pub const CALLCHAIN: u64 = bindings::PERF_SAMPLE_CALLCHAIN as u64;
    /// The event.
    pub const ID: u64 = bindings::PERF_SAMPLE_ID as u64;
    /// Which CPU.
    pub const CPU: u64 = bindings::PERF_SAMPLE_CPU as u64;
    /// Events since the sample before.
    pub const PERIOD: u64 = bindings::PERF_SAMPLE_PERIOD as u64;
    /// The event once more.
    pub const STREAM_ID: u64 = bindings::PERF_SAMPLE_STREAM_ID as u64;
    /// The event, in front of all else; every sample of weir has it.
    pub const IDENTIFIER: u64 = bindings::PERF_SAMPLE_IDENTIFIER as u64;
}

/// What an event shall be. By default it counts `cpu-clock` everywhere, without samples.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Attr(perf_event_attr);

impl Attr {
    /// Counts `event`, once it is enabled.
    pub fn new(event: Event) -> Self {
        let mut attr = perf_event_attr::default();
        attr.size = size_of::<perf_event_attr>() as u32;
        attr.type_ = event.type_;
        attr.config = event.config;
        attr.config1 = event.config1;
        attr.config2 = event.config2;
        attr.config3 = event.config3;
        attr.bp_type = event.bp_type;
        attr.set_disabled(1);
        Attr(attr)
    }

    /// Writes samples, with the fields of [`uapi::SAMPLE_TYPE`] unless others were asked for.
    #[must_use]
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        let (period, frequency) = match sampling {
            Sampling::None => (0, false),
            Sampling::Period(period) => (period, false),
            Sampling::Frequency(hertz) => (hertz, true),
        };
        self.0.sample_period = period;
        self.0.set_freq(frequency.into());
        if sampling != Sampling::None && self.0.sample_type == 0 {
            self.0.sample_type = uapi::SAMPLE_TYPE;
        }
        self
    }

    /// Writes a sample every so many events.
    #[must_use]
    pub fn period(self, period: u64) -> Self {
        self.sampling(Sampling::Period(period))
    }

    /// Writes about so many samples a second.
    #[must_use]
    pub fn frequency(self, hertz: u64) -> Self {
        self.sampling(Sampling::Frequency(hertz))
    }

    /// Which fields samples have: bits of [`sample_type`]. The kernel adds `IDENTIFIER`.
    #[must_use]
    pub fn sample_type(mut self, fields: u64) -> Self {
        self.0.sample_type = fields;
        self
    }

    /// At most so many callers in a sample; 0 is as many as `kernel.perf_event_max_stack`.
    #[must_use]
    pub fn sample_max_stack(mut self, callers: u16) -> Self {
        self.0.sample_max_stack = callers;
        self
    }

    /// Makes a breakpoint: `HW_BREAKPOINT_*`, and where.
    #[must_use]
    pub fn breakpoint(mut self, bp_type: u32, address: u64, len: u64) -> Self {
        self.0.type_ = bindings::PERF_TYPE_BREAKPOINT;
        self.0.bp_type = bp_type;
        self.0.bp_addr = address;
        self.0.bp_len = len;
        self
    }

    /// How near the address of a sample is to what caused it: 0 (anywhere) to 3 (exactly there).
    #[must_use]
    pub fn precise_ip(mut self, precision: u8) -> Self {
        self.0.set_precise_ip(precision.into());
        self
    }

    /// The event that it counts.
    pub fn event(&self) -> Event {
        Event {
            type_: self.0.type_,
            config: self.0.config,
            config1: self.0.config1,
            config2: self.0.config2,
            config3: self.0.config3,
            bp_type: self.0.bp_type,
        }
    }

    /// The structure itself, to look at.
    pub fn raw(&self) -> &perf_event_attr {
        &self.0
    }

    /// The structure itself, for what has no method here.
    pub fn raw_mut(&mut self) -> &mut perf_event_attr {
        &mut self.0
    }

    /// All that the kernel sees of the fields that are set here or by [`raw_mut`](Self::raw_mut).
    fn fields(&self) -> [(&'static str, u64); 23] {
        let attr = &self.0;
        [
            ("type", attr.type_.into()),
            ("size", attr.size.into()),
            ("config", attr.config),
            ("sample_period", attr.sample_period),
            ("sample_type", attr.sample_type),
            ("read_format", attr.read_format),
            ("flags", attr._bitfield_1.get(0, 64)),
            ("wakeup", attr.wakeup_events.into()),
            ("bp_type", attr.bp_type.into()),
            ("config1", attr.config1),
            ("config2", attr.config2),
            ("branch_sample_type", attr.branch_sample_type),
            ("sample_regs_user", attr.sample_regs_user),
            ("sample_stack_user", attr.sample_stack_user.into()),
            ("clockid", attr.clockid as u32 as u64),
            ("sample_regs_intr", attr.sample_regs_intr),
            ("aux_watermark", attr.aux_watermark.into()),
            ("sample_max_stack", attr.sample_max_stack.into()),
            ("reserved_2", attr.__reserved_2.into()),
            ("aux_sample_size", attr.aux_sample_size.into()),
            ("reserved_3", attr.__reserved_3.into()),
            ("sig_data", attr.sig_data),
            ("config3", attr.config3),
        ]
    }
}

/// Makes a method for a bit of the structure.
macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $set:ident;)*) => {
        impl Attr {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(mut self, yes: bool) -> Self {
                    self.0.$set(yes.into());
                    self
                }
            )*
        }
    };
}

flags! {
    /// Leaves user space out.
    exclude_user = set_exclude_user;
    /// Leaves the kernel out.
    exclude_kernel = set_exclude_kernel;
    /// Leaves the hypervisor out.
    exclude_hv = set_exclude_hv;
    /// Leaves the idle task out.
    exclude_idle = set_exclude_idle;
    /// Leaves out what is not in a guest.
    exclude_host = set_exclude_host;
    /// Leaves guests out.
    exclude_guest = set_exclude_guest;
    /// Leaves the kernel's functions out of call chains.
    exclude_callchain_kernel = set_exclude_callchain_kernel;
    /// Leaves the functions of user space out of call chains.
    exclude_callchain_user = set_exclude_callchain_user;
    /// Is always on its PMU, or in error.
    pinned = set_pinned;
    /// Is alone on its PMU.
    exclusive = set_exclusive;
    /// Counts in tasks that the task makes, too.
    inherit = set_inherit;
    /// Is enabled when the task runs another program.
    enable_on_exec = set_enable_on_exec;
    /// Counts only once it is enabled, as [`Attr::new`] has it.
    disabled = set_disabled;
}

impl Default for Attr {
    fn default() -> Self {
        Attr::new(Event::default())
    }
}

impl From<Event> for Attr {
    fn from(event: Event) -> Self {
        Attr::new(event)
    }
}

impl PartialEq for Attr {
    fn eq(&self, other: &Self) -> bool {
        self.fields() == other.fields()
    }
}

impl Eq for Attr {}

/// Shows the fields that are not zero, in hexadecimal.
impl fmt::Debug for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Attr");
        for (name, value) in self.fields() {
            if value != 0 {
                shown.field(name, &format_args!("{value:#x}"));
            }
        }
        shown.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_is_in_the_structure() {
        let attr = Attr::new(Event {
            type_: 4,
            config: 0x1c0,
            config1: 5,
            config2: 6,
            config3: 7,
            bp_type: 0,
        })
        .frequency(4000)
        .exclude_user(true)
        .pinned(true)
        .precise_ip(2);
        let raw = attr.raw();
        assert_eq!((raw.type_, raw.config), (4, 0x1c0));
        assert_eq!((raw.config1, raw.config2, raw.config3), (5, 6, 7));
        assert_eq!((raw.sample_freq, raw.freq()), (4000, 1));
        assert_eq!(raw.sample_type, uapi::SAMPLE_TYPE);
        assert_eq!((raw.exclude_user(), raw.exclude_kernel()), (1, 0));
        assert_eq!((raw.disabled(), raw.pinned(), raw.precise_ip()), (1, 1, 2));
        assert_eq!(raw.size, 136);
        assert_eq!(attr.event().config3, 7);
    }

    #[test]
    fn an_event_that_only_counts_has_no_period() {
        let attr = Attr::default();
        assert_eq!(attr.event(), Event::CPU_CLOCK);
        assert_eq!((attr.raw().sample_period, attr.raw().sample_type), (0, 0));
        assert_eq!(attr, attr.sampling(Sampling::None));
        assert_ne!(attr, attr.period(1));
    }

    #[test]
    fn fields_that_were_asked_for_stay_when_sampling_is() {
        let attr = Attr::default().sample_type(sample_type::IP).period(9);
        assert_eq!(attr.raw().sample_type, 1);
        assert_eq!(attr.raw().freq(), 0);
    }

    #[test]
    fn a_breakpoint_has_an_address_and_a_length() {
        let attr = Attr::default().breakpoint(3, 0xffff_0000, 8);
        let raw = attr.raw();
        assert_eq!((raw.type_, raw.bp_type), (5, 3));
        assert_eq!((raw.bp_addr, raw.bp_len), (0xffff_0000, 8));
    }

    #[test]
    fn what_is_shown_is_what_is_set() {
        let text = format!("{:?}", Attr::default().period(16));
        assert!(text.contains("sample_period: 0x10"), "{text}");
        assert!(!text.contains("config1"), "{text}");
    }
}
