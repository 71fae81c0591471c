// SPDX-License-Identifier: GPL-2.0

//! What weir offers to other kernel modules: writing in place, and channels of their own that user space
//! attaches.

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
        MODE_OVERWRITE,
        NAME_LEN, //
    },
    Channel,
    ChannelOptions,
    Errno, //
};
use rustix::event::{
    poll,
    PollFd,
    PollFlags, //
};
use std::{
    process::ExitCode,
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
        Verdict, //
    },
    ledger::Ledger,
    session::{
        now,
        Session, //
    },
    torture::{
        Source,
        Start,
        Torture,
        PAYLOAD_MIN, //
    },
};

/// Tests the interface for other kernel modules.
///
/// Needs weir.ko and weir_torture.ko, and root.
#[derive(Parser)]
struct Arguments {
    /// How long each test writes.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.25)]
    seconds: f64,
}

const PATIENCE: Duration = Duration::from_secs(30);
const NAME: &str = "weir_torture";

/// Records that are reserved and committed, among others that are discarded, in every kind of channel.
fn in_place(context: &mut Context) -> Verdict {
    for model in [MODEL_PAGED, MODEL_PER_CPU, MODEL_SHARED] {
        let options = ChannelOptions { model, ..small() };
        let request = Start::new(&context.sources, PAYLOAD_MIN..=300).in_place();
        for reading in [Reading::Slow, Reading::Fast] {
            context
                .exercise(&options, request, reading)
                .with_context(|| format!("model {model}"))?;
        }
    }
    Ok(())
}

/// A module's own channel is read by whoever attaches it, from its first record to its end.
fn attached(context: &mut Context) -> Verdict {
    for (model, mode) in [
        (MODEL_PAGED, MODE_DISCARD),
        (MODEL_PER_CPU, MODE_DISCARD),
        (MODEL_SHARED, MODE_OVERWRITE),
    ] {
        let begin = now();
        context.torture.create(NAME, model, mode, 0)?;
        let mut session = Session::attach(NAME, 16, begin)?;
        let options = ChannelOptions {
            model,
            mode,
            ..Default::default()
        };
        let mut ledger = ledger(&options);
        let request = Start::new(&[Source::Task], PAYLOAD_MIN..=300).records(300);
        let run = context.torture.start(session.channel(), request)?;
        run.wait(PATIENCE)?;
        run.stop()?;
        context.torture.destroy()?;
        // What was written is there, then comes the end.
        session.drain_to_the_end(|cpu, record| ledger.record(cpu, record))?;
        let totals = ledger.close_run(&run.statuses()?)?;
        ensure!(totals.written > 0, "nothing was written");
        let events = wait_for(session.channel(), Duration::ZERO)?;
        ensure!(
            events == PollFlags::HUP,
            "poll() of a channel that has ended gave {events:?}"
        );
    }
    Ok(())
}

fn wait_for(channel: &Channel, timeout: Duration) -> Result<PollFlags> {
    let mut fds = [PollFd::new(channel, PollFlags::IN)];
    let timeout = rustix::event::Timespec::try_from(timeout)?;
    poll(&mut fds, Some(&timeout))?;
    Ok(fds[0].revents())
}

/// A channel has one reader at a time; the next one goes on where the one before it was.
fn one_reader_at_a_time(context: &mut Context) -> Verdict {
    let begin = now();
    context.torture.create(NAME, MODEL_PAGED, MODE_DISCARD, 0)?;
    let mut session = Session::attach(NAME, 16, begin)?;
    let again = Session::attach(NAME, 16, begin).err();
    let errno = again.and_then(|error| error.errno());
    ensure!(
        errno == Some(Errno::BUSY),
        "a second reader was given {errno:?}"
    );
    let mut ledger = Ledger::new();
    let write = |session: &Session, ledger: &mut Ledger| -> Result<()> {
        let request = Start::new(&[Source::Task], PAYLOAD_MIN..=100).records(50);
        let run = context.torture.start(session.channel(), request)?;
        run.wait(PATIENCE)?;
        ledger.expect(run.statuses()?);
        Ok(())
    };
    write(&session, &mut ledger)?;
    session.flush(|cpu, record| ledger.record(cpu, record))?;
    ledger.close_expected()?;
    write(&session, &mut ledger)?;
    drop(session);
    // It is a new verifier, which expects a beginning: so only that it can be read is looked at.
    let channel = Channel::attach(libweir::DEVICE.as_ref(), NAME, true)?;
    let mut records = 0;
    channel.flush()?;
    channel.drain(&mut channel.buffer(16), |bytes| {
        records += libweir::Page::parse(bytes)?.verify()?;
        Ok::<_, anyhow::Error>(())
    })?;
    ensure!(records == ledger.expected(), "{records} records were left");
    context.torture.destroy()?;
    Ok(())
}

/// Names that are none, and channels that are not there.
fn wrong_names(context: &mut Context) -> Verdict {
    let long = "x".repeat(NAME_LEN);
    for (name, wanted) in [("", Errno::INVAL), (long.as_str(), Errno::INVAL)] {
        let result = context.torture.create(name, MODEL_PAGED, MODE_DISCARD, 0);
        ensure!(
            result.as_ref().err() == Some(&wanted),
            "creating `{name}` gave {result:?}"
        );
        let errno = attach_errno(name);
        ensure!(errno == Some(wanted), "attaching `{name}` gave {errno:?}");
    }
    for (model, mode) in [(3, MODE_DISCARD), (MODEL_PAGED, 2)] {
        let result = context.torture.create(NAME, model, mode, 0);
        ensure!(
            result.as_ref().err() == Some(&Errno::INVAL),
            "model {model} and mode {mode} gave {result:?}"
        );
    }
    let errno = attach_errno(NAME);
    ensure!(
        errno == Some(Errno::NOENT),
        "attaching what is not there gave {errno:?}"
    );
    context.torture.create(NAME, MODEL_PAGED, MODE_DISCARD, 0)?;
    let second = Torture::open()?;
    let result = second.create(NAME, MODEL_PAGED, MODE_DISCARD, 0);
    ensure!(
        result.as_ref().err() == Some(&Errno::EXIST),
        "a second channel of a name gave {result:?}"
    );
    // Closing the descriptor destroys it.
    context.torture.destroy()?;
    second.create(NAME, MODEL_PAGED, MODE_DISCARD, 0)?;
    drop(second);
    let errno = attach_errno(NAME);
    ensure!(
        errno == Some(Errno::NOENT),
        "attaching what was destroyed gave {errno:?}"
    );
    Ok(())
}

fn attach_errno(name: &str) -> Option<Errno> {
    Channel::attach(libweir::DEVICE.as_ref(), name, true)
        .err()
        .and_then(|error| error.errno())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ktap::main(
        || Context::open(arguments.seconds),
        &[
            ("in_place", in_place),
            ("attached", attached),
            ("one_reader_at_a_time", one_reader_at_a_time),
            ("wrong_names", wrong_names),
        ],
    )
}
