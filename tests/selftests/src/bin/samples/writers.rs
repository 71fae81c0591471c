// SPDX-License-Identifier: GPL-2.0

//! `weir_writers` reports who writes to a variable of the kernel: here, to the number of threads, which a task
//! increments that makes another, and decrements when one is buried.

use crate::{
    attach,
    on_cpu,
    Samples, //
};
use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    Channel,
    Page,
    Record, //
};
use std::{
    collections::BTreeMap,
    env, fs,
    process::Command,
    thread::sleep,
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    child::{
        self,
        tid,
        Threads, //
    },
    hotplug::Hotplug,
    ktap::{
        note,
        skip,
        Verdict, //
    },
};

const THREADS: usize = 8;
const PROCESSES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(30);

/// Functions and variables of the kernel.
struct Symbols {
    functions: BTreeMap<u64, String>,
    nr_threads: u64,
}

impl Symbols {
    fn read() -> Result<Self> {
        let text = fs::read_to_string("/proc/kallsyms").context("reading /proc/kallsyms")?;
        let mut functions = BTreeMap::new();
        let mut nr_threads = None;
        for line in text.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let [address, kind, name, ..] = words[..] else {
                anyhow::bail!("`{line}`");
            };
            let address = u64::from_str_radix(address, 16)?;
            match kind {
                "t" | "T" => {
                    functions.insert(address, name.to_owned());
                }
                _ if name == "nr_threads" => nr_threads = Some(address),
                _ => {}
            }
        }
        let nr_threads =
            nr_threads.ok_or_else(|| skip("this kernel does not show where its variables are"))?;
        ensure!(nr_threads != 0, "addresses are hidden from this task");
        Ok(Self {
            functions,
            nr_threads,
        })
    }

    /// The function that an address is in.
    fn function(&self, address: u64) -> Result<&str> {
        let (_, name) = self
            .functions
            .range(..=address)
            .next_back()
            .with_context(|| format!("{address:#x} is in no function"))?;
        Ok(name)
    }
}

/// A write.
#[derive(Clone, Debug)]
struct Write {
    tid: u32,
    cpu: u32,
    function: String,
}

/// Appends what is there now.
fn drain(channel: &Channel, symbols: &Symbols, writes: &mut Vec<Write>) -> Result<()> {
    channel.flush()?;
    channel.drain(&mut channel.buffer(64), |bytes| {
        let page = Page::parse(bytes)?;
        page.verify()?;
        for record in page.records() {
            let Record::Raw { raw, data } = record? else {
                continue;
            };
            let ip = u64::from_ne_bytes(data.try_into().context("no address")?);
            writes.push(Write {
                tid: raw.sample_id.tid,
                cpu: raw.sample_id.cpu,
                function: symbols.function(ip)?.to_owned(),
            });
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(())
}

/// Makes threads and processes on one CPU, and finds each of their writes.
fn on(cpu: u32, channel: &Channel, symbols: &Symbols) -> Verdict {
    let mut writes = Vec::new();
    drain(channel, symbols, &mut writes)?;
    writes.clear();
    let me = tid();
    let tids = on_cpu(cpu, || {
        let threads = Threads::start(THREADS)?;
        let tids = threads.tids().to_vec();
        drop(threads);
        for _ in 0..PROCESSES {
            let mut command = Command::new(env::current_exe()?);
            command.arg("--help");
            child::run(command)?;
        }
        Ok(tids)
    })?;
    // A thread that was joined may still have to be buried.
    let begin = Instant::now();
    while !tids
        .iter()
        .all(|tid| writes.iter().any(|write| write.tid == *tid))
    {
        ensure!(
            begin.elapsed() < PATIENCE,
            "threads {tids:?} have ended, and the writes are {writes:?}"
        );
        sleep(Duration::from_millis(10));
        drain(channel, symbols, &mut writes)?;
    }
    let of = |tid: u32| writes.iter().filter(move |write| write.tid == tid);
    let births = of(me)
        .filter(|write| write.function == "copy_process")
        .count();
    let burials = of(me).count() - births;
    note(format_args!(
        "CPU {cpu}: {} writes; this task made {births} tasks and buried {burials}, in {}",
        writes.len(),
        of(me)
            .map(|write| write.function.as_str())
            .find(|function| *function != "copy_process")
            .unwrap_or("nothing")
    ));
    ensure!(
        births == THREADS + PROCESSES && burials == PROCESSES,
        "this task made {THREADS} threads and {PROCESSES} processes, and wrote {:?}",
        of(me).collect::<Vec<_>>()
    );
    for tid in tids {
        let own: Vec<_> = of(tid).collect();
        ensure!(
            own.len() == 1 && own[0].function != "copy_process",
            "thread {tid} has ended and wrote {own:?}"
        );
        ensure!(own[0].cpu == cpu, "{own:?} on CPU {cpu}");
    }
    ensure!(of(me).all(|write| write.cpu == cpu), "{writes:?}");
    Ok(())
}

pub(crate) fn writers(samples: &mut Samples) -> Verdict {
    if cfg!(target_arch = "aarch64") {
        return Err(skip(
            "arm64 does not get past a write that a handler watches in the kernel",
        ));
    }
    let symbols = Symbols::read()?;
    let parameters = format!("address={:#x}", symbols.nr_threads);
    let module = samples.load_counting("weir_writers", &parameters)?;
    let channel = attach("weir_writers")?;
    for cpu in libweir::cpu::online()? {
        on(cpu, &channel, &symbols)?;
    }
    // A CPU that comes back has the breakpoint, too.
    if let Some(hotplug) = Hotplug::all()?.pop() {
        hotplug.set(false)?;
        hotplug.set(true)?;
        on(hotplug.number as u32, &channel, &symbols)?;
    }
    module.unload()
}
