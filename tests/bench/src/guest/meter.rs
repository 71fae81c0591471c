// SPDX-License-Identifier: GPL-2.0

//! The module `weir_bench.ko`, which writes and measures.

use crate::arrived::Arrived;
use anyhow::{
    Context,
    Result, //
};
use std::{
    collections::HashMap,
    fs::{
        self,
        OpenOptions, //
    },
    io::{
        self,
        Write, //
    },
    path::{
        Path,
        PathBuf, //
    },
};
use weir_selftests::{
    ktap::skip,
    loaded::Loaded, //
};

const FOLDER: &str = "/sys/kernel/debug/weir_bench";

/// The module, loaded.
pub struct Meter {
    folder: PathBuf,
    _module: Option<Loaded>,
}

/// A way to write a record.
#[derive(Clone, Debug)]
pub struct Kind {
    /// What it is called, with the part before it.
    pub name: String,
    /// Bytes of the payload; 0 where it is no record.
    pub payload: usize,
}

/// What the module did.
#[derive(Clone, Debug, Default)]
pub struct Fired {
    /// Records that were written since the kind was opened.
    pub made: u64,
    /// Calls among them that failed.
    pub failed: u64,
    /// ns that writing at a rate took.
    pub elapsed: u64,
    /// What each batch took.
    pub samples: Vec<u64>,
    /// What the module read last.
    pub counted: Arrived,
}

impl Meter {
    /// Loads the module from a file, or finds it loaded.
    ///
    /// # Errors
    ///
    /// Where it cannot be loaded; a skip where it is not there.
    pub fn new(module: Option<&Path>) -> Result<Self> {
        let module = module
            .map(|path| Loaded::load(path, "weir_bench"))
            .transpose()?;
        let folder = PathBuf::from(FOLDER);
        if !folder.exists() {
            return Err(skip("weir_bench.ko is not loaded"));
        }
        Ok(Self {
            folder,
            _module: module,
        })
    }

    /// The kinds of a part.
    ///
    /// # Errors
    ///
    /// Where they cannot be read.
    pub fn kinds(&self, part: &str) -> Result<Vec<Kind>> {
        let kinds =
            fs::read_to_string(self.folder.join("kinds")).context("cannot read the kinds")?;
        let mut all = Vec::new();
        for line in kinds.lines() {
            let (payload, name) = line.split_once(' ').context("a kind without a name")?;
            if name.split('/').next() == Some(part) {
                all.push(Kind {
                    name: name.into(),
                    payload: payload.parse().context("a kind without a size")?,
                });
            }
        }
        Ok(all)
    }

    /// Makes what a kind writes to; [`None`] where this kernel cannot.
    ///
    /// # Errors
    ///
    /// The module's.
    pub fn open(&self, kind: &str) -> Result<Option<Opened<'_>>> {
        match self.command(&format!("open {kind}")) {
            Ok(()) => Ok(Some(Opened {
                meter: self,
                made: 0,
            })),
            Err(error) if is_unsupported(&error) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot open {kind}")),
        }
    }

    fn command(&self, text: &str) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .open(self.folder.join("command"))?;
        // In one call: what is written is one command.
        file.write_all(text.as_bytes())
    }

    fn result(&self) -> Result<Fired> {
        let text =
            fs::read_to_string(self.folder.join("result")).context("cannot read the result")?;
        let lines: HashMap<_, _> = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .collect();
        let number = |name: &str| {
            let value = lines.get(name).with_context(|| format!("no {name}"))?;
            value
                .parse::<u64>()
                .with_context(|| format!("{name} {value}"))
        };
        let samples = lines.get("samples").copied().unwrap_or_default();
        Ok(Fired {
            made: number("made")?,
            failed: number("failed")?,
            elapsed: number("elapsed")?,
            samples: samples
                .split_whitespace()
                .map(str::parse)
                .collect::<Result<_, _>>()
                .context("a sample is no number")?,
            counted: Arrived::counted(number("records")?, number("overwritten")?, number("bytes")?),
        })
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libweir::Errno::OPNOTSUPP.raw_os_error())
}

/// A kind that can be written to, until this is dropped.
pub struct Opened<'a> {
    meter: &'a Meter,
    made: u64,
}

impl Opened<'_> {
    /// Writes `batches` times `calls` records on a CPU, and waits for that.
    ///
    /// # Errors
    ///
    /// The module's.
    pub fn fire(&mut self, batches: u32, calls: u32, cpu: u32) -> Result<Fired> {
        self.run(&format!("fire {batches} {calls} {cpu}"))
    }

    /// Writes `rate` records a second on a CPU, for a time, and waits for that.
    ///
    /// # Errors
    ///
    /// The module's.
    pub fn pace(&mut self, rate: u64, milliseconds: u32, cpu: u32) -> Result<Fired> {
        self.run(&format!("pace {rate} {milliseconds} {cpu}"))
    }

    fn run(&mut self, command: &str) -> Result<Fired> {
        self.meter
            .command(command)
            .with_context(|| format!("cannot {command}"))?;
        let mut fired = self.meter.result()?;
        self.made += fired.made;
        fired.made = self.made;
        Ok(fired)
    }

    /// Has the module itself take out what was written; [`None`] where it does not do so.
    ///
    /// # Errors
    ///
    /// The module's.
    pub fn count(&self) -> Result<Option<Arrived>> {
        match self.meter.command("count") {
            Ok(()) => Ok(Some(self.meter.result()?.counted)),
            Err(error) if is_unsupported(&error) => Ok(None),
            Err(error) => Err(error).context("cannot count"),
        }
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // It closes what is open, and there is nothing in it that fails.
        if let Err(error) = self.meter.command("close") {
            eprintln!("weir-bench: cannot close: {error}");
        }
    }
}
