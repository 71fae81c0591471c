// SPDX-License-Identifier: GPL-2.0

//! What a record costs: reserve, fill with 32 bytes, commit. The clock read is part of it, and by far
//! the largest; it and the compare-exchanges are measured beside, since nanoseconds of a shared machine
//! mean little alone.

use criterion::{
    criterion_group,
    criterion_main,
    Criterion, //
};
use std::{
    hint::black_box,
    sync::atomic::{
        AtomicU64,
        Ordering, //
    },
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
    Reader, //
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

#[inline(always)]
fn write(channel: &Native, payload: &[u64; PAYLOAD / 8]) {
    let pin = On(0);
    if let Ok(room) = channel.reserve(&pin, RECORD, Class::Live) {
        let header = RecordHeader {
            type_: 1,
            misc: 0,
            size: RECORD as u16,
        };
        room.write(0, header.as_bytes());
        room.write(size_of::<RecordHeader>(), payload.as_bytes());
        room.commit();
    };
}

/// Only writing is timed; a channel that discards is emptied in between.
fn record(c: &mut Criterion, name: &str, kind: (Model, Mode), count: usize) {
    let channel: Native = HostBackend::channel(kind, 1, count, pages(count, PAGE));
    let mut reader = Reader::new([Progress::new()], [0; PAGE / 8]);
    // Three quarters of the pool at a time, so that nothing is lost.
    let batch = match kind.1 {
        Mode::Discard => (count * 3 / 4 * (PAGE / RECORD - 3)) as u64,
        Mode::Overwrite => u64::MAX,
    };
    c.bench_function(name, |b| {
        b.iter_custom(|iterations| {
            let mut left = iterations;
            let mut elapsed = Duration::ZERO;
            while left != 0 {
                let part = left.min(batch);
                let start = Instant::now();
                for number in 0..part {
                    write(&channel, black_box(&[number; PAYLOAD / 8]));
                }
                elapsed += start.elapsed();
                left -= part;
                if kind.1 == Mode::Overwrite {
                    continue;
                }
                while let Some(chunk) = reader.next(&channel) {
                    reader.consume(&channel, chunk);
                }
            }
            elapsed
        });
    });
    let lost = channel.status(0).expect("CPU 0").lost.discarded();
    assert!(
        lost == 0 || kind.1 == Mode::Overwrite,
        "a loss is cheaper than a record"
    );
}

fn records(c: &mut Criterion) {
    let models = [
        ("paged", Model::Paged),
        ("per-cpu", Model::PerCpu),
        ("shared", Model::Shared),
    ];
    for (name, model) in models {
        for (size, count) in [("hot (64 pages)", 64), ("cold (16384 pages)", 16384)] {
            record(c, &format!("{name}, {size}"), (model, Mode::Discard), count);
        }
    }
    record(
        c,
        "per-cpu, overwriting (16384 pages)",
        (Model::PerCpu, Mode::Overwrite),
        16384,
    );
}

criterion_group!(benches, calibration, records);
criterion_main!(benches);
