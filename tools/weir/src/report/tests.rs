// SPDX-License-Identifier: GPL-2.0

//! Reports of captures that were made up.

use super::*;
use crate::notes::NotedSymbol;
use libweir::{
    build::{
        PageBuilder,
        Task, //
    },
    uapi,
    Page, //
};

const WORK: u64 = 0xffff_ffff_8100_0000;

fn task(pid: u32, tid: u32, comm: &'static str, start: u64) -> Task<'static> {
    Task {
        pid,
        tid,
        ppid: 1,
        comm,
        start,
    }
}

fn sample(id: u64, pid: u32, tid: u32, misc: u16, ip: u64, time: u64) -> uapi::Sample {
    let header = uapi::RecordHeader {
        misc,
        ..Default::default()
    };
    uapi::Sample {
        header,
        id,
        ip,
        pid,
        tid,
        time,
        period: 1,
        ..Default::default()
    }
}

fn summarise(pages: &[&PageBuilder]) -> Summary {
    let mut summary = Summary::default();
    for page in pages {
        summary.add(&Page::parse(&page.finish()).unwrap()).unwrap();
    }
    summary
}

fn events() -> [NotedEvent; 2] {
    [("cpu-clock", [1, 2]), ("page-faults", [3, 4])].map(|(name, counters)| NotedEvent {
        name: name.into(),
        frequency: Some(1000),
        period: None,
        counters: counters.to_vec(),
    })
}

fn symbols() -> Symbols {
    Symbols::noted(&[NotedSymbol {
        start: WORK,
        end: WORK + 0x100,
        name: "work".into(),
        module: Some("m".into()),
    }])
}

/// Two processes, one with a second thread; samples of two events on two CPUs.
fn report() -> Report {
    let (kernel, user) = (uapi::MISC_KERNEL, uapi::MISC_USER);
    let mut first = PageBuilder::new(4096, 0, 0);
    first
        .task(&task(1, 1, "init", 5), 100)
        .task(&task(70, 70, "server", 60), 100)
        .task(&task(70, 71, "worker", 61), 100)
        .sample(sample(1, 70, 71, kernel, WORK, 110))
        .sample(sample(1, 70, 71, kernel, WORK + 8, 120))
        .sample(sample(1, 70, 71, user, 0x1234, 130))
        .partial();
    let mut second = PageBuilder::new(4096, 1, 0);
    second
        .sample(sample(2, 0, 0, kernel, WORK + 0x100, 90))
        // A thread that nothing is known of, of a process that is.
        .sample(sample(2, 70, 99, user, 0x1234, 95))
        .sample(sample(4, 500, 501, user, 0x1234, 300))
        .lost([4, 0, 1, 0], 80, 200);
    let mut third = PageBuilder::new(4096, 1, 1);
    third
        .sample(sample(2, 1, 1, 3, 0, 310))
        .lost([5, 0, 1, 0], 305, 306);
    Report::new(
        &summarise(&[&first, &second, &third]),
        &events(),
        &symbols(),
    )
}

#[test]
fn tasks_are_listed_in_order() {
    let report = report();
    let tasks: Vec<_> = report
        .tasks
        .iter()
        .map(|task| (task.pid, task.tid, task.comm.as_deref(), task.start_ns))
        .collect();
    assert_eq!(
        tasks,
        [
            (1, 1, Some("init"), Some(5)),
            (70, 70, Some("server"), Some(60)),
            (70, 71, Some("worker"), Some(61)),
        ]
    );
}

#[test]
fn samples_are_counted_by_event_task_and_symbol() {
    let report = report();
    let [clock, faults] = &report.events[..] else {
        panic!("{:?}", report.events);
    };
    assert_eq!(
        (clock.event.as_deref(), clock.samples),
        (Some("cpu-clock"), 6)
    );
    let tasks: Vec<_> = clock
        .tasks
        .iter()
        .map(|line| (line.comm.as_deref(), line.tid, line.samples, line.percent))
        .collect();
    assert_eq!(
        tasks,
        [
            (Some("worker"), 71, 3, 50.0),
            (Some("swapper"), 0, 1, 16.67),
            (Some("init"), 1, 1, 16.67),
            (Some("server"), 99, 1, 16.67),
        ]
    );
    let symbols: Vec<_> = clock
        .symbols
        .iter()
        .map(|line| (&line.symbol[..], line.module.as_deref(), line.samples))
        .collect();
    assert_eq!(
        symbols,
        [
            ("work", Some("m"), 2),
            ("0xffffffff81000100", None, 1),
            ("[guest or hypervisor]", None, 1),
            ("[user] server", None, 1),
            ("[user] worker", None, 1),
        ]
    );
    assert_eq!(
        (faults.event.as_deref(), faults.samples),
        (Some("page-faults"), 1)
    );
    assert_eq!(faults.tasks[0].comm, None);
    assert_eq!(faults.symbols[0].symbol, "[user] pid 500");
}

#[test]
fn without_notes_all_samples_are_one_event_without_a_name() {
    let mut page = PageBuilder::new(4096, 0, 0);
    page.sample(sample(9, 1, 1, uapi::MISC_USER, 0, 1));
    let report = Report::new(&summarise(&[&page]), &[], &Symbols::None);
    assert_eq!(report.events.len(), 1);
    assert_eq!(
        (report.events[0].event.as_ref(), report.events[0].samples),
        (None, 1)
    );
    // With notes that do not know it, it is not counted for another event.
    let report = Report::new(&summarise(&[&page]), &events(), &Symbols::None);
    let counts: Vec<u64> = report.events.iter().map(|event| event.samples).collect();
    assert_eq!(counts, [0, 0, 1]);
}

#[test]
fn pages_and_losses_are_counted_by_cpu() {
    let report = report();
    assert_eq!(
        (report.pages, report.records, report.bytes),
        (3, 13, 3 * 4096)
    );
    assert_eq!((report.lost, report.begin_ns, report.end_ns), (6, 80, 310));
    let [first, second] = &report.cpus[..] else {
        panic!("{:?}", report.cpus);
    };
    assert_eq!(
        (first.partial_pages, first.lost, first.lost_begin_ns),
        (1, 0, None)
    );
    assert_eq!((second.pages, second.records, second.lost), (2, 4, 6));
    assert_eq!(second.lost_by_cause["full"], 5);
    assert_eq!(second.lost_by_cause["too-large"], 1);
    assert_eq!(
        (second.lost_begin_ns, second.lost_end_ns),
        (Some(80), Some(306))
    );
}

#[test]
fn a_number_that_is_used_again_is_another_task() {
    let mut page = PageBuilder::new(4096, 0, 0);
    page.task(&task(5, 5, "old", 1), 10)
        .task(&task(5, 5, "renamed", 1), 20)
        .task(&task(5, 5, "new", 15), 30);
    let summary = summarise(&[&page]);
    let names: Vec<_> = summary.tasks().iter().map(|task| &task.comm).collect();
    assert_eq!(
        names,
        [&Some("renamed".to_owned()), &Some("new".to_owned())]
    );
    assert_eq!(summary.comm(5, 5), Some("new"));
}

#[test]
fn what_does_not_follow_is_refused() {
    let mut page = PageBuilder::new(4096, 0, 1);
    page.raw(b"", 1);
    let bytes = page.finish();
    let page = Page::parse_at(&bytes, 512).unwrap();
    let error = Summary::default().add(&page).unwrap_err();
    assert!(error.to_string().contains("offset 512"), "{error}");
}

#[test]
fn names_of_rust_are_readable_and_others_untouched() {
    assert_eq!(
        readable(
            "_RNvXs_NtCs3ddheP7f2Ty_9weir_main6deviceNtB4_8OpenFileNtNtNtB6_3abs6device4Poll4poll"
        ),
        "<weir_main::device::OpenFile as weir_main::abs::device::Poll>::poll"
    );
    for name in [
        "schedule",
        "_raw_spin_lock",
        "__x64_sys_read",
        "_R",
        "foo.constprop.0",
    ] {
        assert_eq!(readable(name), name);
    }
}
