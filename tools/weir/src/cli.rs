// SPDX-License-Identifier: GPL-2.0

//! What the command takes.

use clap::{
    Args,
    Parser,
    Subcommand, //
};
use libweir::{
    parse_events,
    EventPaths,
    EventSet, //
};
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
  weir stat -- make -j2         count what `make` and its children do
  weir stat -a --duration 5     count on every CPU for five seconds

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
    /// Count events in a command, in processes, or on CPUs.
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
    /// Sample on these events; by default cpu-clock. Names are perf's, in all of its spellings: see
    /// `weir stat --help`.
    #[arg(short, long = "event", value_name = "EVENTS", value_parser = events)]
    pub(crate) events: Vec<EventList>,
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
  weir stat -- make -j2                     a command and its children
  weir stat -r 5 -- ./a.out                 five times: the mean, and how far to trust it
  weir stat -e '{cycles,instructions}:u,faults' -- ./a.out
  weir stat -a --per-cpu --duration 5       every CPU, each on its own
  weir stat -a -I 1000 -e cs,migrations     every second, until Ctrl-C
  weir stat -p 4711 -e sched:sched_switch   a process, until it ends
  weir stat -C 0-3 --json -- sleep 1        these CPUs, for a program to read

EVENTS are perf's, separated by commas:
  cycles, faults, L1-dcache-load-misses     what every machine has a name for (`perf list`)
  r01c2, cpu/event=0x3c,umask=1/            a PMU's own number, or its fields
  power/energy-pkg/, energy-pkg             a PMU's own name
  sched:sched_switch, 'sched:*'             tracepoints
  mem:0xffffffff82000000/8:w                a breakpoint: address, length, and access (r, w, x)
  {cycles,instructions}                     a set: counted at the same time, or not at all
  cycles:u                                  modifiers: u user, k kernel, h hypervisor, G guest,
                                            H host, I not idle, p precise, D pinned, e exclusive

Behind a count stands what follows from it and others. Of an event that shared its place on the
PMU, the count is brought up to all of the time, and behind it stands (the share for which it
really counted); of a set, `together` or `apart`. <not counted> never had its turn, or nothing ran;
an event that this machine does not have is <not supported>.

--json has the same, with names of fields that stay: one object, or with -I one object a line.";

/// Arguments of `weir stat`.
#[derive(Args, Debug)]
#[command(after_help = STAT_EXAMPLES,
          group = clap::ArgGroup::new("what").required(true).multiple(true)
              .args(["all_cpus", "pids", "tids", "cpus", "duration", "command"]))]
pub(crate) struct StatArgs {
    /// Count these events; by default those of `perf stat`.
    #[arg(short, long = "event", value_name = "EVENTS", value_parser = events)]
    pub(crate) events: Vec<EventList>,
    /// Count on every CPU, whoever runs there; COMMAND only says for how long.
    #[arg(short, long, conflicts_with_all = ["pids", "tids", "cpus"])]
    pub(crate) all_cpus: bool,
    /// Count in these processes, with all their threads and children.
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["tids", "cpus"])]
    pub(crate) pids: Vec<u32>,
    /// Count in these threads, with their children.
    #[arg(short, long = "tid", value_name = "TID", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "cpus")]
    pub(crate) tids: Vec<u32>,
    /// Count on these CPUs, as in 0-3,5.
    #[arg(short = 'C', long = "cpu", value_name = "CPUS", value_parser = cpus)]
    pub(crate) cpus: Option<CpuList>,
    /// Print what was added every so many milliseconds.
    #[arg(short = 'I', long = "interval-print", value_name = "MS", value_parser = milliseconds)]
    pub(crate) interval: Option<Duration>,
    /// Stop after so many intervals.
    #[arg(long, value_name = "N", requires = "interval",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) interval_count: Option<u32>,
    /// Run COMMAND so many times, and print means.
    #[arg(short, long, value_name = "N", default_value_t = 1, requires = "command",
          conflicts_with = "interval", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Print lines for each CPU.
    #[arg(long, conflicts_with_all = ["pids", "tids"])]
    pub(crate) per_cpu: bool,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    /// Stop after so many seconds; a COMMAND that still runs is terminated.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,
    /// What to run; the end of it ends the measurement.
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) command: Vec<OsString>,
}

impl StatArgs {
    /// What the definition of the arguments cannot say.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.per_cpu && !self.command.is_empty() && !self.all_cpus && self.cpus.is_none() {
            return Err(
                "a command is not counted on each CPU: add -a or -C CPUS to --per-cpu".into(),
            );
        }
        Ok(())
    }
}

/// Events behind one `-e`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventList(pub(crate) Vec<EventSet>);

/// Parses a list of events of this machine.
fn events(text: &str) -> Result<EventList, libweir::EventError> {
    parse_events(text, &EventPaths::default()).map(EventList)
}

/// Numbers of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CpuList(pub(crate) Vec<u32>);

/// Parses a list of CPUs.
fn cpus(text: &str) -> Result<CpuList, String> {
    libweir::cpu::parse_list(text)
        .map(CpuList)
        .ok_or_else(|| format!("`{text}` is no list of CPUs, such as 0-3,5"))
}

/// Parses a time in milliseconds.
fn milliseconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(ms) if ms > 0 => Ok(Duration::from_millis(ms)),
        _ => Err(format!("`{text}` is no number of milliseconds above 0")),
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
        let args = record("weir record -e cycles,{cs,faults} -e r1c2 -F 99 -- make -j2 --top");
        let sets: Vec<_> = args.events.iter().flat_map(|list| &list.0).collect();
        let names: Vec<Vec<&str>> = sets
            .iter()
            .map(|set| set.events.iter().map(|event| &event.name[..]).collect())
            .collect();
        assert_eq!(names, [vec!["cycles"], vec!["cs", "faults"], vec!["r1c2"]]);
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
        assert!(parse("weir stat -e cs").is_err());
        let args = record("weir record --duration 0.25");
        assert_eq!(args.workload.duration, Some(Duration::from_millis(250)));
        for bad in ["0", "-1", "x", "inf", "nan", "1e300"] {
            assert!(
                parse(&format!("weir record --duration={bad}")).is_err(),
                "{bad}"
            );
        }
    }

    fn stat(line: &str) -> StatArgs {
        match parse(line).unwrap().command {
            Command::Stat(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_is_counted_may_be_said_in_many_ways() {
        assert!(stat("weir stat -a").all_cpus);
        assert_eq!(stat("weir stat -p 1,22").pids, [1, 22]);
        assert_eq!(stat("weir stat -t 7").tids, [7]);
        assert_eq!(
            stat("weir stat -C 0-2,5").cpus,
            Some(CpuList(vec![0, 1, 2, 5]))
        );
        let args = stat("weir stat -r 3 -e cs -- make -j2");
        assert_eq!(
            (args.repeat, &args.command[..]),
            (3, &["make".into(), "-j2".into()][..])
        );
        let args = stat("weir stat -a -I 100 --interval-count 3");
        assert_eq!(args.interval, Some(Duration::from_millis(100)));
        for wrong in [
            "-a -p 1",
            "-p 1 -t 1",
            "-C 0 -a",
            "-C 3-1",
            "-C x",
            "-p 0",
            "-p x",
            "-a -I 0",
            "-a --interval-count 3",
            "-a -r 3",
            "-r 0 true",
            "-I 10 -r 3 true",
            "-p 1 --per-cpu",
            "-a -e cycels",
            "-a -e {cs",
        ] {
            assert!(parse(&format!("weir stat {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_command_is_not_counted_on_each_cpu() {
        assert!(stat("weir stat --per-cpu true").check().is_err());
        for right in [
            "--per-cpu -a true",
            "--per-cpu -C 0 true",
            "--per-cpu --duration 1",
        ] {
            assert!(
                stat(&format!("weir stat {right}")).check().is_ok(),
                "{right}"
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
