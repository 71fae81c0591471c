// SPDX-License-Identifier: GPL-2.0

//! The engine under a model checker, for what depends on the order in which CPUs see memory: it runs
//! every interleaving of a few threads, up to a number of preemptions, and every value that a load may
//! return. Run with `RUSTFLAGS="--cfg loom"`; `--nocapture` shows how many executions there were.
#![cfg(loom)]

use loom::{
    model::Builder,
    sync::Arc,
    thread, //
};
use std::sync::atomic::{
    AtomicU64,
    Ordering, //
};
use weir_core::{
    Backend,
    Channel,
    Class,
    Mode,
    Model,
    PageMemory,
    HEADER_SIZE, //
};
use weir_engine::{
    backend::HostBackend,
    memory::{
        CheckedMemory,
        On,
        VersionedMemory, //
    },
    model::{
        Flaw,
        ModelWord,
        NoFence,
        NoOrderOfExchanges,
        NoRelease,
        Sound, //
    },
    records::{
        write,
        Checker,
        RECORD, //
    },
};

type Engine<M, F> = Channel<HostBackend<ModelWord<F>, M>>;
type Checked<F = Sound> = Engine<CheckedMemory, F>;
type Versioned = Engine<VersionedMemory, Sound>;

const CPUS: usize = 2;

/// What is to be checked.
struct Check {
    name: &'static str,
    kind: (Model, Mode),
    pages: usize,
    /// Records of a page.
    a_page: usize,
    preemptions: usize,
}

impl Check {
    fn page_size(&self) -> usize {
        HEADER_SIZE + self.a_page * RECORD
    }

    fn run<M: PageMemory + 'static, F: Flaw>(
        self,
        memory: fn(usize, usize) -> M,
        test: impl Fn(Arc<Engine<M, F>>, Checker) + Send + Sync + 'static,
    ) {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(self.preemptions);
        builder.max_branches = 10_000;
        let executions = std::sync::Arc::new(AtomicU64::new(0));
        let count = executions.clone();
        let (name, preemptions) = (self.name, self.preemptions);
        builder.check(move || {
            count.fetch_add(1, Ordering::Relaxed);
            let memory = memory(self.pages, self.page_size());
            let channel = HostBackend::channel(self.kind, CPUS as u32, self.pages, memory);
            test(Arc::new(channel), Checker::new(CPUS, self.page_size()));
        });
        let executions = executions.load(Ordering::Relaxed);
        println!("{name}: {executions} executions, at most {preemptions} preemptions");
    }

    /// In memory that finds accesses which are not ordered.
    fn checked<F: Flaw>(self, test: impl Fn(Arc<Checked<F>>, Checker) + Send + Sync + 'static) {
        self.run(CheckedMemory::new, test);
    }

    /// In memory that may be read while it is written.
    fn versioned(self, test: impl Fn(Arc<Versioned>, Checker) + Send + Sync + 'static) {
        self.run(VersionedMemory::new, test);
    }
}

const PAGED: (Model, Mode) = (Model::Paged, Mode::Discard);
const PER_CPU: (Model, Mode) = (Model::PerCpu, Mode::Discard);
const SHARED: (Model, Mode) = (Model::Shared, Mode::Discard);

/// Everything written was read or is lost, and `refused` were lost besides.
fn end<M: PageMemory, F: Flaw>(
    channel: &Engine<M, F>,
    checker: &mut Checker,
    written: &[u16],
    refused: u64,
) {
    if channel.is_mapped() {
        checker.finish_mapped(channel);
    } else {
        checker.finish(channel);
    }
    for (number, times) in &checker.numbers {
        assert!(written.contains(number) && *times == 1);
    }
    let overwritten = (written.len() - checker.numbers.len()) as u64;
    assert_eq!(checker.lost(), refused + overwritten);
}

/// The same where nothing that was written may be lost.
fn end_whole<M: PageMemory, F: Flaw>(
    channel: &Engine<M, F>,
    checker: &mut Checker,
    written: &[u16],
    refused: u64,
) {
    end(channel, checker, written, refused);
    assert_eq!(checker.numbers.len(), written.len());
}

/// Writes `numbers` on `cpu` in a thread of its own, which returns those that were written.
fn writer<M: PageMemory + 'static, F: Flaw>(
    channel: &Arc<Engine<M, F>>,
    cpu: usize,
    numbers: std::ops::Range<u16>,
) -> thread::JoinHandle<Vec<u16>> {
    let channel = channel.clone();
    thread::spawn(move || {
        numbers
            .filter(|number| write(&channel, cpu, *number))
            .collect()
    })
}

/// A writer fills pages while the reader takes them, from the queue and from the open page.
fn writer_and_reader<F: Flaw>(name: &'static str, kind: (Model, Mode), preemptions: usize) {
    let check = Check {
        name,
        kind,
        pages: 4,
        a_page: 1,
        preemptions,
    };
    check.checked::<F>(|channel, mut checker| {
        let writer = writer(&channel, 0, 0..2);
        for _ in 0..2 {
            checker.read(&channel, true);
        }
        let written = writer.join().expect("no panic");
        assert_eq!(written, [0, 1]);
        end_whole(&channel, &mut checker, &written, 0);
    });
}

#[test]
fn paged_writer_and_reader() {
    writer_and_reader::<Sound>("paged, writer and reader", PAGED, 3);
}

#[test]
fn per_cpu_writer_and_reader() {
    writer_and_reader::<Sound>("per-cpu, writer and reader", PER_CPU, 3);
}

/// A page goes from one CPU through the reader to another CPU.
#[test]
fn paged_page_is_used_again_by_another_cpu() {
    let check = Check {
        name: "paged, page used again",
        kind: PAGED,
        pages: 4,
        a_page: 1,
        preemptions: 2,
    };
    check.checked::<Sound>(|channel, mut checker| {
        // Three pages can be had by each CPU.
        (0..3).for_each(|number| assert!(write(&channel, 0, number)));
        let other = writer(&channel, 1, 10..12);
        checker.read(&channel, false);
        let mut written = other.join().expect("no panic");
        assert!(written.contains(&10));
        let refused = 2 - written.len() as u64;
        written.extend(0..3);
        end_whole(&channel, &mut checker, &written, refused);
    });
}

/// A ring is filled, read and filled again.
#[test]
fn per_cpu_page_is_used_again() {
    let check = Check {
        name: "per-cpu, page used again",
        kind: PER_CPU,
        pages: 4,
        a_page: 1,
        preemptions: 3,
    };
    check.checked::<Sound>(|channel, mut checker| {
        let other = writer(&channel, 0, 0..4);
        for _ in 0..2 {
            checker.read(&channel, true);
        }
        let written = other.join().expect("no panic");
        let refused = 4 - written.len() as u64;
        end_whole(&channel, &mut checker, &written, refused);
    });
}

/// A reader maps the channel; writers take back the pages that it is done with.
fn mapped(name: &'static str, kind: (Model, Mode), preemptions: usize) {
    let check = Check {
        name,
        kind,
        pages: 4,
        a_page: 1,
        preemptions,
    };
    check.checked::<Sound>(|channel, mut checker| {
        channel.set_mapped();
        let other = writer(&channel, 0, 0..4);
        for _ in 0..2 {
            checker.read_mapped(&channel);
        }
        let written = other.join().expect("no panic");
        let refused = 4 - written.len() as u64;
        end_whole(&channel, &mut checker, &written, refused);
    });
}

#[test]
fn paged_mapped() {
    mapped("paged, mapped", PAGED, 3);
}

#[test]
fn per_cpu_mapped() {
    mapped("per-cpu, mapped", PER_CPU, 3);
}

/// Two CPUs take the same pages back.
#[test]
fn paged_mapped_two_writers() {
    let check = Check {
        name: "paged, mapped, two writers",
        kind: PAGED,
        pages: 4,
        a_page: 1,
        preemptions: 3,
    };
    check.checked::<Sound>(|channel, mut checker| {
        channel.set_mapped();
        (0..3).for_each(|number| assert!(write(&channel, 0, number)));
        while checker.read_mapped(&channel) {}
        let other = writer(&channel, 1, 10..13);
        let mut written: Vec<_> = (0..3).collect();
        written.extend((3..6).filter(|number| write(&channel, 0, *number)));
        written.extend(other.join().expect("no panic"));
        let refused = 9 - written.len() as u64;
        end_whole(&channel, &mut checker, &written, refused);
    });
}

/// A page is lent to a third party, which reads it and lets go with `ordering`; CPUs that have no page left take
/// it back meanwhile.
fn lent(name: &'static str, writers: &'static [(usize, u16)], ordering: Ordering) {
    let check = Check {
        name,
        kind: PAGED,
        pages: 4,
        a_page: 1,
        preemptions: 3,
    };
    check.checked::<Sound>(move |channel, mut checker| {
        (0..3).for_each(|number| assert!(write(&channel, 0, number)));
        // The fourth page is the other CPU's.
        assert!(write(&channel, 1, 3));
        let memory = channel.backend().memory();
        let page = checker
            .lend(&channel, |page| memory.hold(page))
            .expect("a pool");
        let holder = {
            let channel = channel.clone();
            thread::spawn(move || {
                let memory = channel.backend().memory();
                memory.read(page, 0..memory.page_size(), |_| ());
                memory.let_go(page, ordering);
            })
        };
        let others: Vec<_> = writers[1..]
            .iter()
            .map(|&(cpu, number)| writer(&channel, cpu, number..number + 1))
            .collect();
        let (cpu, number) = writers[0];
        let mut written: Vec<_> = (0..4).collect();
        written.extend(write(&channel, cpu, number).then_some(number));
        for other in others {
            written.extend(other.join().expect("no panic"));
        }
        holder.join().expect("no panic");
        let refused = (4 + writers.len() - written.len()) as u64;
        end_whole(&channel, &mut checker, &written, refused);
        assert!(channel.take_back() || channel.lent() == 0);
    });
}

#[test]
fn paged_lent_page_is_used_again() {
    lent("paged, lent page used again", &[(0, 10)], Ordering::Release);
}

#[test]
fn paged_lent_page_is_taken_back_by_two() {
    let writers = &[(0, 10), (1, 11)];
    lent(
        "paged, lent page taken back by two",
        writers,
        Ordering::Release,
    );
}

/// Two CPUs publish at the same time.
#[test]
fn paged_two_writers() {
    let check = Check {
        name: "paged, two writers",
        kind: PAGED,
        pages: 4,
        a_page: 1,
        preemptions: 3,
    };
    check.checked::<Sound>(|channel, mut checker| {
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
        end_whole(&channel, &mut checker, &[0, 10], 0);
    });
}

/// Two CPUs write to one page, over its end, while the reader reads.
fn shared_writers<F: Flaw>(name: &'static str, a_page: usize, preemptions: usize) {
    let check = Check {
        name,
        kind: SHARED,
        pages: 4,
        a_page,
        preemptions,
    };
    check.checked::<F>(|channel, mut checker| {
        let other = writer(&channel, 1, 10..12);
        let mut written = vec![];
        written.extend((0..2).filter(|number| write(&channel, 0, *number)));
        checker.read(&channel, false);
        written.extend(other.join().expect("no panic"));
        assert_eq!(written.len(), 4);
        end_whole(&channel, &mut checker, &written, 0);
    });
}

#[test]
fn shared_two_writers() {
    shared_writers::<Sound>("shared, two writers", 2, 3);
}

/// The page of all CPUs is closed while it is written, and used again.
#[test]
fn shared_close_and_full() {
    let check = Check {
        name: "shared, close while written, full",
        kind: SHARED,
        pages: 2,
        a_page: 2,
        preemptions: 3,
    };
    check.checked::<Sound>(|channel, mut checker| {
        let other = writer(&channel, 1, 10..12);
        channel.close(&On(0));
        let mut written = vec![];
        written.extend((0..2).filter(|number| write(&channel, 0, *number)));
        checker.read(&channel, false);
        written.extend(other.join().expect("no panic"));
        let refused = 4 - written.len() as u64;
        end_whole(&channel, &mut checker, &written, refused);
    });
}

/// An interrupt writes in the middle of a record; the reader must see neither before both are whole.
#[test]
fn paged_nested_writer_and_reader() {
    let check = Check {
        name: "paged, nested writer and reader",
        kind: PAGED,
        pages: 4,
        a_page: 1,
        preemptions: 3,
    };
    check.checked::<Sound>(|channel, mut checker| {
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
        checker.allow_nop();
        checker.read(&channel, true);
        writer.join().expect("no panic");
        end_whole(&channel, &mut checker, &[1], 0);
    });
}

/// Pages are overwritten while the reader copies them.
fn overwritten(name: &'static str, model: Model, preemptions: usize) {
    let check = Check {
        name,
        kind: (model, Mode::Overwrite),
        pages: 4,
        a_page: 1,
        preemptions,
    };
    check.versioned(|channel, mut checker| {
        // The ring of CPU 0 is full.
        (0..2).for_each(|number| assert!(write(&channel, 0, number)));
        let other = writer(&channel, 0, 2..4);
        for _ in 0..2 {
            checker.read(&channel, true);
        }
        let mut written = other.join().expect("no panic");
        written.extend(0..2);
        assert_eq!(written.len(), 4);
        end(&channel, &mut checker, &written, 0);
    });
}

#[test]
fn per_cpu_overwritten_while_read() {
    overwritten("per-cpu, overwritten while read", Model::PerCpu, 3);
}

#[test]
fn paged_overwritten_while_read() {
    overwritten("paged, overwritten while read", Model::Paged, 2);
}

/// Two CPUs overwrite the pages of all while the reader copies one.
#[test]
fn shared_overwritten_while_read() {
    let check = Check {
        name: "shared, overwritten while read",
        kind: (Model::Shared, Mode::Overwrite),
        pages: 2,
        a_page: 2,
        preemptions: 3,
    };
    check.versioned(|channel, mut checker| {
        (0..4).for_each(|number| assert!(write(&channel, 0, number)));
        let other = writer(&channel, 1, 10..12);
        let mut written: Vec<_> = (0..4).collect();
        written.extend((4..5).filter(|number| write(&channel, 0, *number)));
        checker.read(&channel, false);
        written.extend(other.join().expect("no panic"));
        // A page that is still written is not overwritten; what would need it is refused.
        let refused = 7 - written.len() as u64;
        end(&channel, &mut checker, &written, refused);
    });
}

/// The reader goes to sleep while the page that it waits for is published: one of both notices.
fn nobody_sleeps<F: Flaw>(name: &'static str, kind: (Model, Mode)) {
    let check = Check {
        name,
        kind,
        pages: 4,
        a_page: 2,
        preemptions: 3,
    };
    check.checked::<F>(|channel, _| {
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

#[test]
fn paged_nobody_sleeps_with_a_page_there() {
    nobody_sleeps::<Sound>("paged, nobody sleeps", PAGED);
}

#[test]
fn per_cpu_nobody_sleeps_with_a_page_there() {
    nobody_sleeps::<Sound>("per-cpu, nobody sleeps", PER_CPU);
}

#[test]
fn shared_nobody_sleeps_with_a_page_there() {
    nobody_sleeps::<Sound>("shared, nobody sleeps", SHARED);
}

// What the checks above are worth: with words that do less than they must, they fail.

#[test]
#[should_panic]
fn a_missing_release_is_found() {
    writer_and_reader::<NoRelease>("paged, no release", PAGED, 3);
}

#[test]
#[should_panic]
fn a_missing_release_is_found_in_rings() {
    writer_and_reader::<NoRelease>("per-cpu, no release", PER_CPU, 3);
}

#[test]
#[should_panic]
fn a_reference_given_up_too_early_is_found() {
    lent("paged, lent, no release", &[(0, 10)], Ordering::Relaxed);
}

#[test]
#[should_panic]
fn exchanges_without_order_are_found() {
    shared_writers::<NoOrderOfExchanges>("shared, no order of exchanges", 2, 2);
}

#[test]
#[should_panic]
fn a_missing_fence_is_found() {
    nobody_sleeps::<NoFence>("paged, no fence", PAGED);
}
