// SPDX-License-Identifier: GPL-2.0

//! PMUs, their fields and their own events, as sysfs shows them.

use super::{
    breakpoint::number,
    format::{
        Format,
        Word, //
    },
    nearest::nearest,
    tracepoint::{
        is_pattern,
        matches, //
    },
    Event,
    EventError,
    EventPaths, //
};
use crate::{
    cpu,
    Sampling, //
};
use std::{
    fs,
    io::ErrorKind,
    path::{
        Path,
        PathBuf, //
    },
};

const WAY_OUT: &str = "is /sys mounted?";

/// What one count of an event is, where it is more than a count.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// What to multiply the count with.
    pub scale: f64,
    /// The name of the unit, as in `Joules`; it may be empty.
    pub name: String,
}

/// An event of a PMU.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PmuEvent {
    pub(super) event: Event,
    pub(super) sampling: Sampling,
    /// What the user calls it.
    pub(super) name: Option<String>,
    pub(super) unit: Option<Unit>,
    /// The CPUs on which it is to be counted, where those are not all.
    pub(super) cpus: Option<Vec<u32>>,
}

/// A PMU of this machine.
#[derive(Clone, Debug)]
pub(super) struct Pmu {
    pub(super) name: String,
    folder: PathBuf,
    type_: u32,
}

/// Reads a file that may be missing.
fn read(path: &Path) -> Result<Option<String>, EventError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(EventError::read(path, &error, WAY_OUT)),
    }
}

/// Names of what is in a folder that may be missing, in order.
fn entries(path: &Path) -> Result<Vec<String>, EventError> {
    let error = |error| EventError::read(path, &error, WAY_OUT);
    let list = match fs::read_dir(path) {
        Ok(list) => list,
        Err(missing) if missing.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(reason) => return Err(error(reason)),
    };
    let mut names = Vec::new();
    for entry in list {
        names.extend(entry.map_err(error)?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// All PMUs, in the order of their names.
pub(super) fn all(paths: &EventPaths) -> Result<Vec<Pmu>, EventError> {
    let names = entries(&paths.devices)?;
    let pmus = names.into_iter().map(|name| {
        let folder = paths.devices.join(&name);
        let path = folder.join("type");
        let text = read(&path)?;
        match text.as_deref().map(str::parse) {
            Some(Ok(type_)) => Ok(Some(Pmu {
                name,
                folder,
                type_,
            })),
            Some(Err(_)) => Err(EventError::Read {
                path,
                reason: "it is no number".to_owned(),
            }),
            // Something else than a PMU.
            None => Ok(None),
        }
    });
    pmus.filter_map(Result::transpose).collect()
}

/// The PMU of a name; or all that it stands for, as `uncore_imc` does for `uncore_imc_0` and its like.
pub(super) fn find(name: &str, paths: &EventPaths) -> Result<Vec<Pmu>, EventError> {
    let mut all = all(paths)?;
    if let Some(at) = all.iter().position(|pmu| pmu.name == name) {
        return Ok(vec![all.swap_remove(at)]);
    }
    let numbered = |other: &str| {
        other
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('_'))
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    let names: Vec<String> = all.iter().map(|pmu| pmu.name.clone()).collect();
    all.retain(|pmu| {
        if is_pattern(name) {
            matches(name, &pmu.name)
        } else {
            numbered(&pmu.name)
        }
    });
    if all.is_empty() {
        return Err(EventError::Pmu {
            name: name.to_owned(),
            nearest: nearest(name, names),
            devices: paths.devices.clone(),
        });
    }
    Ok(all)
}

impl Pmu {
    /// Names of its own events.
    pub(super) fn events(&self) -> Result<Vec<String>, EventError> {
        let mut names = entries(&self.folder.join("events"))?;
        // Beside an event may stand its unit, as in `power.unit`.
        names.retain(|name| !name.contains('.'));
        Ok(names)
    }

    /// Whether it has an event of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        !name.contains(['/', '.']) && self.folder.join("events").join(name).is_file()
    }

    /// The event that terms describe: what stands between the slashes.
    pub(super) fn event(&self, terms: &str) -> Result<PmuEvent, EventError> {
        let mut event = PmuEvent {
            event: Event::new(self.type_, 0),
            sampling: Sampling::None,
            name: None,
            unit: None,
            cpus: self.cpus()?,
        };
        for term in split(terms) {
            let (name, value) = match term.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (term, None),
            };
            // An event of its own is terms of its own, which those behind it may change.
            if value.is_none() && self.has(name) {
                self.apply_own(name, &mut event)?;
            } else {
                self.apply(name, value, &mut event)?;
            }
        }
        Ok(event)
    }

    fn apply_own(&self, name: &str, event: &mut PmuEvent) -> Result<(), EventError> {
        let file = |suffix: &str| self.folder.join("events").join(format!("{name}{suffix}"));
        let terms = read(&file(""))?.unwrap_or_default();
        for term in split(&terms) {
            let (name, value) = match term.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (term, None),
            };
            if value == Some("?") {
                return Err(EventError::Value {
                    term: name.to_owned(),
                    value: "left out".to_owned(),
                    reason: format!("{} leaves it to you", file("").display()),
                });
            }
            self.apply(name, value, event)?;
        }
        let scale = match read(&file(".scale"))? {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| EventError::Read {
                path: file(".scale"),
                reason: format!("`{text}` is no number"),
            })?),
        };
        let unit = read(&file(".unit"))?;
        if scale.is_some() || unit.is_some() {
            event.unit = Some(Unit {
                scale: scale.unwrap_or(1.0),
                name: unit.unwrap_or_default(),
            });
        }
        Ok(())
    }

    /// Sets a field.
    fn apply(
        &self,
        term: &str,
        value: Option<&str>,
        event: &mut PmuEvent,
    ) -> Result<(), EventError> {
        let wrong = |reason: String| EventError::Value {
            term: term.to_owned(),
            value: value.unwrap_or("without a value").to_owned(),
            reason,
        };
        let numeric = || {
            let value = value.ok_or_else(|| wrong("it needs one, as in TERM=1".to_owned()))?;
            number(value)
                .ok_or_else(|| wrong("it must be a number, decimal or behind 0x".to_owned()))
        };
        if let Some(word) = Word::named(term) {
            *word.of(&mut event.event) = numeric()?;
            return Ok(());
        }
        match term {
            "name" => {
                let name = value.filter(|name| !name.is_empty());
                let name = name.ok_or_else(|| wrong("it needs one".to_owned()))?;
                event.name = Some(name.trim_matches('\'').to_owned());
                return Ok(());
            }
            "period" => {
                event.sampling = Sampling::Period(numeric()?);
                return Ok(());
            }
            "freq" => {
                event.sampling = Sampling::Frequency(numeric()?);
                return Ok(());
            }
            _ => {}
        }
        let path = self.folder.join("format").join(term);
        let text = if term.is_empty() || term.contains(['/', '.']) {
            None
        } else {
            read(&path)?
        };
        let Some(text) = text else {
            return self.apply_raw(term, value, event);
        };
        let format = Format::parse(&text).ok_or_else(|| EventError::Read {
            path,
            reason: format!("`{text}` is no field that is known here"),
        })?;
        let largest = format.largest();
        let number = match value {
            // A bit is set by its name alone.
            None if largest == 1 => 1,
            _ => numeric()?,
        };
        if number > largest {
            return Err(wrong(format!("the largest that fits is {largest:#x}")));
        }
        format.put(number, &mut event.event);
        Ok(())
    }

    /// `rNNNN` is the whole configuration; anything else is nothing.
    fn apply_raw(
        &self,
        term: &str,
        value: Option<&str>,
        event: &mut PmuEvent,
    ) -> Result<(), EventError> {
        if let (None, Some(Ok(raw))) = (value, super::fixed::find(term)) {
            if raw.type_ == super::TYPE_RAW {
                event.event.config = raw.config;
                return Ok(());
            }
        }
        let known = self.events()?.into_iter();
        let known = known.chain(entries(&self.folder.join("format"))?);
        let words = [
            "config", "config1", "config2", "config3", "name", "period", "freq",
        ];
        Err(EventError::Term {
            pmu: self.name.clone(),
            term: term.to_owned(),
            nearest: nearest(term, known.chain(words.map(str::to_owned))),
            events: self.folder.join("events"),
        })
    }

    /// The CPUs that count for others too (`cpumask`), or the only ones that it is of (`cpus`).
    fn cpus(&self) -> Result<Option<Vec<u32>>, EventError> {
        for file in ["cpumask", "cpus"] {
            let path = self.folder.join(file);
            match read(&path)? {
                None => {}
                Some(text) if text.is_empty() => {}
                Some(text) => {
                    return cpu::parse_list(&text).map(Some).ok_or(EventError::Read {
                        path,
                        reason: format!("`{text}` is no list of CPUs"),
                    })
                }
            }
        }
        Ok(None)
    }
}

/// The terms between two slashes. A name in quotes may have commas.
fn split(terms: &str) -> Vec<&str> {
    let mut quoted = false;
    let parts = terms.split(|c| {
        quoted ^= c == '\'';
        c == ',' && !quoted
    });
    parts.filter(|part| !part.is_empty()).collect()
}
