// SPDX-License-Identifier: GPL-2.0

//! Walking all tasks by their number.
//!
//! `find_ge_pid()` finds the first number in use that is at least a given one, so a walk can stop
//! after any task and go on later: a task that lives throughout is met exactly once. It is what a
//! listing of `/proc` does.

use kernel::{
    bindings,
    pid_namespace::PidNamespace,
    sync::rcu, //
};
use weir_core::uapi::COMM_LEN;

/// What is known of a task. Numbers are those of the namespace it was looked for in; zero stands for
/// one that is not in there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskInfo {
    /// Thread.
    pub(crate) tid: u32,
    /// Process.
    pub(crate) pid: u32,
    /// Thread of the parent.
    pub(crate) parent_tid: u32,
    /// Process of the parent.
    pub(crate) parent_pid: u32,
    /// When it started, in ns of `CLOCK_MONOTONIC`.
    pub(crate) start_time: u64,
    /// Its name, filled with zeros.
    pub(crate) comm: [u8; COMM_LEN],
}

/// The first task of `namespace` whose number is `from` or more; with `processes`, only those that
/// lead a thread group. No lock is held on return.
pub(crate) fn first_at_least(
    namespace: &PidNamespace,
    from: u32,
    processes: bool,
) -> Option<TaskInfo> {
    let kind = if processes {
        bindings::pid_type_PIDTYPE_TGID
    } else {
        bindings::pid_type_PIDTYPE_PID
    };
    let mut from = i32::try_from(from).ok()?;
    loop {
        let _rcu = rcu::read_lock();
        // SAFETY: The namespace is valid, and we are in a read-side section.
        let pid = unsafe { bindings::find_ge_pid(from, namespace.as_ptr()) };
        if pid.is_null() {
            return None;
        }
        // SAFETY: The pid is valid until the end of the section.
        let number = unsafe { bindings::pid_nr_ns(pid, namespace.as_ptr()) };
        // SAFETY: As above. Null if the number is used by a group or a session only.
        let task = unsafe { bindings::pid_task(pid, kind) };
        if !task.is_null() {
            // SAFETY: The task is valid until the end of the section.
            return Some(unsafe { info(task, number, namespace) });
        }
        from = number.checked_add(1)?;
    }
}

/// # Safety
///
/// In an RCU read-side section in which `task` is valid.
unsafe fn info(
    task: *mut bindings::task_struct,
    number: i32,
    namespace: &PidNamespace,
) -> TaskInfo {
    let number_of = |task, kind| {
        // SAFETY: The task is valid, by the requirements or by RCU.
        unsafe { bindings::__task_pid_nr_ns(task, kind, namespace.as_ptr()) }.unsigned_abs()
    };
    // SAFETY: The task is valid. Its parent may change, but the old one stays until the end of the
    // section. Reading it once is `rcu_dereference()`, by the address dependency.
    let parent = unsafe { (&raw const (*task).real_parent).read_volatile() };
    // SAFETY: The task is valid. The name may change while it is read, as for every reader of it, but
    // its last byte is always zero.
    let comm = unsafe { (&raw const (*task).comm).read_volatile() };
    let mut name = [0; COMM_LEN];
    for (to, from) in name.iter_mut().zip(comm) {
        if from == 0 {
            break;
        }
        *to = from;
    }
    TaskInfo {
        tid: number.unsigned_abs(),
        pid: number_of(task, bindings::pid_type_PIDTYPE_TGID),
        parent_tid: number_of(parent, bindings::pid_type_PIDTYPE_PID),
        parent_pid: number_of(parent, bindings::pid_type_PIDTYPE_TGID),
        // SAFETY: The task is valid, and the field does not change once it can be found.
        start_time: unsafe { (*task).start_time },
        comm: name,
    }
}

/// Process and thread number of the current task in `namespace`. Any context, NMI too.
#[inline]
pub(crate) fn current_ids(namespace: &PidNamespace) -> (u32, u32) {
    let task = kernel::task::Task::current_raw();
    let number_of = |kind| {
        // SAFETY: The current task is valid, and does not exit while it runs here. The function takes
        // nothing but an RCU read-side section.
        unsafe { bindings::__task_pid_nr_ns(task, kind, namespace.as_ptr()) }.unsigned_abs()
    };
    (
        number_of(bindings::pid_type_PIDTYPE_TGID),
        number_of(bindings::pid_type_PIDTYPE_PID),
    )
}
