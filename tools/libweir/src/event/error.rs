// SPDX-License-Identifier: GPL-2.0

//! Why a text names no event.

use super::nearest::nearest;
use std::path::PathBuf;

/// A text that names no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// Nothing has this name.
    #[error("there is no event `{name}`{}; {place}", offer(nearest))]
    Unknown {
        /// What was given.
        name: String,
        /// Names like it.
        nearest: Vec<String>,
        /// Where names come from.
        place: String,
    },
    /// It is the number of a raw one, but too large.
    #[error("`{0}` is no raw event: the number has more than 64 bits")]
    Raw(String),
    /// No PMU has this name.
    #[error("there is no PMU `{name}`{}; the names are those in {}", offer(nearest), devices.display())]
    Pmu {
        /// What was given.
        name: String,
        /// Names like it.
        nearest: Vec<String>,
        /// The folder with all PMUs.
        devices: PathBuf,
    },
    /// A PMU has neither an event nor a field of this name.
    #[error(
        "PMU `{pmu}` has no event and no field `{term}`{}; its events are in {}, its fields in the \
         folder `format` beside it",
        offer(nearest), events.display()
    )]
    Term {
        /// The PMU.
        pmu: String,
        /// What was given.
        term: String,
        /// Names like it.
        nearest: Vec<String>,
        /// The folder with its events.
        events: PathBuf,
    },
    /// A field of a PMU cannot have this value.
    #[error("`{term}` cannot be {value}: {reason}")]
    Value {
        /// The field.
        term: String,
        /// What was given.
        value: String,
        /// Why not.
        reason: String,
    },
    /// There is no tracepoint of this name.
    #[error(
        "there is no tracepoint `{name}`{}; the names are those in {}",
        offer(nearest), events.display()
    )]
    Tracepoint {
        /// What was given.
        name: String,
        /// Names like it.
        nearest: Vec<String>,
        /// The folder with all.
        events: PathBuf,
    },
    /// What the kernel says of its events cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The text itself is wrong.
    #[error("`{text}` is no event: {reason}")]
    Syntax {
        /// What was given.
        text: String,
        /// What is wrong.
        reason: String,
    },
}

impl EventError {
    /// Nothing has this name, of `names` that `place` explains.
    pub(super) fn unknown(
        name: &str,
        names: impl IntoIterator<Item = String>,
        place: impl Into<String>,
    ) -> Self {
        EventError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, names),
            place: place.into(),
        }
    }

    pub(super) fn syntax(text: &str, reason: impl Into<String>) -> Self {
        EventError::Syntax {
            text: text.to_owned(),
            reason: reason.into(),
        }
    }

    /// A file of sysfs or tracefs could not be read.
    pub(super) fn read(path: impl Into<PathBuf>, error: &std::io::Error, way_out: &str) -> Self {
        EventError::Read {
            path: path.into(),
            reason: format!("{error}; {way_out}"),
        }
    }
}

/// The names to offer, as a part of a sentence.
fn offer(nearest: &[String]) -> String {
    let quoted: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
    match &quoted[..] {
        [] => String::new(),
        [one] => format!(" (did you mean {one}?)"),
        [first @ .., last] => format!(" (did you mean {} or {last}?)", first.join(", ")),
    }
}
