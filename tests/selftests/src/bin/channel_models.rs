// SPDX-License-Identifier: GPL-2.0

//! Every model in every mode: whoever owns the open page, wherever finished ones go, and whatever is lost,
//! each record comes once, whole and in order, or counts as lost.

use anyhow::ensure;
use clap::Parser;
use libweir::{
    uapi::{
        MODEL_PAGED,
        MODEL_PER_CPU,
        MODEL_SHARED,
        MODE_DISCARD,
        MODE_OVERWRITE, //
    },
    ChannelOptions,
    Errno, //
};
use std::{
    process::ExitCode,
    thread::sleep,
    time::Duration, //
};
use weir_selftests::{
    exercise::{
        ledger,
        small,
        Context,
        Reading, //
    },
    ktap::{
        self,
        note,
        Verdict, //
    },
    session::Session,
    torture::{
        Start,
        PAYLOAD_MIN, //
    },
};

/// Tests that in every model and mode each record comes once, or counts as lost.
///
/// Needs weir.ko and weir_torture.ko, and root.
#[derive(Parser)]
struct Arguments {
    /// How long each test writes.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.25)]
    seconds: f64,
}

/// Slow and fast readers, while every CPU writes in every context that there is.
fn exercise_kind(context: &Context, model: u32, mode: u32) -> Verdict {
    let of = |options: ChannelOptions| ChannelOptions {
        model,
        mode,
        ..options
    };
    for (options, reading, payload) in [
        (small(), Reading::Slow, PAYLOAD_MIN..=300),
        (ChannelOptions::default(), Reading::Fast, PAYLOAD_MIN..=300),
        // Nearly every record needs a page of its own, so pages are opened and finished all the time.
        (small(), Reading::Fast, 1500..=3900),
    ] {
        let request = Start::new(&context.sources, payload);
        let totals = context.exercise(&of(options), request, reading)?;
        let lost = match mode {
            MODE_DISCARD => totals.refused[0],
            _ => totals.overwritten,
        };
        ensure!(
            lost > 0 || reading == Reading::Fast,
            "the channel was never full, so this has shown nothing"
        );
    }
    Ok(())
}

fn per_cpu_discard(context: &mut Context) -> Verdict {
    exercise_kind(context, MODEL_PER_CPU, MODE_DISCARD)
}

fn shared_discard(context: &mut Context) -> Verdict {
    exercise_kind(context, MODEL_SHARED, MODE_DISCARD)
}

fn paged_overwrite(context: &mut Context) -> Verdict {
    exercise_kind(context, MODEL_PAGED, MODE_OVERWRITE)
}

fn per_cpu_overwrite(context: &mut Context) -> Verdict {
    exercise_kind(context, MODEL_PER_CPU, MODE_OVERWRITE)
}

fn shared_overwrite(context: &mut Context) -> Verdict {
    exercise_kind(context, MODEL_SHARED, MODE_OVERWRITE)
}

/// A flight recorder: nobody reads until something has happened; then what led there is all there, while
/// the writers go on.
fn frozen(context: &mut Context) -> Verdict {
    let cpus = libweir::cpu::possible()?.len() as u64;
    for model in [MODEL_PAGED, MODEL_PER_CPU, MODEL_SHARED] {
        let options = ChannelOptions {
            model,
            mode: MODE_OVERWRITE,
            ..small()
        };
        let mut session = Session::open(&options, 4)?;
        let mut ledger = ledger(&options);
        let request = Start::new(&context.sources, PAYLOAD_MIN..=300);
        let run = context.torture.start(session.channel(), request)?;
        sleep(context.duration / 2);
        session.channel().freeze(true)?;
        // The writers go on losing records, but none that was written.
        sleep(Duration::from_millis(10));
        let mut pages = 0;
        while pages < 8 * cpus - cpus {
            let read = session.read_within(Duration::from_secs(10), |cpu, record| {
                ledger.record(cpu, record)
            })?;
            ensure!(
                read > 0,
                "only {pages} pages came out of a frozen channel of {}",
                8 * cpus
            );
            pages += read as u64;
        }
        session.channel().freeze(false)?;
        sleep(context.duration / 2);
        run.stop()?;
        for _ in 0..2 {
            session.flush(|cpu, record| ledger.record(cpu, record))?;
        }
        let totals = ledger.close_run(&run.statuses()?)?;
        ledger.check_channel(&session)?;
        note(format_args!(
            "model {model}: {} written, {} overwritten, {} refused while frozen",
            totals.written, totals.overwritten, totals.refused[0]
        ));
        ensure!(totals.overwritten > 0, "nothing was ever overwritten");
        ensure!(
            totals.refused[0] > 0,
            "nothing was ever refused, so it was not frozen"
        );
    }
    Ok(())
}

/// Only what overwrites can be frozen.
fn freeze_discard(_: &mut Context) -> Verdict {
    let session = Session::open(&small(), 1)?;
    let result = session.channel().freeze(true);
    let errno = result.err().and_then(|error| error.errno());
    ensure!(
        errno == Some(Errno::INVAL),
        "freezing a channel that discards gave {errno:?}"
    );
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ktap::main(
        || Context::open(arguments.seconds),
        &[
            ("per_cpu_discard", per_cpu_discard),
            ("shared_discard", shared_discard),
            ("paged_overwrite", paged_overwrite),
            ("per_cpu_overwrite", per_cpu_overwrite),
            ("shared_overwrite", shared_overwrite),
            ("frozen", frozen),
            ("freeze_discard", freeze_discard),
        ],
    )
}
