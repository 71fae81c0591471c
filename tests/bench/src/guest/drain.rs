// SPDX-License-Identifier: GPL-2.0

//! How long it takes to read all that a full buffer has, in each way there is.

use crate::{
    arrived::PAYLOAD,
    ftrace::{
        self,
        Full,
        Instance, //
    },
    meter::Meter,
    tracepoint,
    way::{
        self,
        Drain,
        Way, //
    },
    weir, //
};
use anyhow::{
    ensure,
    Context,
    Result, //
};
use libweir::Channel;
use nix::time::{
    clock_gettime,
    ClockId, //
};
use std::{
    fs::{
        File,
        OpenOptions, //
    },
    hint::black_box,
    time::Instant,
};
use weir_bench::measurement::{
    Measurement,
    State, //
};

/// What is filled.
pub const KIND: &str = "direct/weir, paged, discard, monotonic";
/// Bytes of its records.
pub const RECORD: u64 = 48;
/// Records that nearly fill the pool.
const FILL: u32 = 120_000;
/// What a sample is the time of: so many bytes.
const UNIT: u64 = 1 << 20;

/// The last processor, so that the reader has another where there is one.
pub fn writer_cpu() -> Result<u32> {
    Ok(*libweir::cpu::online()?.last().context("no processor")?)
}

/// Pages that were finished, and records that were lost, so far.
pub fn status(channel: &Channel) -> Result<(u64, u64)> {
    let mut all = (0, 0);
    for cpu in libweir::cpu::possible()? {
        let status = channel.status(cpu)?;
        all.0 += status.pages;
        all.1 += status.lost.iter().sum::<u64>();
    }
    Ok(all)
}

fn cpu_time() -> Result<u64> {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// What reading time and again took.
#[derive(Default)]
struct Drained {
    walls: Vec<u64>,
    busy: u64,
    /// Bytes that were read while the clock ran.
    timed: u64,
    /// Bytes that were read.
    total: u64,
}

impl Drained {
    /// Fills and reads in turn.
    fn new(
        rounds: u32,
        mut fill: impl FnMut() -> Result<()>,
        mut reader: Drain<'_>,
    ) -> Result<Self> {
        let mut all = Self::default();
        // What comes first finds nothing in the caches, and memory that was never used.
        for round in 0..=rounds {
            fill()?;
            let (before, begin) = (cpu_time()?, Instant::now());
            let bytes = reader()?;
            let (wall, busy) = (begin.elapsed(), cpu_time()? - before);
            ensure!(bytes > 0, "nothing was read");
            all.total += bytes;
            if round > 0 {
                all.walls.push(wall.as_nanos() as u64 * UNIT / bytes);
                all.busy += busy;
                all.timed += bytes;
            }
        }
        Ok(all)
    }

    fn measurements(self, name: String, bytes: u64, checked: Result<()>) -> [Measurement; 2] {
        let wall = Measurement {
            part: "drain".into(),
            name,
            payload: PAYLOAD as u64,
            per: UNIT,
            bytes,
            state: State::of(checked),
            samples: self.walls,
        };
        // The kernel may count processor time in ticks, which are longer than a round.
        let busy = Measurement {
            part: "drain-cpu".into(),
            samples: vec![self.busy * UNIT / self.timed],
            ..wall.clone()
        };
        [wall, busy]
    }
}

/// Measures all ways once.
///
/// # Errors
///
/// Where one cannot be measured. What does not arrive makes a result invalid instead.
pub fn all(meter: &Meter, rounds: u32) -> Result<Vec<Measurement>> {
    let mut measurements = copy(rounds)?.to_vec();
    for &(name, make) in way::WAYS {
        measurements.extend(weir(meter, name, make, rounds)?);
    }
    measurements.extend(ftrace(meter, rounds)?);
    Ok(measurements)
}

/// Fills the channel of weir and empties it.
fn weir(meter: &Meter, name: &str, make: Way, rounds: u32) -> Result<[Measurement; 2]> {
    let cpu = writer_cpu()?;
    let mut opened = meter.open(KIND)?.context("no such channel")?;
    let channel = weir::attach()?;
    let fill = || {
        opened.fire(1, FILL, cpu)?;
        Ok(channel.flush()?)
    };
    let drained = Drained::new(rounds, fill, make(&channel)?)?;
    let (pages, lost) = status(&channel)?;
    let written = pages * u64::from(channel.granted().page_size);
    let checked = (|| {
        ensure!(lost == 0, "{lost} records were lost");
        ensure!(
            written == drained.total,
            "{} bytes of {written} were read",
            drained.total
        );
        Ok(())
    })();
    Ok(drained.measurements(format!("weir, {name}"), RECORD, checked))
}

/// Makes a reader of the pages of ftrace.
type FtraceWay = fn(File) -> Result<Drain<'static>>;

const FTRACE_WAYS: &[(&str, FtraceWay)] = &[
    ("read(), a page a call, not looked at", |pages| {
        ftrace_read(pages, |_| ())
    }),
    ("read(), a page a call, each word added up", |pages| {
        ftrace_read(pages, |page| {
            black_box(way::sum(page));
        })
    }),
    ("splice() by a pipe to /dev/null", |pages| {
        way::spliced(pages, OpenOptions::new().write(true).open("/dev/null")?)
    }),
];

fn ftrace_read(mut pages: File, look: fn(&[u8])) -> Result<Drain<'static>> {
    let mut page = vec![0; rustix::param::page_size()];
    Ok(Box::new(move || {
        let mut total = 0;
        while ftrace::read_page(&mut pages, &mut page)? {
            look(&page);
            total += page.len() as u64;
        }
        Ok(total)
    }))
}

/// Fills the buffer of an instance of ftrace and empties it, in each way.
fn ftrace(meter: &Meter, rounds: u32) -> Result<Vec<Measurement>> {
    let cpu = writer_cpu()?;
    let mut measurements = Vec::new();
    for (name, make) in FTRACE_WAYS {
        let instance = Instance::new("local", Full::Discard)?;
        let mut opened = meter.open(tracepoint::BARE)?.context("no tracepoint")?;
        let mut made = 0;
        let fill = || {
            made = opened.fire(1, FILL, cpu)?.made;
            Ok(())
        };
        let drained = Drained::new(rounds, fill, make(instance.pages(cpu)?)?)?;
        // Only whole pages are spliced.
        let rest = instance.drain(cpu)?;
        let read = instance.read(cpu)?;
        let checked = (|| {
            ensure!(rest.overwritten + rest.lost == 0, "events were lost");
            ensure!(read == made, "{read} events of {made} were read");
            Ok(())
        })();
        measurements.extend(drained.measurements(format!("ftrace, {name}"), rest.bytes, checked));
    }
    Ok(measurements)
}

/// Copies as many bytes as the others read, from one place in user space to another.
fn copy(rounds: u32) -> Result<[Measurement; 2]> {
    const BYTES: usize = FILL as usize * RECORD as usize;
    const AT_ONCE: usize = 64 << 12;
    let from = vec![1u8; BYTES];
    let mut to = vec![0; AT_ONCE];
    let reader = Box::new(move || {
        for part in from.chunks(AT_ONCE) {
            to[..part.len()].copy_from_slice(black_box(part));
            black_box(&mut to);
        }
        Ok(BYTES as u64)
    });
    let drained = Drained::new(rounds, || Ok(()), reader)?;
    Ok(drained.measurements("memcpy() in user space".into(), 0, Ok(())))
}
