// SPDX-License-Identifier: GPL-2.0

//! Injection: existing objects as records, a few at a time, going on where it left off.

mod task;

use crate::{
    abs::clock,
    channel::Channel, //
};
use kernel::prelude::*;
use weir_core::{
    uapi::{
        Cursor,
        InjectReq,
        COLLECTION_TASK,
        STOP_END,
        STOP_FULL,
        STOP_INTERRUPTED,
        STOP_LEN, //
    },
    Cause,
};

/// Objects between two chances for others to run.
const BATCH: u64 = 32;

/// A kind of objects that can be walked by a key.
///
/// The key of an object does not change while it lives, so it is met exactly once by a walk that asks
/// for the first object at least as large as the cursor, whatever comes and goes meanwhile.
trait Collection {
    /// An object, as far as its records need it.
    type Object;

    /// The first object whose key is `from` or more. No lock is held on return.
    fn first_at_least(&self, from: Cursor) -> Option<Self::Object>;

    /// The cursor that comes behind `object`; [`None`] if nothing can.
    fn after(object: &Self::Object) -> Option<Cursor>;

    /// The cursor of `object`.
    fn at(object: &Self::Object) -> Cursor;

    /// Writes the records of `object`, all or none.
    fn write(&self, channel: &Channel, object: &Self::Object) -> Result<(), Cause>;
}

/// Does what `request` asks for and fills in its results. Sleeps.
///
/// # Errors
///
/// `EINVAL` (collection, flags or cursor).
pub(crate) fn inject(channel: &Channel, request: &mut InjectReq) -> Result {
    match request.collection {
        COLLECTION_TASK => walk(&task::Tasks::new(channel, request)?, channel, request),
        _ => Err(EINVAL),
    }
}

fn walk<C: Collection>(collection: &C, channel: &Channel, request: &mut InjectReq) -> Result {
    request.read = 0;
    request.skipped = 0;
    request.next = request.start;
    request.stop = loop {
        if request.len != 0 && request.read == request.len {
            break STOP_LEN;
        }
        if request.read % BATCH == BATCH - 1 {
            if kernel::current!().signal_pending() {
                break STOP_INTERRUPTED;
            }
            clock::cond_resched();
        }
        let Some(object) = collection.first_at_least(request.next) else {
            break STOP_END;
        };
        match collection.write(channel, &object) {
            Ok(()) => request.read += 1,
            // The only cause that passes: records of objects fit a page, and a task is not nested.
            Err(_) => {
                request.next = C::at(&object);
                break STOP_FULL;
            }
        }
        match C::after(&object) {
            Some(next) => request.next = next,
            None => break STOP_END,
        }
    };
    Ok(())
}
