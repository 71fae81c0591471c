// SPDX-License-Identifier: GPL-2.0

//! Descriptors of `perf_event_open()`: a task, with the proof that their holder may observe it.
//!
//! Who may observe a task is decided by `ptrace_may_access()` and security modules, which no module can ask.
//! But whoever holds a descriptor of an event in a task was asked when it was opened. Perf removes all
//! events of a task that gets rights which the observer lacks (it executes a program that is not his to
//! read, or setuid), those of kernel code as well. So, if the event of the descriptor is still in its task
//! when another has been added, the right was there when that happened: see [`TaskDescriptor::is_valid`].

use super::super::bindings;
use kernel::{
    bindings::perf_event,
    fs::LocalFile,
    prelude::*,
    str::CStr,
    sync::aref::ARef,
    task::Task, //
};

/// What files of perf are called.
const NAME: &CStr = c"[perf_event]";

/// An open descriptor of an event in a task.
///
/// # Invariants
///
/// The private data of `file` is an event of perf's, in a task.
pub(crate) struct TaskDescriptor {
    file: ARef<LocalFile>,
}

impl TaskDescriptor {
    /// Takes descriptor `fd` of the current process.
    ///
    /// # Errors
    ///
    /// `EBADF` if there is none, `EINVAL` if it is not perf's, or its event is in no task.
    pub(crate) fn get(fd: i32) -> Result<Self> {
        let fd = u32::try_from(fd).map_err(|_| EBADF)?;
        let file = LocalFile::fget(fd)?;
        if !is_perf(&file) {
            return Err(EINVAL);
        }
        // INVARIANT: It is perf's, and is returned only if the event is of a task.
        let this = Self { file };
        // SAFETY: The event is valid while the file is open.
        if !unsafe { bindings::weir_helper_event_of_task(this.event()) } {
            return Err(EINVAL);
        }
        Ok(this)
    }

    fn event(&self) -> *mut perf_event {
        // SAFETY: The file is valid, and does not change what it stands for.
        unsafe { (*self.file.as_ptr()).private_data.cast() }
    }

    /// The task.
    pub(crate) fn task(&self) -> ARef<Task> {
        // SAFETY: By the type invariants; an event holds a reference on its task until it is freed.
        let task = unsafe { &*bindings::weir_helper_event_target(self.event()).cast::<Task>() };
        task.into()
    }

    /// Whether the event is still in its task: whatever was added to the task before this call was added with
    /// the right to. Sleeps.
    pub(crate) fn is_valid(&self) -> bool {
        let (mut enabled, mut running) = (0, 0);
        // SAFETY: The event is valid while the file is open; any event may be read. It takes the lock under
        // which perf removes all events of a task, so that it is not looked at in the middle of that.
        unsafe {
            bindings::perf_event_read_value(self.event(), &mut enabled, &mut running);
            bindings::weir_helper_event_state(self.event())
                > bindings::perf_event_state_PERF_EVENT_STATE_EXIT
        }
    }
}

/// Whether a file is one that perf has made. Its operations are not for modules, so it is known by the name of
/// its anonymous inode, which only kernel code gives, and by being of the kernel's own code.
fn is_perf(file: &LocalFile) -> bool {
    // SAFETY: The file is valid, and its operations are while it is open.
    let owner = unsafe { (*(*file.as_ptr()).f_op).owner };
    // SAFETY: The file is valid.
    let name = unsafe { bindings::weir_helper_anonymous_inode_name(file.as_ptr()) };
    // SAFETY: It is a string, which lives as long as the file.
    owner.is_null() && !name.is_null() && unsafe { CStr::from_char_ptr(name) } == NAME
}
