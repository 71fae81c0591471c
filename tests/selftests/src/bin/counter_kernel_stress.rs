// SPDX-License-Identifier: GPL-2.0

//! Counters of kernel code that are created, used and released by many threads at once, with CPUs that come and
//! go, and by a module that goes without releasing them.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use clap::Parser;
use std::{
    fs::{
        self,
        File, //
    },
    io::Read as _,
    os::unix::fs::OpenOptionsExt,
    path::{
        Path,
        PathBuf, //
    },
    process::ExitCode,
    thread::{
        self,
        sleep, //
    },
    time::Duration,
};
use weir_selftests::{
    counters::Counters,
    hotplug::Hotplug,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    loaded::Loaded,
    requests::still_works,
};

/// Tests that counters of other modules stand stress.
///
/// Needs weir.ko, and weir_counters.ko or its file, and root.
#[derive(Parser)]
struct Arguments {
    /// File of weir_counters.ko, to load it where it is not there.
    #[arg(long, env = "WEIR_COUNTERS_KO", value_name = "FILE")]
    counters: Option<PathBuf>,
    /// File of weir_abandon.ko.
    #[arg(long, env = "WEIR_ABANDON_KO", value_name = "FILE")]
    abandon: Option<PathBuf>,
    /// How long each test runs.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    seconds: f64,
}

struct Context {
    counters: Counters,
    abandon: Option<PathBuf>,
    duration: Duration,
}

fn setup(arguments: Arguments) -> Result<Context> {
    let duration = Duration::from_secs_f64(arguments.seconds);
    Ok(Context {
        counters: Counters::open(arguments.counters.as_deref(), duration)?,
        abandon: arguments.abandon,
        duration,
    })
}

/// Bytes that the kernel has for itself.
fn kernel_memory() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo").context("/proc/meminfo")?;
    let mut sum = 0;
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (name, kib) = (words.next(), words.next());
        if matches!(name, Some("SUnreclaim:" | "Percpu:" | "VmallocUsed:")) {
            sum += kib.context(text.clone())?.parse::<u64>()? << 10;
        }
    }
    Ok(sum)
}

/// What a counter may leave behind, by chance, of caches that grow: less than any of its own allocations.
const LEFT: u64 = 64;

/// Creates, uses and releases. The second half takes no more memory than the first has.
fn stress(context: &mut Context) -> Verdict {
    context.counters.rounds_of("stress", context.duration / 2)?;
    let before = kernel_memory()?;
    let rounds = context.counters.rounds_of("stress", context.duration / 2)?;
    let grown = kernel_memory()?.saturating_sub(before);
    note(format_args!("{rounds} counters, {grown} bytes more"));
    // Under KASAN, what was freed is kept for a while; kmemleak looks there.
    if !Path::new("/sys/kernel/debug/kmemleak").exists() {
        ensure!(
            grown <= (1 << 20) + rounds * LEFT,
            "{rounds} counters left {grown} bytes"
        );
    }
    still_works()
}

/// The same while CPUs come and go.
fn stress_hotplug(context: &mut Context) -> Verdict {
    let cpu = Hotplug::find()?;
    let counters = &context.counters;
    let mut times = 0;
    let rounds = thread::scope(|scope| {
        let stress = scope.spawn(|| counters.rounds("stress"));
        let mut online = true;
        while !stress.is_finished() {
            online = !online;
            cpu.set(online)?;
            times += 1;
            sleep(Duration::from_millis(5));
        }
        cpu.set(true)?;
        stress.join().expect("no panic in there")
    })?;
    note(format_args!(
        "{rounds} counters, CPU {} {times} times off or on",
        cpu.number
    ));
    still_works()
}

/// What the kernel has said since this was opened.
struct Log(File);

impl Log {
    fn open() -> Result<Self> {
        let mut options = File::options();
        options
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        let mut log = Self(options.open("/dev/kmsg").context("/dev/kmsg")?);
        log.lines()?;
        Ok(log)
    }

    /// All that is new.
    fn lines(&mut self) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        let mut line = [0; 8192];
        loop {
            match self.0.read(&mut line) {
                Ok(count) => lines.push(String::from_utf8_lossy(&line[..count]).into_owned()),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(lines),
                // Lines were overwritten before they were read.
                Err(error) if error.raw_os_error() == Some(nix::libc::EPIPE) => {}
                Err(error) => return Err(error).context("/dev/kmsg"),
            }
        }
    }
}

/// How often the module is loaded and unloaded.
const ABANDONED: usize = 3;

/// A module that goes and leaves counters behind, whose callbacks are its code: weir releases them in time, and says
/// so.
fn abandoned(context: &mut Context) -> Verdict {
    let Some(path) = &context.abandon else {
        return Err(skip("no file of weir_abandon.ko was given"));
    };
    for _ in 0..ABANDONED {
        let mut log = Log::open()?;
        let module = Loaded::load(path, "weir_abandon")?;
        sleep(Duration::from_millis(20));
        module.unload()?;
        // Memory of the module is used again.
        let again = Loaded::load(path, "weir_abandon")?;
        again.unload()?;
        let lines = log.lines()?;
        let told = lines
            .iter()
            .filter(|line| line.contains("has left 3 of its counters behind"))
            .count();
        ensure!(told == 2, "the log says so {told} times: {lines:?}");
        ensure!(
            lines
                .iter()
                .any(|line| line.contains("leaves its counters after")
                    && !line.contains("after 0 calls")),
            "no callback was called: {lines:?}"
        );
    }
    still_works()
}

/// A counter that is released twice: the log says so.
fn released_twice(context: &mut Context) -> Verdict {
    let mut log = Log::open()?;
    context.counters.run("misuse_release")?;
    let lines = log.lines()?;
    ensure!(
        lines
            .iter()
            .any(|line| line.contains("this is no counter, or was released before")),
        "the log says nothing of it: {lines:?}"
    );
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ktap::main(
        || setup(arguments),
        &[
            ("stress", stress),
            ("stress_hotplug", stress_hotplug),
            ("abandoned", abandoned),
            ("released_twice", released_twice),
        ],
    )
}
