// SPDX-License-Identifier: GPL-2.0

//! Taking pages out of a channel by calls: reads of any size, and splices to pipes and files. Whatever is
//! asked for, the stream is the same.

use anyhow::{
    ensure,
    Result, //
};
use libweir::{
    ChannelOptions,
    Errno, //
};
use rustix::{
    fd::{
        AsFd,
        OwnedFd, //
    },
    pipe::{
        splice,
        SpliceFlags, //
    },
};
use std::{
    fs::File,
    io::{
        Read,
        Seek, //
    },
    process::ExitCode,
    time::Duration, //
};
use weir_selftests::{
    exercise::small,
    ktap::{
        self,
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

const PATIENCE: Duration = Duration::from_secs(30);

/// A channel with some finished pages in it.
fn filled(torture: &Torture) -> Result<(Session, Ledger)> {
    let options = ChannelOptions {
        nonblocking: true,
        max_latency: Duration::from_secs(3600),
        ..small()
    };
    let session = Session::open(&options, 64)?;
    let mut ledger = Ledger::new();
    let request = Start::new(&[Source::Task], PAYLOAD_MIN..=500).records(60);
    let run = torture.start(session.channel(), request)?;
    run.wait(PATIENCE)?;
    ledger.expect(run.statuses()?);
    session.channel().flush()?;
    Ok((session, ledger))
}

/// Takes the pages of `bytes`, which are all that were written.
fn check(session: &mut Session, ledger: &mut Ledger, bytes: &[u8]) -> Verdict {
    let page_size = session.channel().granted().page_size as usize;
    ensure!(
        bytes.len() % page_size == 0,
        "{} bytes are no pages",
        bytes.len()
    );
    for page in bytes.chunks_exact(page_size) {
        session.page(page, |cpu, record| ledger.record(cpu, record))?;
    }
    ledger.close_expected()?;
    ledger.check_channel(session)
}

/// Reads of every size give whole pages, or say that not even one fits and leave everything there.
fn sizes(torture: &mut Torture) -> Verdict {
    for size in [1, 7, 4095, 4096, 4097, 12287, 65536, 1 << 20] {
        let (mut session, mut ledger) = filled(torture)?;
        let page_size = session.channel().granted().page_size as usize;
        let mut buffer = vec![0; size];
        let mut bytes = Vec::new();
        loop {
            match rustix::io::read(session.channel(), &mut buffer[..]) {
                Ok(read) => {
                    ensure!(
                        read > 0 && read % page_size == 0,
                        "a read of {size} bytes gave {read}"
                    );
                    bytes.extend_from_slice(&buffer[..read]);
                }
                Err(Errno::AGAIN) if size >= page_size => break,
                Err(Errno::INVAL) if size < page_size => {
                    // What was refused is still there.
                    buffer = vec![0; page_size];
                }
                Err(Errno::AGAIN) if buffer.len() == page_size => break,
                Err(errno) => anyhow::bail!("a read of {size} bytes gave {errno}"),
            }
        }
        check(&mut session, &mut ledger, &bytes)?;
    }
    Ok(())
}

/// Splices until nothing is there; the pipe is read into `bytes` each time.
fn splice_all(session: &Session, from: &OwnedFd, to: &OwnedFd, bytes: &mut Vec<u8>) -> Result<()> {
    let mut reader = File::from(from.try_clone()?);
    loop {
        let spliced = splice(
            session.channel(),
            None,
            to,
            None,
            1 << 20,
            SpliceFlags::NONBLOCK,
        );
        match spliced {
            Ok(count) if count > 0 => {
                let start = bytes.len();
                bytes.resize(start + count, 0);
                reader.read_exact(&mut bytes[start..])?;
            }
            Err(Errno::AGAIN) => return Ok(()),
            other => anyhow::bail!("splice() gave {other:?}"),
        }
    }
}

fn splice_to_a_pipe(torture: &mut Torture) -> Verdict {
    let (mut session, mut ledger) = filled(torture)?;
    let (from, to) = rustix::pipe::pipe()?;
    let mut bytes = Vec::new();
    splice_all(&session, &from, &to, &mut bytes)?;
    check(&mut session, &mut ledger, &bytes)
}

/// A pipe that takes nothing loses nothing.
fn splice_to_a_full_pipe(torture: &mut Torture) -> Verdict {
    let (mut session, mut ledger) = filled(torture)?;
    let (from, to) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK)?;
    let mut stuffed = 0;
    while let Ok(written) = rustix::io::write(&to, &[0; 4096]) {
        stuffed += written;
    }
    let result = splice(
        session.channel(),
        None,
        &to,
        None,
        1 << 20,
        SpliceFlags::NONBLOCK,
    );
    ensure!(
        result == Err(Errno::AGAIN),
        "splicing to a full pipe gave {result:?}"
    );
    let mut drained = vec![0; stuffed];
    File::from(from.try_clone()?).read_exact(&mut drained)?;
    let mut bytes = Vec::new();
    splice_all(&session, &from, &to, &mut bytes)?;
    check(&mut session, &mut ledger, &bytes)
}

fn splice_to_a_file(torture: &mut Torture) -> Verdict {
    let (mut session, mut ledger) = filled(torture)?;
    let (from, to) = rustix::pipe::pipe()?;
    let mut file = tempfile_in_memory()?;
    loop {
        match splice(
            session.channel(),
            None,
            &to,
            None,
            1 << 16,
            SpliceFlags::NONBLOCK,
        ) {
            Ok(mut count) => {
                while count > 0 {
                    count -= splice(&from, None, &file, None, count, SpliceFlags::empty())?;
                }
            }
            Err(Errno::AGAIN) => break,
            Err(errno) => anyhow::bail!("splice() gave {errno}"),
        }
    }
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    check(&mut session, &mut ledger, &bytes)
}

fn tempfile_in_memory() -> Result<File> {
    let fd = rustix::fs::memfd_create("pages", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(File::from(fd.as_fd().try_clone_to_owned()?))
}

fn main() -> ExitCode {
    ktap::main(
        Torture::open,
        &[
            ("sizes", sizes),
            ("splice_to_a_pipe", splice_to_a_pipe),
            ("splice_to_a_full_pipe", splice_to_a_full_pipe),
            ("splice_to_a_file", splice_to_a_file),
        ],
    )
}
