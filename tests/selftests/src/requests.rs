// SPDX-License-Identifier: GPL-2.0

//! Requests to be made wrong, and what must hold after each.

use crate::{
    dump,
    ktap::Verdict,
    session::{
        open_device,
        Session, //
    },
    syscall::{
        ioctl,
        lend_attrs,
        lend_values,
        Argument, //
    },
};
use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    ioctl::{
        CHANNEL_ATTACH,
        CHANNEL_CLOCK,
        CHANNEL_CREATE,
        CHANNEL_FREEZE,
        CHANNEL_LAYOUT,
        CHANNEL_MARK,
        CHANNEL_STATUS,
        COUNTER_CREATE,
        COUNTER_DISABLE,
        COUNTER_ENABLE,
        COUNTER_PERIOD,
        COUNTER_READ,
        COUNTER_REFRESH,
        COUNTER_RELEASE,
        COUNTER_RESET,
        INJECT, //
    },
    uapi::{
        AttachReq,
        ChannelReq,
        ClockReq,
        CounterCtl,
        CounterReq,
        Cursor,
        FreezeReq,
        LayoutReq,
        MarkReq,
        StatusReq,
        NAME_LEN, //
    },
    Attr,
    ChannelOptions,
    CounterOptions,
    Errno,
    ReadOptions, //
};
use rustix::{
    fd::OwnedFd,
    ioctl::Opcode, //
};
use zerocopy::{
    Immutable,
    IntoBytes, //
};

/// A request that takes a structure.
pub struct Request {
    /// Its name in the header, without the beginning.
    pub name: &'static str,
    /// Its opcode.
    pub opcode: Opcode,
    /// A right one; for those that name a counter, of one that there is not.
    pub bytes: Vec<u8>,
}

/// A name that no channel has.
const NO_CHANNEL: [u8; NAME_LEN] = {
    let mut name = [0; NAME_LEN];
    name[0] = b'?';
    name
};

/// A request whose first word is its size.
fn sized(name: &'static str, opcode: Opcode, request: impl IntoBytes + Immutable) -> Request {
    let mut bytes = bytes(&request);
    let size = bytes.len() as u32;
    bytes[..4].copy_from_slice(&size.to_ne_bytes());
    Request {
        name,
        opcode,
        bytes,
    }
}

/// All requests that take a structure, as they are right.
pub fn requests() -> Vec<Request> {
    const NO_COUNTER: u32 = 12_345;
    let ctl = |name, opcode| Request {
        name,
        opcode,
        bytes: bytes(&CounterCtl {
            size: size_of::<CounterCtl>() as u32,
            id: NO_COUNTER,
            value: 0,
        }),
    };
    let (values, room) = lend_values();
    let mut read = ReadOptions::default().request(NO_COUNTER);
    (read.values, read.count) = (values, room);
    vec![
        Request {
            name: "CHANNEL_CREATE",
            opcode: CHANNEL_CREATE,
            bytes: bytes(&create()),
        },
        Request {
            name: "CHANNEL_STATUS",
            opcode: CHANNEL_STATUS,
            bytes: bytes(&status()),
        },
        sized("CHANNEL_FREEZE", CHANNEL_FREEZE, FreezeReq::default()),
        sized("CHANNEL_LAYOUT", CHANNEL_LAYOUT, LayoutReq::default()),
        sized("CHANNEL_CLOCK", CHANNEL_CLOCK, ClockReq::default()),
        sized("CHANNEL_MARK", CHANNEL_MARK, MarkReq::default()),
        sized(
            "CHANNEL_ATTACH",
            CHANNEL_ATTACH,
            AttachReq {
                name: NO_CHANNEL,
                ..Default::default()
            },
        ),
        Request {
            name: "INJECT",
            opcode: INJECT,
            bytes: bytes(&dump::request(Cursor::default(), 1, 0)),
        },
        Request {
            name: "COUNTER_CREATE",
            opcode: COUNTER_CREATE,
            bytes: bytes(&counter()),
        },
        ctl("COUNTER_ENABLE", COUNTER_ENABLE),
        ctl("COUNTER_DISABLE", COUNTER_DISABLE),
        ctl("COUNTER_RELEASE", COUNTER_RELEASE),
        Request {
            name: "COUNTER_READ",
            opcode: COUNTER_READ,
            bytes: bytes(&read),
        },
        ctl("COUNTER_PERIOD", COUNTER_PERIOD),
        ctl("COUNTER_REFRESH", COUNTER_REFRESH),
        ctl("COUNTER_RESET", COUNTER_RESET),
    ]
}

/// The bytes of a structure.
pub fn bytes(request: &(impl IntoBytes + Immutable)) -> Vec<u8> {
    request.as_bytes().to_vec()
}

/// A request for a channel of the default kind.
pub fn create() -> ChannelReq {
    options().request()
}

/// A request for a counter of `cpu-clock` on all CPUs.
pub fn counter() -> CounterReq {
    CounterReq {
        attrs: lend_attrs(&[Attr::default()]),
        count: 1,
        ..CounterOptions::default().request(None)
    }
}

/// Of the default kind, but with as few pages as can be: there is one for each of many requests.
fn options() -> ChannelOptions {
    let cpus = libweir::cpu::possible().expect("the kernel says which CPUs there are");
    ChannelOptions {
        pages: 4 * cpus.len() as u32,
        ..Default::default()
    }
}

/// Closes what was used for one request. The kernel waits for a grace period then, and that for each of
/// many requests adds up, so it is done beside the test.
fn close(used: impl Send + 'static) {
    std::thread::spawn(move || drop(used));
}

/// A request for the status of CPU 0.
pub fn status() -> StatusReq {
    StatusReq {
        size: size_of::<StatusReq>() as u32,
        ..Default::default()
    }
}

/// A descriptor on which a request is right: one that has a channel, except to create one.
///
/// # Errors
///
/// Those of opening and creating.
pub fn descriptor(opcode: Opcode) -> Result<OwnedFd> {
    let fd = open_device()?;
    if opcode != CHANNEL_CREATE {
        libweir::ioctl::channel_create(&fd, &mut create()).context("creating a channel")?;
    }
    Ok(fd)
}

/// Makes a request on a descriptor of its own.
///
/// # Errors
///
/// The outer one where there is no such descriptor; the inner one is the request's.
pub fn call(opcode: Opcode, argument: Argument<'_>) -> Result<Result<(), Errno>> {
    call_as(opcode, opcode, argument)
}

/// Makes the request `encoded` on a descriptor on which `opcode` is right.
///
/// # Errors
///
/// As [`call`].
pub fn call_as(
    opcode: Opcode,
    encoded: Opcode,
    argument: Argument<'_>,
) -> Result<Result<(), Errno>> {
    let fd = descriptor(opcode)?;
    let result = ioctl(&fd, encoded, argument);
    close(fd);
    Ok(result)
}

/// Makes a request on a descriptor of its own; it must give one of `wanted`, and the module still work.
///
/// # Errors
///
/// It gave something else, or the channel or another one does not work any more.
pub fn expect(
    what: &str,
    opcode: Opcode,
    argument: Argument<'_>,
    wanted: &[Result<(), Errno>],
) -> Verdict {
    let fd = descriptor(opcode)?;
    let result = ioctl(&fd, opcode, argument);
    ensure!(
        wanted.contains(&result),
        "{what} gave {result:?} instead of {wanted:?}"
    );
    if opcode != CHANNEL_CREATE {
        inject_one(&fd).with_context(|| format!("the channel itself, after {what}"))?;
    }
    close(fd);
    still_works().with_context(|| format!("another channel, after {what}"))
}

/// The same for a structure as it is.
///
/// # Errors
///
/// As [`expect`].
pub fn expect_bytes(
    what: &str,
    opcode: Opcode,
    request: &(impl IntoBytes + Immutable),
    wanted: &[Result<(), Errno>],
) -> Verdict {
    expect(what, opcode, Argument::Bytes(&mut bytes(request)), wanted)
}

/// Writes a task into the channel of a descriptor.
///
/// # Errors
///
/// That of the call, or none was written.
pub fn inject_one(fd: &OwnedFd) -> Verdict {
    let mut call = dump::request(Cursor::default(), 1, 0);
    libweir::ioctl::inject(fd, &mut call).context("injecting one task")?;
    ensure!(call.read == 1, "no task was injected: {call:?}");
    Ok(())
}

/// A little of everything: create, write, flush, read, close.
///
/// # Errors
///
/// What does not work.
pub fn still_works() -> Verdict {
    let mut session = Session::open(&options(), 4)?;
    let mut collector = dump::Collector::default();
    let mut call = dump::request(Cursor::default(), 1, 0);
    session.channel().inject(&mut call)?;
    session.flush(|cpu, record| collector.record(cpu, record))?;
    let tasks = collector.finish()?;
    ensure!(
        tasks.len() == 1 && call.read == 1,
        "one task is not {tasks:?}: {call:?}"
    );
    close(session);
    Ok(())
}

/// What most wrong requests give.
pub const INVAL: &[Result<(), Errno>] = &[Err(Errno::INVAL)];
