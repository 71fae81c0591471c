// SPDX-License-Identifier: GPL-2.0

//! Writers that interrupt a writer: proves that they do so inside of reserve and commit, by the count
//! that the channel keeps, and that every record is whole nonetheless.

use anyhow::{
    ensure,
    Result, //
};
use clap::Parser;
use libweir::ChannelOptions;
use std::{
    process::ExitCode,
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    ktap::{
        self,
        note,
        Verdict, //
    },
    ledger::Ledger,
    session::Session,
    torture::{
        Source,
        Start,
        Torture,
        PAYLOAD_MIN, //
    },
};

/// Tests that writers may interrupt writers, from softirq, hard interrupt and NMI.
///
/// Needs weir.ko and weir_torture.ko, and root.
#[derive(Parser)]
struct Arguments {
    /// Records written inside of another that each test waits for.
    #[arg(long, default_value_t = 50)]
    nested: u64,
    /// How long a test waits for them at most; one is enough then.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    patience: f64,
}

struct Context {
    torture: Torture,
    wanted: u64,
    patience: Duration,
}

/// Lets the thread of each CPU be interrupted by `sources` until enough records were written inside of
/// others.
fn nested(context: &Context, sources: &[Source]) -> Verdict {
    // Long payloads: the most of a write is the copy.
    let mut request = Start::new(sources, PAYLOAD_MIN..=1500);
    for source in [Source::Softirq, Source::Irq, Source::Nmi] {
        request = request.interval(source, Duration::from_micros(50));
    }
    let mut session = Session::open(&ChannelOptions::default(), 256)?;
    let mut ledger = Ledger::new();
    let run = context.torture.start(session.channel(), request)?;
    let begin = Instant::now();
    while session.nested()? < context.wanted && begin.elapsed() < context.patience {
        let until = Instant::now() + Duration::from_millis(100);
        while Instant::now() < until {
            session.read_within(Duration::from_millis(20), |cpu, record| {
                ledger.record(cpu, record)
            })?;
        }
    }
    run.stop()?;
    session.flush(|cpu, record| ledger.record(cpu, record))?;

    let statuses = run.statuses()?;
    let totals = ledger.close_run(&statuses)?;
    ledger.check_channel(&session)?;
    let nested = session.nested()?;
    note(format_args!(
        "{nested} of {} records were written inside of another, after {:?}; {:?} refused",
        totals.written,
        begin.elapsed(),
        totals.refused
    ));
    for source in sources.iter().filter(|source| **source != Source::Task) {
        let of_source = || {
            statuses
                .iter()
                .filter(|status| status.source == *source as u32)
        };
        let written: u64 = of_source().map(|status| status.written).sum();
        let inside: u64 = of_source().map(|status| status.inside).sum();
        note(format_args!(
            "{source:?}: {written} written, {inside} while another write was under way"
        ));
    }
    ensure!(
        nested > 0,
        "no record was written inside of another, so this has shown nothing"
    );
    // What the channel counts can only be where the torture module saw a write under way. It counts
    // those, too, that it then refuses.
    let refused: u64 = totals.refused.iter().sum();
    ensure!(
        nested <= totals.inside + refused,
        "the channel counts {nested} nested, but only {} were written while another write was under way",
        totals.inside
    );
    Ok(())
}

fn softirq(context: &mut Context) -> Verdict {
    nested(context, &[Source::Task, Source::Softirq])
}

fn irq(context: &mut Context) -> Verdict {
    nested(context, &[Source::Task, Source::Irq])
}

fn nmi(context: &mut Context) -> Verdict {
    nested(context, &[Source::Task, Source::Nmi])
}

fn all_interrupts(context: &mut Context) -> Verdict {
    nested(context, &[Source::Task, Source::Softirq, Source::Irq])
}

fn all(context: &mut Context) -> Verdict {
    nested(context, &Source::ALL)
}

fn setup(arguments: &Arguments) -> Result<Context> {
    Ok(Context {
        torture: Torture::open()?,
        wanted: arguments.nested,
        patience: Duration::try_from_secs_f64(arguments.patience)?,
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ktap::main(
        || setup(&arguments),
        &[
            ("softirq", softirq),
            ("irq", irq),
            ("nmi", nmi),
            ("all_interrupts", all_interrupts),
            ("all", all),
        ],
    )
}
