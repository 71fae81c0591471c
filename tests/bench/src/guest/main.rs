// SPDX-License-Identifier: GPL-2.0

//! Measures what a record costs in the kernel that runs, of weir and of others, in one boot. Each result is
//! valid only if what was written was then read, whole and in order.

mod arrived;
mod bpf;
mod direct;
mod drain;
mod ftrace;
mod meter;
mod outcome;
mod perf;
mod sustain;
mod tracepoint;
mod way;
mod weir;
mod whole;

use crate::meter::Meter;
use anyhow::Result;
use clap::{
    Parser,
    Subcommand, //
};
use std::{
    path::PathBuf,
    process::ExitCode, //
};
use weir_bench::measurement::Measurement;

/// Measures what a record costs. Needs root, weir.ko and weir_bench.ko.
#[derive(Parser)]
#[command(name = "weir-bench", version)]
struct Cli {
    /// What to measure.
    #[command(subcommand)]
    what: What,
    /// weir_bench.ko, to be loaded and unloaded again; by default it is loaded already.
    #[arg(long, global = true, value_name = "FILE")]
    module: Option<PathBuf>,
}

#[derive(Subcommand)]
enum What {
    /// Every tracer on the same tracepoint.
    Tracepoint {
        /// How often.
        #[command(flatten)]
        batches: Batches,
        /// The object with the BPF programs.
        #[arg(long, value_name = "FILE")]
        bpf: Option<PathBuf>,
    },
    /// Buffers that are called directly.
    Direct {
        /// How often.
        #[command(flatten)]
        batches: Batches,
    },
    /// Reading: how fast, for how much, and how much can be written meanwhile.
    Consumer {
        /// Times that a full channel is read, of each of five passes.
        #[arg(long, default_value_t = 80)]
        rounds: u32,
        /// How long each rate is tried, in milliseconds.
        #[arg(long, default_value_t = 400)]
        milliseconds: u32,
    },
    /// Tests that all that is written in each way arrives, and measures nothing.
    Test {
        /// The object with the BPF programs.
        #[arg(long, value_name = "FILE")]
        bpf: Option<PathBuf>,
    },
}

/// How often each is measured.
#[derive(Clone, Copy, clap::Args)]
struct Batches {
    /// Batches of 1000 records of each.
    #[arg(long, default_value_t = 41)]
    batches: u32,
    /// Goes through all so many times. If more than once, what comes first after a change does not count: then
    /// nothing is in the caches.
    #[arg(long, default_value_t = 1)]
    rounds: u32,
}

impl Batches {
    /// A result of one round, without what does not count.
    fn counted(self, mut result: Measurement) -> Measurement {
        if self.rounds > 1 && !result.samples.is_empty() {
            result.samples.remove(0);
        }
        result
    }
}

/// Times that all ways to read are gone through, so that whatever else the machine does meets all of them.
const PASSES: u32 = 5;

fn consumer(meter: &Meter, rounds: u32, milliseconds: u32) -> Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    for _ in 0..PASSES {
        for result in drain::all(meter, rounds)? {
            outcome::add(&mut measurements, result);
        }
    }
    for &(name, make) in way::WAYS {
        measurements.push(sustain::measure(meter, name, make, milliseconds)?);
    }
    Ok(measurements)
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let module = cli.module.as_deref();
    let measurements = match cli.what {
        What::Test { bpf } => return whole::main(module, bpf),
        What::Tracepoint { batches, bpf } => Meter::new(module)
            .and_then(|meter| tracepoint::measure(&meter, batches, bpf.as_deref())),
        What::Direct { batches } => {
            Meter::new(module).and_then(|meter| direct::measure(&meter, batches))
        }
        What::Consumer {
            rounds,
            milliseconds,
        } => Meter::new(module).and_then(|meter| consumer(&meter, rounds, milliseconds)),
    };
    match measurements {
        Ok(measurements) => {
            for measurement in &measurements {
                println!("{}", measurement.line());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("weir-bench: error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
