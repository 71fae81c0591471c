// SPDX-License-Identifier: GPL-2.0

//! `weir report`, and the report that `weir record` ends with.

use crate::{
    cli::ReportArgs,
    notes::{
        NotedEvent,
        Notes, //
    },
    output, render,
    summary::{
        Code,
        Summary, //
    },
    symbols::Symbols,
    table::percent,
};
use anyhow::{
    Context,
    Result, //
};
use libweir::{
    page::LOST_CAUSES,
    Kallsyms,
    Stream, //
};
use serde::Serialize;
use std::{
    collections::{
        BTreeMap,
        HashMap, //
    },
    fs::File,
    io::BufReader,
    process::ExitCode,
};

/// What there is to say of a capture.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) pages: u64,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    /// Times of the first and the last page in ns.
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) tasks: Vec<TaskLine>,
    pub(crate) events: Vec<EventSamples>,
    pub(crate) cpus: Vec<CpuLine>,
}

/// A task.
#[derive(Debug, Serialize)]
pub(crate) struct TaskLine {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) ppid: Option<u32>,
    pub(crate) comm: Option<String>,
    pub(crate) start_ns: Option<u64>,
}

/// The samples of one event; all samples where the events are not known.
#[derive(Debug, Serialize)]
pub(crate) struct EventSamples {
    pub(crate) event: Option<String>,
    pub(crate) frequency: Option<u64>,
    pub(crate) period: Option<u64>,
    pub(crate) samples: u64,
    pub(crate) tasks: Vec<TaskSamples>,
    pub(crate) symbols: Vec<SymbolSamples>,
}

/// The samples of one thread.
#[derive(Debug, Serialize)]
pub(crate) struct TaskSamples {
    pub(crate) comm: Option<String>,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) samples: u64,
    pub(crate) percent: f64,
}

/// The samples of one function.
#[derive(Debug, Serialize)]
pub(crate) struct SymbolSamples {
    pub(crate) symbol: String,
    pub(crate) module: Option<String>,
    pub(crate) samples: u64,
    pub(crate) percent: f64,
}

/// What one CPU wrote and lost.
#[derive(Debug, Serialize)]
pub(crate) struct CpuLine {
    pub(crate) cpu: u32,
    pub(crate) pages: u64,
    pub(crate) partial_pages: u64,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) used_bytes: u64,
    pub(crate) lost: u64,
    pub(crate) lost_by_cause: BTreeMap<&'static str, u64>,
    pub(crate) lost_begin_ns: Option<u64>,
    pub(crate) lost_end_ns: Option<u64>,
}

impl Report {
    /// Puts names to a summary.
    pub(crate) fn new(summary: &Summary, events: &[NotedEvent], symbols: &Symbols) -> Self {
        let cpus: Vec<CpuLine> = cpu_lines(summary);
        let (begin_ns, end_ns) = summary.range().unwrap_or_default();
        let sum = |count: fn(&CpuLine) -> u64| cpus.iter().map(count).sum();
        Report {
            pages: sum(|cpu| cpu.pages),
            records: sum(|cpu| cpu.records),
            bytes: sum(|cpu| cpu.bytes),
            lost: sum(|cpu| cpu.lost),
            begin_ns,
            end_ns,
            tasks: task_lines(summary),
            events: event_samples(summary, events, symbols),
            cpus,
        }
    }
}

/// The tasks of a summary as they are printed.
pub(crate) fn task_lines(summary: &Summary) -> Vec<TaskLine> {
    let tasks = summary.tasks();
    let lines = tasks.iter().map(|task| TaskLine {
        pid: task.pid,
        tid: task.tid,
        ppid: task.ppid,
        comm: task.comm.clone(),
        start_ns: task.start,
    });
    lines.collect()
}

fn cpu_lines(summary: &Summary) -> Vec<CpuLine> {
    let lines = summary.cpus().iter().map(|(number, cpu)| CpuLine {
        cpu: *number,
        pages: cpu.pages,
        partial_pages: cpu.partial,
        records: cpu.records,
        bytes: cpu.bytes,
        used_bytes: cpu.used,
        lost: cpu.lost_records(),
        lost_by_cause: LOST_CAUSES.iter().copied().zip(cpu.lost).collect(),
        lost_begin_ns: cpu.lost_range.map(|(begin, _)| begin),
        lost_end_ns: cpu.lost_range.map(|(_, end)| end),
    });
    lines.collect()
}

/// Samples of one event, being counted.
#[derive(Default)]
struct Counts {
    total: u64,
    tasks: HashMap<(u32, u32), u64>,
    /// By name and module.
    symbols: HashMap<(String, Option<String>), u64>,
}

fn event_samples(summary: &Summary, events: &[NotedEvent], symbols: &Symbols) -> Vec<EventSamples> {
    let by_counter: HashMap<u64, usize> = events
        .iter()
        .enumerate()
        .flat_map(|(index, event)| event.counters.iter().map(move |id| (*id, index)))
        .collect();
    // What is not known comes last.
    let mut counts: BTreeMap<usize, Counts> = BTreeMap::new();
    for index in 0..events.len() {
        counts.insert(index, Counts::default());
    }
    for (key, count) in summary.samples() {
        let index = by_counter.get(&key.counter).copied();
        let counts = counts.entry(index.unwrap_or(events.len())).or_default();
        counts.total += count;
        *counts.tasks.entry((key.pid, key.tid)).or_default() += count;
        let symbol = match key.code {
            Code::Kernel(ip) => match symbols.resolve(ip) {
                Some(found) => (readable(&found.name), found.module),
                None => (format!("{ip:#x}"), None),
            },
            Code::User => (format!("[user] {}", name(summary, key.pid, key.tid)), None),
            Code::Other => ("[guest or hypervisor]".to_owned(), None),
        };
        *counts.symbols.entry(symbol).or_default() += count;
    }
    let lines = counts.into_iter().map(|(index, counts)| {
        let event = events.get(index);
        EventSamples {
            event: event.map(|event| event.name.clone()),
            frequency: event.and_then(|event| event.frequency),
            period: event.and_then(|event| event.period),
            samples: counts.total,
            tasks: task_samples(summary, &counts),
            symbols: symbol_samples(&counts),
        }
    });
    lines.collect()
}

/// The name of a function as its author wrote it; those of Rust are mangled.
fn readable(name: &str) -> String {
    match rustc_demangle::try_demangle(name) {
        Ok(demangled) => format!("{demangled:#}"),
        Err(_) => name.to_owned(),
    }
}

/// A name for a thread, if only its number.
fn name(summary: &Summary, pid: u32, tid: u32) -> String {
    match summary.comm(pid, tid) {
        Some(comm) => comm.to_owned(),
        None => format!("pid {pid}"),
    }
}

fn task_samples(summary: &Summary, counts: &Counts) -> Vec<TaskSamples> {
    let lines = counts
        .tasks
        .iter()
        .map(|((pid, tid), samples)| TaskSamples {
            comm: summary.comm(*pid, *tid).map(str::to_owned),
            pid: *pid,
            tid: *tid,
            samples: *samples,
            percent: percent(*samples, counts.total),
        });
    let mut lines: Vec<TaskSamples> = lines.collect();
    lines.sort_by_key(|line| (std::cmp::Reverse(line.samples), line.pid, line.tid));
    lines
}

fn symbol_samples(counts: &Counts) -> Vec<SymbolSamples> {
    let lines = counts
        .symbols
        .iter()
        .map(|((symbol, module), samples)| SymbolSamples {
            symbol: symbol.clone(),
            module: module.clone(),
            samples: *samples,
            percent: percent(*samples, counts.total),
        });
    let mut lines: Vec<SymbolSamples> = lines.collect();
    lines.sort_by(|a, b| {
        (b.samples.cmp(&a.samples))
            .then_with(|| a.symbol.cmp(&b.symbol))
            .then_with(|| a.module.cmp(&b.module))
    });
    lines
}

/// Runs `weir report`.
pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let (summary, bytes) = read(args).with_context(|| args.file.display().to_string())?;
    let notes = Notes::read(&args.file, bytes).unwrap_or_else(|error| {
        output::message(&format!("going on without notes: {error:#}"));
        None
    });
    let symbols = match (&args.kallsyms, &notes) {
        (Some(path), _) => Symbols::List(
            Kallsyms::read(path).with_context(|| format!("cannot use {}", path.display()))?,
        ),
        (None, Some(notes)) => Symbols::noted(&notes.symbols),
        (None, None) => {
            if summary
                .samples()
                .any(|(key, _)| matches!(key.code, Code::Kernel(_)))
            {
                output::message(
                    "no names for addresses in the kernel: if this machine made the file and was \
                     not booted since, add --kallsyms /proc/kallsyms",
                );
            }
            Symbols::None
        }
    };
    let events = notes.map(|notes| notes.events).unwrap_or_default();
    let report = Report::new(&summary, &events, &symbols);
    if args.json {
        output::json(&report)?;
    } else {
        output::result(&render::report(&report, args.top))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a whole capture; also gives its length.
fn read(args: &ReportArgs) -> Result<(Summary, u64)> {
    let file = File::open(&args.file).context("cannot open it")?;
    let mut stream = Stream::new(BufReader::with_capacity(1 << 20, file));
    let mut summary = Summary::default();
    while let Some(page) = stream.next_page()? {
        summary.add(&page)?;
    }
    Ok((summary, stream.offset()))
}

#[cfg(test)]
mod tests;
