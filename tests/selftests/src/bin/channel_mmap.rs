// SPDX-License-Identifier: GPL-2.0

//! Channels that are mapped: everything comes once, whatever the model; and who does not keep to the rules
//! harms nobody but themselves.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use clap::Parser;
use libweir::{
    uapi::{
        LayoutReq,
        MMAP_PAGES,
        MMAP_POSITIONS,
        MMAP_SLOTS,
        MODEL_PAGED,
        MODEL_PER_CPU,
        MODEL_SHARED,
        MODE_OVERWRITE, //
    },
    ChannelOptions,
    Errno,
    Ready, //
};
use rustix::mm::{
    MapFlags,
    MprotectFlags,
    ProtFlags, //
};
use std::{
    process::ExitCode,
    sync::atomic::Ordering,
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    exercise::{
        read_mapped,
        small,
        Context,
        Reading, //
    },
    ktap::{
        self,
        Verdict, //
    },
    ledger::Ledger,
    mapping::RawMap,
    requests::still_works,
    session::Session,
    torture::{
        Source,
        Start,
        PAYLOAD_MIN, //
    },
};

/// Tests that channels can be mapped.
///
/// Needs weir.ko and weir_torture.ko, and root.
#[derive(Parser)]
struct Arguments {
    /// How long each test writes.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.25)]
    seconds: f64,
}

const MODELS: [u32; 3] = [MODEL_PAGED, MODEL_PER_CPU, MODEL_SHARED];
const READ: ProtFlags = ProtFlags::READ;
/// How long writers of a few records may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Every part: where it begins, how long it is, and how it may be used.
fn parts(layout: &LayoutReq) -> [(&'static str, u64, usize, ProtFlags); 3] {
    let write = READ | ProtFlags::WRITE;
    [
        (
            "positions",
            MMAP_POSITIONS,
            layout.positions_size as usize,
            write,
        ),
        ("slots", MMAP_SLOTS, layout.slots_size as usize, READ),
        ("pages", MMAP_PAGES, layout.pages_size as usize, READ),
    ]
}

fn everything_comes_once(context: &mut Context) -> Verdict {
    for model in MODELS {
        for (options, payload) in [
            (small(), PAYLOAD_MIN..=300),
            (ChannelOptions::default(), 1500..=3900),
        ] {
            let options = ChannelOptions { model, ..options };
            let request = Start::new(&context.sources, payload);
            context
                .exercise(&options, request, Reading::Mapped)
                .with_context(|| format!("model {model}"))?;
        }
    }
    Ok(())
}

fn large_pages(context: &mut Context) -> Verdict {
    let options = ChannelOptions {
        page_size: 64 << 10,
        ..small()
    };
    let request = Start::new(&context.sources, PAYLOAD_MIN..=4000);
    context.exercise(&options, request, Reading::Mapped)?;
    Ok(())
}

/// Pages that `read()` has had do not come again, and from then on it refuses.
fn read_before(context: &mut Context) -> Verdict {
    for model in MODELS {
        let options = ChannelOptions { model, ..small() };
        let mut session = Session::open(&options, 2)?;
        let mut ledger = Ledger::new();
        let request = Start::new(&[Source::Task], PAYLOAD_MIN..=PAYLOAD_MIN).records(200);
        let run = context.torture.start(session.channel(), request)?;
        run.wait(PATIENCE)?;
        session.channel().flush()?;
        session.read(|cpu, record| ledger.record(cpu, record))?;
        read_mapped(&mut session, &mut ledger, || Ok(true), || Ok(()))?;
        ledger.close_run(&run.statuses()?)?;
        let mut buffer = session.channel().buffer(1);
        let result = session.channel().read_pages(&mut buffer);
        let errno = result.err().and_then(|error| error.errno());
        ensure!(
            errno == Some(Errno::BUSY),
            "read() of a mapped channel gave {errno:?}"
        );
    }
    Ok(())
}

/// Who waits is woken by finished pages, and told of records in open ones.
fn waiting(context: &mut Context) -> Verdict {
    let options = ChannelOptions {
        max_latency: Duration::from_millis(20),
        ..small()
    };
    let session = Session::open(&options, 1)?;
    let channel = session.channel();
    let mut reader = channel.map()?;
    let short = Some(Duration::from_millis(5));
    ensure!(
        reader.wait(short)? == Ready::Nothing,
        "an empty channel is ready"
    );
    let one = Start::new(&[Source::Task], PAYLOAD_MIN..=PAYLOAD_MIN).records(1);
    context.torture.start(channel, one)?.wait(PATIENCE)?;
    let begin = Instant::now();
    let ready = reader.wait(Some(Duration::from_secs(10)))?;
    ensure!(
        ready == Ready::Open,
        "records in open pages gave {ready:?} after {:?}",
        begin.elapsed()
    );
    ensure!(reader.next_page().is_none(), "an open page is finished");
    channel.flush()?;
    ensure!(reader.wait(short)? == Ready::Pages, "no page after a flush");
    let mut pages = 0;
    while reader.next_page().is_some() {
        pages += 1;
    }
    ensure!(pages > 0, "no page after a flush");
    reader.give_back();
    ensure!(
        reader.wait(short)? == Ready::Nothing,
        "ready after everything was read"
    );
    Ok(())
}

/// What is no mapping of a channel is none.
fn wrong_mappings(_: &mut Context) -> Verdict {
    let session = Session::open(&small(), 1)?;
    let channel = session.channel();
    let layout = channel.layout()?;
    let shared = MapFlags::SHARED;
    for (name, offset, len, access) in parts(&layout) {
        let map = |offset, len, access, flags| RawMap::new(channel, offset, len, access, flags);
        let refused = |what: &str, result: Result<RawMap, Errno>, wanted: Errno| {
            let errno = result.err();
            ensure!(
                errno == Some(wanted),
                "{name} {what} gave {errno:?} instead of {wanted:?}"
            );
            Ok(())
        };
        let page = rustix::param::page_size();
        let inval = Errno::INVAL;
        let longer = map(offset, len + page, access, shared);
        refused("with a page more", longer, inval)?;
        let shorter = map(offset, len - page, access, shared);
        // There is no mapping of nothing at all.
        refused("with a page less", shorter, inval)?;
        let later = map(offset + page as u64, len, access, shared);
        refused("from the second page on", later, inval)?;
        let private = map(offset, len, READ, MapFlags::PRIVATE);
        refused("privately", private, inval)?;
        let executable = map(offset, len, access | ProtFlags::EXEC, shared);
        refused("to execute", executable, Errno::ACCESS)?;
        let mut other = access;
        other.toggle(ProtFlags::WRITE);
        let other = map(offset, len, other, shared);
        refused("with the other access", other, Errno::ACCESS)?;
    }
    let result = RawMap::new(channel, 0, 4096, READ, shared);
    ensure!(result.is_err(), "there is something at offset 0");
    // Nothing of that has made the channel a mapped one.
    session.channel().flush()?;

    let overwriting = ChannelOptions {
        mode: MODE_OVERWRITE,
        ..small()
    };
    let session = Session::open(&overwriting, 1)?;
    let errno = session
        .channel()
        .map()
        .err()
        .and_then(|error| error.errno());
    ensure!(
        errno == Some(Errno::INVAL),
        "mapping a channel that overwrites gave {errno:?}"
    );
    still_works()
}

/// What is mapped stays as it is: it is not written, not made longer, not inherited; and it outlives the
/// descriptor.
fn mappings_stay(context: &mut Context) -> Verdict {
    let session = Session::open(&small(), 1)?;
    let channel = session.channel();
    let layout = channel.layout()?;
    let mut maps = Vec::new();
    for (name, offset, len, access) in parts(&layout) {
        let mut map = RawMap::new(channel, offset, len, access, MapFlags::SHARED)?;
        if !access.contains(ProtFlags::WRITE) {
            let result = map.protect(MprotectFlags::READ | MprotectFlags::WRITE);
            ensure!(
                result == Err(Errno::ACCESS),
                "making {name} writable gave {result:?}"
            );
        }
        let result = map.protect(MprotectFlags::READ | MprotectFlags::EXEC);
        ensure!(
            result == Err(Errno::ACCESS),
            "making {name} executable gave {result:?}"
        );
        ensure!(map.grow().is_err(), "{name} became longer");
        ensure!(!map.is_inherited()?, "a child has {name} too");
        maps.push(map);
    }
    let request = Start::new(&context.sources, PAYLOAD_MIN..=300);
    let run = context.torture.start(channel, request)?;
    drop(session);
    std::thread::sleep(Duration::from_millis(20));
    for map in &maps {
        let sum = map.words().iter().fold(0u64, |sum, word| {
            sum.wrapping_add(word.load(Ordering::Relaxed))
        });
        std::hint::black_box(sum);
    }
    run.stop()?;
    drop(maps);
    still_works()
}

/// Positions that nobody could be at, while every CPU writes.
fn hostile_positions(context: &mut Context) -> Verdict {
    for model in MODELS {
        let options = ChannelOptions { model, ..small() };
        let session = Session::open(&options, 1)?;
        let channel = session.channel();
        let layout = channel.layout()?;
        let [(_, offset, len, access), ..] = parts(&layout);
        let map = RawMap::new(channel, offset, len, access, MapFlags::SHARED)?;
        let request = Start::new(&context.sources, PAYLOAD_MIN..=300);
        let run = context.torture.start(channel, request)?;
        let begin = Instant::now();
        let mut garbage = 0x9e37_79b9_7f4a_7c15u64;
        while begin.elapsed() < context.duration {
            for (index, word) in map.words().iter().enumerate() {
                garbage ^= garbage << 13;
                garbage ^= garbage >> 7;
                garbage ^= garbage << 17;
                let value = match garbage % 8 {
                    0 => u64::MAX,
                    1 => 0,
                    2 => 1 << 63,
                    3 => (1 << 63) - 1,
                    4 => garbage,
                    5 => word.load(Ordering::Relaxed).wrapping_sub(1),
                    _ => word.load(Ordering::Relaxed).wrapping_add(garbage >> 60),
                };
                if index < 4 * layout.queues as usize {
                    word.store(value, Ordering::Relaxed);
                }
            }
            let _ = channel.poll(Some(Duration::ZERO));
            channel.flush()?;
        }
        run.stop()?;
        for status in run.statuses()? {
            let refused: u64 = status.refused.iter().sum();
            ensure!(status.attempted == status.written + refused, "{status:?}");
        }
        still_works().with_context(|| format!("model {model}"))?;
    }
    Ok(())
}

/// A reader that never gives anything back loses what it does not read, and nothing else happens.
fn a_reader_that_stops(context: &mut Context) -> Verdict {
    let mut session = Session::open(&small(), 1)?;
    let mut ledger = Ledger::new();
    let request = Start::new(&[Source::Task], PAYLOAD_MIN..=PAYLOAD_MIN).records(5000);
    let run = {
        let (channel, _) = session.split();
        let _reader = channel.map()?;
        let run = context.torture.start(channel, request)?;
        run.wait(PATIENCE)?;
        run
    };
    read_mapped(&mut session, &mut ledger, || Ok(true), || Ok(()))?;
    let totals = ledger.close_run(&run.statuses()?)?;
    ensure!(totals.refused[0] > 0, "the channel was never full");
    ledger.check_channel(&session)
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ktap::main(
        || Context::open(arguments.seconds),
        &[
            ("everything_comes_once", everything_comes_once),
            ("large_pages", large_pages),
            ("read_before", read_before),
            ("waiting", waiting),
            ("wrong_mappings", wrong_mappings),
            ("mappings_stay", mappings_stay),
            ("hostile_positions", hostile_positions),
            ("a_reader_that_stops", a_reader_that_stops),
        ],
    )
}
