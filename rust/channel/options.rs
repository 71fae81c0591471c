// SPDX-License-Identifier: GPL-2.0

//! What a channel is made with: the request of user space, checked, with its defaults filled in.

use crate::abs::{
    clock::Clock,
    cpus, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    time::Delta, //
};
use weir_core::uapi::{
    ChannelReq,
    CLOCK_BOOTTIME,
    CLOCK_MONOTONIC,
    CLOCK_MONOTONIC_RAW,
    CLOCK_PERF,
    CLOCK_TSC,
    MODEL_PAGED,
    MODEL_PER_CPU,
    MODEL_SHARED,
    MODE_DISCARD,
    MODE_OVERWRITE, //
};
use weir_core::{
    Mode,
    Model, //
};

/// Largest page, in bytes: sizes of records are 16 bits.
const LARGEST_PAGE: usize = 64 * 1024;

const DEFAULT_PAGES_PER_CPU: usize = 64;
/// The open page, one to write on while it is read, and two that keep injection from standing still.
const LEAST_PAGES_PER_CPU: usize = 4;

const DEFAULT_LATENCY_NS: u64 = 100_000_000;
/// A timer any faster would do nothing else.
const LEAST_LATENCY_NS: u64 = 100_000;
const LARGEST_LATENCY_NS: u64 = 3_600_000_000_000;

/// Checked options.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    /// Whom an open page belongs to, and where a finished one goes.
    pub(crate) model: Model,
    /// What is lost when there is no free page.
    pub(crate) mode: Mode,
    /// What times are read from.
    pub(crate) clock: Clock,
    /// The number of that in the interface.
    pub(crate) clock_number: u32,
    /// Bytes of a page.
    pub(crate) page_size: usize,
    /// Pages of the pool.
    pub(crate) pages: usize,
    /// Finished pages that make `poll` return.
    pub(crate) watermark: u64,
    /// Time in ns after which records of a quiet CPU are readable.
    pub(crate) max_latency_ns: u64,
}

impl Options {
    /// Checks a request.
    ///
    /// # Errors
    ///
    /// `EINVAL` for what is never valid, `EOPNOTSUPP` for a clock that this machine lacks.
    pub(crate) fn new(request: &ChannelReq) -> Result<Self> {
        if request.flags != 0 {
            return Err(EINVAL);
        }
        let clock = match request.clock {
            CLOCK_MONOTONIC => Clock::Monotonic,
            CLOCK_MONOTONIC_RAW => Clock::MonotonicRaw,
            CLOCK_BOOTTIME => Clock::Boottime,
            CLOCK_PERF => Clock::Perf,
            CLOCK_TSC => Clock::Tsc,
            _ => return Err(EINVAL),
        };
        if !clock.is_available() {
            return Err(EOPNOTSUPP);
        }
        let model = match request.model {
            MODEL_PER_CPU => Model::PerCpu,
            MODEL_SHARED => Model::Shared,
            MODEL_PAGED => Model::Paged,
            _ => return Err(EINVAL),
        };
        let mode = match request.mode {
            MODE_DISCARD => Mode::Discard,
            MODE_OVERWRITE => Mode::Overwrite,
            _ => return Err(EINVAL),
        };
        let or_default = |value: u32, default: usize| match value {
            0 => default,
            value => value as usize,
        };

        let page_size = or_default(request.page_size, PAGE_SIZE);
        if !page_size.is_power_of_two() || !(PAGE_SIZE..=LARGEST_PAGE).contains(&page_size) {
            return Err(EINVAL);
        }
        let cpus = cpus::count();
        let pages = or_default(request.pages, cpus * DEFAULT_PAGES_PER_CPU);
        if pages < cpus * LEAST_PAGES_PER_CPU || pages > weir_core::PAGES_MAX {
            return Err(EINVAL);
        }
        let pages = weir_core::usable_pages(model, mode, cpus, pages);
        let queue = match (model, mode) {
            (Model::PerCpu, _) | (Model::Paged, Mode::Overwrite) => {
                pages.checked_div(cpus).unwrap_or(0)
            }
            _ => pages,
        };
        let watermark = or_default(request.watermark, 1);
        if watermark > queue / 2 {
            return Err(EINVAL);
        }
        let max_latency_ns = match request.max_latency_ns {
            0 => DEFAULT_LATENCY_NS,
            latency => latency,
        };
        if !(LEAST_LATENCY_NS..=LARGEST_LATENCY_NS).contains(&max_latency_ns) {
            return Err(EINVAL);
        }
        Ok(Self {
            model,
            mode,
            clock,
            clock_number: request.clock,
            page_size,
            pages,
            watermark: watermark as u64,
            max_latency_ns,
        })
    }

    /// Writes what was taken into the request.
    pub(crate) fn grant(&self, request: &mut ChannelReq) {
        request.page_size = self.page_size as u32;
        request.pages = self.pages as u32;
        request.watermark = self.watermark as u32;
        request.max_latency_ns = self.max_latency_ns;
    }

    /// The CPU that is likely to use a page: whose it is, or, of a pool, who has it in reserve in the
    /// beginning; the rest are for all.
    pub(super) fn cpu_of_page(&self, page: usize) -> usize {
        let cpus = cpus::count();
        let share = match (self.model, self.mode) {
            (Model::Shared, _) => 1,
            (Model::Paged, Mode::Discard) => self.reserve() as usize,
            _ => self.pages.checked_div(cpus).unwrap_or(0),
        };
        page.checked_div(share)
            .filter(|cpu| *cpu < cpus)
            .unwrap_or_else(|| page.checked_rem(cpus).unwrap_or(0))
    }

    /// Bytes of all pages.
    pub(crate) fn bytes(&self) -> usize {
        self.pages.saturating_mul(self.page_size)
    }

    /// Words that hold a page while it is read: only what may be overwritten needs to be copied.
    pub(super) fn scratch(&self) -> usize {
        match self.mode {
            Mode::Discard => 0,
            Mode::Overwrite => self.page_size / size_of::<u64>(),
        }
    }

    /// Pages that each CPU keeps for itself: a quarter of its share.
    pub(super) fn reserve(&self) -> u64 {
        self.pages
            .checked_div(cpus::count() * 4)
            .unwrap_or(0)
            .max(1) as u64
    }

    pub(super) fn max_latency(&self) -> Delta {
        // It is at most `LARGEST_LATENCY_NS`.
        Delta::from_nanos(self.max_latency_ns as i64)
    }
}
