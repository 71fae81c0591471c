// SPDX-License-Identifier: GPL-2.0

//! Makes tables and a picture of what `scripts/bench.sh` measured.

mod comparisons;
mod criterion;
mod document;
mod plot;
mod table;

use anyhow::{
    ensure,
    Context,
    Result, //
};
use clap::Parser;
use comparisons::{
    Machine,
    Writing, //
};
use std::{
    fs,
    path::{
        Path,
        PathBuf, //
    },
    process::ExitCode,
};
use table::Table;
use weir_bench::measurement::{
    Measurement,
    State, //
};

/// Makes results.tsv, tables.rst and plot.svg of the raw results in a folder, and prints the tables.
#[derive(Parser)]
#[command(name = "weir-bench-report", version)]
struct Cli {
    /// out/bench
    folder: PathBuf,
    /// Replaces the tables in this document, too.
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
}

const INSTRUCTIONS: Machine = Machine {
    unit: "instructions",
    remark: "On the release kernel, one processor whose counter counts instructions, \
        mitigations=off; median of 41 batches of 1000 records. Net is without the empty probe or call.",
};

const NATIVE: Machine = Machine {
    unit: "ns",
    remark: "In user-mode Linux, on the host's processor; median of 300 batches of 1000 records \
        in 15 rounds. Net is without the empty call. The local clock is that of jiffies \
        there, next to nothing; per-CPU operations of ftrace have a lock prefix there.",
};

fn results(path: &Path) -> Result<Option<Vec<Measurement>>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path)?;
    let results = text.lines().map(Measurement::parse).collect::<Result<_>>();
    results
        .map(Some)
        .with_context(|| path.display().to_string())
}

const TRACEPOINT: Writing = Writing {
    part: "tracepoint",
    title: "The same tracepoint, instructions",
    baseline: "empty probe",
    reference: "BPF ring buffer, monotonic, no wake-up",
    ratio: "to BPF, monotonic",
};

const DIRECT: Writing = Writing {
    part: "direct",
    title: "Called directly, instructions",
    baseline: "empty call",
    reference: "ftrace ring buffer, overwrite, local clock",
    ratio: "to ftrace",
};

const NATIVELY: Writing = Writing {
    title: "Called directly, user-mode Linux, ns",
    ..DIRECT
};

fn report(cli: &Cli) -> Result<Vec<Table>> {
    let raw = cli.folder.join("raw");
    let mut all = Vec::new();
    let mut tables = Vec::new();
    if let Some(results) = results(&raw.join("instructions.tsv"))? {
        for part in [TRACEPOINT, DIRECT] {
            tables.extend(comparisons::writing(INSTRUCTIONS, &part, &results));
        }
        all.extend(results);
    }
    if let Some(results) = results(&raw.join("um.tsv"))? {
        tables.extend(comparisons::writing(NATIVE, &NATIVELY, &results));
        tables.extend(comparisons::reading(&results));
        tables.extend(comparisons::sustained(&results));
        all.extend(results);
    }
    let criterion = cli.folder.join("criterion");
    if criterion.exists() {
        let results = criterion::read(&criterion)?;
        let lines: Vec<_> = results.iter().map(Measurement::line).collect();
        fs::write(raw.join("engine.tsv"), lines.join("\n") + "\n")?;
        tables.extend(comparisons::engine(&results));
        tables.extend(comparisons::publishing(&results));
        all.extend(results);
    }
    ensure!(!tables.is_empty(), "nothing was measured");
    write(cli, &tables)?;
    let invalid: Vec<_> = all
        .iter()
        .filter(|one| matches!(one.state, State::Invalid(_)))
        .map(|one| format!("{}/{}: {}", one.part, one.name, one.state))
        .collect();
    ensure!(invalid.is_empty(), "{}", invalid.join("\n"));
    Ok(tables)
}

fn write(cli: &Cli, tables: &[Table]) -> Result<()> {
    let rst: String = tables.iter().map(Table::rst).collect();
    let tsv: Vec<_> = tables.iter().map(Table::tsv).collect();
    fs::write(cli.folder.join("tables.rst"), &rst)?;
    fs::write(cli.folder.join("results.tsv"), tsv.join("\n"))?;
    svg::save(cli.folder.join("plot.svg"), &plot::plot(tables))?;
    if let Some(path) = &cli.document {
        let old = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        fs::write(path, document::replace(&old, &rst)?)?;
    }
    print!("{rst}");
    Ok(())
}

fn main() -> ExitCode {
    match report(&Cli::parse()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weir-bench-report: error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
