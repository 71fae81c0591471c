// SPDX-License-Identifier: GPL-2.0

//! The counters of a run, and what they say.

use super::{
    tally::Tally,
    target::Target, //
};
use crate::output;
use anyhow::{
    bail,
    Context,
    Result, //
};
use libweir::{
    Attr,
    Call,
    Channel,
    Counter,
    CounterOptions,
    Errno,
    Error,
    EventSet,
    NamedEvent,
    ReadOptions,
    Scope,
    Value, //
};

/// What one event of the list came to.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) event: NamedEvent,
    /// The set it is of, counted from 0; none where it is on its own.
    pub(crate) set: Option<usize>,
    /// None where this machine does not have it.
    pub(crate) tally: Option<Tally>,
}

/// An event of the list, and what names it in its counters.
struct Line<'a> {
    event: &'a NamedEvent,
    set: Option<usize>,
    ids: Option<Vec<u32>>,
}

/// All counters of a run.
pub(crate) struct Counting<'a> {
    channel: &'a Channel,
    counters: Vec<Counter<'a>>,
    lines: Vec<Line<'a>>,
}

impl<'a> Counting<'a> {
    /// Opens counters of all events. `pid` is the process that will be the command. What the machine lacks is no
    /// error, unless it lacks all; where `tell` says so, the user is told what it lacks.
    pub(crate) fn open(
        channel: &'a Channel,
        sets: &'a [EventSet],
        target: &Target,
        pid: Option<i32>,
        tell: bool,
    ) -> Result<Self> {
        let mut counting = Counting {
            channel,
            counters: Vec::new(),
            lines: Vec::new(),
        };
        let mut refusals = Vec::new();
        let mut number = 0;
        for set in sets {
            let opened = open_set(channel, set, target, pid);
            let counters = match opened {
                Ok(counters) => Some(counters),
                Err(error) if is_unsupported(&error) => {
                    refusals.push((names(set), error));
                    None
                }
                Err(error) => return Err(error).with_context(|| format!("event {}", names(set))),
            };
            let braces = set.braces.then(|| {
                number += 1;
                number - 1
            });
            for (index, event) in set.events.iter().enumerate() {
                let ids = counters.as_ref().map(|counters| {
                    let ids = counters.iter();
                    ids.filter_map(|counter| counter.event_ids().nth(index))
                        .collect()
                });
                counting.lines.push(Line {
                    event,
                    set: braces,
                    ids,
                });
            }
            counting.counters.extend(counters.into_iter().flatten());
        }
        if !counting.counters.is_empty() {
            for (names, error) in refusals.iter().filter(|_| tell) {
                output::message(&format!("event {names}: {error}"));
            }
            return Ok(counting);
        }
        match refusals.pop() {
            // Not one event: the kernel counts nothing at all of what is wanted.
            Some((names, error)) => Err(error).with_context(|| format!("event {names}")),
            None => bail!("there is nothing to count in"),
        }
    }

    /// Starts to count, where the command does not when it begins.
    pub(crate) fn enable(&self, target: &Target) -> Result<()> {
        if *target == Target::Command {
            return Ok(());
        }
        for counter in &self.counters {
            match counter.enable() {
                // It waits for its turn, and if that never comes its line says so.
                Err(error) if error.errno() == Some(Errno::BUSY) => {
                    output::message(&error.to_string());
                }
                result => result?,
            }
        }
        Ok(())
    }

    /// Stops all counters.
    pub(crate) fn disable(&self) -> Result<()> {
        Ok(self.counters.iter().try_for_each(Counter::disable)?)
    }

    /// Reads them all at once.
    pub(crate) fn read(&self) -> Result<Vec<Row>> {
        let values = self.channel.read_counters(ReadOptions {
            per_cpu: true,
            cached: false,
        })?;
        Ok(self.rows(&values))
    }

    /// What a read would have said before anything was counted.
    pub(crate) fn nothing(&self) -> Vec<Row> {
        self.rows(&[])
    }

    fn rows(&self, values: &[Value]) -> Vec<Row> {
        let rows = self.lines.iter().map(|line| Row {
            event: line.event.clone(),
            set: line.set,
            tally: line.ids.as_ref().map(|ids| Tally {
                parts: (values.iter())
                    .filter(|value| ids.contains(&value.id))
                    .copied()
                    .collect(),
            }),
        });
        rows.collect()
    }
}

/// Whether an error of a creation says that this machine lacks the event.
fn is_unsupported(error: &Error) -> bool {
    match error {
        Error::Call {
            call: Call::CounterCreate(scope),
            errno,
        } => match *errno {
            Errno::NOENT | Errno::OPNOTSUPP | Errno::NOSYS | Errno::NXIO => true,
            // It is the CPU that is not there.
            Errno::NODEV => !matches!(scope, Scope::Cpu(_)),
            _ => false,
        },
        _ => false,
    }
}

/// The events of a set as the user wrote them.
fn names(set: &EventSet) -> String {
    let names: Vec<&str> = set.events.iter().map(|event| &event.name[..]).collect();
    if set.braces {
        format!("{{{}}}", names.join(","))
    } else {
        names.join(",")
    }
}

/// Opens counters of a set wherever the target is.
fn open_set<'a>(
    channel: &'a Channel,
    set: &EventSet,
    target: &Target,
    pid: Option<i32>,
) -> libweir::Result<Vec<Counter<'a>>> {
    let attrs = attrs(set, target);
    let mut counters = Vec::new();
    let mut gone = None;
    for scope in scopes(set, target, pid) {
        let created = channel.counter_create(&CounterOptions {
            attrs: attrs.clone(),
            scope,
            cached: false,
        });
        match (created, scope) {
            (Ok(counter), _) => counters.push(counter),
            // A thread may end meanwhile; another is still there.
            (Err(error), Scope::Task(_)) if error.errno() == Some(Errno::SRCH) => {
                gone = Some(error);
            }
            (Err(error), _) => return Err(error),
        }
    }
    match gone {
        Some(error) if counters.is_empty() => Err(error),
        _ => Ok(counters),
    }
}

/// What the events of a set shall be for a target.
fn attrs(set: &EventSet, target: &Target) -> Vec<Attr> {
    let attrs = set.attrs().into_iter();
    attrs
        .map(|attr| {
            // A period that a name brings is for sampling.
            let attr = attr.sampling(libweir::Sampling::None);
            attr.inherit(target.is_tasks())
                .enable_on_exec(*target == Target::Command)
        })
        .collect()
}

/// Where the counters of a set are. A PMU that is not on every CPU is counted where it is, among those wanted.
fn scopes(set: &EventSet, target: &Target, pid: Option<i32>) -> Vec<Scope> {
    let some = set.events.iter().find_map(|event| event.cpus.as_ref());
    let on = |cpus: &[u32]| cpus.iter().map(|cpu| Scope::Cpu(*cpu)).collect();
    match (target, some) {
        (Target::Command, _) => pid.map(Scope::Task).into_iter().collect(),
        (Target::Tasks(tasks), _) => tasks.iter().map(|tid| Scope::Task(*tid)).collect(),
        (Target::All, None) => vec![Scope::All],
        (Target::All, Some(cpus)) => on(cpus),
        (Target::Cpus(wanted), None) => on(wanted),
        (Target::Cpus(wanted), Some(cpus)) => {
            let both: Vec<u32> = (wanted.iter().filter(|cpu| cpus.contains(cpu)))
                .copied()
                .collect();
            // None of them has it: the kernel says so of what was wanted.
            on(if both.is_empty() { wanted } else { &both })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libweir::{
        parse_events,
        EventPaths, //
    };

    fn set(text: &str) -> EventSet {
        let mut sets = parse_events(text, &EventPaths::default()).unwrap();
        assert_eq!(sets.len(), 1);
        sets.remove(0)
    }

    #[test]
    fn each_target_has_its_counters() {
        let set = set("cs");
        let tasks = Target::Tasks(vec![7, 8]);
        for (target, pid, expected) in [
            (Target::All, None, vec![Scope::All]),
            (Target::All, Some(9), vec![Scope::All]),
            (Target::Command, Some(9), vec![Scope::Task(9)]),
            (tasks, Some(9), vec![Scope::Task(7), Scope::Task(8)]),
            (
                Target::Cpus(vec![0, 2]),
                None,
                vec![Scope::Cpu(0), Scope::Cpu(2)],
            ),
        ] {
            assert_eq!(scopes(&set, &target, pid), expected);
        }
    }

    #[test]
    fn what_is_not_on_every_cpu_is_counted_where_it_is() {
        let mut set = set("cs");
        set.events[0].cpus = Some(vec![0, 4]);
        let expected = vec![Scope::Cpu(0), Scope::Cpu(4)];
        assert_eq!(scopes(&set, &Target::All, None), expected);
        let some = Target::Cpus(vec![3, 4, 5]);
        assert_eq!(scopes(&set, &some, None), [Scope::Cpu(4)]);
        let other = Target::Cpus(vec![1]);
        assert_eq!(scopes(&set, &other, None), [Scope::Cpu(1)]);
    }

    #[test]
    fn what_the_machine_lacks_is_told_from_what_went_wrong() {
        let error = |scope, errno| Error::call(Call::CounterCreate(scope), errno);
        assert!(is_unsupported(&error(Scope::All, Errno::NOENT)));
        assert!(is_unsupported(&error(Scope::All, Errno::NODEV)));
        assert!(!is_unsupported(&error(Scope::Cpu(9), Errno::NODEV)));
        assert!(!is_unsupported(&error(Scope::All, Errno::ACCESS)));
        assert!(!is_unsupported(&Error::call(
            Call::OpenTask(1),
            Errno::NOENT
        )));
    }

    #[test]
    fn a_command_is_counted_with_its_children_from_its_beginning() {
        let set = set("{cs,cycles:u}");
        for (target, inherit, on_exec) in [
            (Target::Command, 1, 1),
            (Target::Tasks(vec![1]), 1, 0),
            (Target::All, 0, 0),
        ] {
            for attr in attrs(&set, &target) {
                let raw = attr.raw();
                assert_eq!((raw.inherit(), raw.enable_on_exec()), (inherit, on_exec));
                assert_eq!((raw.disabled(), raw.sample_period), (1, 0));
            }
        }
        assert_eq!(names(&set), "{cs,cycles:u}");
    }
}
