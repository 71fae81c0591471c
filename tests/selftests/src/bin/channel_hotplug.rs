// SPDX-License-Identifier: GPL-2.0

//! CPUs that go and come back while a channel is written and read: nothing is lost by it.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use clap::Parser;
use libweir::{
    uapi::{
        MODEL_PAGED,
        MODEL_PER_CPU,
        MODEL_SHARED,
        MODE_DISCARD,
        MODE_OVERWRITE, //
    },
    ChannelOptions, //
};
use std::{
    process::ExitCode,
    time::Duration, //
};
use weir_selftests::{
    affinity::on_cpu,
    dump::{
        request,
        Collector, //
    },
    exercise::{
        ledger,
        small, //
    },
    hotplug::Hotplug,
    ktap::{
        self,
        note,
        Verdict, //
    },
    session::Session,
    torture::{
        Source,
        Start,
        Torture,
        PAYLOAD_MIN, //
    },
};

/// Tests that CPUs may go and come back while a channel is used.
///
/// Needs weir.ko and weir_torture.ko, root, and a CPU that can be taken offline.
#[derive(Parser)]
struct Arguments {
    /// How often the CPU goes in each test.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    times: u32,
}

struct Context {
    torture: Torture,
    times: u32,
    cpu: Hotplug,
}

const KINDS: [(u32, u32); 6] = [
    (MODEL_PAGED, MODE_DISCARD),
    (MODEL_PER_CPU, MODE_DISCARD),
    (MODEL_SHARED, MODE_DISCARD),
    (MODEL_PAGED, MODE_OVERWRITE),
    (MODEL_PER_CPU, MODE_OVERWRITE),
    (MODEL_SHARED, MODE_OVERWRITE),
];

/// What a CPU has written stands in its open page when it goes, and is read all the same: where it stands,
/// or after a flush.
fn its_open_page_is_read(context: &mut Context) -> Verdict {
    const OBJECTS: u64 = 5;
    for (model, mode) in KINDS {
        for flush in [false, true] {
            let options = ChannelOptions {
                model,
                mode,
                max_latency: Duration::from_millis(10),
                ..small()
            };
            let mut session = Session::open(&options, 16)?;
            for time in 0..context.times.div_ceil(4) {
                on_cpu(context.cpu.number as u32, || {
                    let mut call = request(Default::default(), OBJECTS, 0);
                    session.channel().inject(&mut call)?;
                    ensure!(call.read == OBJECTS, "{call:?}");
                    Ok(())
                })??;
                context.cpu.set(false)?;
                let mut collector = Collector::default();
                if flush {
                    session.flush(|cpu, record| collector.record(cpu, record))?;
                } else {
                    session.read_within(Duration::from_secs(10), |cpu, record| {
                        collector.record(cpu, record)
                    })?;
                }
                let tasks = collector.finish()?.len() as u64;
                context.cpu.set(true)?;
                ensure!(
                    tasks == OBJECTS,
                    "{tasks} of {OBJECTS} objects were read, model {model}, mode {mode}, time {time}"
                );
            }
        }
    }
    Ok(())
}

/// The same from a mapping.
fn its_open_page_is_mapped(context: &mut Context) -> Verdict {
    for model in [MODEL_PAGED, MODEL_PER_CPU, MODEL_SHARED] {
        let options = ChannelOptions { model, ..small() };
        let mut session = Session::open(&options, 1)?;
        on_cpu(context.cpu.number as u32, || {
            let mut call = request(Default::default(), 3, 0);
            session.channel().inject(&mut call)
        })??;
        context.cpu.set(false)?;
        session.channel().flush()?;
        let (channel, verifier) = session.split();
        let mut reader = channel.map()?;
        let mut records = 0;
        while let Some(page) = reader.next_page() {
            verifier.page(page, weir_selftests::session::now(), |_, _| {
                records += 1;
                Ok(())
            })?;
        }
        context.cpu.set(true)?;
        ensure!(records == 6, "{records} records of 6, model {model}");
    }
    Ok(())
}

/// Another CPU writes at full speed meanwhile.
fn while_others_write(context: &mut Context) -> Verdict {
    for (model, mode) in KINDS {
        let options = ChannelOptions {
            model,
            mode,
            ..small()
        };
        let mut session = Session::open(&options, 64)?;
        let mut ledger = ledger(&options);
        let request = Start::new(
            &[Source::Task, Source::Softirq, Source::Irq],
            PAYLOAD_MIN..=300,
        )
        .on(0);
        let run = context.torture.start(session.channel(), request)?;
        for _ in 0..context.times {
            for online in [false, true] {
                context.cpu.set(online)?;
                session.read_within(Duration::from_millis(5), |cpu, record| {
                    ledger.record(cpu, record)
                })?;
            }
        }
        run.stop()?;
        for _ in 0..2 {
            session.flush(|cpu, record| ledger.record(cpu, record))?;
        }
        let totals = ledger.close_run(&run.statuses()?)?;
        ledger
            .check_channel(&session)
            .with_context(|| format!("model {model}, mode {mode}"))?;
        note(format_args!(
            "model {model}, mode {mode}: {} written, {} overwritten, {:?} refused",
            totals.written, totals.overwritten, totals.refused
        ));
    }
    Ok(())
}

fn setup(arguments: &Arguments) -> Result<Context> {
    Ok(Context {
        torture: Torture::open()?,
        times: arguments.times,
        cpu: Hotplug::find()?,
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ktap::main(
        || setup(&arguments),
        &[
            ("its_open_page_is_read", its_open_page_is_read),
            ("its_open_page_is_mapped", its_open_page_is_mapped),
            ("while_others_write", while_others_write),
        ],
    )
}
