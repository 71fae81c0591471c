// SPDX-License-Identifier: GPL-2.0

//! What a record costs: reserve, fill with 32 bytes, commit. The clock read is part of it, and by far
//! the largest; it and the compare-exchanges are measured beside, since nanoseconds of a shared machine
//! mean little alone. And what a page costs, which its records share: that it is taken, closed and published;
//! by records that have a page each.

use criterion::{
    criterion_group,
    criterion_main,
    Criterion, //
};
use rustix::thread::{
    sched_getaffinity,
    sched_setaffinity,
    CpuSet, //
};
use std::{
    hint::{
        black_box,
        spin_loop, //
    },
    sync::atomic::{
        AtomicU64,
        AtomicUsize,
        Ordering, //
    },
    thread,
    time::{
        Duration,
        Instant, //
    },
};
use weir_core::{
    uapi::RecordHeader,
    Channel,
    Class,
    Mode,
    Model,
    Progress,
    Reader,
    HEADER_SIZE, //
};
use weir_engine::{
    backend::{
        Clock,
        HostBackend, //
    },
    memory::On,
    native::{
        local_compare_exchange,
        pages,
        NativeWord,
        Tsc, //
    },
};
use zerocopy::IntoBytes;

const PAGE: usize = 4096;
const PAYLOAD: usize = 32;
const RECORD: usize = size_of::<RecordHeader>() + PAYLOAD;
/// A record that fills a page; of its payload no more is written than of the others.
const PAGEFUL: usize = PAGE - HEADER_SIZE;

type Native =
    Channel<HostBackend<NativeWord, weir_core::MappedPages<weir_engine::native::Leaked>, Tsc>>;

fn calibration(c: &mut Criterion) {
    c.bench_function("clock", |b| b.iter(|| Tsc.now()));
    let word = AtomicU64::new(0);
    c.bench_function("compare-exchange, local", |b| {
        b.iter(|| local_compare_exchange(&word, black_box(0), black_box(0)))
    });
    c.bench_function("compare-exchange, locked", |b| {
        b.iter(|| {
            word.compare_exchange(
                black_box(0),
                black_box(0),
                Ordering::SeqCst,
                Ordering::SeqCst,
            )
        })
    });
}

/// What is written, and where.
#[derive(Clone, Copy)]
struct Shape {
    model: Model,
    mode: Mode,
    /// Pages of the pool.
    count: usize,
    threads: usize,
    /// Bytes of a record.
    size: usize,
}

impl Shape {
    fn name(&self) -> String {
        let model = match self.model {
            Model::Paged => "paged",
            Model::PerCpu => "per-cpu",
            Model::Shared => "shared",
        };
        let mode = match self.mode {
            Mode::Discard => "discard",
            Mode::Overwrite => "overwrite",
        };
        let what = if self.size == RECORD {
            ""
        } else {
            ", a page each"
        };
        let threads = if self.threads == 1 {
            "thread"
        } else {
            "threads"
        };
        format!(
            "{model}, {mode}, {} pages, {} {threads}{what}",
            self.count, self.threads
        )
    }

    /// Records that each thread writes before the channel is emptied: of three quarters of the pool, so that
    /// nothing is lost.
    fn batch(&self) -> u64 {
        match (self.mode, self.size) {
            (Mode::Overwrite, _) => u64::MAX,
            (Mode::Discard, RECORD) => {
                (self.count * 3 / 4 * (PAGE / RECORD - 3) / self.threads) as u64
            }
            (Mode::Discard, _) => (self.count * 3 / 4 / self.threads) as u64,
        }
    }
}

/// The size is known where it is compiled, as it is of nearly all events.
#[inline(always)]
fn write<const SIZE: usize>(channel: &Native, cpu: usize, payload: &[u64; PAYLOAD / 8]) {
    let pin = On(cpu);
    if let Ok(room) = channel.reserve(&pin, SIZE, Class::Live) {
        let header = RecordHeader {
            type_: 1,
            misc: 0,
            size: SIZE as u16,
        };
        room.write(0, header.as_bytes());
        room.write(size_of::<RecordHeader>(), payload.as_bytes());
        room.commit();
    };
}

/// Has a thread write, and says how long that took.
fn write_part<const SIZE: usize>(channel: &Native, cpu: usize, part: u64) -> Duration {
    let start = Instant::now();
    for number in 0..part {
        write::<SIZE>(channel, cpu, black_box(&[number; PAYLOAD / 8]));
    }
    start.elapsed()
}

/// The processors that this process may use.
fn processors() -> Vec<usize> {
    let set = sched_getaffinity(None).expect("the processors of this process");
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .collect()
}

/// Keeps this thread on a processor: two that take turns on one do not write at the same time.
fn stay_on(number: usize) {
    let mut set = CpuSet::new();
    set.set(processors()[number]);
    sched_setaffinity(None, &set).expect("one of the processors of this process");
}

/// Has all threads write at the same time, and says how long that took the slowest.
fn write_parts(channel: &Native, shape: &Shape, part: u64) -> Duration {
    let write_part = match shape.size {
        RECORD => write_part::<RECORD>,
        _ => write_part::<PAGEFUL>,
    };
    if shape.threads == 1 {
        return write_part(channel, 0, part);
    }
    // They spin for each other: who is woken comes too late.
    let ready = AtomicUsize::new(0);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..shape.threads)
            .map(|cpu| {
                let ready = &ready;
                scope.spawn(move || {
                    stay_on(cpu);
                    ready.fetch_add(1, Ordering::SeqCst);
                    while ready.load(Ordering::SeqCst) < shape.threads {
                        spin_loop();
                    }
                    write_part(channel, cpu, part)
                })
            })
            .collect();
        let elapsed = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        elapsed.max().unwrap_or_default()
    })
}

/// Only writing is timed; a channel that discards is emptied in between.
fn record(c: &mut Criterion, shape: Shape) {
    if processors().len() < shape.threads {
        eprintln!("{}: SKIP: there are not as many processors", shape.name());
        return;
    }
    let (cpus, count) = (shape.threads, shape.count);
    let kind = (shape.model, shape.mode);
    let channel: Native = HostBackend::channel(kind, cpus as u32, count, pages(count, PAGE));
    let mut reader = Reader::new(vec![Progress::new(); cpus], [0; PAGE / 8]);
    c.bench_function(&shape.name(), |b| {
        b.iter_custom(|iterations| {
            let mut left = iterations;
            let mut elapsed = Duration::ZERO;
            while left != 0 {
                let part = left.min(shape.batch());
                elapsed += write_parts(&channel, &shape, part);
                left -= part;
                if shape.mode == Mode::Overwrite {
                    continue;
                }
                while let Some(chunk) = reader.next(&channel) {
                    reader.consume(&channel, chunk);
                }
            }
            elapsed
        });
    });
    for cpu in 0..cpus {
        let lost = channel.status(cpu).expect("a CPU").lost.discarded();
        assert!(
            lost == 0 || shape.mode == Mode::Overwrite,
            "a loss is cheaper than a record"
        );
    }
}

fn records(c: &mut Criterion) {
    // What stays in the caches, and what does not.
    const HOT: usize = 64;
    const COLD: usize = 16384;
    const KINDS: [(Model, Mode, usize, usize); 11] = [
        (Model::Paged, Mode::Discard, HOT, RECORD),
        (Model::Paged, Mode::Discard, COLD, RECORD),
        (Model::PerCpu, Mode::Discard, HOT, RECORD),
        (Model::PerCpu, Mode::Discard, COLD, RECORD),
        (Model::Shared, Mode::Discard, HOT, RECORD),
        (Model::Shared, Mode::Discard, COLD, RECORD),
        (Model::Paged, Mode::Overwrite, COLD, RECORD),
        (Model::PerCpu, Mode::Overwrite, COLD, RECORD),
        (Model::Paged, Mode::Discard, HOT, PAGEFUL),
        (Model::Paged, Mode::Discard, COLD, PAGEFUL),
        (Model::Paged, Mode::Overwrite, COLD, PAGEFUL),
    ];
    for (model, mode, count, size) in KINDS {
        for threads in [1, 2] {
            let shape = Shape {
                model,
                mode,
                count,
                threads,
                size,
            };
            record(c, shape);
        }
    }
}

fn settings() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(50)
}

criterion_group! {
    name = benches;
    config = settings();
    targets = calibration, records
}
criterion_main!(benches);
