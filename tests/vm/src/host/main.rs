// SPDX-License-Identifier: GPL-2.0

//! Starts a virtual machine, has `weir-init` carry out a plan in it, and judges what comes of it.

mod args;
mod board;
mod guest_files;
mod machine;
mod monitor;
mod qemu;
mod terminal;
mod uml;
mod watch;

use std::fs::{
    self,
    OpenOptions, //
};
use std::io::{
    self,
    Write, //
};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicUsize;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{
    anyhow,
    bail,
    Context,
    Result, //
};
use clap::Parser;
use signal_hook::consts::{
    SIGHUP,
    SIGINT,
    SIGTERM, //
};
use weir_vm::session::{
    Ending,
    Expectations,
    Session,
    Style,
    Summary, //
};
use weir_vm::verdict::{
    SummaryLine,
    Tally,
    SETUP_STATUS, //
};

use args::{
    Cli,
    Command,
    Kernel,
    Run, //
};
use guest_files::Task;
use watch::{
    Limits,
    Options,
    Watched, //
};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(run) => run_tests(&run),
        Command::Shell(machine) => give_shell(&machine),
        Command::Total { file } => total(&file),
        Command::Tied { parent, argv } => {
            machine::become_tied(parent, &argv).map(|()| ExitCode::SUCCESS)
        }
    };
    result.unwrap_or_else(|error| {
        eprintln!("weir-vm: error: {error:#}");
        ExitCode::from(SETUP_STATUS)
    })
}

/// Set to the number of the first signal that asks this program to end.
fn watch_signals() -> Result<Arc<AtomicUsize>> {
    let flag = Arc::new(AtomicUsize::new(0));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register_usize(signal, flag.clone(), signal as usize)
            .context("cannot catch a signal")?;
    }
    Ok(flag)
}

fn interrupted(signal: usize) -> ExitCode {
    // As a shell has it.
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

fn run_tests(run: &Run) -> Result<ExitCode> {
    let machine = &run.machine;
    if machine.program.is_empty() && machine.modules.is_empty() && machine.module.is_empty() {
        bail!("there is nothing to run: name a --program or --modules");
    }
    let task = Task {
        shell: false,
        leaks: !run.no_leaks,
    };
    let (plan, initramfs) = guest_files::prepare(machine, task)?;
    let expectations = Expectations {
        kunit: run.expect_kunit.clone(),
        targets: machine
            .collect
            .iter()
            .map(|pair| pair.to.clone().into())
            .collect(),
    };
    let style = Style {
        verbose: run.verbose,
        passthrough: run.passthrough,
    };
    let options = Options {
        limits: Some(Limits {
            boot: Duration::from_secs(machine.boot_timeout),
            whole: Duration::from_secs(machine.timeout),
        }),
        nmi: machine.nmi,
        console_log: machine.console_log.as_deref(),
        signal: watch_signals()?,
    };
    let mut raw = io::stdout();
    let mut out: Box<dyn Write> = match run.passthrough {
        true => Box::new(io::stderr()),
        false => Box::new(io::stdout()),
    };
    let mut retried = 0;
    let summary = loop {
        let launch = match machine.kernel {
            Kernel::Um => uml::launch(machine, &initramfs, false)?,
            Kernel::Release | Kernel::Debug => qemu::launch(machine, &initramfs, false)?,
        };
        let (mut running, streams) = launch.start(false)?;
        let mut session = Session::new(&plan, &expectations, style.clone(), &mut *out, &mut raw);
        let (ending, errors) = match watch::watch(&mut running, streams, &mut session, &options)? {
            Watched::Ended(ending, errors) => (ending, errors),
            Watched::Interrupted(signal) => return Ok(interrupted(signal)),
        };
        drop(running);
        if session.is_replaceable() {
            if let Ending::Gone(false, how) = &ending {
                if session.console_is_empty() {
                    bail!("the VM did not start ({how}): {errors}");
                }
            }
            if retried == 0 {
                retried += 1;
                session.tell_replaced(&ending)?;
                continue;
            }
        }
        break session.finish(&ending)?;
    };
    if retried > 0 {
        writeln!(out, "retried: {retried}")?;
    }
    if !run.passthrough {
        writeln!(out, "{}", summary.tally)?;
    }
    out.flush()?;
    if let Some(path) = &run.summary {
        add_summary(path, machine.name(), retried, summary)?;
    }
    Ok(ExitCode::from(summary.verdict.status()))
}

fn add_summary(path: &Path, kernel: String, retried: u32, summary: Summary) -> Result<()> {
    let line = SummaryLine {
        tally: summary.tally,
        retried,
        verdict: summary.verdict.word().into(),
        kernel,
    };
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| writeln!(file, "{line}"))
        .with_context(|| format!("cannot add to {}", path.display()))
}

fn total(path: &Path) -> Result<ExitCode> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines: Vec<SummaryLine> = text
        .lines()
        .map(|line| line.parse().map_err(|error: String| anyhow!(error)))
        .collect::<Result<_>>()?;
    let retried: u32 = lines.iter().map(|line| line.retried).sum();
    if retried > 0 {
        println!("retried: {retried}");
    }
    let tally: Tally = lines.iter().map(|line| line.tally).sum();
    println!("{tally}");
    let all_passed = lines.iter().all(|line| line.verdict == "passed");
    let well = all_passed && tally.failed == 0 && tally.passed > 0;
    Ok(ExitCode::from(u8::from(!well)))
}

fn give_shell(machine: &args::Machine) -> Result<ExitCode> {
    let task = Task {
        shell: true,
        leaks: false,
    };
    let (plan, initramfs) = guest_files::prepare(machine, task)?;
    let expectations = Expectations {
        kunit: Vec::new(),
        targets: machine
            .collect
            .iter()
            .map(|pair| pair.to.clone().into())
            .collect(),
    };
    let options = Options {
        limits: None,
        nmi: machine.nmi,
        console_log: None,
        signal: watch_signals()?,
    };
    let launch = match machine.kernel {
        Kernel::Um => uml::launch(machine, &initramfs, true)?,
        Kernel::Release | Kernel::Debug => qemu::launch(machine, &initramfs, true)?,
    };
    let (mut out, mut raw) = (io::stderr(), io::stdout());
    let mut session = Session::new(&plan, &expectations, Style::default(), &mut out, &mut raw);
    let (mut running, streams) = launch.start(true)?;
    let group = running.id().context("a process without an id")?;
    let lent = terminal::Lent::to(group)?;
    let watched = watch::watch(&mut running, streams, &mut session, &options)?;
    drop(lent);
    match watched {
        Watched::Interrupted(signal) => Ok(interrupted(signal)),
        Watched::Ended(ending, _) => {
            let summary = session.finish(&ending)?;
            Ok(ExitCode::from(summary.verdict.status()))
        }
    }
}
