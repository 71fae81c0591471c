// SPDX-License-Identifier: GPL-2.0

//! Names against a machine that is made up: its PMUs, their events, and its tracepoints.

use super::*;
use crate::{
    Attr,
    Sampling, //
};
use std::fs;
use tempfile::TempDir;

/// A machine with a `cpu`, two memory controllers that count on CPUs 0 and 4, and a meter for power.
fn machine() -> (TempDir, EventPaths) {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("devices/cpu/type", "4\n"),
        ("devices/cpu/format/event", "config:0-7,32-35\n"),
        ("devices/cpu/format/umask", "config:8-15\n"),
        ("devices/cpu/format/edge", "config:18\n"),
        ("devices/cpu/format/ldlat", "config1:0-15\n"),
        (
            "devices/cpu/events/cache-hits",
            "event=0x3c,umask=0x1,edge\n",
        ),
        ("devices/cpu/events/mem-loads", "event=0xcd,ldlat=?\n"),
        ("devices/uncore_imc_0/type", "12\n"),
        ("devices/uncore_imc_0/cpumask", "0,4\n"),
        ("devices/uncore_imc_0/format/event", "config:0-7\n"),
        ("devices/uncore_imc_1/type", "13\n"),
        ("devices/uncore_imc_1/cpumask", "0,4\n"),
        ("devices/uncore_imc_1/format/event", "config:0-7\n"),
        ("devices/power/type", "20\n"),
        ("devices/power/format/event", "config:0-7\n"),
        ("devices/power/events/energy-pkg", "event=0x02\n"),
        (
            "devices/power/events/energy-pkg.scale",
            "2.3283064365386962890625e-10\n",
        ),
        ("devices/power/events/energy-pkg.unit", "Joules\n"),
        ("tracing/events/sched/sched_switch/id", "314\n"),
        ("tracing/events/sched/sched_wakeup/id", "315\n"),
        ("tracing/events/sched/enable", "0\n"),
        ("tracing/events/irq/softirq_entry/id", "200\n"),
    ] {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let paths = EventPaths {
        devices: root.path().join("devices"),
        tracing: vec![root.path().join("nothing"), root.path().join("tracing")],
    };
    (root, paths)
}

fn parse(text: &str) -> Result<Vec<EventSet>, EventError> {
    let (_root, paths) = machine();
    parse_events(text, &paths)
}

/// Names and numbers of all events.
fn events(text: &str) -> Vec<(String, Event)> {
    let sets = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let events = sets.into_iter().flat_map(|set| set.events);
    events
        .map(|event| (event.name, event.attr.event()))
        .collect()
}

fn one(text: &str) -> NamedEvent {
    let mut sets = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!((sets.len(), sets[0].events.len()), (1, 1), "{text}");
    sets.remove(0).events.remove(0)
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn fixed_names_have_perfs_numbers() {
    assert_eq!("cpu-clock".parse(), Ok(Event::CPU_CLOCK));
    assert_eq!("context-switches".parse(), Ok(Event::new(1, 3)));
    assert_eq!("cs".parse(), Ok(Event::new(1, 3)));
    assert_eq!("instructions".parse(), Ok(Event::new(0, 1)));
    assert_eq!("branch-misses".parse(), Ok(Event::new(0, 5)));
}

#[test]
fn cache_events_have_perfs_numbers() {
    for (name, config) in [
        ("L1-dcache-loads", 0),
        ("L1-dcache-load-misses", 0x1_0000),
        ("L1-dcache-stores", 0x100),
        ("L1-icache-load-misses", 0x1_0001),
        ("LLC-prefetches", 0x202),
        ("LLC-misses", 0x1_0002),
        ("dTLB-store-misses", 0x1_0103),
        ("iTLB", 4),
        ("branch-load-misses", 0x1_0005),
        ("node-misses-stores", 0x1_0106),
        ("l1d-speculative-load-miss", 0x1_0200),
    ] {
        assert_eq!(name.parse(), Ok(Event::new(3, config)), "{name}");
    }
    for wrong in ["L1-icache-stores", "LLC-", "LLC-load-load", "LLCs", "L1"] {
        assert!(wrong.parse::<Event>().is_err(), "{wrong}");
    }
    assert!(names().all(|name| name.parse::<Event>().is_ok()));
}

#[test]
fn raw_events_are_hexadecimal() {
    for text in ["r1c2", "r01C2", "r0x1c2"] {
        assert_eq!(text.parse(), Ok(Event::new(TYPE_RAW, 0x1c2)));
    }
    let most = "rffffffffffffffff".parse();
    assert_eq!(most, Ok(Event::new(TYPE_RAW, u64::MAX)));
    let raw = "r1ffffffffffffffff";
    assert_eq!(raw.parse::<Event>(), Err(EventError::Raw(raw.into())));
}

#[test]
fn what_is_no_event_is_said_to_be_none() {
    for unknown in [
        "r12x",
        "ref-cycle",
        "",
        "r",
        "r+1",
        "cpu_clock",
        "CPU-CLOCK",
        "cycles ",
    ] {
        let error = unknown.parse::<Event>().unwrap_err();
        assert!(
            matches!(error, EventError::Unknown { .. }),
            "{unknown}: {error}"
        );
    }
    let text = "cycels".parse::<Event>().unwrap_err().to_string();
    assert!(text.contains("`cycels` (did you mean `cycles`?)"), "{text}");
}

#[test]
fn modifiers_stand_behind_a_colon() {
    let event = one("cycles:upp");
    assert_eq!(event.name, "cycles:upp");
    let raw = event.attr.raw();
    assert_eq!((raw.exclude_user(), raw.exclude_kernel()), (0, 1));
    assert_eq!(raw.precise_ip(), 2);
    assert!(one("cycles:P").precise_max);
    assert!(error("cycles:uz").contains("`z` is no modifier"));
}

#[test]
fn terms_of_a_pmu_are_put_into_their_bits() {
    assert_eq!(
        one("cpu/event=0x3c,umask=0x1/").attr,
        Attr::new(Event::new(4, 0x13c))
    );
    assert_eq!(
        one("cpu/event=0xf3c,edge,umask=2/").attr,
        Attr::new(Event::new(4, 0xf_0004_023c))
    );
    let event = one("cpu/config=1,config1=2,config2=0x3,config3=4/u");
    let numbers = Event {
        config1: 2,
        config2: 3,
        config3: 4,
        ..Event::new(4, 1)
    };
    assert_eq!(event.attr.event(), numbers);
    assert_eq!(event.attr.raw().exclude_kernel(), 1);
    assert_eq!(one("cpu/r1c2/").attr.event().config, 0x1c2);
    assert_eq!(one("cpu//").attr.event(), Event::new(4, 0));
    let event = one("cpu/event=1,name='a,b',period=1000/");
    assert_eq!((&event.name[..], event.cpus), ("a,b", None));
    assert_eq!(
        event.attr,
        Attr::new(Event::new(4, 1)).sampling(Sampling::Period(1000))
    );
}

#[test]
fn a_pmus_own_events_have_its_name_or_none() {
    let hits = Event::new(4, 0x4_013c);
    assert_eq!(one("cpu/cache-hits/").attr.event(), hits);
    assert_eq!(one("cpu/cache-hits,umask=2/").attr.event().config, 0x4_023c);
    let event = one("cache-hits:k");
    assert_eq!(
        (&event.name[..], event.attr.event()),
        ("cpu/cache-hits/k", hits)
    );
    assert_eq!(event.attr.raw().exclude_user(), 1);
    let event = one("energy-pkg");
    let unit = event.unit.unwrap();
    assert_eq!(
        (&event.name[..], &unit.name[..]),
        ("power/energy-pkg/", "Joules")
    );
    assert!((unit.scale * f64::from(u32::MAX) - 1.0).abs() < 1e-6);
}

#[test]
fn a_name_without_its_number_is_all_pmus_of_it() {
    let expected = [
        ("uncore_imc_0/event=4/".to_owned(), Event::new(12, 4)),
        ("uncore_imc_1/event=4/".to_owned(), Event::new(13, 4)),
    ];
    assert_eq!(events("uncore_imc/event=4/"), expected);
    assert_eq!(events("uncore_*/event=4/"), expected);
    assert_eq!(one("uncore_imc_1/event=4/").cpus, Some(vec![0, 4]));
}

#[test]
fn what_a_pmu_lacks_is_named_with_what_is_near() {
    for (text, parts) in [
        ("cpus/x/", &["no PMU `cpus`", "`cpu`"][..]),
        ("cpu/umsk=1/", &["no field `umsk`", "`umask`", "cpu/events"]),
        ("cpu/cache-hit/", &["`cache-hits`"]),
        ("cpu/umask=0x100/", &["`umask` cannot be 0x100", "0xff"]),
        ("cpu/umask=x/", &["must be a number"]),
        ("cpu/umask/", &["needs one"]),
        ("cpu/mem-loads/", &["`ldlat` cannot be left out"]),
        ("cpu/../../x/", &["no field"]),
        ("energy-pgk", &["did you mean", "energy-pkg"]),
        ("frobnicate", &["perf list", "tracepoints"]),
    ] {
        let error = error(text);
        for part in parts {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

#[test]
fn tracepoints_have_their_number() {
    let switch = ("sched:sched_switch".to_owned(), Event::new(2, 314));
    let wakeup = ("sched:sched_wakeup".to_owned(), Event::new(2, 315));
    for text in ["sched:sched_switch", "s*:*switch"] {
        assert_eq!(events(text), std::slice::from_ref(&switch));
    }
    assert_eq!(events("sched:*"), [switch, wakeup]);
    assert_eq!(one("sched:sched_switch:k").attr.raw().exclude_user(), 1);
    let text = error("sched:sched_swich");
    assert!(text.contains("`sched:sched_switch`"), "{text}");
    assert!(text.contains("tracing/events"), "{text}");
    assert!(parse("sched:../sched/sched_switch").is_err());
    assert!(error("..:sched").contains("no tracepoint"));
}

#[test]
fn without_tracefs_the_way_to_it_is_named() {
    let (_root, mut paths) = machine();
    paths.tracing.truncate(1);
    let error = parse_events("sched:sched_switch", &paths).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("mount -t tracefs"), "{text}");
    assert!(text.contains("nothing/events"), "{text}");
}

#[test]
fn breakpoints_are_events() {
    let event = one("mem:0x1000/8:w:u");
    assert_eq!(event.name, "mem:0x1000/8:w:u");
    let expected = Attr::default().breakpoint(2, 0x1000, 8);
    assert_eq!(event.attr, expected.exclude_kernel(true).exclude_hv(true));
}

#[test]
fn a_set_is_counted_together() {
    let sets = parse("cs,{cycles,cpu/event=1/,instructions:k}:uD,faults").unwrap();
    let names: Vec<Vec<&str>> = sets
        .iter()
        .map(|set| set.events.iter().map(|event| &event.name[..]).collect())
        .collect();
    assert_eq!(
        names,
        [
            vec!["cs"],
            vec!["cycles:uD", "cpu/event=1/uD", "instructions:kuD"],
            vec!["faults"]
        ]
    );
    assert_eq!(
        sets.iter().map(|set| set.braces).collect::<Vec<_>>(),
        [false, true, false]
    );
    let flags: Vec<_> = sets[1]
        .attrs()
        .iter()
        .map(|attr| (attr.raw().pinned(), attr.raw().exclude_kernel()))
        .collect();
    assert_eq!(flags, [(1, 1), (0, 1), (0, 0)]);
    assert_eq!(sets[1].attrs().len(), 3);
}

#[test]
fn this_machine_is_understood() {
    // Whatever its PMUs are, every event of theirs that needs no value is one.
    let paths = EventPaths::default();
    for pmu in pmu::all(&paths).unwrap() {
        for event in pmu.events().unwrap() {
            match parse_events(&format!("{}/{event}/", pmu.name), &paths) {
                Ok(_) | Err(EventError::Value { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}
