// SPDX-License-Identifier: GPL-2.0

//! The fields of a PMU: which bits of which word they are, as in `config:0-7,32-35`.

use super::Event;

/// A word of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Config,
    Config1,
    Config2,
    Config3,
}

impl Word {
    /// The word that has this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "config" => Some(Word::Config),
            "config1" => Some(Word::Config1),
            "config2" => Some(Word::Config2),
            "config3" => Some(Word::Config3),
            _ => None,
        }
    }

    /// Its place in an event.
    pub(super) fn of(self, event: &mut Event) -> &mut u64 {
        match self {
            Word::Config => &mut event.config,
            Word::Config1 => &mut event.config1,
            Word::Config2 => &mut event.config2,
            Word::Config3 => &mut event.config3,
        }
    }
}

/// Bits of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    word: Word,
    bits: u64,
}

impl Format {
    /// Parses the file of a field.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (word, ranges) = text.trim().split_once(':')?;
        let word = Word::named(word)?;
        let mut bits = 0;
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last > 63 {
                return None;
            }
            bits |= u64::MAX >> (63 - (last - first)) << first;
        }
        Some(Format { word, bits })
    }

    /// The largest value that fits.
    pub(super) fn largest(&self) -> u64 {
        match self.bits.count_ones() {
            0 => 0,
            count => u64::MAX >> (64 - count),
        }
    }

    /// Puts a value that fits into its bits, the lowest first, and leaves the other bits alone.
    pub(super) fn put(&self, value: u64, event: &mut Event) {
        let word = self.word.of(event);
        *word &= !self.bits;
        let (mut bits, mut value) = (self.bits, value);
        while bits != 0 {
            let lowest = bits & bits.wrapping_neg();
            if value & 1 != 0 {
                *word |= lowest;
            }
            bits &= !lowest;
            value >>= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_filled_from_the_lowest_on() {
        let format = Format::parse("config:0-7,32-35\n").unwrap();
        assert_eq!(format.largest(), 0xfff);
        let mut event = Event::new(4, 0xff00);
        format.put(0xabc, &mut event);
        assert_eq!(event.config, 0xa_0000_ffbc);
        format.put(1, &mut event);
        assert_eq!(event.config, 0xff01);
        let all = Format::parse("config2:0-63").unwrap();
        assert_eq!(all.largest(), u64::MAX);
        all.put(u64::MAX, &mut event);
        assert_eq!(event.config2, u64::MAX);
    }

    #[test]
    fn what_is_none_is_none() {
        for wrong in [
            "",
            "config",
            "config:",
            "config:8-1",
            "config:64",
            "attr:1",
            "config:a",
        ] {
            assert_eq!(Format::parse(wrong), None, "{wrong}");
        }
    }
}
