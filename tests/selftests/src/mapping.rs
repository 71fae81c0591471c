// SPDX-License-Identifier: GPL-2.0

//! A part of a channel, mapped by whoever does not keep to the rules; and memory that processes share.

use nix::libc;
use rustix::{
    fd::{
        AsFd,
        AsRawFd, //
    },
    io::Errno,
    mm::{
        MapFlags,
        MprotectFlags,
        MremapFlags,
        ProtFlags, //
    },
};
use std::{
    ptr::{
        null_mut,
        NonNull, //
    },
    sync::atomic::AtomicU64,
};

/// The mapping.
#[derive(Debug)]
pub struct RawMap {
    start: NonNull<u8>,
    len: usize,
}

impl RawMap {
    /// Maps `len` bytes from `offset` on; it must be readable.
    ///
    /// # Errors
    ///
    /// That of `mmap()`.
    pub fn new<Fd: AsFd>(
        fd: Fd,
        offset: u64,
        len: usize,
        protection: ProtFlags,
        flags: MapFlags,
    ) -> Result<Self, Errno> {
        // SAFETY: The kernel chooses the place, so nothing that is there is replaced.
        let start = unsafe { rustix::mm::mmap(null_mut(), len, protection, flags, fd, offset) }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::FAULT)?;
        Ok(RawMap { start, len })
    }

    /// Its words; to store to them it must be writable.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: It is mapped until it is dropped, from the beginning of a page on.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.len / 8) }
    }

    /// Reads from `from` straight into the `len` bytes at `offset`, so that they are there even if the process
    /// that calls this is killed meanwhile.
    ///
    /// # Errors
    ///
    /// That of `read()`; `EFAULT` where there are not so many bytes.
    pub fn read_from<Fd: AsFd>(&self, from: Fd, offset: usize, len: usize) -> Result<usize, Errno> {
        let to = self.part(offset, len)?;
        // SAFETY: The kernel may write there, by `part`. References to these bytes are to atomic words only.
        let read = unsafe { libc::read(from.as_fd().as_raw_fd(), to.cast(), len) };
        usize::try_from(read).map_err(|_| {
            Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
        })
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Errors
    ///
    /// `EFAULT` where there is no room for them.
    pub fn fill(&self, offset: usize, bytes: &[u8]) -> Result<(), Errno> {
        let to = self.part(offset, bytes.len())?;
        // SAFETY: There is room, by `part`, and whoever has the mapping to write in lends no reference to it but
        // those to atomic words.
        unsafe { std::ptr::copy(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    /// Copies what is at `offset`. If somebody writes it meanwhile, it may be anything.
    ///
    /// # Errors
    ///
    /// `EFAULT` where there are not so many bytes.
    pub fn copy(&self, offset: usize, bytes: &mut [u8]) -> Result<(), Errno> {
        let from = self.part(offset, bytes.len())?;
        // SAFETY: It is mapped, by `part`, and no bytes of ours are in it.
        unsafe { std::ptr::copy(from, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    /// Where `len` bytes at `offset` are.
    fn part(&self, offset: usize, len: usize) -> Result<*mut u8, Errno> {
        let end = offset.checked_add(len).ok_or(Errno::FAULT)?;
        if end > self.len {
            return Err(Errno::FAULT);
        }
        // SAFETY: It is within the mapping, by the check above.
        Ok(unsafe { self.start.as_ptr().add(offset) })
    }

    /// Changes the protection to one with which it can still be read.
    ///
    /// # Errors
    ///
    /// That of `mprotect()`.
    pub fn protect(&self, protection: MprotectFlags) -> Result<(), Errno> {
        // SAFETY: Nothing takes the right to read away.
        unsafe { rustix::mm::mprotect(self.start.as_ptr().cast(), self.len, protection) }
    }

    /// Tries to make it longer.
    ///
    /// # Errors
    ///
    /// That of `mremap()`.
    pub fn grow(&mut self) -> Result<(), Errno> {
        let (start, len) = (self.start.as_ptr().cast(), 2 * self.len);
        // SAFETY: The mapping is borrowed exclusively, so nobody uses the place that it leaves.
        let start = unsafe { rustix::mm::mremap(start, self.len, len, MremapFlags::MAYMOVE) }?;
        self.start = NonNull::new(start.cast()).ok_or(Errno::FAULT)?;
        self.len = len;
        Ok(())
    }

    /// Whether a child process has it too.
    ///
    /// # Errors
    ///
    /// Those of `fork()`, `pipe()` and `waitpid()`.
    pub fn is_inherited(&self) -> Result<bool, Errno> {
        let (_read, write) = rustix::pipe::pipe()?;
        // SAFETY: The child makes system calls only, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: The kernel checks the address itself.
            let written = unsafe { libc::write(write.as_raw_fd(), self.start.as_ptr().cast(), 1) };
            // SAFETY: It ends the child at once.
            unsafe { libc::_exit(i32::from(written == 1)) };
        }
        let mut status = 0;
        // SAFETY: `status` may be written.
        if child < 0 || unsafe { libc::waitpid(child, &mut status, 0) } != child {
            return Err(Errno::CHILD);
        }
        Ok(libc::WEXITSTATUS(status) == 1)
    }
}

impl Drop for RawMap {
    fn drop(&mut self) {
        // SAFETY: It is mapped, and nothing refers to it any more. It fails for arguments that were never
        // mapped only.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
