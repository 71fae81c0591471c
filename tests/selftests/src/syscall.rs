// SPDX-License-Identifier: GPL-2.0

//! System calls that no library makes safe: ioctls with bad arguments, and memory that ends where it is told
//! to. Of these programs, only this file and `mapping` have `unsafe`.

use libweir::{
    uapi::{
        CounterValue,
        IOC_COUNTER_CREATE,
        IOC_COUNTER_READ,
        IOC_MAGIC, //
    },
    Attr, //
};
use nix::libc;
use rustix::{
    fd::{
        AsFd,
        AsRawFd,
        FromRawFd,
        OwnedFd, //
    },
    io::Errno,
    ioctl::{
        Ioctl,
        IoctlOutput,
        Opcode, //
    },
    mm::{
        MapFlags,
        MprotectFlags,
        ProtFlags, //
    },
    pipe::{
        vmsplice,
        IoSliceRaw,
        SpliceFlags, //
    },
};
use std::{
    arch::global_asm,
    ffi::c_void,
    ptr::{
        null_mut,
        NonNull, //
    },
    sync::{
        atomic::AtomicU64,
        Mutex, //
    },
};

/// What an ioctl is given as its pointer.
#[derive(Debug)]
pub enum Argument<'a> {
    /// The null pointer, behind which nothing is ever mapped.
    Null,
    /// An address in the kernel's half, where user space has nothing.
    Kernel,
    /// Bytes. The kernel writes to them and not beyond.
    Bytes(&'a mut [u8]),
    /// The place so many bytes into memory that ends in a guard.
    Guarded(&'a mut Guarded, usize),
}

/// One call with an address that the kernel may write to as far as the opcode's driver wants.
struct Call {
    opcode: Opcode,
    address: *mut c_void,
}

// SAFETY: `ioctl` below, which alone makes one, has seen to it that what the kernel writes is memory
// that the caller lent exclusively, or that was lent for ever, or that no memory is there at all. Any bytes are
// valid in it.
unsafe impl Ioctl for Call {
    type Output = ();

    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.address
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> Result<(), Errno> {
        Ok(())
    }
}

/// Makes an ioctl whose argument begins with its own size, as all of weir and of the torture module do,
/// or one that no driver knows.
///
/// # Errors
///
/// The kernel's; `EFAULT` without a call where `argument` is [`Argument::Bytes`] and shorter than what
/// the opcode encodes or than the size in its first word, or where it has an address in it that was not lent.
pub fn ioctl<Fd: AsFd>(fd: Fd, opcode: Opcode, mut argument: Argument<'_>) -> Result<(), Errno> {
    if !addresses_are_lent(opcode, &mut argument) {
        return Err(Errno::FAULT);
    }
    let address = match argument {
        Argument::Null => null_mut(),
        // The last page but one of the address space: not canonical for user space anywhere.
        Argument::Kernel => (usize::MAX - 8191) as *mut c_void,
        Argument::Bytes(bytes) => {
            let encoded = (opcode >> 16) as usize & 0x3fff;
            let size = match bytes.first_chunk::<4>() {
                Some(word) => u32::from_ne_bytes(*word) as usize,
                None => 0,
            };
            if encoded.max(size) > bytes.len() {
                return Err(Errno::FAULT);
            }
            bytes.as_mut_ptr().cast()
        }
        Argument::Guarded(memory, offset) => memory.address(offset),
    };
    // SAFETY: Behind null and kernel addresses is nothing of ours. Bytes are as long as drivers that
    // go by the opcode or by the size in the first word write. Guarded memory is lent exclusively, and
    // the kernel, which copies upwards, meets the guard before it meets anything else. What a request points
    // to was lent for ever, or nothing of ours is there.
    unsafe { rustix::ioctl::ioctl(fd, Call { opcode, address }) }
}

/// Addresses of memory that the kernel may read and write at any time, as nobody else does.
static LENT: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Words of each such memory: more than any request of these tests asks for, so that the addresses behind the
/// last right one are null.
const LENT_WORDS: usize = 8192;

/// From here on, nothing is ever user space's, on any machine that this runs on.
const NOTHING: u64 = 1 << 63;

/// Lends a place for ever; it is filled with zeros but for what `fill` puts there.
fn lend(fill: impl FnOnce(&mut [u64])) -> u64 {
    let words = Box::leak(vec![0u64; LENT_WORDS].into_boxed_slice());
    fill(words);
    let address = words.as_mut_ptr().expose_provenance() as u64;
    LENT.lock().expect("no panic in there").push(address);
    address
}

/// Lends a list with the addresses of such events: for `CounterReq::attrs`.
pub fn lend_attrs(attrs: &[Attr]) -> u64 {
    lend(|words| {
        for (word, attr) in words.iter_mut().zip(attrs) {
            let attr = Box::leak(Box::new(*attr));
            *word = (&raw mut *attr).expose_provenance() as u64;
        }
    })
}

/// Lends a place for values: for `CounterRead::values`, with the number of those that have room there.
pub fn lend_values() -> (u64, u32) {
    let room = LENT_WORDS * size_of::<u64>() / size_of::<CounterValue>();
    (lend(|_| ()), room as u32)
}

/// Lends such bytes, with zeros behind them.
///
/// # Panics
///
/// There are too many.
pub fn lend_bytes(bytes: &[u8]) -> u64 {
    assert!(
        bytes.len() <= LENT_WORDS * size_of::<u64>(),
        "too many bytes"
    );
    lend(|words| {
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(size_of::<u64>())) {
            let mut whole = [0; size_of::<u64>()];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
    })
}

/// Lends a list of addresses, which were lent themselves, or behind which is nothing of ours: for
/// `CounterReq::attrs`.
///
/// # Panics
///
/// There is such an address in it.
pub fn lend_addresses(addresses: &[u64]) -> u64 {
    assert!(
        addresses.iter().all(|address| is_harmless(*address)),
        "an address was not lent"
    );
    lend(|words| words[..addresses.len()].copy_from_slice(addresses))
}

/// The word of 32 bits with this index in what was lent.
///
/// # Panics
///
/// It was not lent, or is shorter.
pub fn lent_word(address: u64, index: usize) -> u32 {
    let is_lent = LENT.lock().expect("no panic in there").contains(&address);
    assert!(is_lent && index < LENT_WORDS, "it was not lent");
    let words = std::ptr::with_exposed_provenance::<u32>(address as usize);
    // SAFETY: It is of memory that was lent for ever, and is aligned. Only the kernel writes there, during calls.
    unsafe { words.add(index).read_volatile() }
}

/// `perf_event_open()` with an attr at a lent address, or where nothing is.
///
/// # Errors
///
/// The kernel's.
///
/// # Panics
///
/// The address was not lent.
pub fn perf_event_open(attr: u64, pid: i32, cpu: i32) -> Result<OwnedFd, Errno> {
    assert!(is_harmless(attr), "the address was not lent");
    // SAFETY: The kernel may write to what was lent, and nothing of ours is elsewhere.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, attr, pid, cpu, -1, 0) };
    if fd < 0 {
        return Err(last_error());
    }
    // SAFETY: The call has just given this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Whether the kernel may write there.
fn is_harmless(address: u64) -> bool {
    let lent = LENT.lock().expect("no panic in there");
    address == 0 || address >= NOTHING || lent.contains(&address)
}

/// Whether the address in a request for counters is one behind which the kernel may write.
fn addresses_are_lent(opcode: Opcode, argument: &mut Argument<'_>) -> bool {
    /// Where it is in both requests.
    const AT: usize = 16;
    let request = [IOC_COUNTER_CREATE, IOC_COUNTER_READ].contains(&(opcode & 0xff));
    if !request || (opcode >> 8) & 0xff != IOC_MAGIC {
        return true;
    }
    let bytes = match argument {
        Argument::Null | Argument::Kernel => return true,
        Argument::Bytes(bytes) => &bytes[..],
        Argument::Guarded(memory, at) => &memory.bytes()[*at..],
    };
    let Some(word) = bytes.get(AT..).and_then(<[u8]>::first_chunk) else {
        return true;
    };
    is_harmless(u64::from_ne_bytes(*word))
}

/// Takes bytes out of a pipe, of which `pipe` is the end to read from.
///
/// # Errors
///
/// Those of `vmsplice()`.
pub fn vmsplice_from<Fd: AsFd>(pipe: Fd, bytes: &mut [u8]) -> Result<usize, Errno> {
    let to = [IoSliceRaw::from_slice_mut(bytes)];
    // SAFETY: The kernel writes to memory that is borrowed exclusively. If the descriptor were the other end of
    // a pipe, it would read that memory later, and what is there then does not matter to anybody.
    unsafe { vmsplice(pipe, &to, SpliceFlags::empty()) }
}

// A function that calls itself `depth` times, and then writes to the word. Unlike what the compiler makes here, each
// call has a frame that the frame pointer leads to.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.weir_test_descend, \"ax\"",
    ".globl weir_test_descend, weir_test_descend_end",
    "weir_test_descend:",
    "push rbp",
    "mov rbp, rsp",
    "test rdi, rdi",
    "jz 1f",
    "dec rdi",
    "call weir_test_descend",
    "jmp 2f",
    "1: mov qword ptr [rsi], rdi",
    "2: pop rbp",
    "ret",
    "weir_test_descend_end:",
    ".popsection",
);
#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text.weir_test_descend, \"ax\"",
    ".globl weir_test_descend, weir_test_descend_end",
    "weir_test_descend:",
    "stp x29, x30, [sp, #-16]!",
    "mov x29, sp",
    "cbz x0, 1f",
    "sub x0, x0, #1",
    "bl weir_test_descend",
    "b 2f",
    "1: str x0, [x1]",
    "2: ldp x29, x30, [sp], #16",
    "ret",
    "weir_test_descend_end:",
    ".popsection",
);

extern "C" {
    fn weir_test_descend(depth: u64, word: *mut u64);
    fn weir_test_descend_end();
}

/// Calls a function `depth` deep below itself, which then stores 0 there.
///
/// # Panics
///
/// It is deeper than there is room for on a stack.
pub fn descend(depth: u64, word: &AtomicU64) {
    assert!(depth <= 1000, "too deep");
    // SAFETY: The function follows the C calling convention, and needs 16 bytes of the stack for a call, and as many
    // more for its caller. It makes one store of an aligned word, which is atomic on both architectures.
    unsafe { weir_test_descend(depth, word.as_ptr()) }
}

/// Where the code of that function is.
pub fn descend_code() -> std::ops::Range<u64> {
    let address = |function: unsafe extern "C" fn()| function as usize as u64;
    weir_test_descend as *const () as usize as u64..address(weir_test_descend_end)
}

/// Bytes that cannot be accessed behind guarded memory: more than any ioctl of these tests says that its
/// argument has.
const GUARD: usize = 1 << 20;

/// Memory with nothing accessible behind its end.
#[derive(Debug)]
pub struct Guarded {
    start: NonNull<u8>,
    len: usize,
}

impl Guarded {
    /// Maps so many pages of the system, filled with zeros.
    ///
    /// # Errors
    ///
    /// Those of `mmap()` and `mprotect()`.
    pub fn new(pages: usize) -> Result<Self, Errno> {
        let len = pages * rustix::param::page_size();
        // SAFETY: A new mapping at an address that the kernel chooses touches no other memory.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                null_mut(),
                len + GUARD,
                ProtFlags::empty(),
                MapFlags::PRIVATE,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        let memory = Guarded { start, len };
        // SAFETY: The range is the beginning of the mapping made above.
        unsafe {
            rustix::mm::mprotect(
                start.as_ptr().cast(),
                len,
                MprotectFlags::READ | MprotectFlags::WRITE,
            )?;
        }
        Ok(memory)
    }

    /// The accessible bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `len` bytes from `start` on are mapped readable and writable as long as `self`
        // lives, and are borrowed with it. They were zero or hold what was written.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    fn address(&mut self, offset: usize) -> *mut c_void {
        assert!(offset <= self.len, "beyond the guarded memory");
        // SAFETY: The result is within the mapping or at its guard.
        unsafe { self.start.as_ptr().add(offset).cast() }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: The mapping was made by `new`, and no borrow of it outlives `self`.
        let result = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len + GUARD) };
        debug_assert!(result.is_ok());
    }
}

/// Reads `len` bytes into memory of which only the first `accessible` can be written to.
///
/// # Errors
///
/// The outer one where there is no such memory; the inner one is what `read()` gives.
pub fn read_into_guard<Fd: AsFd>(
    fd: Fd,
    len: usize,
    accessible: usize,
) -> Result<Result<usize, Errno>, Errno> {
    let pages = accessible.div_ceil(rustix::param::page_size()).max(1);
    let mut memory = Guarded::new(pages)?;
    let offset = memory.len - accessible;
    assert!(len <= GUARD, "more than the guard has");
    // SAFETY: All that the kernel may write to, from there to `len` bytes on, is the mapping, which
    // nobody else uses, and the guard, to which it cannot write.
    let read = unsafe { libc::read(fd.as_fd().as_raw_fd(), memory.address(offset), len) };
    Ok(usize::try_from(read).map_err(|_| last_error()))
}

/// Runs `f` with a priority of real time (`SCHED_FIFO`), so that no task of another kind gets this CPU meanwhile.
///
/// # Errors
///
/// The kernel's.
pub fn with_real_time<R>(priority: i32, f: impl FnOnce() -> R) -> Result<R, Errno> {
    let set = |policy, priority| {
        let parameters = libc::sched_param {
            sched_priority: priority,
        };
        // SAFETY: The parameters are there during the call.
        match unsafe { libc::sched_setscheduler(0, policy, &parameters) } {
            0 => Ok(()),
            _ => Err(last_error()),
        }
    };
    set(libc::SCHED_FIFO, priority)?;
    let result = f();
    set(libc::SCHED_OTHER, 0)?;
    Ok(result)
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn guarded_memory_ends_where_it_says() {
        let mut memory = Guarded::new(1).unwrap();
        let len = rustix::param::page_size();
        assert_eq!(memory.bytes().len(), len);
        memory.bytes()[len - 1] = 7;
        assert_eq!(memory.bytes()[len - 1], 7);
        let (read, write) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&write, b"abc").unwrap();
        assert_eq!(read_into_guard(&read, 2, 0), Ok(Err(Errno::FAULT)));
        assert_eq!(read_into_guard(&read, 2, 2), Ok(Ok(2)));
    }

    #[test]
    fn bytes_too_short_never_reach_the_kernel() {
        let null = File::open("/dev/null").unwrap();
        let opcode = rustix::ioctl::opcode::read_write::<[u8; 16]>(0xBB, 0);
        assert_eq!(
            ioctl(&null, opcode, Argument::Bytes(&mut [0; 15])),
            Err(Errno::FAULT)
        );
        let mut bytes = [0; 16];
        bytes[0] = 17;
        assert_eq!(
            ioctl(&null, opcode, Argument::Bytes(&mut bytes)),
            Err(Errno::FAULT)
        );
        bytes[0] = 16;
        assert_eq!(
            ioctl(&null, opcode, Argument::Bytes(&mut bytes)),
            Err(Errno::NOTTY)
        );
        assert_eq!(ioctl(&null, opcode, Argument::Null), Err(Errno::NOTTY));
    }

    #[test]
    fn addresses_that_were_not_lent_never_reach_the_kernel() {
        let null = File::open("/dev/null").unwrap();
        let (values, _) = lend_values();
        let attrs = lend_attrs(&[Attr::default()]);
        for number in [IOC_COUNTER_CREATE, IOC_COUNTER_READ] {
            let opcode = rustix::ioctl::opcode::read_write::<[u8; 24]>(0xBB, number as u8);
            let result = |address: u64| {
                let mut bytes = [0; 24];
                bytes[0] = 24;
                bytes[16..].copy_from_slice(&address.to_ne_bytes());
                ioctl(&null, opcode, Argument::Bytes(&mut bytes))
            };
            for address in [0, u64::MAX, values, attrs] {
                assert_eq!(result(address), Err(Errno::NOTTY));
            }
            for address in [8, values + 8] {
                assert_eq!(result(address), Err(Errno::FAULT));
            }
        }
    }
}
