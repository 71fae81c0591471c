// SPDX-License-Identifier: GPL-2.0

//! Every CPU writes at full speed, from a thread, softirq, hard interrupt and NMI at once, and somebody
//! reads: nothing is lost beyond what is counted, nothing comes twice, nothing is torn.

use anyhow::ensure;
use clap::Parser;
use libweir::ChannelOptions;
use std::{
    process::ExitCode,
    thread::sleep,
    time::Duration, //
};
use weir_selftests::{
    exercise::{
        small,
        Context,
        Reading, //
    },
    ktap::{
        self,
        Verdict, //
    },
    session::Session,
    torture::{
        Source,
        Start,
        PAYLOAD_MIN, //
    },
};

/// Tests that nothing is lost, repeated or torn when every CPU writes at full speed.
///
/// Needs weir.ko and weir_torture.ko, and root.
#[derive(Parser)]
struct Arguments {
    /// How long each test writes.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    seconds: f64,
}

const INTERRUPTS: [Source; 3] = [Source::Task, Source::Softirq, Source::Irq];

fn slow_reader(context: &mut Context) -> Verdict {
    let request = Start::new(&INTERRUPTS, PAYLOAD_MIN..=300);
    let totals = context.exercise(&small(), request, Reading::Slow)?;
    ensure!(
        totals.refused[0] > 0,
        "the channel was never full, so this has shown nothing"
    );
    Ok(())
}

fn fast_reader(context: &mut Context) -> Verdict {
    let request = Start::new(&INTERRUPTS, PAYLOAD_MIN..=300);
    context.exercise(&ChannelOptions::default(), request, Reading::Fast)?;
    Ok(())
}

fn large_pages(context: &mut Context) -> Verdict {
    let options = ChannelOptions {
        page_size: 64 << 10,
        ..small()
    };
    let request = Start::new(&INTERRUPTS, PAYLOAD_MIN..=4000);
    context.exercise(&options, request, Reading::Fast)?;
    Ok(())
}

/// Nearly every record needs a page of its own, so pages are opened and published all the time.
fn large_records(context: &mut Context) -> Verdict {
    let request = Start::new(&INTERRUPTS, 1500..=3900);
    context.exercise(&ChannelOptions::default(), request, Reading::Fast)?;
    Ok(())
}

fn nmi(context: &mut Context) -> Verdict {
    let request = Start::new(&Source::ALL, PAYLOAD_MIN..=300);
    context.exercise(&small(), request, Reading::Slow)?;
    context.exercise(&ChannelOptions::default(), request, Reading::Fast)?;
    Ok(())
}

/// Closing the channel while everything writes into it leaves the writers with a channel that nobody
/// reads, and the reader's end is safe.
fn closed_while_writing(context: &mut Context) -> Verdict {
    for _ in 0..10 {
        let session = Session::open(&small(), 1)?;
        let request = Start::new(&INTERRUPTS, PAYLOAD_MIN..=300);
        let run = context.torture.start(session.channel(), request)?;
        sleep(Duration::from_millis(10));
        drop(session);
        sleep(Duration::from_millis(10));
        run.stop()?;
        for status in run.statuses()? {
            let refused: u64 = status.refused.iter().sum();
            ensure!(status.attempted == status.written + refused, "{status:?}");
            ensure!(
                status.refused[3] == 0,
                "an error that weir is not to give: {status:?}"
            );
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ktap::main(
        || Context::open(arguments.seconds),
        &[
            ("slow_reader", slow_reader),
            ("fast_reader", fast_reader),
            ("large_pages", large_pages),
            ("large_records", large_records),
            ("nmi", nmi),
            ("closed_while_writing", closed_while_writing),
        ],
    )
}
