// SPDX-License-Identifier: GPL-2.0

//! `weir_family` counts what whoever opens it does, and what its children do: here, the pages that they touch.

use crate::Samples;
use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use std::{
    fs::File,
    io::{
        stdin,
        BufRead,
        BufReader,
        Write, //
    },
    os::unix::fs::FileExt,
    process::{
        Child,
        ChildStdin,
        ChildStdout, //
    },
};
use weir_selftests::{
    child,
    ktap::{
        note,
        Verdict, //
    },
    syscall::Guarded,
};

/// A process that touches pages when it is told to.
pub(crate) const ROLE: &str = "touch";

const CHILDREN: usize = 3;
const PAGES: usize = 500;

/// Memory that nobody has touched faults at every page.
fn touch(pages: usize) -> Verdict {
    Guarded::new(pages).map(|mut memory| {
        for at in memory
            .bytes()
            .iter_mut()
            .step_by(rustix::param::page_size())
        {
            *at = 1;
        }
    })?;
    Ok(())
}

/// What the process does: for each line, that many pages, and a line when it is done.
pub(crate) fn touch_what_is_asked() -> Verdict {
    for line in stdin().lines() {
        touch(line?.parse()?)?;
        println!();
    }
    Ok(())
}

/// Such a process.
struct Toucher {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Toucher {
    fn start() -> Result<Self> {
        let mut child = child::command(ROLE)?.spawn()?;
        Ok(Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().context("its output is a pipe")?),
            child,
        })
    }

    fn touch(&mut self, pages: usize) -> Verdict {
        let input = self.input.as_mut().context("its input is a pipe")?;
        input.write_all(format!("{pages}\n").as_bytes())?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(line == "\n", "it said `{line}`");
        Ok(())
    }
}

impl Drop for Toucher {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// What the device says.
#[derive(Clone, Copy, Debug)]
struct Counts {
    faults: usize,
    switches: usize,
    clock: usize,
}

fn counts(device: &File) -> Result<Counts> {
    let mut text = [0; 200];
    let len = device.read_at(&mut text, 0)?;
    let text = std::str::from_utf8(&text[..len])?;
    let words: Vec<_> = text.split_whitespace().collect();
    let ["page-faults", faults, "context-switches", switches, "task-clock", clock] = words[..]
    else {
        anyhow::bail!("`{text}`");
    };
    Ok(Counts {
        faults: faults.parse()?,
        switches: switches.parse()?,
        clock: clock.parse()?,
    })
}

pub(crate) fn family(samples: &mut Samples) -> Verdict {
    let module = samples.load_counting("weir_family", "")?;
    let mut stranger = Toucher::start()?;
    let device = File::open("/dev/weir_family").context("opening /dev/weir_family")?;
    let mut children = Vec::new();
    for _ in 0..CHILDREN {
        children.push(Toucher::start()?);
    }
    // What each needs for the first time only it has then.
    for toucher in children.iter_mut().chain([&mut stranger]) {
        toucher.touch(PAGES)?;
    }
    touch(PAGES)?;
    counts(&device)?;

    let before = counts(&device)?;
    for toucher in children.iter_mut().chain([&mut stranger]) {
        toucher.touch(PAGES)?;
    }
    touch(PAGES)?;
    let after = counts(&device)?;
    note(format_args!("first {before:?}, then {after:?}"));
    let faults = after.faults - before.faults;
    ensure!(
        faults == (CHILDREN + 1) * PAGES,
        "this task and {CHILDREN} children touched {PAGES} pages each, and {faults} were counted"
    );
    ensure!(
        after.switches >= before.switches + CHILDREN && after.clock > before.clock,
        "each child has waited: first {before:?}, then {after:?}"
    );

    // What children did stays when they have gone.
    drop(children);
    let later = counts(&device)?;
    ensure!(
        later.faults >= after.faults && later.clock >= after.clock,
        "first {after:?}, and without the children {later:?}"
    );
    ensure!(
        module.unload().is_err(),
        "the module went while its device was open"
    );
    drop(device);
    module.unload()
}
