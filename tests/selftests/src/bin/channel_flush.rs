// SPDX-License-Identifier: GPL-2.0

//! When records become readable: at once by a flush, after the channel's latency by themselves; and how
//! `read()` and `poll()` answer while they are not.

use anyhow::{
    bail,
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    ChannelOptions,
    Errno, //
};
use std::{
    process::ExitCode,
    thread,
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

/// Longer than any test runs.
const NEVER: Duration = Duration::from_secs(3600);

/// A latency that is soon over, but not before a test gets anywhere.
const SOON: Duration = Duration::from_millis(50);

/// What is to be readable by now is not after so long.
const PATIENCE: Duration = Duration::from_secs(30);

fn options(max_latency: Duration) -> ChannelOptions {
    ChannelOptions {
        max_latency,
        nonblocking: true,
        ..Default::default()
    }
}

/// Lets every CPU write so few records that they stay in its open page.
fn few(torture: &Torture, session: &Session, ledger: &mut Ledger) -> Result<()> {
    let request = Start::new(&[Source::Task], PAYLOAD_MIN..=60).records(10);
    write(torture, session, ledger, request)
}

fn write(torture: &Torture, session: &Session, ledger: &mut Ledger, request: Start) -> Result<()> {
    let run = torture.start(session.channel(), request)?;
    run.wait(PATIENCE)?;
    let statuses = run.statuses()?;
    for status in &statuses {
        ensure!(
            status.written == status.attempted,
            "refused by an empty channel: {status:?}"
        );
    }
    ledger.expect(statuses);
    Ok(())
}

/// That a nonblocking read says that there is nothing.
fn nothing(session: &mut Session) -> Verdict {
    let result = session.read(|_, _| Ok(()));
    let errno = result.as_ref().err().and_then(|error| {
        error
            .downcast_ref::<libweir::Error>()
            .and_then(libweir::Error::errno)
    });
    ensure!(
        errno == Some(Errno::AGAIN),
        "reading nothing gave {result:?}"
    );
    Ok(())
}

fn empty(_: &mut Torture) -> Verdict {
    let mut session = Session::open(&options(Duration::from_millis(1)), 4)?;
    nothing(&mut session)?;
    let begin = Instant::now();
    let ready = session.channel().poll(Some(Duration::from_millis(50)))?;
    ensure!(!ready, "poll() says that an empty channel is readable");
    ensure!(
        begin.elapsed() >= Duration::from_millis(50),
        "poll() came back early"
    );
    session.channel().flush()?;
    nothing(&mut session)
}

fn short_buffer(torture: &mut Torture) -> Verdict {
    let mut session = Session::open(&options(NEVER), 4)?;
    let mut ledger = Ledger::new();
    few(torture, &session, &mut ledger)?;
    session.channel().flush()?;
    let page = session.channel().granted().page_size as usize;
    for len in [1, 8, page - 1] {
        let result = rustix::io::read(session.channel(), &mut vec![0; len][..]);
        ensure!(
            result == Err(Errno::INVAL),
            "a read of {len} bytes gave {result:?}"
        );
    }
    // Nothing was taken out by that.
    session.drain(|cpu, record| ledger.record(cpu, record))?;
    ledger.close_expected()?;
    Ok(())
}

fn flush(torture: &mut Torture) -> Verdict {
    let mut session = Session::open(&options(NEVER), 64)?;
    let mut ledger = Ledger::new();
    for _ in 0..20 {
        few(torture, &session, &mut ledger)?;
        nothing(&mut session).context("before the flush")?;
        session.channel().flush()?;
        session.drain(|cpu, record| ledger.record(cpu, record))?;
        ledger.close_expected().context("after the flush")?;
        nothing(&mut session).context("after all was read")?;
    }
    ledger.check_channel(&session)
}

/// What was written before a flush is readable after it, though others go on writing.
fn flush_while_writing(torture: &mut Torture) -> Verdict {
    let mut session = Session::open(&options(NEVER), 256)?;
    let mut ledger = Ledger::new();
    let sources = [Source::Task, Source::Softirq, Source::Irq];
    let request =
        Start::new(&sources, PAYLOAD_MIN..=200).interval(Source::Task, Duration::from_micros(50));
    let run = torture.start(session.channel(), request)?;
    for _ in 0..50 {
        let before = run.statuses()?;
        session.channel().flush()?;
        session.drain(|cpu, record| ledger.record(cpu, record))?;
        for status in before {
            let read = ledger.read(status.cpu, status.source);
            ensure!(
                read >= status.written,
                "{read} were read after a flush of {status:?}"
            );
        }
    }
    run.stop()?;
    session.flush(|cpu, record| ledger.record(cpu, record))?;
    ledger.close_run(&run.statuses()?)?;
    ledger.check_channel(&session)
}

/// Reads, by `poll()` or not, until all that was written is there, without a flush.
fn arrive(session: &mut Session, ledger: &mut Ledger, wanted: u64, poll: bool) -> Verdict {
    let begin = Instant::now();
    let mut records = 0;
    while records < wanted {
        ensure!(
            begin.elapsed() < PATIENCE,
            "{records} of {wanted} records are readable after {PATIENCE:?}"
        );
        if poll && !session.channel().poll(Some(PATIENCE))? {
            continue;
        }
        session.read(|cpu, record| {
            records += 1;
            ledger.record(cpu, record)
        })?;
    }
    note(format_args!(
        "{wanted} records were readable {:?} after they were written",
        begin.elapsed()
    ));
    Ok(())
}

fn quiet_cpus_poll(torture: &mut Torture) -> Verdict {
    quiet_cpus(torture, &options(SOON), true)
}

fn quiet_cpus_block(torture: &mut Torture) -> Verdict {
    let options = ChannelOptions {
        nonblocking: false,
        ..options(SOON)
    };
    quiet_cpus(torture, &options, false)
}

/// Records of CPUs that write no more come by themselves; and what they write into the rest of the same
/// page comes after them.
fn quiet_cpus(torture: &Torture, options: &ChannelOptions, poll: bool) -> Verdict {
    let mut session = Session::open(options, 64)?;
    let mut ledger = Ledger::new();
    for _ in 0..3 {
        few(torture, &session, &mut ledger)?;
        let wanted = ledger.expected();
        arrive(&mut session, &mut ledger, wanted, poll)?;
        ledger.close_expected()?;
    }
    let sum = session.verifier().sum();
    ensure!(
        sum.partial > 0,
        "all pages were whole, so this has shown nothing: {sum:?}"
    );
    session.flush(|cpu, record| ledger.record(cpu, record))?;
    ledger.check_channel(&session)
}

/// A reader that sleeps in `read()` is woken by the first page that is full.
fn blocked_reader(torture: &mut Torture) -> Verdict {
    let options = ChannelOptions {
        nonblocking: false,
        ..options(NEVER)
    };
    let mut session = Session::open(&options, 4)?;
    let cpu = libweir::cpu::online()?[0];
    let request = Start::new(&[Source::Irq], PAYLOAD_MIN..=200).on(cpu);
    let run = torture.start(session.channel(), request.interval(Source::Irq, SOON / 50))?;
    // Should it never wake up, the end of this process ends it.
    let reader = thread::spawn(move || {
        let mut ledger = Ledger::new();
        let pages = session.read(|cpu, record| ledger.record(cpu, record))?;
        Ok::<_, anyhow::Error>((session, ledger, pages))
    });
    let begin = Instant::now();
    while !reader.is_finished() {
        ensure!(
            begin.elapsed() < PATIENCE,
            "read() still sleeps after {PATIENCE:?}: {:?}",
            run.statuses()?
        );
        thread::sleep(Duration::from_millis(5));
    }
    run.stop()?;
    let Ok(result) = reader.join() else {
        bail!("the reader panicked");
    };
    let (mut session, mut ledger, pages) = result?;
    ensure!(pages > 0, "read() gave no page");
    session.flush(|cpu, record| ledger.record(cpu, record))?;
    ledger.close_run(&run.statuses()?)?;
    ledger.check_channel(&session)
}

fn several_pages(torture: &mut Torture) -> Verdict {
    let mut session = Session::open(&options(NEVER), 3)?;
    let mut ledger = Ledger::new();
    let cpu = libweir::cpu::online()?[0];
    let page = session.channel().granted().page_size;
    // Two records fill a page, the last of which stays open.
    let request = Start::new(&[Source::Task], page / 3..=page / 3)
        .on(cpu)
        .records(2 * 7 + 1);
    write(torture, &session, &mut ledger, request)?;

    // Three and a half pages take three.
    let mut bytes = vec![0; page as usize * 7 / 2];
    let read = rustix::io::read(session.channel(), &mut bytes[..])?;
    ensure!(
        read == 3 * page as usize,
        "a read of three and a half pages gave {read} bytes"
    );
    let mut parts = Vec::new();
    for page in bytes[..read].chunks_exact(page as usize) {
        session.page(page, |cpu, record| ledger.record(cpu, record))?;
    }
    for _ in 0..2 {
        parts.push(session.read(|cpu, record| ledger.record(cpu, record))?);
    }
    ensure!(parts == [3, 1], "after three of seven pages came {parts:?}");
    nothing(&mut session)?;
    session.flush(|cpu, record| ledger.record(cpu, record))?;
    ledger.close_expected()?;
    ledger.check_channel(&session)
}

/// `poll()` waits for as many pages as the watermark says.
fn watermark(torture: &mut Torture) -> Verdict {
    let options = ChannelOptions {
        watermark: 4,
        ..options(NEVER)
    };
    let mut session = Session::open(&options, 16)?;
    let mut ledger = Ledger::new();
    let cpu = libweir::cpu::online()?[0];
    let page = session.channel().granted().page_size;
    let request = Start::new(&[Source::Irq], page / 3..=page / 3).on(cpu);
    let ready = |session: &Session| session.channel().poll(Some(Duration::ZERO));
    // Two finished pages; with the next four records four.
    write(torture, &session, &mut ledger, request.records(5))?;
    ensure!(
        !ready(&session)?,
        "poll() says readable with 2 pages and a watermark of 4"
    );
    let task = Start {
        sources: 1 << Source::Task as u32,
        ..request
    };
    write(torture, &session, &mut ledger, task.records(4))?;
    ensure!(
        ready(&session)?,
        "poll() says not readable with 4 pages and a watermark of 4"
    );
    session.flush(|cpu, record| ledger.record(cpu, record))?;
    ensure!(!ready(&session)?, "poll() says readable when all was read");
    ledger.close_expected()?;
    ledger.check_channel(&session)
}

/// A reader that gives memory which is not there loses nothing by it.
fn unmapped_buffer(torture: &mut Torture) -> Verdict {
    let mut session = Session::open(&options(NEVER), 16)?;
    let mut ledger = Ledger::new();
    few(torture, &session, &mut ledger)?;
    session.channel().flush()?;
    let page = session.channel().granted().page_size as usize;
    for accessible in [0, 8, page - 8] {
        let result = weir_selftests::syscall::read_into_guard(session.channel(), page, accessible)?;
        ensure!(
            result == Err(Errno::FAULT),
            "a read into {accessible} accessible bytes gave {result:?}"
        );
    }
    session.drain(|cpu, record| ledger.record(cpu, record))?;
    ledger.close_expected()?;
    ledger.check_channel(&session)
}

fn main() -> ExitCode {
    ktap::main(
        Torture::open,
        &[
            ("empty", empty),
            ("short_buffer", short_buffer),
            ("flush", flush),
            ("flush_while_writing", flush_while_writing),
            ("quiet_cpus_poll", quiet_cpus_poll),
            ("quiet_cpus_block", quiet_cpus_block),
            ("blocked_reader", blocked_reader),
            ("several_pages", several_pages),
            ("watermark", watermark),
            ("unmapped_buffer", unmapped_buffer),
        ],
    )
}
