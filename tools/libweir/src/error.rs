// SPDX-License-Identifier: GPL-2.0

//! What can go wrong, in words that name the cause and the way out.

use crate::{
    continuity::ContinuityError,
    counter::Scope,
    event::EventError,
    kallsyms::KallsymsError,
    page::PageError,
    record::RecordError,
    stream::StreamError, //
};
use rustix::io::Errno;
use std::{
    fmt,
    path::PathBuf, //
};

/// The system call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// `open()` of the device.
    Open(PathBuf),
    /// `WEIR_IOC_CHANNEL_CREATE`.
    ChannelCreate,
    /// `WEIR_IOC_CHANNEL_STATUS` of this CPU.
    ChannelStatus(u32),
    /// `WEIR_IOC_CHANNEL_FLUSH`.
    ChannelFlush,
    /// `WEIR_IOC_CHANNEL_FREEZE`.
    ChannelFreeze,
    /// `WEIR_IOC_CHANNEL_LAYOUT`.
    ChannelLayout,
    /// `WEIR_IOC_CHANNEL_CLOCK`.
    ChannelClock,
    /// `WEIR_IOC_CHANNEL_MARK`.
    ChannelMark,
    /// `WEIR_IOC_CHANNEL_ATTACH` of the channel of this name.
    ChannelAttach(String),
    /// `mmap()` of a part of the channel.
    Map,
    /// `read()` of pages.
    Read,
    /// `poll()`.
    Poll,
    /// `WEIR_IOC_INJECT`.
    Inject,
    /// `perf_event_open()` of this task, to name it.
    OpenTask(i32),
    /// `WEIR_IOC_COUNTER_CREATE` there.
    CounterCreate(Scope),
    /// `WEIR_IOC_COUNTER_ENABLE` of this counter.
    CounterEnable(u32),
    /// `WEIR_IOC_COUNTER_DISABLE` of this counter.
    CounterDisable(u32),
    /// `WEIR_IOC_COUNTER_RESET` of this counter.
    CounterReset(u32),
    /// `WEIR_IOC_COUNTER_PERIOD` of this event.
    CounterPeriod(u32),
    /// `WEIR_IOC_COUNTER_REFRESH` of this counter.
    CounterRefresh(u32),
    /// `WEIR_IOC_COUNTER_READ` of this counter, or of all for 0.
    CounterRead(u32),
    /// `WEIR_IOC_COUNTER_RELEASE` of this counter.
    CounterRelease(u32),
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Open(path) => write!(f, "cannot open {}", path.display()),
            Call::ChannelCreate => f.write_str("cannot create the channel"),
            Call::ChannelStatus(cpu) => write!(f, "cannot read the status of CPU {cpu}"),
            Call::ChannelFlush => f.write_str("cannot flush the channel"),
            Call::ChannelFreeze => f.write_str("cannot freeze the channel"),
            Call::ChannelAttach(name) => write!(f, "cannot attach the channel `{name}`"),
            Call::ChannelMark => f.write_str("cannot ask how far the channel is complete"),
            Call::ChannelClock => f.write_str("cannot ask for the channel's clock"),
            Call::ChannelLayout => f.write_str("cannot ask how the channel is mapped"),
            Call::Map => f.write_str("cannot map the channel"),
            Call::Read => f.write_str("cannot read from the channel"),
            Call::Poll => f.write_str("cannot wait for the channel"),
            Call::Inject => f.write_str("cannot inject"),
            Call::OpenTask(0) => f.write_str("cannot observe this task"),
            Call::OpenTask(pid) => write!(f, "cannot observe task {pid}"),
            Call::CounterCreate(scope) => match scope {
                Scope::All => f.write_str("cannot create a counter on all CPUs"),
                Scope::Cpu(cpu) => write!(f, "cannot create a counter on CPU {cpu}"),
                Scope::Task(0) => f.write_str("cannot create a counter in this task"),
                Scope::Task(pid) => write!(f, "cannot create a counter in task {pid}"),
            },
            Call::CounterEnable(id) => write!(f, "cannot enable counter {id}"),
            Call::CounterDisable(id) => write!(f, "cannot disable counter {id}"),
            Call::CounterReset(id) => write!(f, "cannot reset counter {id}"),
            Call::CounterPeriod(id) => write!(f, "cannot change the period of event {id}"),
            Call::CounterRefresh(id) => write!(f, "cannot refresh counter {id}"),
            Call::CounterRead(0) => f.write_str("cannot read the counters"),
            Call::CounterRead(id) => write!(f, "cannot read counter {id}"),
            Call::CounterRelease(id) => write!(f, "cannot release counter {id}"),
        }
    }
}

/// An error of this library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused a call.
    #[error("{call}: {}", explain(call, *errno))]
    Call {
        /// Which one.
        call: Call,
        /// How.
        errno: Errno,
    },
    /// `read()` gave something else than whole pages.
    #[error("read() gave {bytes} bytes, which are not whole pages of {page_size}: this is not weir's device")]
    NotPages {
        /// What it gave.
        bytes: usize,
        /// Bytes of a page of this channel.
        page_size: usize,
    },
    /// Injection found the channel full, and there was nothing to read.
    #[error("injection stopped at a full channel that has no page to read: another reader takes them, or the pool is too small")]
    Stalled,
    /// A page does not hold together.
    #[error(transparent)]
    Page(#[from] PageError),
    /// A record does not hold together.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Two pages of one CPU do not follow each other.
    #[error(transparent)]
    Continuity(#[from] ContinuityError),
    /// A capture could not be read.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The kernel's symbols could not be read.
    #[error(transparent)]
    Kallsyms(#[from] KallsymsError),
    /// A name is not an event's.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The list of CPUs could not be read.
    #[error("cannot read the list of CPUs from {path}: {reason}")]
    Cpus {
        /// The file.
        path: &'static str,
        /// What is wrong.
        reason: String,
    },
}

/// Result of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes the error of a call.
    pub fn call(call: Call, errno: Errno) -> Self {
        Error::Call { call, errno }
    }

    /// The kernel's error number, where the kernel gave one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Error::Call { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// Whether it only says that a signal came first.
    pub fn is_interrupted(&self) -> bool {
        self.errno() == Some(Errno::INTR)
    }

    /// Whether it only says that nothing is there yet.
    pub fn is_would_block(&self) -> bool {
        self.errno() == Some(Errno::AGAIN)
    }
}

/// Says what an error number means for a call, and what to do about it.
fn explain(call: &Call, errno: Errno) -> String {
    let text = match (call, errno) {
        (Call::Open(path), Errno::NOENT) => {
            return format!(
                "no {}: load the module (insmod weir.ko)",
                path.display()
            )
        }
        (Call::Open(_), Errno::NXIO | Errno::NODEV) => {
            "nobody answers behind this file: load the module (insmod weir.ko)"
        }
        (Call::Open(path), Errno::ACCESS | Errno::PERM) => {
            return format!(
                "no right to open it: run as root, or give your user the right (chmod or chgrp {})",
                path.display()
            )
        }
        (Call::ChannelCreate | Call::ChannelAttach(_), Errno::ACCESS) => {
            "the system does not let you watch whole CPUs: run with CAP_PERFMON or as root, or allow \
             it to all with `sysctl kernel.perf_event_paranoid=0`"
        }
        (Call::ChannelCreate, Errno::BUSY) => {
            "this descriptor has a channel already: open the device again for another one"
        }
        (Call::ChannelCreate, Errno::INVAL) => {
            "a size does not fit: pages are a power of two up to 64 KiB, the pool has at least 4 of \
             them a CPU, and the watermark is not above the pool"
        }
        (Call::ChannelAttach(_), Errno::NOENT) => {
            "no kernel module has created a channel of this name: load the one that does"
        }
        (Call::ChannelAttach(_), Errno::BUSY) => "it has a reader already",
        (Call::ChannelCreate, Errno::PERM) => {
            "that is more memory than you may lock: ask for fewer pages, raise `ulimit -l`, or run with \
             CAP_IPC_LOCK or as root"
        }
        (Call::ChannelCreate, Errno::OPNOTSUPP) => {
            "the processor's counter cannot be compared between CPUs here: use another clock"
        }
        (Call::ChannelCreate, Errno::NOMEM) => "not enough memory: ask for fewer or smaller pages",
        (Call::ChannelFreeze, Errno::INVAL) => {
            "only a channel in the mode overwrite can be frozen"
        }
        (Call::Map, Errno::INVAL) => "only a channel in the mode discard can be mapped",
        (Call::Read, Errno::BUSY) => "it is mapped: its pages are read from there",
        (Call::ChannelStatus(_), Errno::INVAL) => {
            "there is no such CPU: see /sys/devices/system/cpu/possible"
        }
        (Call::Read, Errno::INVAL) => "the buffer is smaller than a page",
        (Call::Read, Errno::AGAIN) => "nothing is there yet: wait with poll",
        (Call::Inject, Errno::ACCESS | Errno::PERM) => {
            "the system does not let you see these objects: run with CAP_PERFMON or as root, or allow \
             it to all with `sysctl kernel.perf_event_paranoid=0`"
        }
        (Call::Inject, Errno::INVAL) => {
            "the module does not know this collection, flag or cursor: a cursor is zero, or what the \
             call before gave as `next`"
        }
        (Call::OpenTask(_) | Call::CounterCreate(Scope::Task(_)), Errno::SRCH) => {
            "there is no such process or thread, or it has ended"
        }
        (Call::OpenTask(_), Errno::ACCESS | Errno::PERM) => {
            "the system does not let you observe it: run as its user, with CAP_PERFMON, or as root; \
             `sysctl kernel.perf_event_paranoid` above 2 keeps users from their own processes"
        }
        (Call::OpenTask(_), Errno::NOSYS | Errno::NOENT) => {
            "the kernel is built without perf events (CONFIG_PERF_EVENTS)"
        }
        (Call::OpenTask(_), Errno::MFILE | Errno::NFILE) => {
            "too many files are open: raise `ulimit -n`, or watch fewer tasks"
        }
        (Call::CounterCreate(_), Errno::OPNOTSUPP) => {
            "not supported: the kernel is built without perf events (CONFIG_PERF_EVENTS), the event \
             cannot be sampled on this machine, or it has something that weir lacks"
        }
        (Call::CounterCreate(_), Errno::NOENT) => {
            "this machine does not have that event (virtual machines often have no hardware \
             counters): try cpu-clock"
        }
        (Call::CounterCreate(Scope::Cpu(_)), Errno::NODEV) => {
            "that CPU is offline, or it has no such PMU: see /sys/devices/system/cpu/online"
        }
        (Call::CounterCreate(_), Errno::NODEV) => "no CPU has such a PMU",
        (Call::CounterCreate(Scope::Task(_)), Errno::ACCESS | Errno::PERM) => {
            "the system does not let you count this in it: leave the kernel out (as in cycles:u), run with \
             CAP_PERFMON or as root, or allow it to all with `sysctl kernel.perf_event_paranoid=1`"
        }
        (Call::CounterCreate(_), Errno::ACCESS | Errno::PERM) => {
            "the system does not let you count on whole CPUs: run with CAP_PERFMON or as root, or \
             allow it to all with `sysctl kernel.perf_event_paranoid=0`"
        }
        (Call::CounterCreate(_), Errno::MFILE) => {
            "that are more events than a process may have descriptors: raise `ulimit -n`, or run with \
             CAP_PERFMON; or more than a channel can have"
        }
        (Call::CounterCreate(_), Errno::NOSPC) => {
            "the processor has no more breakpoints: use fewer"
        }
        (Call::CounterCreate(Scope::Cpu(_)), Errno::INVAL) => {
            "there is no such CPU (see /sys/devices/system/cpu/possible), or the event, its period or its \
             frequency is out of range: a frequency must not be above `sysctl kernel.perf_event_max_sample_rate`"
        }
        (Call::CounterCreate(_), Errno::INVAL) => {
            "the event, its period or its frequency is out of range, or these events cannot be counted \
             together: a frequency must not be above `sysctl kernel.perf_event_max_sample_rate`"
        }
        (Call::CounterCreate(_), Errno::TOOBIG) => {
            "that is more than the kernel knows of an event, or more events than a counter can have"
        }
        (
            Call::CounterCreate(_) | Call::CounterEnable(_) | Call::CounterRefresh(_),
            Errno::BUSY,
        ) => "its PMU has no room for it: use fewer events at a time",
        (Call::CounterPeriod(_), Errno::INVAL) => {
            "the event has no period, or this one is out of range"
        }
        (Call::CounterRead(_), Errno::INVAL) => {
            "only counters that were created to be cached can be read without an interrupt"
        }
        (
            Call::CounterEnable(_)
            | Call::CounterDisable(_)
            | Call::CounterReset(_)
            | Call::CounterPeriod(_)
            | Call::CounterRefresh(_)
            | Call::CounterRead(_)
            | Call::CounterRelease(_),
            Errno::NOENT,
        ) => "there is no such counter on this channel",
        (
            Call::CounterEnable(_) | Call::CounterRefresh(_) | Call::CounterPeriod(_),
            Errno::NODEV,
        ) => "its PMU has gone: its driver was removed",
        (Call::Open(_), Errno::NOTTY) | (_, Errno::NOTTY) => {
            "this is not weir's device, or the module is older than this program: load the weir.ko \
             that was built with it"
        }
        (_, Errno::TOOBIG) => {
            "the module is older than this program: load the weir.ko that was built with it"
        }
        (_, Errno::BADFD) => "this descriptor has no channel: create it first",
        (_, Errno::INTR) => "a signal came: call again",
        _ => return system_text(errno),
    };
    format!("{text} ({})", system_text(errno))
}

/// The system's own words, as in "Permission denied (os error 13)".
fn system_text(errno: Errno) -> String {
    std::io::Error::from(errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(call: Call, errno: Errno) -> String {
        Error::call(call, errno).to_string()
    }

    #[test]
    fn a_missing_device_says_to_load_the_module() {
        assert_eq!(
            text(Call::Open("/dev/weir".into()), Errno::NOENT),
            "cannot open /dev/weir: no /dev/weir: load the module (insmod weir.ko)"
        );
    }

    #[test]
    fn a_refusal_names_the_sysctl_and_the_capability() {
        for call in [
            Call::ChannelCreate,
            Call::CounterCreate(Scope::Cpu(3)),
            Call::Inject,
        ] {
            let text = text(call, Errno::ACCESS);
            assert!(text.contains("kernel.perf_event_paranoid"), "{text}");
            assert!(text.contains("CAP_PERFMON"), "{text}");
            assert!(text.contains("os error 13"), "{text}");
        }
    }

    #[test]
    fn a_kernel_without_perf_events_is_named() {
        let text = text(Call::CounterCreate(Scope::All), Errno::OPNOTSUPP);
        assert!(text.contains("CONFIG_PERF_EVENTS"), "{text}");
    }

    #[test]
    fn what_names_a_task_says_which() {
        let text = text(Call::OpenTask(77), Errno::SRCH);
        assert!(
            text.starts_with("cannot observe task 77: there is no such"),
            "{text}"
        );
        let text = Error::call(Call::CounterCreate(Scope::Task(7)), Errno::ACCESS).to_string();
        assert!(
            text.contains("task 7") && text.contains("cycles:u"),
            "{text}"
        );
    }

    #[test]
    fn an_unforeseen_number_shows_the_systems_text() {
        let text = text(Call::Inject, Errno::IO);
        assert!(text.starts_with("cannot inject: "), "{text}");
        assert!(text.contains("os error 5"), "{text}");
    }

    #[test]
    fn the_number_stays_accessible() {
        assert_eq!(
            Error::call(Call::Read, Errno::AGAIN).errno(),
            Some(Errno::AGAIN)
        );
        assert_eq!(Error::Stalled.errno(), None);
    }
}
