// SPDX-License-Identifier: GPL-2.0

//! A table, as text for people and for programs.

use std::fmt::Write;

/// A comparison.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What is compared, in a line.
    pub title: String,
    /// Where and how it was measured, and what must not be read into it.
    pub remark: String,
    /// Names of the columns; the first is that of what was measured.
    pub columns: Vec<String>,
    /// What was measured.
    pub rows: Vec<Row>,
    /// Unit of the values, for a picture.
    pub unit: String,
}

/// One way.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// The other columns; none where it was not measured.
    pub cells: Vec<String>,
    /// What a picture shows.
    pub value: Option<f64>,
    /// Why there is no value.
    pub note: Option<String>,
}

impl Table {
    /// As reStructuredText.
    pub fn rst(&self) -> String {
        let mut text = format!("{}\n{}\n\n", self.title, "-".repeat(self.title.len()));
        if !self.remark.is_empty() {
            let _ = writeln!(text, "{}\n", fill(&self.remark));
        }
        let measured = self.rows.iter().filter(|row| row.note.is_none());
        let lines: Vec<Vec<&str>> = measured
            .map(|row| {
                let cells = row.cells.iter().map(String::as_str);
                std::iter::once(row.name.as_str()).chain(cells).collect()
            })
            .collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = lines.iter().map(|line| line[column].len());
                cells.chain([self.columns[column].len()]).max().unwrap_or(0)
            })
            .collect();
        let rule: Vec<_> = widths.iter().map(|&width| "=".repeat(width)).collect();
        let rule = rule.join("  ");
        let columns: Vec<_> = self.columns.iter().map(String::as_str).collect();
        let _ = writeln!(text, "{rule}\n{}\n{rule}", align(&columns, &widths));
        for line in &lines {
            let _ = writeln!(text, "{}", align(line, &widths));
        }
        let _ = writeln!(text, "{rule}\n");
        let mut notes: Vec<_> = self
            .rows
            .iter()
            .filter_map(|row| row.note.as_ref())
            .collect();
        notes.sort();
        notes.dedup();
        for note in notes {
            let rows = self
                .rows
                .iter()
                .filter(|row| row.note.as_ref() == Some(note));
            let names: Vec<_> = rows.map(|row| row.name.as_str()).collect();
            let _ = writeln!(
                text,
                "{}\n",
                fill(&format!("{note}: {}.", names.join("; ")))
            );
        }
        text
    }

    /// As lines of fields with tabs between them.
    pub fn tsv(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "# {}\n# {}", self.title, self.columns.join("\t"));
        for row in &self.rows {
            let rest = match &row.note {
                Some(note) => note.clone(),
                None => row.cells.join("\t"),
            };
            let _ = writeln!(text, "{}\t{rest}", row.name);
        }
        text
    }
}

/// The first column to the left, numbers to the right.
fn align(cells: &[&str], widths: &[usize]) -> String {
    let mut line = String::new();
    for (column, (cell, &width)) in cells.iter().zip(widths).enumerate() {
        let _ = match column {
            0 => write!(line, "{cell:<width$}"),
            _ => write!(line, "  {cell:>width$}"),
        };
    }
    line.trim_end().into()
}

/// Breaks a paragraph into lines.
fn fill(text: &str) -> String {
    const WIDTH: usize = 100;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let full = lines
            .last()
            .is_some_and(|line| line.len() + 1 + word.len() > WIDTH);
        if full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absent(name: &str) -> Row {
        Row {
            name: name.into(),
            cells: Vec::new(),
            value: None,
            note: Some("SKIP: not there".into()),
        }
    }

    fn table() -> Table {
        Table {
            title: "Records".into(),
            remark: String::new(),
            columns: vec!["what".into(), "ns".into()],
            rows: vec![
                Row {
                    name: "clock".into(),
                    cells: vec!["8.5".into()],
                    value: Some(8.5),
                    note: None,
                },
                absent("relay"),
                absent("perf"),
            ],
            unit: "ns".into(),
        }
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let text = "\
Records
-------

=====  ===
what    ns
=====  ===
clock  8.5
=====  ===

SKIP: not there: relay; perf.

";
        assert_eq!(table().rst(), text);
    }

    #[test]
    fn programs_read_every_row() {
        let text =
            "# Records\n# what\tns\nclock\t8.5\nrelay\tSKIP: not there\nperf\tSKIP: not there\n";
        assert_eq!(table().tsv(), text);
    }

    #[test]
    fn paragraphs_are_broken() {
        let text = fill(&"word ".repeat(30));
        assert!(text.lines().all(|line| line.len() <= 100));
        assert_eq!(text.split_whitespace().count(), 30);
    }
}
