// SPDX-License-Identifier: GPL-2.0

//! Reads the kernel's log, `/dev/kmsg`, from where it was read last.

use std::fs::{
    File,
    OpenOptions, //
};
use std::io::{
    self,
    Read, //
};
use std::os::fd::{
    AsFd,
    BorrowedFd, //
};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Longest record, `CONSOLE_EXT_LOG_MAX` of the kernel; a shorter buffer would give `EINVAL`.
const RECORD_MAX: usize = 8192;
/// Most bytes that are read at a time, less than what fits into a frame of the report.
const READ_MAX: usize = 256 << 10;

/// The log, and how far it was read.
pub struct KernelLog {
    file: File,
    record: Vec<u8>,
}

impl KernelLog {
    /// Opens the log at its beginning.
    pub fn open() -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open("/dev/kmsg")?;
        Ok(Self {
            file,
            record: vec![0; RECORD_MAX],
        })
    }

    /// The lines that came since, each as `<priority>text`; and whether some were overwritten.
    ///
    /// Reads no more than [`READ_MAX`] bytes or so; there is nothing left when it gives nothing.
    pub fn read(&mut self) -> io::Result<(Vec<u8>, bool)> {
        let mut lines = Vec::new();
        let mut gap = false;
        while lines.len() < READ_MAX {
            match self.file.read(&mut self.record) {
                Ok(length) => append(&mut lines, &self.record[..length]),
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN) => break,
                    Some(Errno::INTR) => (),
                    Some(Errno::PIPE) => gap = true,
                    _ => return Err(error),
                },
            }
        }
        Ok((lines, gap))
    }
}

impl AsFd for KernelLog {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Adds a record, `priority,sequence,time,flags[,more];text`, one line for each of its own.
///
/// Lines after the first, which begin with a space, are the record's dictionary.
fn append(lines: &mut Vec<u8>, record: &[u8]) {
    let first = record.split(|byte| *byte == b'\n').next().unwrap_or(record);
    let prefix_end = first.iter().position(|byte| *byte == b';');
    let Some(prefix_end) = prefix_end else {
        return;
    };
    let priority = first.split(|byte| *byte == b',').next().unwrap_or(b"6");
    for text in unescape(&first[prefix_end + 1..]).split(|byte| *byte == b'\n') {
        lines.push(b'<');
        lines.extend(priority);
        lines.push(b'>');
        lines.extend(text);
        lines.push(b'\n');
    }
}

/// Undoes `\xNN`, by which the kernel writes what is not printable, line ends included.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let escaped = rest.strip_prefix(b"\\x").and_then(|digits| {
            let digits = std::str::from_utf8(digits.get(..2)?).ok()?;
            u8::from_str_radix(digits, 16).ok()
        });
        match escaped {
            Some(byte) => {
                plain.push(byte);
                rest = &rest[4..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(record: &str) -> String {
        let mut lines = Vec::new();
        append(&mut lines, record.as_bytes());
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn a_record_gives_its_text_with_its_priority() {
        assert_eq!(
            lines("6,339,5140900,-;weir: loaded; all is well\n SUBSYSTEM=misc\n DEVICE=c10:1\n"),
            "<6>weir: loaded; all is well\n"
        );
        assert_eq!(lines("12,1,0,-,caller=T71;user\n"), "<12>user\n");
    }

    #[test]
    fn line_ends_within_a_record_make_lines() {
        assert_eq!(lines("4,1,0,-;a\\x0ab \\x5c c\n"), "<4>a\n<4>b \\ c\n");
    }

    #[test]
    fn what_is_no_record_gives_nothing() {
        assert_eq!(lines("garbage\n"), "");
        assert_eq!(unescape(b"\\x4"), b"\\x4");
    }
}
