// SPDX-License-Identifier: GPL-2.0

//! Tasks as perf's own records: that it was forked, and its name.

use super::Collection;
use crate::{
    abs::{
        pin::PinnedCpu,
        task_walk::{
            self,
            TaskInfo, //
        },
    },
    channel::Channel,
};
use kernel::{
    pid_namespace::PidNamespace,
    prelude::*,
    sync::aref::ARef, //
};
use weir_core::{
    uapi::{
        Comm,
        Cursor,
        Fork,
        InjectReq,
        RecordHeader,
        INJECT_PROCESS,
        RECORD_COMM,
        RECORD_FORK, //
    },
    Cause,
    Class, //
};
use zerocopy::IntoBytes;

/// All tasks that the caller can see. The cursor is their number.
pub(super) struct Tasks {
    namespace: ARef<PidNamespace>,
    processes: bool,
}

impl Tasks {
    /// Checks a request.
    ///
    /// # Errors
    ///
    /// `EINVAL` for flags and cursors that there are not.
    pub(super) fn new(_channel: &Channel, request: &InjectReq) -> Result<Self> {
        let largest = i32::MAX.unsigned_abs().into();
        let valid = request.flags & !INJECT_PROCESS == 0
            && request.start.minor == 0
            && request.start.major <= largest;
        if !valid {
            return Err(EINVAL);
        }
        Ok(Self {
            namespace: kernel::current!().active_pid_ns().ok_or(ESRCH)?.into(),
            processes: request.flags & INJECT_PROCESS != 0,
        })
    }
}

impl Collection for Tasks {
    type Object = TaskInfo;

    fn first_at_least(&self, from: Cursor) -> Option<TaskInfo> {
        let from = u32::try_from(from.major).ok()?;
        task_walk::first_at_least(&self.namespace, from, self.processes)
    }

    fn after(task: &TaskInfo) -> Option<Cursor> {
        Some(Cursor {
            major: u64::from(task.tid.checked_add(1)?),
            minor: 0,
        })
    }

    fn at(task: &TaskInfo) -> Cursor {
        Cursor {
            major: u64::from(task.tid),
            minor: 0,
        }
    }

    fn write(&self, channel: &Channel, task: &TaskInfo) -> Result<(), Cause> {
        let pin = PinnedCpu::new();
        let len = size_of::<Fork>() + size_of::<Comm>();
        let room = channel.reserve(&pin, len, Class::Injected)?;
        let sample_id = channel.sample_id(&pin, room.time());
        let fork = Fork {
            header: header(RECORD_FORK, size_of::<Fork>()),
            pid: task.pid,
            ppid: task.parent_pid,
            tid: task.tid,
            ptid: task.parent_tid,
            time: task.start_time,
            sample_id,
        };
        let comm = Comm {
            header: header(RECORD_COMM, size_of::<Comm>()),
            pid: task.pid,
            tid: task.tid,
            comm: task.comm,
            sample_id,
        };
        room.write(0, fork.as_bytes());
        room.write(size_of::<Fork>(), comm.as_bytes());
        room.commit();
        Ok(())
    }
}

fn header(type_: u32, size: usize) -> RecordHeader {
    RecordHeader {
        type_,
        misc: 0,
        size: size as u16,
    }
}
