// SPDX-License-Identifier: GPL-2.0

//! What the pages of a capture do not say, in a file beside it: the names of the events that were
//! sampled, and of the kernel's functions that were hit.
//!
//! A kernel gives its functions other addresses at every boot, and only root sees them; so whoever
//! reads the capture elsewhere could not find the names any more.

use anyhow::{
    anyhow,
    Context,
    Result, //
};
use serde::{
    Deserialize,
    Serialize, //
};
use std::{
    ffi::OsString,
    fs,
    io::ErrorKind,
    path::{
        Path,
        PathBuf, //
    },
};

/// The version of what is written; a reader does not take a later one.
const FORMAT: u32 = 1;

/// All notes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Notes {
    format: u32,
    /// Bytes of the capture that they belong to.
    bytes: u64,
    /// Release of the kernel.
    pub(crate) kernel: String,
    /// What was run.
    pub(crate) command: Vec<String>,
    pub(crate) events: Vec<NotedEvent>,
    pub(crate) symbols: Vec<NotedSymbol>,
}

/// An event, and the counters that counted it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct NotedEvent {
    pub(crate) name: String,
    /// Samples a second, where that was asked for.
    pub(crate) frequency: Option<u64>,
    /// Events between two samples, where that was asked for.
    pub(crate) period: Option<u64>,
    pub(crate) counters: Vec<u64>,
}

/// A function of the kernel.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct NotedSymbol {
    #[serde(with = "hexadecimal")]
    pub(crate) start: u64,
    /// The first address behind it.
    #[serde(with = "hexadecimal")]
    pub(crate) end: u64,
    pub(crate) name: String,
    pub(crate) module: Option<String>,
}

impl Notes {
    /// Makes the notes of a capture of so many bytes.
    pub(crate) fn new(
        bytes: u64,
        kernel: String,
        command: Vec<String>,
        events: Vec<NotedEvent>,
        symbols: Vec<NotedSymbol>,
    ) -> Self {
        Notes {
            format: FORMAT,
            bytes,
            kernel,
            command,
            events,
            symbols,
        }
    }

    /// Writes them beside `capture`.
    pub(crate) fn write(&self, capture: &Path) -> Result<()> {
        let path = path(capture);
        let mut text = serde_json::to_string_pretty(self).context("cannot make JSON")?;
        text.push('\n');
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads those beside `capture`; `None` where there are none.
    ///
    /// # Errors
    ///
    /// Where there are some that cannot be used for a capture of `bytes` bytes.
    pub(crate) fn read(capture: &Path, bytes: u64) -> Result<Option<Self>> {
        let path = path(capture);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()))
            }
        };
        let unusable = || format!("{} are not the notes of a capture", path.display());
        let notes: Notes = serde_json::from_str(&text).with_context(unusable)?;
        if notes.format != FORMAT {
            return Err(anyhow!("format {} instead of {FORMAT}", notes.format))
                .with_context(unusable);
        }
        if notes.bytes != bytes {
            return Err(anyhow!(
                "{} belong to a capture of {} bytes, but {} has {bytes}",
                path.display(),
                notes.bytes,
                capture.display()
            ));
        }
        Ok(Some(notes))
    }

    /// Removes those of an earlier capture, so that nobody takes them for those of the next.
    pub(crate) fn remove(capture: &Path) -> Result<()> {
        let path = path(capture);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }
}

/// `weir.data` has its notes in `weir.data.notes.json`: a name that hardly anything else has, as it is
/// overwritten without a question.
fn path(capture: &Path) -> PathBuf {
    let mut name = OsString::from(capture);
    name.push(".notes.json");
    PathBuf::from(name)
}

/// Addresses as text: not every reader of JSON has numbers of 64 bits.
mod hexadecimal {
    use serde::{
        de::Error,
        Deserialize,
        Deserializer,
        Serializer, //
    };

    pub(super) fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{value:#x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .ok_or_else(|| D::Error::custom(format!("`{text}` is no address")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes() -> Notes {
        Notes::new(
            8192,
            "7.3.4".into(),
            vec!["true".into()],
            vec![NotedEvent {
                name: "cpu-clock".into(),
                frequency: Some(1000),
                period: None,
                counters: vec![1, 2],
            }],
            vec![NotedSymbol {
                start: 0xffff_ffff_8100_0000,
                end: u64::MAX,
                name: "a".into(),
                module: None,
            }],
        )
    }

    #[test]
    fn notes_come_back_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let capture = folder.path().join("weir.data");
        assert_eq!(Notes::read(&capture, 8192).unwrap(), None);
        notes().write(&capture).unwrap();
        assert!(folder.path().join("weir.data.notes.json").exists());
        assert_eq!(Notes::read(&capture, 8192).unwrap(), Some(notes()));
        Notes::remove(&capture).unwrap();
        Notes::remove(&capture).unwrap();
        assert_eq!(Notes::read(&capture, 8192).unwrap(), None);
    }

    #[test]
    fn notes_of_another_capture_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let capture = folder.path().join("weir.data");
        notes().write(&capture).unwrap();
        let error = Notes::read(&capture, 4096).unwrap_err();
        assert!(error.to_string().contains("8192"), "{error}");
        let mut later = notes();
        later.format = 2;
        later.write(&capture).unwrap();
        let error = format!("{:#}", Notes::read(&capture, 8192).unwrap_err());
        assert!(error.contains("format 2 instead of 1"), "{error}");
        fs::write(folder.path().join("weir.data.notes.json"), "{}").unwrap();
        assert!(Notes::read(&capture, 8192).is_err());
    }
}
