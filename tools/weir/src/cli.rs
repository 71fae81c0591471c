// SPDX-License-Identifier: GPL-2.0

//! What the command takes.

use clap::{
    Args,
    Parser,
    Subcommand, //
};
use libweir::Event;
use std::{
    ffi::OsString,
    path::PathBuf,
    time::Duration, //
};

const EXAMPLES: &str = "\
Examples:
  weir record -- make -j2       sample all CPUs while `make` runs, then say who used them
  weir report weir.data         say it again
  weir dump tasks               list every thread, as the kernel has it
  weir stat --duration 5        count on every CPU for five seconds

The module must be loaded (insmod weir.ko). Watching whole CPUs needs root, CAP_PERFMON, or
`sysctl kernel.perf_event_paranoid=0`.

Exit status: 0 all went well, 1 something failed, 2 wrong usage; `record` and `stat` give the status
of COMMAND where they ran one.";

/// Records, counts and lists what a running kernel does, through weir.ko.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// The device of the module.
    #[arg(long, global = true, value_name = "PATH", default_value = libweir::DEVICE)]
    pub(crate) device: PathBuf,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sample all CPUs while a command runs, or for a time, and write what comes to a file.
    Record(RecordArgs),
    /// Say what is in a file that `weir record` wrote.
    Report(ReportArgs),
    /// List objects that exist in the kernel.
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Dump(DumpArgs),
    /// Count events on all CPUs while a command runs, or for a time.
    Stat(StatArgs),
}

const RECORD_EXAMPLES: &str = "\
Examples:
  weir record -- make -j2
  weir record -F 4000 -o make.weir -- make -j2
  weir record -e cycles,cache-misses --duration 10
  weir record -e page-faults -c 100 --json -- ./server --once

Every task that exists is written to the file as well, and so is COMMAND; tasks that are born later
are known by their number only.

FILE holds the pages as they came. What they do not say (names of events and of the kernel's
functions) goes to FILE.notes.json, which `weir report` reads where it is there.";

/// Arguments of `weir record`.
#[derive(Args, Debug)]
#[command(after_help = RECORD_EXAMPLES)]
pub(crate) struct RecordArgs {
    /// Sample on these events; by default cpu-clock. Names are perf's; rNNNN is a raw one.
    #[arg(short, long = "event", value_name = "EVENT", value_delimiter = ',')]
    pub(crate) events: Vec<NamedEvent>,
    /// Take about so many samples a second on each CPU [default: 1000].
    #[arg(short = 'F', long = "frequency", value_name = "HZ", conflicts_with = "period",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) frequency: Option<u64>,
    /// Take a sample every so many events (nanoseconds for clocks).
    #[arg(short = 'c', long = "count", value_name = "PERIOD",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) period: Option<u64>,
    /// Where the pages go.
    #[arg(
        short,
        long = "output",
        value_name = "FILE",
        default_value = "weir.data"
    )]
    pub(crate) output: PathBuf,
    /// Pages of the channel, for all CPUs together [default: the module's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pages: Option<u32>,
    /// Do not write the tasks that exist.
    #[arg(long)]
    pub(crate) no_tasks: bool,
    /// Lines of each list of samples.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    /// Print one JSON document instead of text; it has all lines.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
}

/// What is watched.
#[derive(Args, Debug)]
pub(crate) struct WorkloadArgs {
    /// Stop after so many seconds; a COMMAND that still runs is terminated.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,
    /// What to run; the end of it ends the measurement.
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required_unless_present = "duration"
    )]
    pub(crate) command: Vec<OsString>,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  weir report weir.data
  weir report --top 5 weir.data
  weir report --json weir.data | jq '.events[0].symbols[:3]'
  weir report --kallsyms /proc/kallsyms weir.data

Names of events and of kernel functions come from FILE.notes.json. --kallsyms takes the functions from a
list instead; it must be the one of the kernel that was watched, since it was booted.";

/// Arguments of `weir report`.
#[derive(Args, Debug)]
#[command(after_help = REPORT_EXAMPLES)]
pub(crate) struct ReportArgs {
    /// A file that `weir record` wrote, or any pages as they came from the device.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// A list of the kernel's functions in the format of /proc/kallsyms.
    #[arg(long, value_name = "PATH")]
    pub(crate) kallsyms: Option<PathBuf>,
    /// Lines of each list of samples.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    /// Print one JSON document instead of text; it has all lines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `weir dump`.
#[derive(Args, Debug)]
pub(crate) struct DumpArgs {
    /// What to list.
    #[command(subcommand)]
    pub(crate) collection: Collection,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Collection {
    /// Every thread, with its process, parent, name and start.
    Tasks(DumpTasksArgs),
}

const DUMP_TASKS_EXAMPLES: &str = "\
Examples:
  weir dump tasks
  weir dump tasks --processes
  weir dump tasks --len 10 --json | jq '.tasks | length'";

/// Arguments of `weir dump tasks`.
#[derive(Args, Debug)]
#[command(after_help = DUMP_TASKS_EXAMPLES)]
pub(crate) struct DumpTasksArgs {
    /// Take at most so many tasks by one call; 0 takes what the channel has room for.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) len: u64,
    /// Processes only, not their further threads.
    #[arg(long)]
    pub(crate) processes: bool,
    /// Pages of the channel, for all CPUs together [default: the module's].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pages: Option<u32>,
    /// Print one JSON document instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

const STAT_EXAMPLES: &str = "\
Examples:
  weir stat -- make -j2
  weir stat -e cycles,instructions -- ./a.out
  weir stat -e context-switches --duration 1 --json

A counter that shared its place with others is scaled up, and its line says by how much of the time
it really counted. One that never counted says <not counted>; an event that this machine does not
have, <not supported>.";

/// Arguments of `weir stat`.
#[derive(Args, Debug)]
#[command(after_help = STAT_EXAMPLES)]
pub(crate) struct StatArgs {
    /// Count these events; by default some that most machines have. Names are perf's; rNNNN is a raw
    /// one.
    #[arg(short, long = "event", value_name = "EVENT", value_delimiter = ',')]
    pub(crate) events: Vec<NamedEvent>,
    /// Print one JSON document instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) workload: WorkloadArgs,
}

/// An event, and what the user called it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedEvent {
    pub(crate) name: String,
    pub(crate) event: Event,
}

impl std::str::FromStr for NamedEvent {
    type Err = libweir::event::EventError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(NamedEvent {
            name: text.to_owned(),
            event: text.parse()?,
        })
    }
}

/// Parses a time in seconds, with a fraction where wanted.
fn seconds(text: &str) -> Result<Duration, String> {
    let error = || format!("`{text}` is no number of seconds above 0, such as 10 or 0.5");
    let seconds: f64 = text.parse().map_err(|_| error())?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| error())?;
    if duration.is_zero() {
        return Err(error());
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    fn record(line: &str) -> RecordArgs {
        match parse(line).unwrap().command {
            Command::Record(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn events_may_be_listed_or_repeated() {
        let args = record("weir record -e cycles,cs -e r1c2 -F 99 -- make -j2 --top");
        let names: Vec<_> = args.events.iter().map(|event| &event.name[..]).collect();
        assert_eq!(names, ["cycles", "cs", "r1c2"]);
        assert_eq!(args.events[2].event, Event::new(4, 0x1c2));
        assert_eq!(args.frequency, Some(99));
        assert_eq!(args.workload.command, ["make", "-j2", "--top"]);
        assert_eq!(args.top, 20);
    }

    #[test]
    fn the_commands_own_options_are_left_alone() {
        let args = record("weir record make -j2 --json");
        assert_eq!(args.workload.command, ["make", "-j2", "--json"]);
        assert!(!args.json);
    }

    #[test]
    fn either_a_command_or_a_duration_is_needed() {
        assert!(parse("weir record").is_err());
        assert!(parse("weir stat").is_err());
        let args = record("weir record --duration 0.25");
        assert_eq!(args.workload.duration, Some(Duration::from_millis(250)));
        for bad in ["0", "-1", "x", "inf", "nan", "1e300"] {
            assert!(
                parse(&format!("weir record --duration={bad}")).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn period_and_frequency_exclude_each_other() {
        assert!(parse("weir record -F 10 -c 10 true").is_err());
        assert!(parse("weir record -F 0 true").is_err());
    }

    #[test]
    fn an_unknown_event_is_a_usage_error_that_names_the_nearest() {
        let error = parse("weir record -e cycels true").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("`cycles`"), "{error}");
    }
}
