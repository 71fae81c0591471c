// SPDX-License-Identifier: GPL-2.0

//! What to count: `struct perf_event_attr`, and what the system call refuses of it.
//!
//! `perf_event_create_kernel_counter()` looks at less than `perf_event_open()`, whose checks
//! (`perf_copy_attr()`, and what the call does itself) are made here, with the same errors.

use super::super::bindings;
use core::mem::size_of;
use kernel::prelude::*;

/// Bytes that every `perf_event_attr` has: `PERF_ATTR_SIZE_VER0`.
const FIRST_SIZE: usize = 64;

macro_rules! sample_fields {
    ($($name:ident = $c:ident;)+) => {
        $(
            #[doc = concat!("`", stringify!($c), "`.")]
            pub(crate) const $name: u64 = bindings::$c as u64;
        )+
    };
}

sample_fields! {
    SAMPLE_IP = perf_event_sample_format_PERF_SAMPLE_IP;
    SAMPLE_TID = perf_event_sample_format_PERF_SAMPLE_TID;
    SAMPLE_TIME = perf_event_sample_format_PERF_SAMPLE_TIME;
    SAMPLE_ADDR = perf_event_sample_format_PERF_SAMPLE_ADDR;
    SAMPLE_ID = perf_event_sample_format_PERF_SAMPLE_ID;
    SAMPLE_STREAM_ID = perf_event_sample_format_PERF_SAMPLE_STREAM_ID;
    SAMPLE_CPU = perf_event_sample_format_PERF_SAMPLE_CPU;
    SAMPLE_PERIOD = perf_event_sample_format_PERF_SAMPLE_PERIOD;
    SAMPLE_CALLCHAIN = perf_event_sample_format_PERF_SAMPLE_CALLCHAIN;
    SAMPLE_IDENTIFIER = perf_event_sample_format_PERF_SAMPLE_IDENTIFIER;
    SAMPLE_READ = perf_event_sample_format_PERF_SAMPLE_READ;
    SAMPLE_BRANCH_STACK = perf_event_sample_format_PERF_SAMPLE_BRANCH_STACK;
    SAMPLE_STACK_USER = perf_event_sample_format_PERF_SAMPLE_STACK_USER;
    SAMPLE_WEIGHT = perf_event_sample_format_PERF_SAMPLE_WEIGHT;
    SAMPLE_WEIGHT_STRUCT = perf_event_sample_format_PERF_SAMPLE_WEIGHT_STRUCT;
    SAMPLE_KNOWN = perf_event_sample_format_PERF_SAMPLE_MAX;
    FORMAT_KNOWN = perf_event_read_format_PERF_FORMAT_MAX;
    BRANCH_KNOWN = perf_branch_sample_type_PERF_SAMPLE_BRANCH_MAX;
    BRANCH_USER = perf_branch_sample_type_PERF_SAMPLE_BRANCH_USER;
    BRANCH_KERNEL = perf_branch_sample_type_PERF_SAMPLE_BRANCH_KERNEL;
    BRANCH_HV = perf_branch_sample_type_PERF_SAMPLE_BRANCH_HV;
}

const BRANCH_LEVELS: u64 = BRANCH_USER | BRANCH_KERNEL | BRANCH_HV;

/// What a sample in a channel can have.
const SAMPLE_SUPPORTED: u64 = SAMPLE_IP
    | SAMPLE_TID
    | SAMPLE_TIME
    | SAMPLE_ADDR
    | SAMPLE_ID
    | SAMPLE_STREAM_ID
    | SAMPLE_CPU
    | SAMPLE_PERIOD
    | SAMPLE_CALLCHAIN
    | SAMPLE_IDENTIFIER;

/// What to count.
#[derive(Clone, Copy)]
pub(crate) struct Attr(bindings::perf_event_attr);

impl Attr {
    /// Bytes of those that this kernel knows.
    pub(crate) const SIZE: usize = size_of::<bindings::perf_event_attr>();

    /// How long one is that says it is `size` bytes long.
    ///
    /// # Errors
    ///
    /// `E2BIG` if none can be so long.
    pub(crate) fn length(size: u32) -> Result<usize> {
        match size as usize {
            // An ABI compatibility quirk of the system call.
            0 => Ok(FIRST_SIZE),
            size @ FIRST_SIZE..=kernel::page::PAGE_SIZE => Ok(size),
            _ => Err(E2BIG),
        }
    }

    /// Takes what a caller has, of any length: what is missing is zero.
    ///
    /// # Errors
    ///
    /// `E2BIG` if there is something behind what this kernel knows.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let known = bytes.get(..Self::SIZE).unwrap_or(bytes);
        if bytes
            .get(known.len()..)
            .is_some_and(|rest| rest.iter().any(|byte| *byte != 0))
        {
            return Err(E2BIG);
        }
        let mut raw = bindings::perf_event_attr::default();
        // SAFETY: `known` is no longer than `raw`. The structure is numbers and bit fields, for which every
        // byte is valid, and the two do not overlap.
        unsafe {
            core::ptr::copy_nonoverlapping(
                known.as_ptr(),
                (&raw mut raw).cast::<u8>(),
                known.len(),
            );
        }
        raw.size = Self::SIZE as u32;
        Ok(Self(raw))
    }

    /// Checks what the system call checks before it knows the event, and that weir does what is asked for.
    ///
    /// # Errors
    ///
    /// `EINVAL` as the system call; `EOPNOTSUPP` for what perf does for its own buffers only, and for fields of
    /// samples that weir does not write.
    pub(crate) fn check(&self) -> Result {
        let raw = &self.0;
        let sample_type = raw.sample_type;
        // SAFETY: All variants are numbers.
        let reserved_3 = unsafe { raw.__bindgen_anon_5.__bindgen_anon_1.__reserved_3() };
        if raw.__reserved_1() != 0
            || raw.__reserved_2 != 0
            || reserved_3 != 0
            || sample_type & !(SAMPLE_KNOWN - 1) != 0
            || raw.read_format & !(FORMAT_KNOWN - 1) != 0
        {
            return Err(EINVAL);
        }
        if sample_type & SAMPLE_BRANCH_STACK != 0 {
            let mask = raw.branch_sample_type;
            if mask & !(BRANCH_KNOWN - 1) != 0 || mask & !BRANCH_LEVELS == 0 {
                return Err(EINVAL);
            }
        }
        if sample_type & SAMPLE_STACK_USER != 0
            && (raw.sample_stack_user >= u32::from(u16::MAX) || raw.sample_stack_user % 8 != 0)
        {
            return Err(EINVAL);
        }
        if sample_type & (SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT)
            == SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT
            || (raw.inherit() == 0 && raw.inherit_thread() != 0)
            || (raw.remove_on_exec() != 0 && raw.enable_on_exec() != 0)
            || (raw.sigtrap() != 0 && raw.remove_on_exec() == 0)
            || (raw.freq() == 0 && self.sample_period() >> 63 != 0)
            || (raw.inherit() != 0
                && sample_type & SAMPLE_READ != 0
                && sample_type & SAMPLE_TID == 0)
        {
            return Err(EINVAL);
        }
        self.check_supported()
    }

    fn check_supported(&self) -> Result {
        let raw = &self.0;
        let records = raw.mmap()
            | raw.mmap2()
            | raw.mmap_data()
            | raw.comm()
            | raw.comm_exec()
            | raw.task()
            | raw.context_switch()
            | raw.namespaces()
            | raw.ksymbol()
            | raw.bpf_event()
            | raw.cgroup()
            | raw.text_poke()
            | raw.build_id()
            | raw.defer_callchain()
            | raw.defer_output();
        // SAFETY: All its variants are numbers.
        let (wakeup, aux_action) = unsafe {
            (
                raw.__bindgen_anon_2.wakeup_events,
                raw.__bindgen_anon_5.aux_action,
            )
        };
        if records != 0
            || raw.sigtrap() != 0
            || raw.use_clockid() != 0
            || raw.write_backward() != 0
            || raw.watermark() != 0
            || wakeup != 0
            || raw.aux_output() != 0
            || aux_action != 0
            || raw.aux_watermark != 0
            || raw.aux_sample_size != 0
            || sample_type_unsupported(raw.sample_type)
        {
            return Err(EOPNOTSUPP);
        }
        Ok(())
    }

    pub(super) fn to_raw(self, disabled: bool) -> bindings::perf_event_attr {
        let mut raw = self.0;
        raw.set_disabled(disabled.into());
        raw
    }

    /// An event of no PMU, that overflows with a frequency.
    pub(super) fn dummy() -> Self {
        let mut raw = bindings::perf_event_attr {
            type_: bindings::perf_type_id_PERF_TYPE_SOFTWARE,
            size: Self::SIZE as u32,
            config: bindings::perf_sw_ids_PERF_COUNT_SW_DUMMY.into(),
            ..Default::default()
        };
        raw.__bindgen_anon_1.sample_period = 1;
        raw.set_freq(1);
        Self(raw)
    }

    /// Whether it counts accesses to an address.
    pub(crate) fn is_breakpoint(&self) -> bool {
        self.0.type_ == bindings::perf_type_id_PERF_TYPE_BREAKPOINT
    }

    /// Whether an event can be created while CPU hotplug is under way. The count of users of a software event is
    /// a static key, which takes `cpus_read_lock()`, and so is that of events of hardware that look at switches of
    /// tasks; tracepoints and probes are under a mutex that others hold while they wait for it; and of other PMUs it
    /// is not known. Clocks have PMUs of their own.
    pub(crate) fn can_be_created_in_hotplug(&self) -> bool {
        match self.0.type_ {
            bindings::perf_type_id_PERF_TYPE_BREAKPOINT => true,
            bindings::perf_type_id_PERF_TYPE_HARDWARE
            | bindings::perf_type_id_PERF_TYPE_HW_CACHE
            | bindings::perf_type_id_PERF_TYPE_RAW => {
                self.0.precise_ip() == 0 && self.0.sample_type & SAMPLE_BRANCH_STACK == 0
            }
            bindings::perf_type_id_PERF_TYPE_SOFTWARE => {
                self.0.config == u64::from(bindings::perf_sw_ids_PERF_COUNT_SW_CPU_CLOCK)
                    || self.0.config == u64::from(bindings::perf_sw_ids_PERF_COUNT_SW_TASK_CLOCK)
            }
            _ => false,
        }
    }

    /// Events between two overflows, or overflows a second; zero if there are none.
    pub(crate) fn sample_period(&self) -> u64 {
        // SAFETY: Both variants are numbers of the same size.
        unsafe { self.0.__bindgen_anon_1.sample_period }
    }

    /// Changes it.
    pub(crate) fn set_sample_period(&mut self, period: u64) {
        self.0.__bindgen_anon_1.sample_period = period;
    }

    /// Whether [`sample_period`](Self::sample_period) is a frequency.
    pub(crate) fn is_frequency(&self) -> bool {
        self.0.freq() != 0
    }

    /// `SAMPLE_*`: what a sample has.
    pub(crate) fn sample_type(&self) -> u64 {
        self.0.sample_type
    }

    /// Most entries of a call chain; zero for the default.
    pub(crate) fn max_stack(&self) -> u16 {
        self.0.sample_max_stack
    }

    /// Whether a call chain may be the kernel's.
    pub(crate) fn samples_kernel(&self) -> bool {
        self.0.sample_type & SAMPLE_CALLCHAIN != 0 && !self.callchain_excludes_kernel()
    }

    /// Whether nothing of the kernel is counted.
    pub(crate) fn excludes_kernel(&self) -> bool {
        self.0.exclude_kernel() != 0
    }

    /// Whether call chains leave out the kernel.
    pub(crate) fn callchain_excludes_kernel(&self) -> bool {
        self.0.exclude_callchain_kernel() != 0
    }

    /// Whether call chains leave out user space.
    pub(crate) fn callchain_excludes_user(&self) -> bool {
        self.0.exclude_callchain_user() != 0
    }

    /// Whether children of the task are counted, too.
    pub(crate) fn is_inherited(&self) -> bool {
        self.0.inherit() != 0
    }

    /// Whether perf enables it when a program is executed.
    pub(crate) fn is_enabled_on_exec(&self) -> bool {
        self.0.enable_on_exec() != 0
    }

    /// Whether it is always on its PMU, or in error.
    pub(crate) fn is_pinned(&self) -> bool {
        self.0.pinned() != 0
    }
}

fn sample_type_unsupported(sample_type: u64) -> bool {
    sample_type & !SAMPLE_SUPPORTED != 0
}
