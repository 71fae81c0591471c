// SPDX-License-Identifier: GPL-2.0

//! The tables as one picture: a panel each, a bar for each row.

use crate::table::{
    Row,
    Table, //
};
use svg::{
    node::element::{
        Group,
        Rectangle,
        Text, //
    },
    Document,
};

const WIDTH: f64 = 1000.0;
const NAME_WIDTH: f64 = 430.0;
const VALUE_WIDTH: f64 = 80.0;
const BAR: f64 = 14.0;
const STEP: f64 = 19.0;
const HEAD: f64 = 46.0;
const MARGIN: f64 = 16.0;

/// Weir is to be seen among the others, in print, too.
const OURS: &str = "#1f6f9f";
const OTHERS: &str = "#b5b5b5";

/// Draws the tables one below the other.
pub fn plot(tables: &[Table]) -> Document {
    let mut y = MARGIN;
    let mut panels = Vec::new();
    for table in tables {
        panels.push(panel(table, y));
        y += height(table);
    }
    let background = Rectangle::new()
        .set("width", WIDTH)
        .set("height", y)
        .set("fill", "white");
    let document = Document::new()
        .set("viewBox", (0.0, 0.0, WIDTH, y))
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(background);
    panels.into_iter().fold(document, Document::add)
}

fn bars(table: &Table) -> impl Iterator<Item = (&Row, f64)> {
    let rows = table.rows.iter();
    rows.filter_map(|row| Some((row, row.value?)))
}

fn height(table: &Table) -> f64 {
    HEAD + STEP * bars(table).count() as f64 + MARGIN
}

fn panel(table: &Table, y: f64) -> Group {
    let most = bars(table)
        .map(|(_, value)| value)
        .fold(f64::MIN_POSITIVE, f64::max);
    let title = text(&table.title, MARGIN, y + 18.0).set("font-size", 15);
    let unit = text(&table.unit, MARGIN, y + 35.0).set("fill", "#555555");
    let mut group = Group::new().add(title).add(unit);
    for (number, (row, value)) in bars(table).enumerate() {
        let top = y + HEAD + STEP * number as f64;
        let length = (WIDTH - NAME_WIDTH - VALUE_WIDTH) * (value.max(0.0) / most);
        let bar = Rectangle::new()
            .set("x", NAME_WIDTH)
            .set("y", top)
            .set("width", length)
            .set("height", BAR)
            .set("fill", if is_ours(&row.name) { OURS } else { OTHERS });
        let base = top + BAR - 3.0;
        let name = text(&row.name, NAME_WIDTH - 6.0, base).set("text-anchor", "end");
        let number = text(&format!("{value:.1}"), NAME_WIDTH + length + 5.0, base);
        group = group.add(name).add(bar).add(number);
    }
    group
}

fn text(content: &str, x: f64, y: f64) -> Text {
    Text::new(content).set("x", x).set("y", y)
}

fn is_ours(name: &str) -> bool {
    // The engine's have their model first.
    ["weir", "paged", "per-cpu", "shared"]
        .iter()
        .any(|ours| name.starts_with(ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(values: &[Option<f64>]) -> Table {
        let row = |&value: &Option<f64>| Row {
            name: "weir <paged>".into(),
            cells: Vec::new(),
            value,
            note: None,
        };
        Table {
            title: "Records".into(),
            rows: values.iter().map(row).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn every_value_has_a_bar() {
        let picture = plot(&[table(&[Some(1.0), None, Some(2.0), Some(-1.0)])]).to_string();
        // The background is one, too.
        assert_eq!(picture.matches("<rect").count(), 4);
        assert!(picture.contains("width=\"490\""));
        assert!(picture.contains("weir &lt;paged&gt;"), "{picture}");
        assert!(!picture.contains("\"-"), "{picture}");
    }
}
