// SPDX-License-Identifier: GPL-2.0

//! The ioctls of `/dev/weir` as safe functions on any descriptor.
//!
//! [`crate::Channel`] is what programs use. These are for those that must see the bare system call:
//! they do nothing but call it and give back its error number.

use crate::{
    uapi,
    Attr, //
};
use rustix::{
    fd::AsFd,
    io::Errno,
    ioctl::{
        opcode,
        Ioctl,
        IoctlOutput,
        Opcode, //
    },
};
use std::ffi::c_void;
use zerocopy::IntoBytes;

const MAGIC: u8 = uapi::IOC_MAGIC as u8;

/// `WEIR_IOC_CHANNEL_CREATE`.
pub const CHANNEL_CREATE: Opcode =
    opcode::read_write::<uapi::ChannelReq>(MAGIC, uapi::IOC_CHANNEL_CREATE as u8);
/// `WEIR_IOC_CHANNEL_STATUS`.
pub const CHANNEL_STATUS: Opcode =
    opcode::read_write::<uapi::StatusReq>(MAGIC, uapi::IOC_CHANNEL_STATUS as u8);
/// `WEIR_IOC_CHANNEL_FLUSH`.
pub const CHANNEL_FLUSH: Opcode = opcode::none(MAGIC, uapi::IOC_CHANNEL_FLUSH as u8);
/// `WEIR_IOC_INJECT`.
pub const INJECT: Opcode = opcode::read_write::<uapi::InjectReq>(MAGIC, uapi::IOC_INJECT as u8);
/// `WEIR_IOC_COUNTER_CREATE`.
pub const COUNTER_CREATE: Opcode =
    opcode::read_write::<uapi::CounterReq>(MAGIC, uapi::IOC_COUNTER_CREATE as u8);
/// `WEIR_IOC_COUNTER_ENABLE`.
pub const COUNTER_ENABLE: Opcode =
    opcode::write::<uapi::CounterCtl>(MAGIC, uapi::IOC_COUNTER_ENABLE as u8);
/// `WEIR_IOC_COUNTER_DISABLE`.
pub const COUNTER_DISABLE: Opcode =
    opcode::write::<uapi::CounterCtl>(MAGIC, uapi::IOC_COUNTER_DISABLE as u8);
/// `WEIR_IOC_COUNTER_RELEASE`.
pub const COUNTER_RELEASE: Opcode =
    opcode::write::<uapi::CounterCtl>(MAGIC, uapi::IOC_COUNTER_RELEASE as u8);
/// `WEIR_IOC_COUNTER_READ`.
pub const COUNTER_READ: Opcode =
    opcode::read_write::<uapi::CounterRead>(MAGIC, uapi::IOC_COUNTER_READ as u8);
/// `WEIR_IOC_COUNTER_PERIOD`.
pub const COUNTER_PERIOD: Opcode =
    opcode::write::<uapi::CounterCtl>(MAGIC, uapi::IOC_COUNTER_PERIOD as u8);
/// `WEIR_IOC_COUNTER_REFRESH`.
pub const COUNTER_REFRESH: Opcode =
    opcode::write::<uapi::CounterCtl>(MAGIC, uapi::IOC_COUNTER_REFRESH as u8);
/// `WEIR_IOC_COUNTER_RESET`.
pub const COUNTER_RESET: Opcode =
    opcode::write::<uapi::CounterCtl>(MAGIC, uapi::IOC_COUNTER_RESET as u8);
/// `WEIR_IOC_CHANNEL_CLOCK`.
pub const CHANNEL_CLOCK: Opcode =
    opcode::read_write::<uapi::ClockReq>(MAGIC, uapi::IOC_CHANNEL_CLOCK as u8);
/// `WEIR_IOC_CHANNEL_ATTACH`.
pub const CHANNEL_ATTACH: Opcode =
    opcode::write::<uapi::AttachReq>(MAGIC, uapi::IOC_CHANNEL_ATTACH as u8);
/// `WEIR_IOC_CHANNEL_MARK`.
pub const CHANNEL_MARK: Opcode =
    opcode::read_write::<uapi::MarkReq>(MAGIC, uapi::IOC_CHANNEL_MARK as u8);
/// `WEIR_IOC_CHANNEL_LAYOUT`.
pub const CHANNEL_LAYOUT: Opcode =
    opcode::read_write::<uapi::LayoutReq>(MAGIC, uapi::IOC_CHANNEL_LAYOUT as u8);
/// `WEIR_IOC_CHANNEL_FREEZE`.
pub const CHANNEL_FREEZE: Opcode =
    opcode::write::<uapi::FreezeReq>(MAGIC, uapi::IOC_CHANNEL_FREEZE as u8);

/// One call: an opcode, and the bytes it works on.
struct Call<'a> {
    opcode: Opcode,
    argument: &'a mut [u8],
}

// SAFETY: The pointer is to bytes that the call borrows exclusively, so the kernel may write to
// them, and any bytes it writes are valid ones. It touches no more than the size that stands in the
// first word of the argument, or that the opcode encodes, and `checked` made sure that neither is
// beyond the end. Where an argument has addresses in it, whoever made it has put some there behind which
// is memory that the kernel may write to.
unsafe impl Ioctl for Call<'_> {
    type Output = ();

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.argument.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> Result<(), Errno> {
        Ok(())
    }
}

/// Calls `opcode` on bytes that begin with their own size, as every argument of weir does.
///
/// The size may be wrong in any way but one: it must not be larger than `argument`, which is at least
/// as long as the structure that `opcode` encodes.
///
/// # Errors
///
/// Whatever the kernel says; `EFAULT` without a call where `argument` is shorter than what the kernel
/// would read, or where there are addresses in it, as for [`counter_create`] and [`counter_read`]; `ENOTTY`
/// where `opcode` is not of weir's type.
pub fn request<Fd: AsFd>(fd: Fd, opcode: Opcode, argument: &mut [u8]) -> Result<(), Errno> {
    // The kernel goes by the number alone.
    if [uapi::IOC_COUNTER_CREATE, uapi::IOC_COUNTER_READ].contains(&(opcode & 0xff)) {
        return Err(Errno::FAULT);
    }
    checked(fd, opcode, argument)
}

/// Calls `opcode` on bytes of which only the addresses in them, if there are any, were not checked.
fn checked<Fd: AsFd>(fd: Fd, opcode: Opcode, argument: &mut [u8]) -> Result<(), Errno> {
    if (opcode >> 8) & 0xff != Opcode::from(MAGIC) {
        return Err(Errno::NOTTY);
    }
    // The module reads the size first, then so many bytes; any other driver goes by the opcode.
    let size = match argument.first_chunk::<4>() {
        Some(word) => u32::from_ne_bytes(*word) as usize,
        None => return Err(Errno::FAULT),
    };
    let encoded = (opcode >> 16) as usize & 0x3fff;
    if size.max(encoded) > argument.len() {
        return Err(Errno::FAULT);
    }
    // SAFETY: See the argument at `impl Ioctl for Call`.
    unsafe { rustix::ioctl::ioctl(fd, Call { opcode, argument }) }
}

/// Creates the channel of a descriptor; what was taken is written to `req`.
///
/// # Errors
///
/// See `WEIR_IOC_CHANNEL_CREATE` in the header.
pub fn channel_create<Fd: AsFd>(fd: Fd, req: &mut uapi::ChannelReq) -> Result<(), Errno> {
    request(fd, CHANNEL_CREATE, req.as_mut_bytes())
}

/// Keeps what a channel that overwrites has, or keeps it no longer.
///
/// # Errors
///
/// See `WEIR_IOC_CHANNEL_FREEZE` in the header.
pub fn channel_freeze<Fd: AsFd>(fd: Fd, req: &mut uapi::FreezeReq) -> Result<(), Errno> {
    request(fd, CHANNEL_FREEZE, req.as_mut_bytes())
}

/// Says what times in a channel are.
///
/// # Errors
///
/// See `WEIR_IOC_CHANNEL_CLOCK` in the header.
pub fn channel_clock<Fd: AsFd>(fd: Fd, req: &mut uapi::ClockReq) -> Result<(), Errno> {
    request(fd, CHANNEL_CLOCK, req.as_mut_bytes())
}

/// Attaches a channel that a kernel module has created.
///
/// # Errors
///
/// See `WEIR_IOC_CHANNEL_ATTACH` in the header.
pub fn channel_attach<Fd: AsFd>(fd: Fd, req: &mut uapi::AttachReq) -> Result<(), Errno> {
    request(fd, CHANNEL_ATTACH, req.as_mut_bytes())
}

/// Says how far the stream is complete.
///
/// # Errors
///
/// See `WEIR_IOC_CHANNEL_MARK` in the header.
pub fn channel_mark<Fd: AsFd>(fd: Fd, req: &mut uapi::MarkReq) -> Result<(), Errno> {
    request(fd, CHANNEL_MARK, req.as_mut_bytes())
}

/// Says how a channel is mapped.
///
/// # Errors
///
/// See `WEIR_IOC_CHANNEL_LAYOUT` in the header.
pub fn channel_layout<Fd: AsFd>(fd: Fd, req: &mut uapi::LayoutReq) -> Result<(), Errno> {
    request(fd, CHANNEL_LAYOUT, req.as_mut_bytes())
}

/// Reads what one CPU wrote and lost.
///
/// # Errors
///
/// See `WEIR_IOC_CHANNEL_STATUS` in the header.
pub fn channel_status<Fd: AsFd>(fd: Fd, req: &mut uapi::StatusReq) -> Result<(), Errno> {
    request(fd, CHANNEL_STATUS, req.as_mut_bytes())
}

/// Makes everything readable that was committed before the call.
///
/// # Errors
///
/// `EBADFD` where the descriptor has no channel.
pub fn channel_flush<Fd: AsFd>(fd: Fd) -> Result<(), Errno> {
    let mut none = [0; 4];
    request(fd, CHANNEL_FLUSH, &mut none)
}

/// Writes existing objects into the channel.
///
/// # Errors
///
/// See `WEIR_IOC_INJECT` in the header.
pub fn inject<Fd: AsFd>(fd: Fd, req: &mut uapi::InjectReq) -> Result<(), Errno> {
    request(fd, INJECT, req.as_mut_bytes())
}

/// Creates a counter of `attrs`, whose address and number are filled in; the counter's number is written to
/// `req`. Of an attribute that is too new for the kernel, it writes the size that it knows into it.
///
/// # Errors
///
/// See `WEIR_IOC_COUNTER_CREATE` in the header.
pub fn counter_create<Fd: AsFd>(
    fd: Fd,
    req: &mut uapi::CounterReq,
    attrs: &mut [Attr],
) -> Result<(), Errno> {
    // The addresses stay good until the call is over: `attrs` is borrowed as long.
    let addresses: Vec<u64> = attrs
        .iter_mut()
        .map(|attr| (&raw mut *attr).expose_provenance() as u64)
        .collect();
    req.attrs = addresses.as_ptr().expose_provenance() as u64;
    req.count = u32::try_from(addresses.len()).map_err(|_| Errno::TOOBIG)?;
    let result = checked(fd, COUNTER_CREATE, req.as_mut_bytes());
    // Nobody shall find an address there behind which is nothing any more.
    req.attrs = 0;
    result
}

/// Sends [`COUNTER_ENABLE`], [`COUNTER_DISABLE`], [`COUNTER_RESET`] or [`COUNTER_RELEASE`] to counter `id`, with a
/// `value` of 0; or [`COUNTER_PERIOD`] to event `id`, or [`COUNTER_REFRESH`] to counter `id`, with one.
///
/// # Errors
///
/// `ENOENT` where there is no such counter; see the header.
pub fn counter_control<Fd: AsFd>(fd: Fd, opcode: Opcode, id: u32, value: u64) -> Result<(), Errno> {
    let mut ctl = uapi::CounterCtl {
        size: size_of::<uapi::CounterCtl>() as u32,
        id,
        value,
    };
    request(fd, opcode, ctl.as_mut_bytes())
}

/// Reads counters into `values`, whose address and number are filled in; `req` says how many there are then.
///
/// # Errors
///
/// `ENOENT` where there is no such counter, `ENOSPC` where `values` has too little room.
pub fn counter_read<Fd: AsFd>(
    fd: Fd,
    req: &mut uapi::CounterRead,
    values: &mut [uapi::CounterValue],
) -> Result<(), Errno> {
    req.values = values.as_mut_ptr().expose_provenance() as u64;
    req.count = u32::try_from(values.len()).unwrap_or(u32::MAX);
    let result = checked(fd, COUNTER_READ, req.as_mut_bytes());
    req.values = 0;
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_size_beyond_the_argument_never_reaches_the_kernel() {
        let null = File::open("/dev/null").unwrap();
        let mut bytes = [0; 48];
        bytes[0] = 49;
        assert_eq!(
            request(&null, CHANNEL_CREATE, &mut bytes),
            Err(Errno::FAULT)
        );
        assert_eq!(request(&null, INJECT, &mut bytes[..3]), Err(Errno::FAULT));
        // 48 fits, and /dev/null answers for itself.
        bytes[0] = 48;
        assert_eq!(
            request(&null, CHANNEL_CREATE, &mut bytes),
            Err(Errno::NOTTY)
        );
    }

    #[test]
    fn only_calls_of_this_type_are_made() {
        // TIOCGWINSZ writes eight bytes to where it is pointed at.
        let null = File::open("/dev/null").unwrap();
        assert_eq!(request(&null, 0x5413, &mut [0; 4]), Err(Errno::NOTTY));
    }

    #[test]
    fn bytes_with_addresses_in_them_never_reach_the_kernel() {
        let null = File::open("/dev/null").unwrap();
        for opcode in [
            COUNTER_CREATE,
            COUNTER_READ,
            // The same number with another size.
            opcode::read_write::<[u8; 64]>(MAGIC, uapi::IOC_COUNTER_READ as u8),
        ] {
            let mut bytes = [0; 64];
            bytes[0] = 64;
            assert_eq!(request(&null, opcode, &mut bytes), Err(Errno::FAULT));
        }
        // With memory behind them, they do.
        let mut read = uapi::CounterRead {
            size: size_of::<uapi::CounterRead>() as u32,
            ..Default::default()
        };
        let mut values = [uapi::CounterValue::default(); 3];
        let result = counter_read(&null, &mut read, &mut values);
        assert_eq!((result, read.count), (Err(Errno::NOTTY), 3));
        let mut create = uapi::CounterReq {
            size: size_of::<uapi::CounterReq>() as u32,
            ..Default::default()
        };
        let result = counter_create(&null, &mut create, &mut [Attr::default()]);
        assert_eq!((result, create.count), (Err(Errno::NOTTY), 1));
    }
}
