// SPDX-License-Identifier: GPL-2.0

//! The engine under a model checker, for what depends on the order in which CPUs see memory: it runs
//! every interleaving of a few threads, up to a number of preemptions, and every value that a load may
//! return. Run with `RUSTFLAGS="--cfg loom"`.
#![cfg(loom)]

use loom::{
    model::Builder,
    sync::Arc,
    thread, //
};
use weir_core::{
    Channel,
    Class,
    HEADER_SIZE, //
};
use weir_engine::{
    backend::HostBackend,
    memory::{
        CheckedMemory,
        On, //
    },
    model::ModelWord,
    records::{
        write,
        Checker,
        RECORD, //
    },
};

const PAGES: usize = 4;
/// Records of a page.
const A_PAGE: usize = 1;

type Model = Channel<HostBackend<ModelWord, CheckedMemory>>;

fn check(preemptions: usize, test: impl Fn(Arc<Model>) + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let memory = CheckedMemory::new(PAGES, HEADER_SIZE + A_PAGE * RECORD);
        test(Arc::new(HostBackend::channel(2, PAGES, memory)));
    });
}

fn end(channel: &Model, checker: &mut Checker, written: &[u64], refused: u64) {
    checker.finish(channel);
    let read: Vec<_> = checker
        .numbers
        .iter()
        .map(|(&number, &times)| (number, times))
        .collect();
    let written: Vec<_> = written.iter().map(|&number| (number, 1)).collect();
    assert_eq!(read, written);
    assert_eq!(checker.lost, refused);
}

/// A writer fills pages while the reader takes them, from the queue and from the open page.
#[test]
fn a_writer_and_the_reader() {
    check(3, |channel| {
        let writer = {
            let channel = channel.clone();
            thread::spawn(move || {
                (0..2).for_each(|number| assert!(write(&channel, 0, number)));
            })
        };
        let mut checker = Checker::new(2);
        for _ in 0..2 {
            checker.read(&channel, true);
        }
        writer.join().expect("no panic");
        end(&channel, &mut checker, &[0, 1], 0);
    });
}

/// A page goes from one CPU through the reader to another CPU.
#[test]
fn a_page_is_used_again_by_another_cpu() {
    check(2, |channel| {
        // Three pages can be had by each CPU.
        (0..3).for_each(|number| assert!(write(&channel, 0, number)));
        let other = {
            let channel = channel.clone();
            thread::spawn(move || {
                let first = write(&channel, 1, 10);
                let second = write(&channel, 1, 11);
                (first, second)
            })
        };
        let mut checker = Checker::new(2);
        checker.read(&channel, false);
        let (first, second) = other.join().expect("no panic");
        assert!(first);
        let mut written = vec![0, 1, 2, 10];
        if second {
            written.push(11);
        }
        end(&channel, &mut checker, &written, u64::from(!second));
    });
}

/// Two CPUs publish at the same time.
#[test]
fn two_writers() {
    check(3, |channel| {
        let other = {
            let channel = channel.clone();
            thread::spawn(move || {
                assert!(write(&channel, 1, 10));
                assert!(channel.close(&On(1)));
            })
        };
        assert!(write(&channel, 0, 0));
        assert!(channel.close(&On(0)));
        other.join().expect("no panic");
        let mut checker = Checker::new(2);
        end(&channel, &mut checker, &[0, 10], 0);
    });
}

/// An interrupt writes in the middle of a record; the reader must see neither before both are whole.
#[test]
fn a_nested_writer_and_the_reader() {
    check(3, |channel| {
        let writer = {
            let channel = channel.clone();
            thread::spawn(move || {
                let pin = On(0);
                let outer = channel.reserve(&pin, RECORD, Class::Live).expect("room");
                assert!(write(&channel, 0, 1));
                // It becomes a NOP, which the check would not take for a record if it were seen.
                drop(outer);
            })
        };
        let mut checker = Checker::new(2);
        checker.allow_nop();
        checker.read(&channel, true);
        writer.join().expect("no panic");
        end(&channel, &mut checker, &[1], 0);
    });
}

/// The reader goes to sleep while the page that it waits for is published: one of both notices.
#[test]
fn nobody_sleeps_with_a_page_there() {
    check(3, |channel| {
        let writer = {
            let channel = channel.clone();
            thread::spawn(move || {
                assert!(write(&channel, 0, 0));
                channel.close(&On(0));
            })
        };
        channel.want(1);
        let readable = channel.is_readable(1);
        writer.join().expect("no panic");
        assert!(readable || channel.backend().was_woken());
    });
}
