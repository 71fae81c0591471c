// SPDX-License-Identifier: GPL-2.0

//! The samples do what they say: their modules are loaded, what they trace is read, and it is what happened.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use clap::Parser;
use libweir::{
    Channel,
    Errno,
    Page,
    Record, //
};
use std::{
    collections::BTreeSet,
    path::{
        Path,
        PathBuf, //
    },
    process::{
        Command,
        ExitCode, //
    },
    thread::sleep,
    time::Duration, //
};
use weir_selftests::{
    child::tid,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    loaded::Loaded,
};

/// Tests the samples.
///
/// Needs weir.ko, root, and the samples' own modules and program.
#[derive(Parser)]
struct Arguments {
    /// weir_switches.ko.
    #[arg(long, value_name = "FILE")]
    switches: Option<PathBuf>,
    /// weir_wakeups.ko.
    #[arg(long, value_name = "FILE")]
    wakeups: Option<PathBuf>,
    /// print_switches.
    #[arg(long, value_name = "FILE")]
    print_switches: Option<PathBuf>,
}

fn load(path: Option<&Path>, name: &'static str) -> Result<Loaded> {
    Loaded::load(
        path.ok_or_else(|| skip(format!("{name}.ko was not given")))?,
        name,
    )
}

fn attach(name: &str) -> Result<Channel> {
    Ok(Channel::attach(libweir::DEVICE.as_ref(), name, true)?)
}

/// The words of every event that is there now.
fn events(channel: &Channel) -> Result<Vec<Vec<u8>>> {
    let mut events = Vec::new();
    channel.flush()?;
    channel.drain(&mut channel.buffer(64), |bytes| {
        let page = Page::parse(bytes)?;
        page.verify()?;
        for record in page.records() {
            if let Record::Event { data, .. } = record? {
                events.push(data.to_vec());
            }
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(events)
}

fn pid_at(data: &[u8], offset: usize) -> Result<u32> {
    let bytes = data
        .get(offset..offset + 4)
        .context("the record has no such field")?;
    Ok(u32::from_ne_bytes(bytes.try_into()?))
}

/// Each `sleep()` of this task is a switch away from it and one back to it.
fn switches(arguments: &mut Arguments) -> Verdict {
    let module = load(arguments.switches.as_deref(), "weir_switches")?;
    let channel = attach("weir_switches")?;
    for _ in 0..10 {
        sleep(Duration::from_millis(1));
    }
    let me = tid();
    let all = events(&channel)?;
    let (mut away, mut back) = (0, 0);
    for event in &all {
        ensure!(event.len() == 32, "a switch of {} bytes", event.len());
        away += u32::from(pid_at(event, 0)? == me);
        back += u32::from(pid_at(event, 4)? == me);
    }
    note(format_args!(
        "{} switches, {away} of them from this task and {back} to it",
        all.len()
    ));
    ensure!(
        away >= 10 && back >= 10 && away.abs_diff(back) <= 1,
        "this task slept ten times"
    );
    // The module may go while its channel is attached: that ends.
    module.unload()?;
    events_to_the_end(&channel)
}

fn events_to_the_end(channel: &Channel) -> Verdict {
    let mut buffer = vec![0; 1 << 20];
    loop {
        match rustix::io::read(channel, &mut buffer[..]) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(Errno::AGAIN) => anyhow::bail!("the channel of a module that has gone has no end"),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A task that sleeps is woken.
fn wakeups(arguments: &mut Arguments) -> Verdict {
    let module = load(arguments.wakeups.as_deref(), "weir_wakeups")?;
    let channel = attach("weir_wakeups")?;
    for _ in 0..10 {
        sleep(Duration::from_millis(1));
    }
    let me = tid();
    let all = events(&channel)?;
    let mut woken = 0;
    let mut tasks = BTreeSet::new();
    for event in &all {
        ensure!(event.len() == 24, "a wake-up of {} bytes", event.len());
        let pid = pid_at(event, 0)?;
        tasks.insert(pid);
        if pid == me {
            woken += 1;
            ensure!(
                event[4..].starts_with(b"samples\0"),
                "this task is not called {:?}",
                String::from_utf8_lossy(&event[4..])
            );
        }
    }
    note(format_args!(
        "{} wake-ups of {} tasks, {woken} of them of this one",
        all.len(),
        tasks.len()
    ));
    ensure!(woken >= 10, "this task slept ten times");
    module.unload()
}

/// The program in C prints as many switches as it is asked for.
fn print_switches(arguments: &mut Arguments) -> Verdict {
    let program = arguments
        .print_switches
        .as_deref()
        .ok_or_else(|| skip("the program was not given"))?;
    let module = load(arguments.switches.as_deref(), "weir_switches")?;
    let output = Command::new(program)
        .arg("7")
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && text.lines().count() == 7,
        "{}: {text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    for line in text.lines() {
        ensure!(line.contains(" cpu ") && line.contains(" -> "), "{line}");
    }
    note(text.lines().next().unwrap_or_default());
    module.unload()
}

fn main() -> ExitCode {
    ktap::main(
        || Ok(Arguments::parse()),
        &[
            ("switches", switches),
            ("wakeups", wakeups),
            ("print_switches", print_switches),
        ],
    )
}
