// SPDX-License-Identifier: GPL-2.0

//! `perf stat` and `weir stat`: what each says of the same.

use crate::{
    beside,
    ktap::skip, //
};
use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    fmt,
    path::PathBuf,
    process::{
        Command,
        ExitStatus,
        Output,
        Stdio, //
    },
};

/// Who counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// `perf stat`
    Perf,
    /// `weir stat`
    Weir,
}

/// Both, in the order in which they count.
pub const TOOLS: [Tool; 2] = [Tool::Perf, Tool::Weir];

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tool::Perf => "perf stat",
            Tool::Weir => "weir stat",
        })
    }
}

/// What a tool says of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// How often it happened, or for how many ns; the mean of several runs.
    pub value: f64,
    /// The standard error of that mean, in percent.
    pub spread: Option<f64>,
}

/// What a tool says of all events, by their names; none for one that this machine lacks.
pub type Counts = BTreeMap<String, Option<Count>>;

/// For programs that hold one against the other.
///
/// # Errors
///
/// A skip where there are no perf events or there is no perf.
pub fn setup() -> Result<()> {
    drop(beside::channel()?);
    ensure!(Tool::Weir.is_here(), "there is no command `weir` here");
    match Tool::Perf.is_here() {
        true => Ok(()),
        false => Err(skip("there is no command `perf` here")),
    }
}

impl Tool {
    /// Beside this program, or where any other command is found.
    fn program(self) -> PathBuf {
        let name = match self {
            Tool::Perf => "perf",
            Tool::Weir => "weir",
        };
        let beside = env::current_exe().map(|program| program.with_file_name(name));
        match beside {
            Ok(path) if path.exists() => path,
            _ => name.into(),
        }
    }

    /// Whether it is here.
    fn is_here(self) -> bool {
        Command::new(self.program())
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    }

    /// The command that counts, with options and arguments that both tools have. It says what it counted where
    /// [`Tool::counts`] looks for it.
    pub fn command<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(self.program());
        command.arg("stat").args(match self {
            Tool::Perf => ["-x", ","].as_slice(),
            Tool::Weir => &["--json"],
        });
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn run<A: AsRef<OsStr>>(self, arguments: &[A]) -> Result<Output> {
        self.command(arguments)
            .output()
            .with_context(|| format!("starting {self}"))
    }

    /// Runs it to its end, with success.
    ///
    /// # Errors
    ///
    /// It cannot be started, or failed, or says what is not known.
    pub fn count<A: AsRef<OsStr> + fmt::Debug>(self, arguments: &[A]) -> Result<Counts> {
        self.counts(&self.run(arguments)?)
            .with_context(|| format!("{self} {arguments:?}"))
    }

    /// What it says it counted.
    ///
    /// # Errors
    ///
    /// It failed, or says what is not known.
    pub fn counts(self, output: &Output) -> Result<Counts> {
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        succeeded(output.status).with_context(|| format!("{out}{err}"))?;
        match self {
            Tool::Perf => from_csv(&err),
            Tool::Weir => from_json(&out),
        }
    }
}

fn succeeded(status: ExitStatus) -> Result<()> {
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}

/// Reads the lines of `perf stat -x,`: value, unit, event, the spread where there were several runs, and more.
fn from_csv(text: &str) -> Result<Counts> {
    let mut counts = Counts::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let [value, unit, event, next, ..] = fields[..] else {
            bail!("perf says `{line}`");
        };
        let spread = next.strip_suffix('%').map(str::parse).transpose();
        let spread = spread.with_context(|| format!("perf says `{line}`"))?;
        let count = match value {
            "<not supported>" => None,
            _ => {
                let value: f64 = value
                    .parse()
                    .with_context(|| format!("perf says `{line}`"))?;
                let scale = match unit {
                    "" | "ns" => 1.0,
                    "msec" => 1e6,
                    _ => bail!("perf says `{line}`"),
                };
                let value = value * scale;
                Some(Count { value, spread })
            }
        };
        counts.insert(event.to_owned(), count);
    }
    Ok(counts)
}

/// Reads what `weir stat --json` prints.
fn from_json(text: &str) -> Result<Counts> {
    let report: serde_json::Value =
        serde_json::from_str(text).with_context(|| format!("weir says `{text}`"))?;
    let events = report["events"].as_array().context("it has no events")?;
    let counts = events.iter().map(|event| {
        let name = event["event"].as_str().context("an event has no name")?;
        let count = match (event["supported"].as_bool(), event["count"].as_f64()) {
            (Some(false), None) => None,
            (Some(true), Some(value)) => Some(Count {
                value,
                spread: event["spread_percent"].as_f64(),
            }),
            _ => bail!("weir says `{event}`"),
        };
        Ok((name.to_owned(), count))
    });
    counts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(value: f64, spread: Option<f64>) -> Option<Count> {
        Some(Count { value, spread })
    }

    #[test]
    fn lines_of_perf_are_read() {
        let text = "1.25,msec,task-clock,1250000,100.00,,\n77,,page-faults,1250000,100.00,,\n\
                    <not supported>,,cycles:u,0,100.00,,\n";
        let counts = from_csv(text).unwrap();
        assert_eq!(counts["task-clock"], count(1_250_000.0, None));
        assert_eq!(counts["page-faults"], count(77.0, None));
        assert_eq!(counts["cycles:u"], None);
        let counts = from_csv("75.50,,faults,0.44%,948286,100.00,,\n").unwrap();
        assert_eq!(counts["faults"], count(75.5, Some(0.44)));
        for bad in ["", "a word", "<not counted>,,cs,0,100.00", "1,pints,cs,1"] {
            assert!(from_csv(&format!("{bad}\n")).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_report_of_weir_is_read() {
        let text = r#"{"events": [
            {"event": "cs", "supported": true, "count": 5, "spread_percent": null},
            {"event": "faults", "supported": true, "count": 75.5, "spread_percent": 0.25},
            {"event": "cycles", "supported": false, "count": null, "spread_percent": null}]}"#;
        let counts = from_json(text).unwrap();
        assert_eq!(counts["cs"], count(5.0, None));
        assert_eq!(counts["faults"], count(75.5, Some(0.25)));
        assert_eq!(counts["cycles"], None);
        for bad in ["", "{}", r#"{"events": [{"event": "cs"}]}"#] {
            assert!(from_json(bad).is_err(), "{bad}");
        }
        // It was there, and was not counted.
        let uncounted = r#"{"events": [{"event": "cs", "supported": true, "count": null}]}"#;
        assert!(from_json(uncounted).is_err());
    }
}
