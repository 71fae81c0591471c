// SPDX-License-Identifier: GPL-2.0

//! `weir record`: samples of all CPUs, and the tasks that exist, into a file.

use crate::{
    capture::Capture,
    cli::RecordArgs,
    notes::{
        NotedEvent,
        Notes, //
    },
    output, render,
    report::Report,
    summary::{
        Code,
        Key,
        Summary, //
    },
    symbols::Symbols,
    workload::{
        End,
        Wake,
        Workload, //
    },
};
use anyhow::{
    bail,
    Context,
    Result, //
};
use libweir::{
    kallsyms::KALLSYMS,
    parse_events,
    uapi,
    Channel,
    ChannelOptions,
    Counter,
    CounterOptions,
    DumpOptions,
    EventPaths,
    EventSet,
    Kallsyms,
    PageBuffer,
    Sampling,
    Scope, //
};
use rustix::fd::AsFd;
use std::{path::Path, process::ExitCode};

/// Samples a second on each CPU, where the user does not say.
const FREQUENCY: u64 = 1000;

/// Pages that are read at a time.
const READ_PAGES: usize = 64;

/// Tasks that are injected at a time; in between, the user may stop.
const INJECT_LEN: u64 = 1024;

/// Runs `weir record`.
pub(crate) fn run(device: &Path, args: &RecordArgs) -> Result<ExitCode> {
    let channel = Channel::create(&ChannelOptions {
        path: device.to_owned(),
        pages: args.pages.unwrap_or(0),
        nonblocking: true,
        ..Default::default()
    })?;
    let counters = open_counters(&channel, args)?;
    let mut capture = Capture::open(&args.output)?;
    for counter in counters.iter().flat_map(|(_, counters)| counters) {
        counter.enable()?;
    }
    let mut workload = Workload::start(args.workload.duration, &args.workload.command)?;
    // Only now, when nothing is in the way of recording, an earlier capture may go.
    let result = capture.begin().and_then(|()| {
        let end = watch(&channel, args, &mut workload, &mut capture)?;
        stop(&channel, &counters, &mut capture)?;
        Ok(end)
    });
    let code = match result {
        // The capture is complete, however long the command takes to end.
        Ok(end) => workload.finish(end)?,
        Err(error) => {
            // The command must not stay behind; what went wrong before is what matters.
            workload.finish(End::TimeUp)?;
            return Err(error);
        }
    };
    if let Some(error) = capture.corrupt() {
        bail!(
            "the module gave something that does not hold together; it is in {}: {error}",
            args.output.display()
        );
    }
    let events = noted_events(args, &counters);
    warn_of_unreported_losses(&channel, capture.summary())?;
    show(args, &capture, &events)?;
    Ok(ExitCode::from(code))
}

/// Events that are counted together, and where.
type Opened<'a> = (EventSet, Vec<Counter<'a>>);

/// Opens all counters, before anything else is touched.
fn open_counters<'a>(channel: &'a Channel, args: &RecordArgs) -> Result<Vec<Opened<'a>>> {
    let sampling = match args.period {
        Some(period) => Sampling::Period(period),
        None => Sampling::Frequency(args.frequency.unwrap_or(FREQUENCY)),
    };
    let mut sets: Vec<EventSet> = args.events.iter().flat_map(|list| list.0.clone()).collect();
    if sets.is_empty() {
        sets = parse_events("cpu-clock", &EventPaths::default())?;
    }
    sets.into_iter()
        .map(|set| {
            let names: Vec<&str> = set.events.iter().map(|event| &event.name[..]).collect();
            let counters = open_set(channel, &set, sampling)
                .with_context(|| format!("event {}", names.join(",")))?;
            Ok((set, counters))
        })
        .collect()
}

/// Opens counters of a set on every CPU, or where its PMU is.
fn open_set<'a>(
    channel: &'a Channel,
    set: &EventSet,
    sampling: Sampling,
) -> libweir::Result<Vec<Counter<'a>>> {
    let scopes = match set.events.iter().find_map(|event| event.cpus.as_ref()) {
        Some(cpus) => cpus.iter().map(|cpu| Scope::Cpu(*cpu)).collect(),
        None => vec![Scope::All],
    };
    let open = |scope: Scope, precision: u8| {
        let attrs = set.events.iter().map(|event| {
            // One that has a period by its name keeps it.
            let attr = match event.attr.raw().sample_period {
                0 => event.attr.sampling(sampling),
                _ => event.attr,
            };
            if event.precise_max {
                attr.precise_ip(precision)
            } else {
                attr
            }
        });
        channel.counter_create(&CounterOptions {
            attrs: attrs.collect(),
            scope,
            cached: false,
        })
    };
    let precise = set.events.iter().any(|event| event.precise_max);
    let open_somehow = |scope| {
        // As precise as the machine lets it be.
        let most = if precise { 3 } else { 0 };
        let best = (1..=most)
            .rev()
            .find_map(|precision| open(scope, precision).ok());
        best.map_or_else(|| open(scope, 0), Ok)
    };
    scopes.into_iter().map(open_somehow).collect()
}

/// Reads what comes until the workload is over.
fn watch(
    channel: &Channel,
    args: &RecordArgs,
    workload: &mut Workload,
    capture: &mut Capture,
) -> Result<End> {
    let mut buffer = channel.buffer(READ_PAGES);
    if !args.no_tasks {
        if let Some(end) = inject(channel, workload, &mut buffer, capture)? {
            return Ok(end);
        }
    }
    loop {
        match workload.wait(Some(channel.as_fd()))? {
            Wake::Over(end) => return Ok(end),
            Wake::Readable => match channel.read_pages(&mut buffer) {
                Ok(_) => buffer.pages().try_for_each(|page| capture.take(page))?,
                Err(error) if error.is_interrupted() || error.is_would_block() => {}
                Err(error) => return Err(error.into()),
            },
        }
    }
}

/// Injects all tasks, the command among them, and reads the channel whenever that fills it. It is cut
/// short where the user wants to stop, but not because the command was a short one.
fn inject(
    channel: &Channel,
    workload: &mut Workload,
    buffer: &mut PageBuffer,
    capture: &mut Capture,
) -> Result<Option<End>> {
    let options = DumpOptions {
        len: INJECT_LEN,
        processes: false,
    };
    let mut skipped = 0;
    for call in channel.task_dump(&options) {
        match call {
            Ok(call) => {
                skipped += call.skipped;
                if call.stop == uapi::STOP_FULL {
                    channel.make_room(buffer, |page| capture.take(page))?;
                }
            }
            Err(error) if error.is_interrupted() => {}
            Err(error) => return Err(error.into()),
        }
        match workload.over()? {
            None | Some(End::Exited) => {}
            end => return Ok(end),
        }
    }
    if skipped > 0 {
        output::message(&format!(
            "{skipped} tasks are left out for lack of rights: their samples have no name"
        ));
    }
    Ok(None)
}

/// Stops the counters and reads what is left.
fn stop(channel: &Channel, counters: &[Opened<'_>], capture: &mut Capture) -> Result<()> {
    for counter in counters.iter().flat_map(|(_, counters)| counters) {
        counter.disable()?;
    }
    channel.flush()?;
    channel.drain(&mut channel.buffer(READ_PAGES), |page| capture.take(page))?;
    capture.end()
}

fn noted_events(args: &RecordArgs, opened: &[Opened<'_>]) -> Vec<NotedEvent> {
    let events = opened.iter().flat_map(|(set, counters)| {
        set.events.iter().enumerate().map(|(index, event)| {
            let ids = counters.iter();
            NotedEvent {
                name: event.name.clone(),
                frequency: match args.period {
                    Some(_) => None,
                    None => Some(args.frequency.unwrap_or(FREQUENCY)),
                },
                period: args.period,
                counters: ids
                    .filter_map(|counter| counter.event_ids().nth(index))
                    .map(u64::from)
                    .collect(),
            }
        })
    });
    events.collect()
}

/// Every loss is in a page. Where one is not, the user must know.
fn warn_of_unreported_losses(channel: &Channel, summary: &Summary) -> Result<()> {
    for cpu in libweir::cpu::online()? {
        let status = channel.status(cpu)?;
        let reported = summary.cpus().get(&cpu).map_or(0, |cpu| cpu.lost_records());
        let missing = status.lost.iter().sum::<u64>().saturating_sub(reported);
        if missing > 0 {
            output::message(&format!(
                "CPU {cpu} lost {missing} records more than the capture says"
            ));
        }
    }
    Ok(())
}

/// Prints the report, and leaves what it needs beside the capture.
fn show(args: &RecordArgs, capture: &Capture, events: &[NotedEvent]) -> Result<()> {
    let summary = capture.summary();
    let in_kernel = |(key, _): (Key, u64)| matches!(key.code, Code::Kernel(_));
    let symbols = if summary.samples().any(in_kernel) {
        match Kallsyms::read(Path::new(KALLSYMS)) {
            Ok(list) => Symbols::List(list),
            Err(error) => {
                output::message(&format!("no names for addresses in the kernel: {error}"));
                Symbols::None
            }
        }
    } else {
        Symbols::None
    };
    if capture.is_regular() {
        let kernel = rustix::system::uname();
        let command = args.workload.command.iter();
        Notes::new(
            capture.bytes(),
            kernel.release().to_string_lossy().into_owned(),
            command
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            events.to_vec(),
            symbols.used(summary),
        )
        .write(&args.output)?;
    }
    let report = Report::new(summary, events, &symbols);
    if args.json {
        output::json(&report)
    } else {
        output::result(&render::report(&report, args.top))
    }
}
