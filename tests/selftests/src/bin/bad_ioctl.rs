// SPDX-License-Identifier: GPL-2.0

//! Wrong requests: each gives its error number, and the module goes on working.
//!
//! Here are those that are wrong as such: pointers, sizes, order, descriptors. See `bad_fields` for what
//! stands in them.

use anyhow::{
    ensure,
    Context as _, //
};
use libweir::{
    ioctl::{
        CHANNEL_ATTACH,
        CHANNEL_CREATE,
        CHANNEL_FLUSH,
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
        self,
        ChannelReq, //
    },
    Errno, //
};
use rustix::{
    fd::{
        AsRawFd,
        OwnedFd, //
    },
    fs::{
        Mode,
        OFlags, //
    },
    ioctl::{
        opcode,
        Opcode, //
    },
};
use std::process::ExitCode;
use weir_selftests::{
    ktap::{
        self,
        Verdict, //
    },
    requests::{
        call,
        call_as,
        create,
        descriptor,
        expect,
        inject_one,
        requests,
        still_works,
        Request,
        INVAL, //
    },
    session::open_device,
    syscall::{
        ioctl,
        Argument,
        Guarded, //
    },
    torture::{
        self,
        Source,
        Start,
        Torture,
        PAYLOAD_MIN, //
    },
};
use zerocopy::IntoBytes;

const FAULT: &[Result<(), Errno>] = &[Err(Errno::FAULT)];

fn pointers(_: &mut ()) -> Verdict {
    for Request {
        name,
        opcode,
        bytes,
    } in requests()
    {
        expect(
            &format!("{name} with a null pointer"),
            opcode,
            Argument::Null,
            FAULT,
        )?;
        expect(
            &format!("{name} with a kernel address"),
            opcode,
            Argument::Kernel,
            FAULT,
        )?;
        let mut memory = Guarded::new(1)?;
        let end = memory.bytes().len();
        // Nothing of it accessible; the size cut through; the size alone; all but the last byte.
        for accessible in [0, 1, 3, 4, 5, bytes.len() - 1] {
            let at = end - accessible;
            memory.bytes()[at..].copy_from_slice(&bytes[..accessible]);
            let what = format!(
                "{name} of which {accessible} bytes of {} are mapped",
                bytes.len()
            );
            expect(&what, opcode, Argument::Guarded(&mut memory, at), FAULT)?;
        }
    }
    Ok(())
}

/// A structure up to the last mapped byte is as good as any.
fn up_to_the_boundary(_: &mut ()) -> Verdict {
    for Request {
        name,
        opcode,
        mut bytes,
    } in requests()
    {
        let plain = call(opcode, Argument::Bytes(&mut bytes.clone()))?;
        let mut memory = Guarded::new(1)?;
        let at = memory.bytes().len() - bytes.len();
        memory.bytes()[at..].copy_from_slice(&bytes);
        let what = format!("{name} before the last mapped byte");
        expect(&what, opcode, Argument::Guarded(&mut memory, at), &[plain])?;
        // And so is one at an odd address.
        bytes.insert(0, 0);
        memory.bytes()[..bytes.len()].copy_from_slice(&bytes);
        let what = format!("{name} at an odd address");
        expect(&what, opcode, Argument::Guarded(&mut memory, 1), &[plain])?;
    }
    Ok(())
}

/// A request whose first word says that it has `size` bytes, with `tail` at its end.
fn sized(bytes: &[u8], size: usize, tail: u8) -> Vec<u8> {
    let mut sized = bytes.to_vec();
    sized.resize(size.max(bytes.len()), 0);
    sized[..4].copy_from_slice(&(size as u32).to_ne_bytes());
    if size > bytes.len() {
        sized[size - 1] = tail;
    }
    sized
}

fn sizes(_: &mut ()) -> Verdict {
    let page = rustix::param::page_size();
    for Request {
        name,
        opcode,
        bytes,
    } in requests()
    {
        let len = bytes.len();
        let plain = call(opcode, Argument::Bytes(&mut bytes.clone()))?;
        for size in [0, 1, 3, 4, len - 1] {
            let what = format!("{name} with a size of {size} instead of {len}");
            let mut short = sized(&bytes, size, 0);
            expect(&what, opcode, Argument::Bytes(&mut short), INVAL)?;
        }
        // A caller from the future, who does not use what is new to it, and one who does.
        for more in [1, 4, 8, 100] {
            let size = len + more;
            let what = format!("{name} with {more} zeros more than {len} bytes");
            let mut long = sized(&bytes, size, 0);
            expect(&what, opcode, Argument::Bytes(&mut long), &[plain])?;
            let what = format!("{name} with {more} bytes more than {len}, the last not zero");
            let mut long = sized(&bytes, size, 1);
            expect(
                &what,
                opcode,
                Argument::Bytes(&mut long),
                &[Err(Errno::TOOBIG)],
            )?;
        }
        // No structure will ever be larger than a page; zeros or not, the kernel may say so.
        let what = format!("{name} with a size of more than a page");
        let mut long = sized(&bytes, page + 8, 0);
        expect(
            &what,
            opcode,
            Argument::Bytes(&mut long),
            &[plain, Err(Errno::TOOBIG)],
        )?;
        let what = format!("{name} with a size of more than a page, the last byte not zero");
        let mut long = sized(&bytes, page + 8, 1);
        expect(
            &what,
            opcode,
            Argument::Bytes(&mut long),
            &[Err(Errno::TOOBIG)],
        )?;
        // As large as the guard behind it, so that nothing else can be touched.
        let mut memory = Guarded::new(1)?;
        let mut huge = bytes.clone();
        huge[..4].copy_from_slice(&(1u32 << 20).to_ne_bytes());
        let at = page - huge.len();
        memory.bytes()[at..].copy_from_slice(&huge);
        let what = format!("{name} with a size of a megabyte that is not there");
        let wanted = [Err(Errno::TOOBIG), Err(Errno::FAULT)];
        expect(&what, opcode, Argument::Guarded(&mut memory, at), &wanted)?;
    }
    Ok(())
}

/// The kernel goes by type and number: the size that an opcode encodes is the caller's affair.
fn other_encoded_sizes(_: &mut ()) -> Verdict {
    for Request {
        name,
        opcode,
        mut bytes,
    } in requests()
    {
        let plain = call(opcode, Argument::Bytes(&mut bytes.clone()))?;
        let mut longer = sized(&bytes, bytes.len() + 8, 0);
        let encoded = (opcode & !(0x3fff << 16)) | (longer.len() as Opcode) << 16;
        let result = call_as(opcode, encoded, Argument::Bytes(&mut longer))?;
        ensure!(
            result == plain,
            "{name} with 8 bytes more encoded gave {result:?} instead of {plain:?}"
        );
        let encoded = opcode & !(0x3fff << 16);
        let result = call_as(opcode, encoded, Argument::Bytes(&mut bytes))?;
        ensure!(
            result == plain,
            "{name} with no size encoded gave {result:?} instead of {plain:?}"
        );
    }
    still_works()
}

/// Requests out of order.
fn state(_: &mut ()) -> Verdict {
    let fresh = open_device()?;
    for Request {
        name,
        opcode,
        mut bytes,
    } in requests()
    {
        if opcode == CHANNEL_CREATE {
            continue;
        }
        let result = ioctl(&fresh, opcode, Argument::Bytes(&mut bytes));
        let wanted: &[_] = match opcode {
            // This is how a descriptor may get one.
            CHANNEL_ATTACH => &[Err(Errno::NOENT)],
            // There cannot be a counter before there is a channel: either is the truth.
            COUNTER_ENABLE | COUNTER_DISABLE | COUNTER_RELEASE | COUNTER_READ | COUNTER_PERIOD
            | COUNTER_REFRESH | COUNTER_RESET => &[Err(Errno::BADFD), Err(Errno::NOENT)],
            _ => &[Err(Errno::BADFD)],
        };
        ensure!(
            wanted.contains(&result),
            "{name} without a channel gave {result:?}"
        );
    }
    let result = ioctl(&fresh, CHANNEL_FLUSH, Argument::Null);
    ensure!(
        result == Err(Errno::BADFD),
        "FLUSH without a channel gave {result:?}"
    );
    let result = rustix::io::read(&fresh, &mut [0; 65536][..]);
    ensure!(
        result == Err(Errno::BADFD),
        "read() without a channel gave {result:?}"
    );

    // A wrong attempt does not use the descriptor up, a right one does.
    let mut wrong = ChannelReq {
        flags: 1,
        ..create()
    };
    let result = libweir::ioctl::channel_create(&fresh, &mut wrong);
    ensure!(result == Err(Errno::INVAL), "{result:?}");
    libweir::ioctl::channel_create(&fresh, &mut create()).context("after a wrong attempt")?;
    let result = libweir::ioctl::channel_create(&fresh, &mut create());
    ensure!(
        result == Err(Errno::BUSY),
        "a second channel gave {result:?}"
    );
    inject_one(&fresh).context("after the attempt to create a second channel")?;
    still_works()
}

fn unknown_requests(_: &mut ()) -> Verdict {
    let numbers = [99, 200, 255];
    let types = [b'w', 0, uapi::IOC_MAGIC as u8 + 1];
    let wanted = &[Err(Errno::NOTTY)];
    for number in numbers {
        let opcode = opcode::read_write::<[u64; 5]>(uapi::IOC_MAGIC as u8, number);
        expect(&format!("number {number}"), opcode, Argument::Null, wanted)?;
    }
    for type_ in types {
        let opcode = opcode::read_write::<ChannelReq>(type_, 0);
        expect(&format!("type {type_:#x}"), opcode, Argument::Null, wanted)?;
    }
    Ok(())
}

fn wrong_descriptors(_: &mut ()) -> Verdict {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    for Request {
        name,
        opcode,
        mut bytes,
    } in requests()
    {
        let result = ioctl(&null, opcode, Argument::Bytes(&mut bytes));
        ensure!(
            result == Err(Errno::NOTTY),
            "{name} on /dev/null gave {result:?}"
        );
    }
    still_works()
}

/// A channel is only read.
fn write(_: &mut ()) -> Verdict {
    let fd = descriptor(INJECT)?;
    let result = rustix::io::write(&fd, b"written");
    ensure!(result == Err(Errno::INVAL), "write() gave {result:?}");
    inject_one(&fd)?;
    still_works()
}

/// What a kernel module that asks for the channel of a descriptor is told.
fn kernel_interface(_: &mut ()) -> Verdict {
    let torture = Torture::open()?;
    let request = Start::new(&[Source::Task], PAYLOAD_MIN..=PAYLOAD_MIN).records(1);
    let get = |fd: i32| {
        let mut request = request;
        request.channel = fd;
        ioctl(
            &torture,
            torture::START,
            Argument::Bytes(request.as_mut_bytes()),
        )
    };
    let raw = |fd: &OwnedFd| fd.as_raw_fd();
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let fresh = open_device()?;
    for (what, fd, wanted) in [
        ("descriptor -1", -1, Errno::BADF),
        ("a descriptor that is not open", 1 << 20, Errno::BADF),
        ("/dev/null", raw(&null), Errno::INVAL),
        ("a descriptor without a channel", raw(&fresh), Errno::BADFD),
    ] {
        let result = get(fd);
        ensure!(
            result == Err(wanted),
            "the channel of {what} gave {result:?} instead of {wanted:?}"
        );
        still_works()?;
    }
    let fd = descriptor(INJECT)?;
    get(raw(&fd)).context("the channel of a descriptor that has one")?;
    still_works()
}

fn main() -> ExitCode {
    ktap::main(
        still_works,
        &[
            ("pointers", pointers),
            ("up_to_the_boundary", up_to_the_boundary),
            ("sizes", sizes),
            ("other_encoded_sizes", other_encoded_sizes),
            ("state", state),
            ("unknown_requests", unknown_requests),
            ("wrong_descriptors", wrong_descriptors),
            ("write", write),
            ("kernel_interface", kernel_interface),
        ],
    )
}
