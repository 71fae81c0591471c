// SPDX-License-Identifier: GPL-2.0

//! `perf_event_open()`: what names a task to weir, and what weir is compared with.

use crate::{
    event::TYPE_SOFTWARE,
    Attr,
    Event, //
};
use perf_event_open_sys::{
    bindings,
    perf_event_open, //
};
use rustix::{
    fd::{
        AsRawFd,
        BorrowedFd,
        FromRawFd,
        OwnedFd, //
    },
    io::Errno,
};

/// Opens an event of perf's own: of the task `pid` (0 is the caller), or of all where that is -1; on `cpu`, or on all
/// where that is -1. With `leader` it joins that event's group.
///
/// # Errors
///
/// Those of `perf_event_open()`.
pub fn open(
    attr: &Attr,
    pid: i32,
    cpu: i32,
    leader: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, Errno> {
    let mut raw = *attr.raw();
    let leader = leader.map_or(-1, |leader| leader.as_raw_fd());
    // SAFETY: The kernel writes to nothing of ours but the field `size` of `raw`, and whatever address else it is
    // given, as that of a structure longer than this one is, it reads from in a way that faults cannot harm.
    let fd = unsafe {
        perf_event_open(
            &raw mut raw,
            pid,
            cpu,
            leader,
            bindings::PERF_FLAG_FD_CLOEXEC.into(),
        )
    };
    if fd < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    // SAFETY: The call has just given this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Opens what names the task `pid` (0 is the caller) in `WEIR_IOC_COUNTER_CREATE`: an event that counts nothing and
/// needs no more rights than observing that task at all.
///
/// # Errors
///
/// As [`open`]: `ESRCH` where there is no such task, `EACCES` where it may not be observed.
pub fn open_task(pid: i32) -> Result<OwnedFd, Errno> {
    /// `PERF_COUNT_SW_DUMMY`.
    const DUMMY: u64 = bindings::PERF_COUNT_SW_DUMMY as u64;
    let attr = Attr::new(Event::new(TYPE_SOFTWARE, DUMMY))
        .exclude_kernel(true)
        .exclude_hv(true);
    open(&attr, pid, -1, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_the_kernels() {
        // No PMU has this number, and no process that one.
        let unknown = Attr::new(Event::new(0xffff_fff0, 0));
        assert!(open(&unknown, 0, -1, None).is_err());
        let errno = open_task(i32::MAX).unwrap_err();
        assert!(
            [Errno::SRCH, Errno::NOSYS, Errno::ACCESS, Errno::PERM].contains(&errno),
            "{errno:?}"
        );
    }

    #[test]
    fn this_task_can_be_named() {
        match open_task(0) {
            Ok(_) => {}
            Err(Errno::NOSYS | Errno::ACCESS | Errno::PERM) => {
                eprintln!("SKIP: no perf events, or no right to them");
            }
            Err(errno) => panic!("{errno:?}"),
        }
    }
}
