// SPDX-License-Identifier: GPL-2.0

//! One order of time for all CPUs: with the marks of the kernel, records are given out in order while every CPU
//! goes on writing, none is late, and none is kept for long.

use anyhow::{
    ensure,
    Result, //
};
use clap::Parser;
use libweir::{
    uapi::{
        MODEL_PAGED,
        MODEL_PER_CPU,
        MODEL_SHARED, //
    },
    ChannelOptions,
    Ordered,
    Page, //
};
use std::{
    process::ExitCode,
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    exercise::Context,
    ktap::{
        self,
        note,
        Verdict, //
    },
    session::Session,
    torture::{
        Source,
        Start,
        PAYLOAD_MIN, //
    },
};

/// Tests that records of all CPUs can be brought into order while they are written.
///
/// Needs weir.ko and weir_torture.ko, and root.
#[derive(Parser)]
struct Arguments {
    /// How long each test writes.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    seconds: f64,
}

/// What came out so far.
#[derive(Default)]
struct Given {
    records: u64,
    last: u64,
    late: u64,
    most_kept: usize,
}

impl Given {
    fn take(&mut self, ordered: &mut Ordered) -> Verdict {
        self.most_kept = self.most_kept.max(ordered.kept());
        while let Some(record) = ordered.pop() {
            ensure!(
                record.late || record.time >= self.last,
                "a record of {} after one of {}",
                record.time,
                self.last
            );
            self.late += u64::from(record.late);
            self.last = self.last.max(record.time);
            self.records += 1;
        }
        Ok(())
    }
}

fn drain(session: &Session, ordered: &mut Ordered) -> Verdict {
    let channel = session.channel();
    channel.drain(&mut channel.buffer(64), |bytes| {
        ordered.push(&Page::parse(bytes)?)?;
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(())
}

fn in_order(context: &Context, model: u32) -> Verdict {
    let options = ChannelOptions {
        model,
        max_latency: Duration::from_millis(10),
        ..Default::default()
    };
    let session = Session::open(&options, 1)?;
    // Slow enough for a reader that sorts, in an emulator too.
    let mut request = Start::new(&context.sources, PAYLOAD_MIN..=100);
    for source in Source::ALL {
        request = request.interval(source, Duration::from_micros(300));
    }
    let run = context.torture.start(session.channel(), request)?;
    let mut ordered = Ordered::new();
    let mut given = Given::default();
    let (mut marks, mut advanced) = (0, 0);
    let begin = Instant::now();
    while begin.elapsed() < context.duration {
        let mark = session.channel().mark()?;
        drain(&session, &mut ordered)?;
        if let Some(mark) = mark {
            marks += 1;
            ordered.advance(mark);
        }
        let before = given.records;
        given.take(&mut ordered)?;
        advanced += u64::from(given.records > before);
        session.channel().poll(Some(Duration::from_millis(2)))?;
    }
    let meanwhile = given.records;
    run.stop()?;
    session.channel().flush()?;
    drain(&session, &mut ordered)?;
    ordered.finish();
    given.take(&mut ordered)?;
    let written: u64 = run.statuses()?.iter().map(|status| status.written).sum();
    note(format_args!(
        "model {model}: {written} written, {meanwhile} given out meanwhile in {advanced} steps by {marks} marks, at most {} kept, {} late",
        given.most_kept, given.late
    ));
    ensure!(
        given.records == written,
        "{} records came of {written}",
        given.records
    );
    ensure!(given.late == 0, "{} records came late", given.late);
    ensure!(
        meanwhile > 0 && advanced > 3,
        "nothing came before the writers ended"
    );
    Ok(())
}

fn paged(context: &mut Context) -> Verdict {
    in_order(context, MODEL_PAGED)
}

fn per_cpu(context: &mut Context) -> Verdict {
    in_order(context, MODEL_PER_CPU)
}

fn shared(context: &mut Context) -> Verdict {
    in_order(context, MODEL_SHARED)
}

/// A quiet channel is complete up to now, and so is one whose last records were read.
fn quiet(context: &mut Context) -> Verdict {
    for model in [MODEL_PAGED, MODEL_PER_CPU, MODEL_SHARED] {
        let options = ChannelOptions {
            model,
            max_latency: Duration::from_secs(3600),
            ..Default::default()
        };
        let session = Session::open(&options, 1)?;
        let begin = weir_selftests::session::now();
        let complete = |what: &str, after: u64| -> Result<()> {
            let mark = session.channel().mark()?;
            ensure!(
                mark.is_some_and(|mark| mark >= after),
                "{what}, the mark is {mark:?}, and not {after} or later"
            );
            Ok(())
        };
        std::thread::sleep(Duration::from_millis(1));
        complete("with nothing written", begin)?;
        let one = Start::new(&[Source::Task], PAYLOAD_MIN..=PAYLOAD_MIN).records(1);
        let run = context.torture.start(session.channel(), one)?;
        run.wait(Duration::from_secs(30))?;
        std::thread::sleep(Duration::from_millis(1));
        let written = weir_selftests::session::now();
        std::thread::sleep(Duration::from_millis(1));
        let mark = session.channel().mark()?;
        ensure!(
            mark.is_some_and(|mark| begin <= mark && mark < written),
            "with records in open pages the mark is {mark:?}, and not {begin} to {written}"
        );
        session.channel().flush()?;
        complete("with everything in finished pages", written)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ktap::main(
        || Context::open(arguments.seconds),
        &[
            ("paged", paged),
            ("per_cpu", per_cpu),
            ("shared", shared),
            ("quiet", quiet),
        ],
    )
}
