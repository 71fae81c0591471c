// SPDX-License-Identifier: GPL-2.0

//! Columns of text.

/// On which side of its column a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table with a line of titles.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Begins a table with these titles.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        Table {
            columns: columns.iter().map(|(_, align)| *align).collect(),
            rows: vec![columns
                .iter()
                .map(|(title, _)| (*title).to_owned())
                .collect()],
        }
    }

    /// Appends a row; control characters in it are shown and not obeyed.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.columns.len(), "a row has as many cells as columns");
        self.rows
            .push(cells.iter().map(|cell| printable(cell)).collect());
    }

    /// The table as lines, each behind two spaces.
    pub(crate) fn text(&self) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[column].chars().count());
                cells.max().unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, align), width) in row.iter().zip(&self.columns).zip(&widths) {
                line.push_str("  ");
                match align {
                    Align::Left => line.push_str(&format!("{cell:<width$}")),
                    Align::Right => line.push_str(&format!("{cell:>width$}")),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Names of tasks may hold anything, such as what moves the cursor of a terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let (shown, escaped) = if c.is_control() {
                (None, Some(c.escape_default()))
            } else {
                (Some(c), None)
            };
            shown.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

/// A number with a comma every three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent, with two digits behind the point.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    (part as f64 / whole as f64 * 10000.0).round() / 100.0
}

/// A time in seconds, to the microsecond.
pub(crate) fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&[
            ("N", Align::Right),
            ("NAME", Align::Left),
            ("X", Align::Left),
        ]);
        table.row(["12345".into(), "ä".into(), "x".into()]);
        table.row(["1".into(), "a\x1b[2J\nb".into(), "".into()]);
        assert_eq!(
            table.text(),
            "      N  NAME           X\n  12345  ä              x\n      1  a\\u{1b}[2J\\nb\n"
        );
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(1234567), "1,234,567");
        assert_eq!(seconds(1_002_003_004), "1.002003");
        assert_eq!(percent(1, 3), 33.33);
        assert_eq!(percent(1, 0), 0.0);
    }
}
