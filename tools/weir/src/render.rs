// SPDX-License-Identifier: GPL-2.0

//! Reports as text for people.

use crate::{
    report::{
        CpuLine,
        EventSamples,
        Report,
        TaskLine, //
    },
    table::{
        grouped,
        seconds,
        Align,
        Table, //
    },
};

/// A whole report, with the first `top` lines of each list of samples.
pub(crate) fn report(report: &Report, top: usize) -> String {
    let mut text = format!(
        "{} pages, {} records, {} bytes, {} lost, in {} s\n",
        grouped(report.pages),
        grouped(report.records),
        grouped(report.bytes),
        grouped(report.lost),
        seconds(report.end_ns.saturating_sub(report.begin_ns)),
    );
    if !report.tasks.is_empty() {
        text.push_str(&format!("\nTasks ({})\n", report.tasks.len()));
        text.push_str(&tasks(&report.tasks));
    }
    for event in &report.events {
        text.push_str(&event_samples(event, top));
    }
    if !report.cpus.is_empty() {
        text.push_str("\nCPUs\n");
        text.push_str(&cpus(&report.cpus));
    }
    text
}

/// A table of tasks.
pub(crate) fn tasks(tasks: &[TaskLine]) -> String {
    let mut table = Table::new(&[
        ("PID", Align::Right),
        ("TID", Align::Right),
        ("PPID", Align::Right),
        ("START s", Align::Right),
        ("COMM", Align::Left),
    ]);
    for task in tasks {
        table.row([
            task.pid.to_string(),
            task.tid.to_string(),
            task.ppid.map_or("?".into(), |ppid| ppid.to_string()),
            task.start_ns.map_or("?".into(), seconds),
            task.comm.clone().unwrap_or("?".into()),
        ]);
    }
    table.text()
}

fn event_samples(event: &EventSamples, top: usize) -> String {
    let name = event.event.as_deref().unwrap_or("unnamed events");
    let rate = match (event.frequency, event.period) {
        (Some(hertz), _) => format!(", about {hertz} a second on each CPU"),
        (_, Some(period)) => format!(", one every {} events", grouped(period)),
        _ => String::new(),
    };
    let mut text = format!("\nSamples of {name} ({}{rate})\n", grouped(event.samples));
    if event.samples == 0 {
        text.push_str("  none\n");
        return text;
    }
    let mut table = Table::new(&[
        ("SAMPLES", Align::Right),
        ("%", Align::Right),
        ("PID", Align::Right),
        ("TID", Align::Right),
        ("COMM", Align::Left),
    ]);
    for task in event.tasks.iter().take(top) {
        table.row([
            grouped(task.samples),
            format!("{:.2}", task.percent),
            task.pid.to_string(),
            task.tid.to_string(),
            task.comm.clone().unwrap_or("?".into()),
        ]);
    }
    text.push_str(&table.text());
    text.push_str(&rest(event.tasks.len(), top));
    text.push('\n');
    let mut table = Table::new(&[
        ("SAMPLES", Align::Right),
        ("%", Align::Right),
        ("SYMBOL", Align::Left),
    ]);
    for symbol in event.symbols.iter().take(top) {
        table.row([
            grouped(symbol.samples),
            format!("{:.2}", symbol.percent),
            match &symbol.module {
                Some(module) => format!("{} [{module}]", symbol.symbol),
                None => symbol.symbol.clone(),
            },
        ]);
    }
    text.push_str(&table.text());
    text.push_str(&rest(event.symbols.len(), top));
    text
}

/// Says that not all lines were shown.
fn rest(lines: usize, top: usize) -> String {
    match lines.saturating_sub(top) {
        0 => String::new(),
        more => format!("  and {more} more (--top {lines} shows all)\n"),
    }
}

fn cpus(cpus: &[CpuLine]) -> String {
    let mut table = Table::new(&[
        ("CPU", Align::Right),
        ("PAGES", Align::Right),
        ("PARTIAL", Align::Right),
        ("RECORDS", Align::Right),
        ("BYTES", Align::Right),
        ("USED %", Align::Right),
        ("LOST", Align::Right),
    ]);
    for cpu in cpus {
        table.row([
            cpu.cpu.to_string(),
            grouped(cpu.pages),
            grouped(cpu.partial_pages),
            grouped(cpu.records),
            grouped(cpu.bytes),
            format!("{:.1}", 100.0 * cpu.used_bytes as f64 / cpu.bytes as f64),
            grouped(cpu.lost),
        ]);
    }
    let mut text = table.text();
    for cpu in cpus.iter().filter(|cpu| cpu.lost > 0) {
        let causes: Vec<String> = cpu
            .lost_by_cause
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(cause, count)| format!("{cause} {}", grouped(*count)))
            .collect();
        text.push_str(&format!(
            "  CPU {} lost {} records ({}) from {} s to {} s\n",
            cpu.cpu,
            grouped(cpu.lost),
            causes.join(", "),
            seconds(cpu.lost_begin_ns.unwrap_or_default()),
            seconds(cpu.lost_end_ns.unwrap_or_default()),
        ));
    }
    text
}
