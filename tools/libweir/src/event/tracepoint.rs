// SPDX-License-Identifier: GPL-2.0

//! Tracepoints: `SYSTEM:NAME`, either of which may have wildcards.

use super::{
    nearest::nearest,
    Event,
    EventError,
    EventPaths,
    TYPE_TRACEPOINT, //
};
use std::{
    fs,
    path::Path, //
};

const WAY_OUT: &str = "tracepoints are read from tracefs, which root mounts with \
                       `mount -t tracefs tracefs /sys/kernel/tracing`, and only root may read at first";

/// All tracepoints that match, by name, with their names.
pub(super) fn find(
    system: &str,
    name: &str,
    paths: &EventPaths,
) -> Result<Vec<(String, Event)>, EventError> {
    let events = events(paths)?;
    let mut found = Vec::new();
    let systems = if is_pattern(system) {
        folders(&events)?
            .into_iter()
            .filter(|folder| matches(system, folder))
            .collect()
    } else {
        vec![system.to_owned()]
    };
    for system in systems {
        // A name is one part of a path, whatever the user gives.
        let folder = events.join(&system);
        if system.contains('/') || system.starts_with('.') || !folder.is_dir() {
            continue;
        }
        if !is_pattern(name) {
            if let Some(event) = number(&folder, name)? {
                found.push((format!("{system}:{name}"), event));
            }
            continue;
        }
        for name in folders(&folder)?
            .into_iter()
            .filter(|other| matches(name, other))
        {
            // ftrace's own have no number that perf takes.
            if let Some(event) = number(&folder, &name)? {
                found.push((format!("{system}:{name}"), event));
            }
        }
    }
    if found.is_empty() {
        return Err(EventError::Tracepoint {
            name: format!("{system}:{name}"),
            nearest: nearest(&format!("{system}:{name}"), all(&events)),
            events,
        });
    }
    Ok(found)
}

/// The folder with all of them.
fn events(paths: &EventPaths) -> Result<std::path::PathBuf, EventError> {
    let mut refusal = None;
    for path in paths.tracing.iter().map(|path| path.join("events")) {
        match fs::read_dir(&path) {
            Ok(_) => return Ok(path),
            Err(error) => {
                refusal.get_or_insert_with(|| EventError::read(&path, &error, WAY_OUT));
            }
        }
    }
    Err(refusal.unwrap_or_else(|| EventError::Read {
        path: "tracefs".into(),
        reason: "no place for it was given".to_owned(),
    }))
}

/// The tracepoint in a folder; none where there is no such.
fn number(folder: &Path, name: &str) -> Result<Option<Event>, EventError> {
    if name.contains('/') || name.starts_with('.') {
        return Ok(None);
    }
    let path = folder.join(name).join("id");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EventError::read(&path, &error, WAY_OUT)),
    };
    match text.trim().parse() {
        Ok(id) => Ok(Some(Event::new(TYPE_TRACEPOINT, id))),
        Err(_) => Err(EventError::Read {
            path,
            reason: format!("`{}` is no number of a tracepoint", text.trim()),
        }),
    }
}

/// Names of the folders in a folder, in order.
fn folders(path: &Path) -> Result<Vec<String>, EventError> {
    let error = |error| EventError::read(path, &error, WAY_OUT);
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(error)? {
        let entry = entry.map_err(error)?;
        if entry.path().is_dir() {
            names.extend(entry.file_name().into_string());
        }
    }
    names.sort();
    Ok(names)
}

/// All names, to look for near ones; what cannot be read has none.
fn all(events: &Path) -> Vec<String> {
    let systems = folders(events).unwrap_or_default().into_iter();
    systems
        .flat_map(|system| {
            let names = folders(&events.join(&system)).unwrap_or_default();
            names
                .into_iter()
                .map(move |name| format!("{system}:{name}"))
        })
        .collect()
}

/// Whether a name has wildcards.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Whether a name matches a pattern: `*` stands for any characters, `?` for one.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go on when the last `*` must stand for one character more.
    let mut again: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                again = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match &mut again {
                Some((star, from)) => {
                    *from += 1;
                    (p, n) = (*star + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match() {
        for (pattern, name) in [
            ("*", ""),
            ("sched_*", "sched_switch"),
            ("*switch", "sched_switch"),
            ("s*_s?itch", "sched_switch"),
            ("*a*b", "xaabab"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("?", ""), ("a*b", "abc"), ("sched_*", "irq")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
