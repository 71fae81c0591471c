// SPDX-License-Identifier: GPL-2.0

//! Which results are compared with which, in which unit.

use crate::table::{
    Row,
    Table, //
};
use weir_bench::measurement::{
    Measurement,
    State, //
};

/// A machine in which records are written.
#[derive(Clone, Copy)]
pub struct Machine {
    /// What is counted there.
    pub unit: &'static str,
    /// What it is, for readers.
    pub remark: &'static str,
}

/// What a comparison of writing takes.
pub struct Writing {
    /// The part of the results.
    pub part: &'static str,
    /// Its title.
    pub title: &'static str,
    /// What is in all others, and taken off.
    pub baseline: &'static str,
    /// What ratios are to; to the one with the same payload where there are several.
    pub reference: &'static str,
    /// What the column of the ratios is called.
    pub ratio: &'static str,
}

/// Compares what records cost that are written.
pub fn writing(machine: Machine, writing: &Writing, results: &[Measurement]) -> Option<Table> {
    let results: Vec<_> = results
        .iter()
        .filter(|one| one.part == writing.part)
        .collect();
    let named = |name: &str| results.iter().find(|one| one.name == name && is_valid(one));
    let baseline = named(writing.baseline)?.median();
    let net = |one: &Measurement| one.median() - baseline;
    let rows = results.iter().map(|one| {
        let reference = named(&format!("{}{}", writing.reference, size_of_name(&one.name)));
        let ratio = match reference {
            Some(reference) if one.payload > 0 => format!("{:.2}", net(one) / net(reference)),
            _ => String::new(),
        };
        row(one, net(one), || {
            vec![
                positive(one.payload),
                positive(one.bytes),
                format!("{:.1}", one.median()),
                format!("{:.1}", net(one)),
                ratio,
            ]
        })
    });
    Some(Table {
        title: writing.title.into(),
        remark: machine.remark.into(),
        columns: ["", "payload", "bytes", machine.unit, "net", writing.ratio]
            .map(String::from)
            .to_vec(),
        rows: rows.collect(),
        unit: format!("{} a record, net", machine.unit),
    })
}

/// Kinds whose payload has another size say so at the end of their name.
fn size_of_name(name: &str) -> &str {
    match name.rfind(", ") {
        Some(at) if name.ends_with(" bytes") => &name[at..],
        _ => "",
    }
}

fn is_valid(one: &Measurement) -> bool {
    one.state == State::Valid
}

fn positive(number: u64) -> String {
    match number {
        0 => String::new(),
        number => number.to_string(),
    }
}

/// A row, with its columns only where it was measured.
fn row(one: &Measurement, value: f64, cells: impl FnOnce() -> Vec<String>) -> Row {
    let (cells, value, note) = match &one.state {
        State::Valid => (cells(), Some(value), None),
        other => (Vec::new(), None, Some(other.to_string())),
    };
    Row {
        name: one.name.clone(),
        cells,
        value,
        note,
    }
}

/// Compares how fast full buffers are read.
pub fn reading(results: &[Measurement]) -> Option<Table> {
    const COPY: &str = "memcpy() in user space";
    // Bytes of a ns are GB of a second.
    let speed = |one: &Measurement| 1.0 / one.median();
    let copy = results
        .iter()
        .find(|one| one.part == "drain" && one.name == COPY)?;
    let rows = results.iter().filter(|one| one.part == "drain").map(|one| {
        let busy = results
            .iter()
            .find(|other| other.part == "drain-cpu" && other.name == one.name);
        row(one, speed(one), || {
            vec![
                format!("{:.2}", speed(one)),
                busy.map_or(String::new(), |busy| format!("{:.2}", busy.mean())),
                format!("{:.2}", speed(one) / speed(copy)),
            ]
        })
    });
    Some(Table {
        title: "Reading a full buffer, user-mode Linux, natively".into(),
        remark: "120 000 records with 32 bytes of payload (6 MB), read by one thread after they \
            were written; GB of pages, with all that is in them. \
            Processor time is counted in ticks of 10 ms there, so it is the mean; speed is the median."
            .into(),
        columns: ["", "GB/s", "CPU s/GB", "to memcpy()"]
            .map(String::from)
            .to_vec(),
        rows: rows.collect(),
        unit: "GB/s".into(),
    })
}

/// Compares how much is read while it is written.
pub fn sustained(results: &[Measurement]) -> Option<Table> {
    let parts = ["sustained", "unlimited"];
    let rows = results
        .iter()
        .filter(|one| parts.contains(&one.part.as_str()));
    let rows: Vec<_> = rows
        .map(|one| {
            let rate = one.median();
            let limit = if one.part == "unlimited" {
                "writer"
            } else {
                "loss"
            };
            row(one, rate / 1e6, || {
                vec![
                    format!("{:.1}", rate / 1e6),
                    format!("{:.2}", rate * one.bytes as f64 / 1e9),
                    limit.into(),
                ]
            })
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        title: "Writing and reading at once without loss, user-mode Linux, natively".into(),
        remark: "The highest rate at which a reader on another processor lost nothing of 0.4 s, \
            and what limits it: that more is lost, or that the writer writes no faster. Bytes are \
            those of records."
            .into(),
        columns: ["", "M records/s", "GB/s", "limit"]
            .map(String::from)
            .to_vec(),
        rows,
        unit: "million records a second".into(),
    })
}

/// Compares the engine's records with the clock read that is in each.
pub fn engine(results: &[Measurement]) -> Option<Table> {
    let clock = results.iter().find(|one| one.name == "clock")?.median();
    let (records, calibration): (Vec<_>, Vec<_>) = results
        .iter()
        .filter(|one| !one.name.ends_with("a page each"))
        .partition(|one| one.name.contains("pages"));
    let rows = calibration.into_iter().chain(records).map(|one| {
        row(one, one.median(), || {
            vec![
                format!("{:.1}", one.median()),
                format!("{:+.1}", one.median() - clock),
                format!("{:.2}", one.median() / clock),
            ]
        })
    });
    Some(Table {
        title: "The engine alone, on the host".into(),
        remark: "Each record is 40 bytes, 32 of them payload, with a clock read (rdtsc); what a \
            thread sees, of two that write at once where there are two. 64 pages stay in the \
            caches, 16384 do not."
            .into(),
        columns: ["", "ns", "less clock", "to clock"]
            .map(String::from)
            .to_vec(),
        rows: rows.collect(),
        unit: "ns a record".into(),
    })
}

/// What a page costs, spread over its records.
pub fn publishing(results: &[Measurement]) -> Option<Table> {
    const RECORD: usize = 40;
    const EACH: &str = ", a page each";
    let per_page = ((4096 - weir_core::HEADER_SIZE) / RECORD) as f64;
    let rows: Vec<_> = results
        .iter()
        .filter_map(|page| {
            let shape = page.name.strip_suffix(EACH)?;
            let record = results.iter().find(|one| one.name == shape)?;
            let cost = (page.median() - record.median()) / (1.0 - 1.0 / per_page);
            Some(Row {
                name: shape.into(),
                cells: vec![
                    format!("{:.1}", page.median()),
                    format!("{cost:.1}"),
                    format!("{:.2}", cost / per_page),
                ],
                value: Some(cost / per_page),
                note: None,
            })
        })
        .collect();
    (!rows.is_empty()).then(|| Table {
        title: "What a page costs, and a record's share".into(),
        remark: format!(
            "To take a page, write its header, close it and publish it: what a record that fills a \
             page takes longer than one that shares it with {} others. The share is that of such a \
             record.",
            per_page - 1.0
        ),
        columns: ["", "ns, a page each", "ns a page", "ns a record"]
            .map(String::from)
            .to_vec(),
        rows,
        unit: "ns a record".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(part: &str, name: &str, payload: u64, sample: u64) -> Measurement {
        Measurement {
            part: part.into(),
            name: name.into(),
            payload,
            per: 10,
            samples: vec![sample],
            ..Default::default()
        }
    }

    const MACHINE: Machine = Machine {
        unit: "ns",
        remark: "",
    };

    fn direct() -> Writing {
        Writing {
            part: "direct",
            title: "Direct",
            baseline: "empty call",
            reference: "ftrace",
            ratio: "to ftrace",
        }
    }

    #[test]
    fn ratios_are_to_what_has_the_same_payload() {
        let results = [
            result("direct", "empty call", 0, 10),
            result("direct", "ftrace", 32, 210),
            result("direct", "ftrace, 8 bytes", 8, 110),
            result("direct", "weir", 32, 60),
            result("direct", "weir, 8 bytes", 8, 60),
            result("other", "weir", 32, 1),
        ];
        let table = writing(MACHINE, &direct(), &results).unwrap();
        assert_eq!(table.rows.len(), 5);
        assert_eq!(table.rows[0].cells, ["", "", "1.0", "0.0", ""]);
        assert_eq!(table.rows[3].cells, ["32", "", "6.0", "5.0", "0.25"]);
        assert_eq!(table.rows[4].cells[4], "0.50");
    }

    #[test]
    fn what_is_not_valid_has_no_value() {
        let mut bad = result("direct", "weir", 32, 60);
        bad.state = State::Invalid("lost".into());
        let results = [result("direct", "empty call", 0, 10), bad];
        let table = writing(MACHINE, &direct(), &results).unwrap();
        assert_eq!(table.rows[1].value, None);
        assert_eq!(table.rows[1].note.as_deref(), Some("invalid: lost"));
        assert!(writing(MACHINE, &direct(), &results[1..]).is_none());
    }

    #[test]
    fn a_page_is_shared_by_its_records() {
        let results = [
            result("engine", "paged, 1 thread", 0, 100),
            result("engine", "paged, 1 thread, a page each", 0, 1100),
        ];
        let table = publishing(&results).unwrap();
        let share = table.rows[0].value.unwrap();
        assert!((0.9..1.2).contains(&share), "{share}");
    }
}
