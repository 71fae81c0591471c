// SPDX-License-Identifier: GPL-2.0

//! The two ways out: results and messages.

use anyhow::{
    Context,
    Result, //
};
use serde::Serialize;
use std::io::{
    self,
    ErrorKind,
    Write, //
};

/// Prints a result to standard output. A reader that has seen enough, as `head` has, is no error.
pub(crate) fn result(text: &str) -> Result<()> {
    stream(text).map(|_| ())
}

/// Prints a part of a result, and tells whether somebody reads on.
pub(crate) fn stream(text: &str) -> Result<bool> {
    let mut output = io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result
            .map(|()| true)
            .context("cannot write to standard output"),
    }
}

/// Prints a result as one JSON document.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value).context("cannot make JSON")?;
    text.push('\n');
    result(&text)
}

/// Says something to the user, on standard error.
pub(crate) fn message(text: &str) {
    // Where not even that can be written, nobody is there to be told.
    let _ = writeln!(io::stderr(), "weir: {text}");
}
