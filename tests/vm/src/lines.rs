// SPDX-License-Identifier: GPL-2.0

//! Text that arrives in pieces: cut into lines, and the end of it kept.

use std::collections::VecDeque;

/// Longest line, in bytes; a longer one is cut there, so that a program that never ends its line
/// cannot fill the host's memory.
const LINE_MAX: usize = 64 << 10;

/// Cuts bytes into lines.
#[derive(Debug, Default)]
pub struct Splitter {
    rest: Vec<u8>,
}

impl Splitter {
    /// Takes some bytes and gives the lines that they complete, without their ends.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend(piece);
            if piece.ends_with(b"\n") || self.rest.len() > LINE_MAX {
                lines.extend(self.finish());
            }
        }
        lines
    }

    /// Gives the line that has no end yet.
    pub fn finish(&mut self) -> Option<String> {
        if self.rest.is_empty() {
            return None;
        }
        let line = String::from_utf8_lossy(&self.rest);
        let line = line.trim_end_matches(['\n', '\r']).to_owned();
        self.rest.clear();
        Some(line)
    }
}

/// The last lines of a text, and how many there were before.
#[derive(Debug)]
pub struct Tail {
    most: usize,
    lines: VecDeque<String>,
    dropped: usize,
}

impl Tail {
    /// Keeps `most` lines.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            lines: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Adds a line.
    pub fn push(&mut self, line: impl Into<String>) {
        if self.lines.len() == self.most {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.lines.push_back(line.into());
    }

    /// Lines that are kept no more.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// The lines that are.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// Whether there never was a line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(
            text in "[a-c\n]{0,40}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        ) {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut splitter = Splitter::default();
            let mut lines = Vec::new();
            for cut in cuts.windows(2) {
                lines.extend(splitter.feed(&text.as_bytes()[cut[0]..cut[1]]));
            }
            lines.extend(splitter.finish());
            prop_assert_eq!(lines, text.lines().collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_endless_line_is_cut() {
        let mut splitter = Splitter::default();
        let lines = splitter.feed(&vec![b'x'; LINE_MAX]);
        assert!(lines.is_empty());
        assert_eq!(splitter.feed(b"yz\n")[0].len(), LINE_MAX + 2);
    }

    #[test]
    fn a_tail_keeps_the_end() {
        let mut tail = Tail::new(2);
        assert!(tail.is_empty());
        ["a", "b", "c"].into_iter().for_each(|line| tail.push(line));
        assert_eq!(tail.iter().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(tail.dropped(), 1);
    }
}
