// SPDX-License-Identifier: GPL-2.0

//! `weir dump`: what exists in the kernel, through injection.

use crate::{
    cli::{
        Collection,
        DumpArgs,
        DumpTasksArgs, //
    },
    output, render,
    report::{
        task_lines,
        TaskLine, //
    },
    summary::Summary,
    table::grouped,
};
use anyhow::Result;
use libweir::{
    Channel,
    ChannelOptions,
    DumpOptions,
    Page, //
};
use serde::Serialize;
use std::{
    path::Path,
    process::ExitCode, //
};

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Dump {
    tasks: Vec<TaskLine>,
    read: u64,
    skipped: u64,
    calls: u64,
    full: u64,
    pages: u64,
}

/// Runs `weir dump`.
pub(crate) fn run(device: &Path, args: &DumpArgs) -> Result<ExitCode> {
    match &args.collection {
        Collection::Tasks(args) => tasks(device, args),
    }
}

fn tasks(device: &Path, args: &DumpTasksArgs) -> Result<ExitCode> {
    let channel = Channel::create(&ChannelOptions {
        path: device.to_owned(),
        pages: args.pages.unwrap_or(0),
        nonblocking: true,
        ..Default::default()
    })?;
    let options = DumpOptions {
        len: args.len,
        processes: args.processes,
    };
    let mut summary = Summary::default();
    let mut offset = 0;
    let totals = channel.dump_tasks(&options, &mut channel.buffer(64), |bytes| {
        summary.add(&Page::parse_at(bytes, offset)?)?;
        offset += bytes.len() as u64;
        Ok::<(), libweir::Error>(())
    })?;
    let dump = Dump {
        tasks: task_lines(&summary),
        read: totals.read,
        skipped: totals.skipped,
        calls: totals.calls,
        full: totals.full,
        pages: totals.pages,
    };
    if args.json {
        output::json(&dump)?;
    } else {
        output::result(&text(&dump))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(dump: &Dump) -> String {
    let mut text = render::tasks(&dump.tasks);
    text.push_str(&format!(
        "{} tasks, {} calls, {} pages",
        grouped(dump.read),
        grouped(dump.calls),
        grouped(dump.pages)
    ));
    if dump.full > 0 {
        text.push_str(&format!(
            "; the channel was full and was read {} times",
            grouped(dump.full)
        ));
    }
    if dump.skipped > 0 {
        text.push_str(&format!(
            "; {} left out for lack of rights",
            grouped(dump.skipped)
        ));
    }
    text.push('\n');
    text
}
