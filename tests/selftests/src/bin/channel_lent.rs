// SPDX-License-Identifier: GPL-2.0

//! Pages that were spliced without a copy stay as they are for as long as anybody refers to them, wherever
//! they went; and go back to the channel then, if it is still there.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    Channel,
    ChannelOptions,
    Errno, //
};
use std::{
    fs::File,
    io::{
        Read,
        Seek, //
    },
    os::unix::net::UnixStream,
    process::ExitCode,
    thread::sleep,
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    ledger::Ledger,
    requests::still_works,
    session::now,
    spliced::{
        check_lent,
        finished_only,
        module_users,
        roomy,
        Books,
        Pipe, //
    },
    syscall::vmsplice_from,
    torture::{
        Source,
        Start,
        Torture,
        PAYLOAD_MIN, //
    },
    verifier::Verifier,
};

struct Context {
    torture: Torture,
    sources: Vec<Source>,
}

/// How long it may take until something happens that must.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pages that are kept: no more than half of the smallest pool.
const KEPT: usize = 4;

/// A pipe with [`KEPT`] pages of a channel that is just written.
fn filled(channel: &Channel, page_size: usize) -> Result<Pipe> {
    let pipe = Pipe::new(KEPT * page_size)?;
    let begin = Instant::now();
    while pipe.holds()? < KEPT * page_size {
        ensure!(begin.elapsed() < PATIENCE, "no pages come");
        match pipe.fill(channel, KEPT * page_size) {
            Err(Errno::AGAIN) => sleep(Duration::from_micros(100)),
            result => {
                result.context("splice()")?;
            }
        }
    }
    check_lent(channel, KEPT, "in the pipe")?;
    Ok(pipe)
}

/// Waits until a channel loses records since it has no page left; those that are lent still are.
fn until_dry(channel: &Channel) -> Verdict {
    let lost = || -> Result<u64> {
        libweir::cpu::possible()?
            .into_iter()
            .try_fold(0, |sum, cpu| Ok(sum + channel.status(cpu)?.lost[0]))
    };
    let (begin, before) = (Instant::now(), lost()?);
    while lost()? == before {
        ensure!(begin.elapsed() < PATIENCE, "the pool never runs dry");
        sleep(Duration::from_millis(1));
    }
    check_lent(channel, KEPT, "while the pool is dry")
}

/// Splices some pages while every CPU writes, and lets `keep` have them. What it returns in the end must be
/// what was written, and what else was written must be there too.
fn keeping(
    context: &Context,
    options: &ChannelOptions,
    keep: impl FnOnce(&Channel, Pipe) -> Result<Vec<u8>>,
) -> Verdict {
    let mut books = Books::open(options)?;
    let request = Start::new(&context.sources, PAYLOAD_MIN..=300);
    let run = context.torture.start(books.channel(), request)?;
    let pipe = filled(books.channel(), books.page_size)?;
    let bytes = keep(books.channel(), pipe)?;
    ensure!(
        bytes.len() == KEPT * books.page_size,
        "{} bytes came back",
        bytes.len()
    );
    run.stop()?;
    books.ledger.expect(run.statuses()?);
    check_lent(books.channel(), 0, "after everything came back")?;
    books.take(&bytes).context("the pages that were kept")?;
    // Losses that there was no page to tell of are told by the second.
    for _ in 0..2 {
        books.channel().flush()?;
        books.drain()?;
    }
    note(format_args!("{:?}", books.close()?));
    Ok(())
}

fn in_a_pipe(context: &mut Context) -> Verdict {
    keeping(context, &finished_only(), |channel, mut pipe| {
        // A page of which a part was read is lent as before.
        let mut bytes = pipe.take(1)?;
        until_dry(channel)?;
        bytes.extend(pipe.take(100)?);
        until_dry(channel)?;
        bytes.extend(pipe.empty()?);
        drop(pipe);
        Ok(bytes)
    })
}

/// What `tee()` and a second splice make of them.
fn in_several_pipes(context: &mut Context) -> Verdict {
    keeping(context, &finished_only(), |channel, mut pipe| {
        let size = pipe.holds()?;
        let mut second = Pipe::new(size)?;
        let mut third = Pipe::new(size)?;
        pipe.tee(&second)?;
        let first = pipe.empty()?;
        until_dry(channel)?;
        second.tee(&pipe)?;
        ensure!(second.empty()? == first, "a second pipe had something else");
        pipe.empty_to(third.to())?;
        until_dry(channel)?;
        let bytes = third.empty()?;
        ensure!(bytes == first, "a third pipe had something else");
        Ok(bytes)
    })
}

fn large_pages(context: &mut Context) -> Verdict {
    let options = ChannelOptions {
        page_size: 16 << 10,
        ..finished_only()
    };
    keeping(context, &options, |channel, mut pipe| {
        // Of the first page only its last part is left.
        let mut bytes = pipe.take(3 * 4096 + 1)?;
        until_dry(channel)?;
        bytes.extend(pipe.empty()?);
        Ok(bytes)
    })
}

fn by_vmsplice(context: &mut Context) -> Verdict {
    keeping(context, &finished_only(), |channel, pipe| {
        until_dry(channel)?;
        let mut bytes = vec![0; pipe.holds()?];
        let mut done = 0;
        while done < bytes.len() {
            done += vmsplice_from(pipe.from(), &mut bytes[done..])?;
        }
        Ok(bytes)
    })
}

/// The pipe is done with the pages, and the socket refers to them until they are received.
fn in_a_socket(context: &mut Context) -> Verdict {
    let no_sockets = [Errno::AFNOSUPPORT, Errno::NOSYS].map(Errno::raw_os_error);
    let (to, mut from) = match UnixStream::pair() {
        Err(error) if no_sockets.map(Some).contains(&error.raw_os_error()) => {
            return Err(skip("this kernel has no Unix sockets"));
        }
        pair => pair.context("making sockets")?,
    };
    keeping(context, &finished_only(), |channel, pipe| {
        let mut bytes = vec![0; pipe.holds()?];
        pipe.empty_to(&to)?;
        drop(pipe);
        check_lent(channel, KEPT, "in the socket")?;
        until_dry(channel)?;
        from.read_exact(&mut bytes)?;
        Ok(bytes)
    })
}

fn to_a_file(context: &mut Context) -> Verdict {
    keeping(context, &finished_only(), |channel, pipe| {
        until_dry(channel)?;
        let file = rustix::fs::memfd_create("pages", rustix::fs::MemfdFlags::CLOEXEC)?;
        pipe.empty_to(&file)?;
        let mut file = File::from(file);
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

/// The channel goes before the pages do: they are still what they were, and keep the module.
fn after_the_channel(context: &mut Context) -> Verdict {
    let users = module_users()?;
    for read in [true, false] {
        let begin = now();
        let mut books = Books::open(&roomy())?;
        books.write(&context.torture, 60)?;
        let page_size = books.page_size;
        let mut pipe = Pipe::new(64 * page_size)?;
        let count = pipe.fill(books.channel(), 64 * page_size)?;
        check_lent(books.channel(), count / page_size, "in the pipe")?;
        let Books {
            session,
            mut ledger,
            ..
        } = books;
        drop(session);
        let held = module_users()?;
        ensure!(
            held == users + 1,
            "{held} users of the module with pages in a pipe, {users} before"
        );
        // What was freed by mistake would be used for this.
        let mut other = Books::open(&roomy())?;
        other.write(&context.torture, 60)?;
        drop(other);
        if read {
            let mut verifier = Verifier::new(page_size, begin);
            for page in pipe.empty()?.chunks_exact(page_size) {
                verifier.page(page, now(), |cpu, record| ledger.record(cpu, record))?;
            }
            ledger.close_expected()?;
        }
        drop(pipe);
        let after = module_users()?;
        ensure!(
            after == users,
            "{after} users of the module after the pipe was closed, {users} before"
        );
    }
    Ok(())
}

/// It goes while every CPU writes to it, too.
fn after_a_channel_that_is_written(context: &mut Context) -> Verdict {
    let begin = now();
    let books = Books::open(&finished_only())?;
    let page_size = books.page_size;
    let request = Start::new(&context.sources, PAYLOAD_MIN..=300);
    let run = context.torture.start(books.channel(), request)?;
    let mut pipe = filled(books.channel(), page_size)?;
    drop(books);
    // The pool runs dry, as nobody can read it.
    sleep(Duration::from_millis(20));
    run.stop()?;
    let mut verifier = Verifier::new(page_size, begin);
    let mut ledger = Ledger::new();
    for page in pipe.empty()?.chunks_exact(page_size) {
        verifier.page(page, now(), |cpu, record| ledger.record(cpu, record))?;
    }
    still_works()
}

fn setup() -> Result<Context> {
    let torture = Torture::open()?;
    Ok(Context {
        sources: torture.sources()?,
        torture,
    })
}

fn main() -> ExitCode {
    ktap::main(
        setup,
        &[
            ("in_a_pipe", in_a_pipe),
            ("in_several_pipes", in_several_pipes),
            ("large_pages", large_pages),
            ("by_vmsplice", by_vmsplice),
            ("in_a_socket", in_a_socket),
            ("to_a_file", to_a_file),
            ("after_the_channel", after_the_channel),
            (
                "after_a_channel_that_is_written",
                after_a_channel_that_is_written,
            ),
        ],
    )
}
