// SPDX-License-Identifier: GPL-2.0

//! Pages that are spliced without a copy: which they are, how many, and that everything comes once and whole.
//! What becomes of them in other places is the affair of `channel_lent`.

use anyhow::{
    bail,
    ensure,
    Context as _,
    Result, //
};
use clap::Parser;
use libweir::{
    uapi::{
        LOST_CAUSES,
        MMAP_PAGES,
        MODEL_PAGED,
        MODEL_PER_CPU,
        MODEL_SHARED,
        MODE_DISCARD,
        MODE_OVERWRITE, //
    },
    ChannelOptions,
    Errno, //
};
use rustix::mm::{
    MapFlags,
    ProtFlags, //
};
use std::{
    process::ExitCode,
    thread::{
        scope,
        sleep, //
    },
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
    mapping::RawMap,
    spliced::{
        check_lent,
        finished_only,
        roomy,
        Books,
        Pipe, //
    },
    torture::{
        Source,
        Start,
        PAYLOAD_MIN, //
    },
};

/// Tests that pages can be spliced out of channels.
///
/// Needs weir.ko and weir_torture.ko, and root.
#[derive(Parser)]
struct Arguments {
    /// How long each test writes.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.25)]
    seconds: f64,
}

const MODELS: [u32; 3] = [MODEL_PAGED, MODEL_PER_CPU, MODEL_SHARED];
const MODES: [u32; 2] = [MODE_DISCARD, MODE_OVERWRITE];
/// How long writers may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Records of each CPU that are no more than half of a [`roomy`] pool.
const FEW: u64 = 60;
/// Pages that take these, and more.
const PLENTY: usize = 64;

/// A pool lends; what has rings copies; the stream is the same.
fn pages_are_lent(context: &mut Context) -> Verdict {
    for model in MODELS {
        for mode in MODES {
            let options = ChannelOptions {
                model,
                mode,
                ..roomy()
            };
            let mut books = Books::open(&options)?;
            books.write(&context.torture, FEW)?;
            let size = PLENTY * books.page_size;
            let mut pipe = Pipe::new(size)?;
            let count = pipe.fill(books.channel(), size)?;
            ensure!(count >= books.page_size, "only {count} bytes were spliced");
            let pages = match (model, mode) {
                (MODEL_PAGED, MODE_DISCARD) => count / books.page_size,
                _ => 0,
            };
            check_lent(books.channel(), pages, "in the pipe")?;
            let bytes = pipe.empty()?;
            check_lent(books.channel(), 0, "after the pipe was read")?;
            books.take(&bytes)?;
            let result = pipe.fill(books.channel(), size);
            ensure!(
                result == Err(Errno::AGAIN),
                "an empty channel gave {result:?}"
            );
            books
                .close()
                .with_context(|| format!("model {model}, mode {mode}"))?;
        }
    }
    Ok(())
}

/// Half of a pool is lent, and the rest copied. Who holds it makes writers lose records, which count, and
/// when it is let go, everything is as it was.
fn half_of_a_pool(context: &mut Context) -> Verdict {
    const FLOOD: u64 = 2000;
    let mut books = Books::open(&finished_only())?;
    let pages = books.channel().granted().pages as usize;
    let size = 2 * pages * books.page_size;
    let mut pipe = Pipe::new(size)?;
    for round in 0..3 {
        books.write(&context.torture, FLOOD)?;
        let count = pipe.fill(books.channel(), size)?;
        ensure!(
            count > pages / 2 * books.page_size,
            "a pool of {pages} pages that was full gave {count} bytes"
        );
        check_lent(books.channel(), pages / 2, "of a full pool")?;
        let result = pipe.fill(books.channel(), size);
        ensure!(
            result == Err(Errno::AGAIN),
            "an empty channel gave {result:?}"
        );
        let mut kept = Pipe::new(size)?;
        pipe.tee(&kept)?;
        let bytes = pipe.empty()?;
        books.take(&bytes)?;
        let first = books.ledger.close_expected()?;
        ensure!(first.refused[0] > 0, "the pool was never full");

        check_lent(books.channel(), pages / 2, "that a second pipe has")?;
        books.write(&context.torture, FLOOD)?;
        books.drain()?;
        let second = books.ledger.close_expected()?;
        ensure!(
            second.refused[0] > 0 && second.written < first.written,
            "with half of the pool held {second:?}, without that {first:?}"
        );
        ensure!(
            kept.empty()? == bytes,
            "pages changed while they were lent, in round {round}"
        );
        check_lent(books.channel(), 0, "after they were read")?;
    }
    books.write(&context.torture, 20)?;
    books.drain()?;
    let totals = books.close()?;
    ensure!(
        totals.refused == [0; LOST_CAUSES],
        "a channel that was read is full: {totals:?}"
    );
    Ok(())
}

/// Splices that wait for a finished page get it without a copy all the same.
fn waiting_for_a_page(context: &mut Context) -> Verdict {
    let mut books = Books::open(&roomy())?;
    let size = PLENTY * books.page_size;
    let mut pipe = Pipe::new(size)?;
    let request = Start::new(&[Source::Task], PAYLOAD_MIN..=500).records(FEW);
    let torture = &context.torture;
    let channel = books.session.channel();
    let (count, statuses) = scope(|scope| -> Result<_> {
        let writer = scope.spawn(|| {
            sleep(Duration::from_millis(30));
            let run = torture.start(channel, request)?;
            run.wait(PATIENCE)?;
            channel.flush()?;
            run.statuses()
        });
        let count = pipe.wait_and_fill(channel, size);
        let statuses = writer.join().expect("it returns what is wrong")?;
        Ok((count?, statuses))
    })?;
    books.ledger.expect(statuses);
    ensure!(
        count >= books.page_size && count % books.page_size == 0,
        "splice() gave {count}"
    );
    check_lent(books.channel(), count / books.page_size, "after waiting")?;
    let bytes = pipe.empty()?;
    books.take(&bytes)?;
    books.drain()?;
    books.close()?;
    Ok(())
}

/// Splices wait no longer for a quiet CPU than reads do; what is in its open page is copied.
fn waiting_for_records(context: &mut Context) -> Verdict {
    let options = ChannelOptions {
        max_latency: Duration::from_millis(20),
        ..small()
    };
    let mut books = Books::open(&options)?;
    let size = PLENTY * books.page_size;
    let mut pipe = Pipe::new(size)?;
    let one = Start::new(&[Source::Task], PAYLOAD_MIN..=PAYLOAD_MIN).records(1);
    let run = context.torture.start(books.channel(), one)?;
    run.wait(PATIENCE)?;
    books.ledger.expect(run.statuses()?);
    while books.ledger.expected() > books.session.verifier().sum().records {
        let count = pipe.wait_and_fill(books.channel(), size)?;
        ensure!(
            count >= books.page_size && count % books.page_size == 0,
            "splice() gave {count}"
        );
        check_lent(books.channel(), 0, "of open pages")?;
        let bytes = pipe.empty()?;
        books.take(&bytes)?;
    }
    ensure!(
        books.session.verifier().sum().partial > 0,
        "no page was open, so this has shown nothing"
    );
    books.close()?;
    Ok(())
}

/// Sizes that are no pages are refused or rounded down.
fn sizes(context: &mut Context) -> Verdict {
    let mut books = Books::open(&roomy())?;
    books.write(&context.torture, FEW)?;
    let mut pipe = Pipe::new(PLENTY * 4096)?;
    let mut bytes = Vec::new();
    for (len, wanted) in [
        (1, Err(Errno::INVAL)),
        (4095, Err(Errno::INVAL)),
        (4096, Ok(4096)),
        (4097, Ok(4096)),
        (3 * 4096 - 1, Ok(2 * 4096)),
    ] {
        let result = pipe.fill(books.channel(), len);
        ensure!(result == wanted, "splicing {len} bytes gave {result:?}");
        bytes.extend(pipe.empty()?);
    }
    loop {
        match pipe.fill(books.channel(), usize::MAX >> 1) {
            Ok(_) => bytes.extend(pipe.empty()?),
            Err(Errno::AGAIN) => break,
            Err(errno) => bail!("splice() gave {errno}"),
        }
    }
    books.take(&bytes)?;
    books.close()?;
    Ok(())
}

/// A page that takes many buffers of a pipe is there as a whole or not at all.
fn large_pages(context: &mut Context) -> Verdict {
    const LARGE: usize = 64 << 10;
    let options = ChannelOptions {
        page_size: LARGE as u32,
        ..finished_only()
    };
    let mut books = Books::open(&options)?;
    books.write(&context.torture, 400)?;
    let small = Pipe::new(4096)?;
    let result = small.fill(books.channel(), 1 << 20);
    ensure!(
        result == Err(Errno::INVAL),
        "a pipe smaller than a page gave {result:?}"
    );
    let mut pipe = Pipe::new(LARGE)?;
    let mut bytes = Vec::new();
    let result = pipe.fill(books.channel(), 1 << 20);
    ensure!(result == Ok(LARGE), "a pipe for one page gave {result:?}");
    check_lent(books.channel(), 1, "in the pipe")?;
    // There is room for a part of the next one.
    bytes.extend(pipe.take(2 * 4096 + 5)?);
    let result = pipe.fill(books.channel(), 1 << 20);
    ensure!(
        result == Err(Errno::AGAIN),
        "a pipe with room for a part of a page gave {result:?}"
    );
    check_lent(books.channel(), 1, "of which a part was read")?;
    loop {
        bytes.extend(pipe.empty()?);
        check_lent(books.channel(), 0, "after it was read")?;
        match pipe.fill(books.channel(), 1 << 20) {
            Ok(count) => ensure!(count == LARGE, "a pipe for one page gave {count}"),
            Err(Errno::AGAIN) => break,
            Err(errno) => bail!("splice() gave {errno}"),
        }
    }
    books.take(&bytes)?;
    books.close()?;
    Ok(())
}

/// Pages are mapped or lent, never both.
fn mapped(context: &mut Context) -> Verdict {
    let mut books = Books::open(&roomy())?;
    books.write(&context.torture, FEW)?;
    let size = PLENTY * books.page_size;
    let mut pipe = Pipe::new(size)?;
    pipe.fill(books.channel(), books.page_size)?;
    let layout = books.channel().layout()?;
    let map = |books: &Books| {
        RawMap::new(
            books.channel(),
            MMAP_PAGES,
            layout.pages_size as usize,
            ProtFlags::READ,
            MapFlags::SHARED,
        )
    };
    let errno = map(&books).err();
    ensure!(
        errno == Some(Errno::BUSY),
        "mapping pages of which one is lent gave {errno:?}"
    );
    let mut bytes = pipe.empty()?;
    let pages = map(&books)?;
    // They are copied from now on.
    pipe.fill(books.channel(), size)?;
    check_lent(books.channel(), 0, "of pages that are mapped")?;
    bytes.extend(pipe.empty()?);
    books.take(&bytes)?;
    books.close()?;
    drop(pages);
    let reader = books.channel().map()?;
    let result = pipe.fill(books.channel(), size);
    ensure!(
        result == Err(Errno::BUSY),
        "splicing from a channel whose reader maps it gave {result:?}"
    );
    drop(reader);
    Ok(())
}

/// While every CPU writes at full speed.
fn everything_comes_once(context: &mut Context) -> Verdict {
    for mode in MODES {
        for model in MODELS {
            for (options, payload) in [
                (small(), PAYLOAD_MIN..=300),
                (ChannelOptions::default(), 1500..=3900),
            ] {
                let options = ChannelOptions {
                    model,
                    mode,
                    ..options
                };
                let request = Start::new(&context.sources, payload);
                context
                    .exercise(&options, request, Reading::Spliced)
                    .with_context(|| format!("model {model}, mode {mode}"))?;
            }
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ktap::main(
        || Context::open(arguments.seconds),
        &[
            ("pages_are_lent", pages_are_lent),
            ("half_of_a_pool", half_of_a_pool),
            ("waiting_for_a_page", waiting_for_a_page),
            ("waiting_for_records", waiting_for_records),
            ("sizes", sizes),
            ("large_pages", large_pages),
            ("mapped", mapped),
            ("everything_comes_once", everything_comes_once),
        ],
    )
}
