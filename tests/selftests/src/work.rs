// SPDX-License-Identifier: GPL-2.0

//! Work of which it is known how many events it is.

use crate::{
    affinity::bind,
    ktap::skip,
    syscall::{
        descend,
        Guarded, //
    },
};
use anyhow::{
    ensure,
    Context,
    Result, //
};
use libweir::{
    event::TYPE_SOFTWARE,
    Attr,
    Event, //
};
use nix::sys::prctl;
use rustix::pipe::PipeFlags;
use std::{
    fs::{
        self,
        File, //
    },
    hint::black_box,
    io::{
        Read,
        Write, //
    },
    sync::atomic::{
        AtomicU64,
        Ordering::Relaxed, //
    },
    thread::JoinHandle,
    time::{
        Duration,
        Instant, //
    },
};

/// Time in ns that a CPU runs.
pub const CPU_CLOCK: Event = Event::CPU_CLOCK;
/// Time in ns that a task runs.
pub const TASK_CLOCK: Event = Event::new(TYPE_SOFTWARE, 1);
/// Pages that were touched first.
pub const PAGE_FAULTS: Event = Event::new(TYPE_SOFTWARE, 2);
/// Tasks that gave a CPU to another.
pub const CONTEXT_SWITCHES: Event = Event::new(TYPE_SOFTWARE, 3);

/// `PERF_TYPE_TRACEPOINT`.
pub const TYPE_TRACEPOINT: u32 = 2;

/// Touches so many pages that nobody has touched: so many page faults, for which the kernel gives small pages.
///
/// # Errors
///
/// Those of the calls.
pub fn touch(pages: usize) -> Result<()> {
    prctl::set_thp_disable(true).context("asking for small pages")?;
    let mut memory = Guarded::new(pages)?;
    for at in memory
        .bytes()
        .iter_mut()
        .step_by(rustix::param::page_size())
    {
        *at = 1;
    }
    Ok(())
}

/// Computes for a while.
pub fn spin(duration: Duration) {
    let begin = Instant::now();
    let mut x = 1u64;
    while begin.elapsed() < duration {
        for _ in 0..1000 {
            x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7));
        }
    }
}

/// Words that can be watched at a time: as many as x86 has breakpoints.
const WORDS: usize = 4;

/// What breakpoints watch, each a word of its own: QEMU's emulator tells only one of several breakpoints on the
/// same. Nobody else touches them.
static WATCHED: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// The address of a word that [`write_watched`] writes to.
pub fn watched_address(word: usize) -> u64 {
    (&raw const WATCHED[word]).expose_provenance() as u64
}

/// A breakpoint that such a write hits.
pub fn watched(word: usize) -> Attr {
    /// `HW_BREAKPOINT_W`.
    const WRITE: u32 = 2;
    Attr::default().breakpoint(WRITE, watched_address(word), size_of::<u64>() as u64)
}

/// Writes so often to each word that can be watched.
pub fn write_watched(times: u64) {
    for time in 0..times {
        for word in &WATCHED {
            word.store(time, Relaxed);
        }
    }
}

/// Writes once to the first word that can be watched, in a function that has called itself so often.
pub fn write_below(depth: u64) {
    descend(depth, &WATCHED[0]);
}

/// The tracepoint that [`rename`] passes; [`None`] where the kernel has no tracepoints.
///
/// # Errors
///
/// tracefs is not as it is known.
pub fn task_rename() -> Result<Option<Attr>> {
    const ID: &str = "/sys/kernel/tracing/events/task/task_rename/id";
    let id = match fs::read_to_string(ID) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        id => id.context(ID)?,
    };
    let id = id.trim().parse().context(ID)?;
    Ok(Some(Attr::new(Event::new(TYPE_TRACEPOINT, id))))
}

/// Gives this thread its name so often.
///
/// # Errors
///
/// That of the call.
pub fn rename(times: u64) -> Result<()> {
    for _ in 0..times {
        prctl::set_name(c"renamed").context("naming this thread")?;
    }
    Ok(())
}

/// A thread that answers, on the CPU of the one that asks: an exchange switches the one that asks out once. It
/// waits for the answer, or was interrupted for it.
#[derive(Debug)]
pub struct PingPong {
    ask: Option<File>,
    answer: File,
    thread: Option<JoinHandle<Result<()>>>,
}

impl PingPong {
    /// Starts the thread, on this CPU.
    ///
    /// # Errors
    ///
    /// Those of the calls.
    pub fn start(cpu: u32) -> Result<Self> {
        let (asked, ask) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (answer, answers) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (mut asked, mut answers) = (File::from(asked), File::from(answers));
        let thread = std::thread::spawn(move || {
            bind(cpu)?;
            let mut byte = [0];
            while asked.read(&mut byte)? > 0 {
                answers.write_all(&byte)?;
            }
            Ok(())
        });
        let mut this = Self {
            ask: Some(ask.into()),
            answer: answer.into(),
            thread: Some(thread),
        };
        // Now it is where it stays.
        this.exchange(1)?;
        Ok(this)
    }

    /// Asks so often, and waits for the answer each time.
    ///
    /// # Errors
    ///
    /// The thread has ended.
    pub fn exchange(&mut self, times: u64) -> Result<()> {
        let mut byte = [0];
        let ask = self.ask.as_mut().context("it was ended")?;
        for _ in 0..times {
            ask.write_all(&byte)?;
            self.answer.read_exact(&mut byte)?;
        }
        Ok(())
    }
}

impl Drop for PingPong {
    fn drop(&mut self) {
        drop(self.ask.take());
        if let Some(thread) = self.thread.take() {
            // It fails where an exchange has failed before.
            let _ = thread.join();
        }
    }
}

/// How often this thread has given its CPU to another, by its own will or not, as `/proc` tells it.
///
/// # Errors
///
/// `/proc` is not as it is known.
pub fn switches() -> Result<u64> {
    const STATUS: &str = "/proc/thread-self/status";
    let status = fs::read_to_string(STATUS).context(STATUS)?;
    let counts: Vec<u64> = status
        .lines()
        .filter(|line| line.contains("voluntary_ctxt_switches:"))
        .filter_map(|line| line.split_ascii_whitespace().nth(1)?.parse().ok())
        .collect();
    ensure!(counts.len() == 2, "{STATUS} is not as it is known");
    Ok(counts.iter().sum())
}

/// For tests that sample breakpoints.
///
/// # Errors
///
/// A skip where the processor has no way to.
pub fn breakpoints_overflow() -> Result<()> {
    match cfg!(target_arch = "aarch64") {
        true => Err(skip(
            "arm64 does not get past an access that a handler watches",
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_switches_once() {
        let cpu = nix::sched::sched_getcpu().unwrap() as u32;
        crate::affinity::on_cpu(cpu, || {
            let mut thread = PingPong::start(cpu).unwrap();
            let before = switches().unwrap();
            thread.exchange(100).unwrap();
            // Others may interrupt it as well.
            assert!(switches().unwrap() >= before + 100);
        })
        .unwrap();
    }

    #[test]
    fn pages_are_touched() {
        touch(3).unwrap();
        assert_eq!(watched_address(1) % 8, 0);
        write_watched(3);
        assert_eq!(WATCHED[3].load(Relaxed), 2);
    }
}
