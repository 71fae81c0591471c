// SPDX-License-Identifier: GPL-2.0

//! Lists of events, as they stand behind `-e`.

use super::{
    breakpoint, fixed,
    modifier::Modifiers,
    pmu::{
        self,
        Unit, //
    },
    split, tracepoint, EventError, EventPaths,
};
use crate::{
    Attr,
    Sampling, //
};

/// An event that somebody named.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedEvent {
    /// What it was called.
    pub name: String,
    /// What it is.
    pub attr: Attr,
    /// What one count of it is.
    pub unit: Option<Unit>,
    /// The CPUs on which it is to be counted, where its PMU has not one part for each.
    pub cpus: Option<Vec<u32>>,
    /// Whether [`Attr::precise_ip`] shall be as high as the machine lets it be.
    pub precise_max: bool,
}

/// Events that are counted together, or one on its own.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSet {
    /// The events.
    pub events: Vec<NamedEvent>,
    /// Whether it was written as a set, in braces.
    pub braces: bool,
}

impl EventSet {
    /// What each of its events is.
    pub fn attrs(&self) -> Vec<Attr> {
        self.events.iter().map(|event| event.attr).collect()
    }
}

/// Parses a list such as `cycles:u,{instructions,branches},sched:sched_switch,cpu/event=0x3c,umask=0x1/`.
///
/// # Errors
///
/// [`EventError`] of the first that is no event on this machine.
pub fn parse_events(text: &str, paths: &EventPaths) -> Result<Vec<EventSet>, EventError> {
    let mut sets = Vec::new();
    for item in split::split(text)? {
        let Some((inner, letters)) = split::set(item)? else {
            // A wildcard stands for many, each on its own.
            sets.extend(parse_one(item, paths)?.into_iter().map(|event| EventSet {
                events: vec![event],
                braces: false,
            }));
            continue;
        };
        let modifiers =
            Modifiers::parse(letters).map_err(|reason| EventError::syntax(item, reason))?;
        let mut events = Vec::new();
        for item in split::split(inner)? {
            events.extend(parse_one(item, paths)?);
        }
        for (index, event) in events.iter_mut().enumerate() {
            modifiers.apply(&mut event.attr, true, index == 0)?;
            // Only the one that stands for the set can have them.
            if index != 0 {
                event.attr = event.attr.pinned(false).exclusive(false);
            }
            event.precise_max |= modifiers.precise_max;
            append_modifiers(&mut event.name, letters);
        }
        sets.push(EventSet {
            events,
            braces: true,
        });
    }
    Ok(sets)
}

/// Shows the modifiers of a set with each of its events.
fn append_modifiers(name: &mut String, letters: &str) {
    // Those of a PMU's event stand behind its slash.
    let own = match name.rsplit_once('/') {
        Some(_) => true,
        None => name
            .rsplit_once(':')
            .is_some_and(|(_, own)| Modifiers::are(own)),
    };
    if !letters.is_empty() {
        if !own {
            name.push(':');
        }
        name.push_str(letters);
    }
}

/// Parses what is no list: one event, or all that a wildcard stands for.
fn parse_one(text: &str, paths: &EventPaths) -> Result<Vec<NamedEvent>, EventError> {
    if let Some(rest) = text.strip_prefix(breakpoint::PREFIX) {
        let (event, letters) = breakpoint::parse(rest)?;
        return Ok(vec![named(text, event.into(), letters)?]);
    }
    if let Some((pmu, rest)) = text.split_once('/') {
        let Some((terms, letters)) = rest.rsplit_once('/') else {
            return Err(EventError::syntax(text, "the second `/` is missing"));
        };
        let letters = letters.strip_prefix(':').unwrap_or(letters);
        return parse_pmu(text, pmu, terms, letters, paths);
    }
    let (name, rest) = match text.split_once(':') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text, None),
    };
    if let Some(event) = fixed::find(name) {
        return Ok(vec![named(text, event?.into(), rest.unwrap_or_default())?]);
    }
    // Without a modifier, or with one, it may be a PMU's own.
    if rest.is_none_or(Modifiers::are) {
        let found = parse_own(name, rest.unwrap_or_default(), paths)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let Some(rest) = rest else {
        return Err(unknown(name, paths));
    };
    let (point, letters) = rest.split_once(':').unwrap_or((rest, ""));
    if name.is_empty() || point.is_empty() {
        return Err(EventError::syntax(
            text,
            "a colon stands before modifiers, or between the system and the name of a tracepoint",
        ));
    }
    let found = tracepoint::find(name, point, paths)?.into_iter();
    found
        .map(|(mut name, event)| {
            if !letters.is_empty() {
                name = format!("{name}:{letters}");
            }
            named(&name, event.into(), letters)
        })
        .collect()
}

/// An event with its modifiers.
fn named(name: &str, mut attr: Attr, letters: &str) -> Result<NamedEvent, EventError> {
    let modifiers = Modifiers::parse(letters).map_err(|reason| EventError::syntax(name, reason))?;
    modifiers.apply(&mut attr, false, true)?;
    Ok(NamedEvent {
        name: name.to_owned(),
        attr,
        unit: None,
        cpus: None,
        precise_max: modifiers.precise_max,
    })
}

fn parse_pmu(
    text: &str,
    pmu: &str,
    terms: &str,
    letters: &str,
    paths: &EventPaths,
) -> Result<Vec<NamedEvent>, EventError> {
    let found = pmu::find(pmu, paths)?;
    let several = found.len() > 1;
    found
        .iter()
        .map(|pmu| {
            let event = pmu.event(terms)?;
            let name = match &event.name {
                Some(name) => name.clone(),
                None if several => format!("{}/{terms}/{letters}", pmu.name),
                None => text.to_owned(),
            };
            with_pmu(&name, event, letters)
        })
        .collect()
}

/// All PMUs' own events of a name without a PMU.
fn parse_own(name: &str, letters: &str, paths: &EventPaths) -> Result<Vec<NamedEvent>, EventError> {
    let pmus = pmu::all(paths)?.into_iter().filter(|pmu| pmu.has(name));
    pmus.map(|pmu| {
        let shown = format!("{}/{name}/{letters}", pmu.name);
        with_pmu(&shown, pmu.event(name)?, letters)
    })
    .collect()
}

fn with_pmu(name: &str, event: pmu::PmuEvent, letters: &str) -> Result<NamedEvent, EventError> {
    let mut attr = Attr::new(event.event);
    if event.sampling != Sampling::None {
        attr = attr.sampling(event.sampling);
    }
    Ok(NamedEvent {
        unit: event.unit,
        cpus: event.cpus,
        ..named(name, attr, letters)?
    })
}

/// Nothing has this name: what has one like it, of all that have no colon.
fn unknown(name: &str, paths: &EventPaths) -> EventError {
    let mut names: Vec<String> = fixed::names().collect();
    // What cannot be read has no names to offer.
    for pmu in pmu::all(paths).unwrap_or_default() {
        let own = pmu.events().unwrap_or_default().into_iter();
        names.extend(own.map(|event| format!("{}/{event}/", pmu.name)));
    }
    EventError::unknown(
        name,
        names,
        format!(
            "{}; events of PMUs (PMU/NAME/) are in {}/*/events, tracepoints (SYSTEM:NAME) in {}/events",
            fixed::PLACE,
            paths.devices.display(),
            paths.tracing.first().map_or_else(Default::default, |path| path.display().to_string())
        ),
    )
}
