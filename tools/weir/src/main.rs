// SPDX-License-Identifier: GPL-2.0

//! The command `weir`: records, counts and lists what a running kernel does, through `weir.ko`.
//!
//! Results go to standard output, everything else to standard error. It exits with 0 when all went
//! well, 1 when something failed, 2 when it was called wrongly, and with the status of the command
//! that it ran where it ran one (126 or 127 where that could not be started).

mod capture;
mod cli;
mod dump;
mod notes;
mod output;
mod record;
mod render;
mod report;
mod stat;
mod summary;
mod symbols;
mod table;
mod workload;

use clap::{
    error::ErrorKind,
    CommandFactory,
    Parser, //
};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let result = match &cli.command {
        cli::Command::Record(args) => record::run(&cli.device, args),
        cli::Command::Report(args) => report::run(args),
        cli::Command::Dump(args) => dump::run(&cli.device, args),
        cli::Command::Stat(args) => {
            if let Err(reason) = args.check() {
                // It exits, as it does for all that is called wrongly.
                cli::Cli::command()
                    .error(ErrorKind::ArgumentConflict, reason)
                    .exit();
            }
            stat::run(&cli.device, args)
        }
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            output::message(&format!("error: {error:#}"));
            match error.downcast_ref::<workload::NotStarted>() {
                Some(error) => ExitCode::from(error.exit_code()),
                None => ExitCode::FAILURE,
            }
        }
    }
}
