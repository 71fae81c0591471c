// SPDX-License-Identifier: GPL-2.0

//! Words that one writes and others read without waiting for each other: a seqlock without the lock.
//!
//! The version is odd while the words are being written. Who reads takes the version, then the words, then the
//! version again. If both are the same and even, the words are of one write: a word of a later write would be read
//! after that write had made the version odd, and the fences see to it that the second look at the version
//! finds that; a word of an earlier one was overwritten before the version became what the first look found.

use crate::word::Word;

/// How often somebody tries to read what is being written.
const TRIES: usize = 64;

/// The version of some words.
pub struct Sequence<W>(W);

impl<W: Word> Sequence<W> {
    /// Of words that were not written yet.
    pub fn new() -> Self {
        Self(W::new(0))
    }

    /// Calls `write`, which stores the words. Only one may write at a time.
    pub fn write(&self, write: impl FnOnce()) {
        let version = self.0.load();
        self.0.store(version.wrapping_add(1));
        W::fence();
        write();
        self.0.store_release(version.wrapping_add(2));
    }

    /// Calls `read`, which loads the words, until they are of one write. None if somebody writes all the time,
    /// as it seems to who has interrupted the write on its own CPU.
    pub fn read<R>(&self, mut read: impl FnMut() -> R) -> Option<R> {
        for _ in 0..TRIES {
            let version = self.0.load_acquire();
            if version % 2 == 0 {
                let words = read();
                W::fence();
                if self.0.load() == version {
                    return Some(words);
                }
            }
            core::hint::spin_loop();
        }
        None
    }
}

impl<W: Word> Default for Sequence<W> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(any(test, weir_kunit))]
#[cfg_attr(weir_kunit, kernel::prelude::kunit_tests(weir_sequence))]
mod tests {
    use super::*;
    use crate::test_backend::TestWord;
    use core::cell::Cell;

    #[test]
    fn nothing_is_read_in_the_middle_of_a_write() {
        let sequence = Sequence::<TestWord>::new();
        assert_eq!(sequence.read(|| 1), Some(1));
        sequence.write(|| assert_eq!(sequence.read(|| 1), None));
        assert_eq!(sequence.read(|| 2), Some(2));
    }

    #[test]
    fn what_was_written_meanwhile_is_read_again() {
        let sequence = Sequence::<TestWord>::new();
        let reads = Cell::new(0);
        let read = || {
            reads.set(reads.get() + 1);
            if reads.get() == 1 {
                sequence.write(|| ());
            }
            reads.get()
        };
        assert_eq!(sequence.read(read), Some(2));
    }
}
