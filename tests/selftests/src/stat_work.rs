// SPDX-License-Identifier: GPL-2.0

//! A program that does known work and ends: what `perf stat` and `weir stat` are given to run.

use crate::{
    affinity::bind,
    child,
    work::{
        rename,
        spin,
        touch, //
    },
};
use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use rustix::process::{
    getpid,
    kill_process,
    Signal, //
};
use std::{
    env,
    fs,
    io::Read,
    os::unix::net::UnixStream,
    process::{
        Command,
        ExitCode, //
    },
    thread::sleep,
    time::Duration, //
};

/// The first argument of a program that does such work.
const WORK: &str = "work";

/// The arguments of a tool that counts, with `options`, some work of this program.
///
/// # Errors
///
/// This program's file is not known.
pub fn arguments(options: &[&str], work: &str) -> Result<Vec<String>> {
    let program = env::current_exe().context("finding this program's own file")?;
    let program = program.to_str().context("this program's name is no text")?;
    let words = ["--", program, WORK].into_iter().chain(work.split(' '));
    Ok(options
        .iter()
        .copied()
        .chain(words)
        .map(str::to_owned)
        .collect())
}

/// Does the work that the arguments of this program ask for, and says how it shall end; [`None`] where they ask for
/// none:
///
/// - `touch N`: touches new pages
/// - `rename N`: gives itself its name so often
/// - `sleep N`: sleeps so often
/// - `move N`: goes from one CPU to another so often
/// - `spin MS`: computes for so long
/// - `children N WORK`: has N processes do it, one after the other
/// - `more FILE`: gives itself its name 100 times more often than the time before, of which the file tells
/// - `meet PATH`: connects to that socket, and stays until that is closed
/// - `exit N`: ends with this status
/// - `die N`: is killed by this signal
pub fn work() -> Option<ExitCode> {
    let arguments: Vec<String> = env::args().collect();
    match &arguments[..] {
        [_, first, words @ ..] if first == WORK => {
            Some(do_work(words).unwrap_or_else(|error| child::end(Err(error))))
        }
        _ => None,
    }
}

fn do_work(words: &[String]) -> Result<ExitCode> {
    let [what, rest @ ..] = words else {
        bail!("there is no work");
    };
    let number = || -> Result<u64> { Ok(rest.first().context("a number follows")?.parse()?) };
    match &what[..] {
        "touch" => touch(number()? as usize)?,
        "rename" => rename(number()?)?,
        "sleep" => (0..number()?).for_each(|_| sleep(Duration::from_millis(1))),
        "spin" => spin(Duration::from_millis(number()?)),
        "move" => {
            let cpus = libweir::cpu::online()?;
            for time in 1..=number()? {
                bind(cpus[usize::from(time % 2 == 1)])?;
            }
        }
        "children" => {
            for _ in 0..number()? {
                let status = Command::new(env::current_exe()?)
                    .arg(WORK)
                    .args(&rest[1..])
                    .status()?;
                ensure!(status.success(), "a child ended with {status}");
            }
        }
        "more" => {
            let path = rest.first().context("a file follows")?;
            let run: u64 = fs::read_to_string(path)?.parse()?;
            rename(100 * run)?;
            fs::write(path, (run + 1).to_string())?;
        }
        "meet" => {
            let path = rest.first().context("a path follows")?;
            UnixStream::connect(path)?.read_to_end(&mut Vec::new())?;
        }
        "exit" => return Ok(ExitCode::from(number()? as u8)),
        "die" => {
            let signal =
                Signal::from_named_raw(number()? as i32).context("there is no such signal")?;
            kill_process(getpid(), signal)?;
        }
        _ => bail!("there is no work `{what}`"),
    }
    Ok(ExitCode::SUCCESS)
}
