// SPDX-License-Identifier: GPL-2.0

//! `weir stat` says what `perf stat` of the same kernel says of the same work: exactly, where the work is exactly
//! known, and within perf's own noise of everything else.
//!
//! The work is done by this program over again, which both tools run in turn. All of it has real time and one CPU, so
//! that nobody interrupts it, and the addresses of a program are always the same.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use clap::Parser;
use libweir::{
    parse_events,
    EventPaths,
    Scope, //
};
use nix::sys::personality::{
    self,
    Persona, //
};
use std::{
    fs,
    io::ErrorKind,
    os::unix::net::UnixListener,
    process::ExitCode,
    thread::sleep,
    time::{
        Duration,
        Instant, //
    },
};
use tempfile::TempDir;
use weir_selftests::{
    affinity::on_cpu,
    agreement::{
        agree,
        usual,
        Expected,
        MOST_ROUNDS, //
    },
    beside::Perf,
    child,
    ktap::{
        self,
        skip,
        Verdict, //
    },
    stat::{
        self,
        Counts,
        Tool,
        TOOLS, //
    },
    stat_work::{
        arguments,
        work, //
    },
    syscall::with_real_time,
    worker::{
        self,
        Worker, //
    },
};

/// What is counted of every work.
const EVENTS: &str = "task-clock,cpu-clock,page-faults,minor-faults,major-faults,context-switches,\
                      cpu-migrations,alignment-faults,emulation-faults,cgroup-switches,dummy,\
                      task:task_rename,sched:sched_process_fork,sched:sched_process_exit,\
                      sched:sched_switch";

/// How long a tool may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// Work that is known: what it is called, and which events are how many more of it.
type Known = (&'static str, &'static [(&'static str, u64)]);

/// Nothing more than to be executed, and to end.
const NOTHING: &str = "touch 0";

/// How often that is counted at least.
const NOTHING_ROUNDS: usize = 7;

/// Tests that `weir stat` and `perf stat` agree.
///
/// Needs root, and both commands.
#[derive(Parser)]
struct Arguments {
    /// How often each tool counts the same work, where that is enough; an odd number.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = odd)]
    rounds: usize,
}

fn odd(text: &str) -> Result<usize> {
    let number = text.parse()?;
    ensure!(
        number % 2 == 1 && number <= MOST_ROUNDS,
        "an odd number up to {MOST_ROUNDS}"
    );
    Ok(number)
}

struct Context {
    rounds: usize,
    /// The CPU of tools and of work.
    cpu: u32,
    /// Another one, where there is.
    other: Option<u32>,
    folder: TempDir,
    /// All events that are counted: the kernel waits for all CPUs when nobody has a tracepoint any more.
    _held: Vec<Perf>,
}

impl Context {
    fn new(rounds: usize) -> Result<Self> {
        stat::setup()?;
        personality::set(personality::get()? | Persona::ADDR_NO_RANDOMIZE)?;
        let cpus = libweir::cpu::online()?;
        let sets = parse_events(EVENTS, &EventPaths::default())?;
        let attrs = sets.iter().flat_map(|set| set.attrs());
        let held = attrs.map(|attr| Perf::open(&attr, Scope::Cpu(cpus[0])));
        let held = held.collect::<Result<_>>()?;
        Ok(Context {
            rounds,
            cpu: cpus[0],
            other: cpus.get(1).copied(),
            folder: tempfile::tempdir()?,
            _held: held,
        })
    }

    /// Does something on the CPU of work, which nobody interrupts.
    fn alone<T>(&self, f: impl FnOnce() -> Result<T>) -> Result<T> {
        on_cpu(self.cpu, || with_real_time(1, f))??
    }

    /// Lets both tools count some work.
    fn both(&self, options: &[&str], work: &str) -> Result<[Counts; 2]> {
        let arguments = arguments(options, work)?;
        self.alone(|| Ok([Tool::Perf.count(&arguments)?, Tool::Weir.count(&arguments)?]))
    }
}

/// Lets both tools count nothing and then works that are known, as `count` does.
fn compare(
    context: &Context,
    works: &[Known],
    mut count: impl FnMut(&str) -> Result<[Counts; 2]>,
) -> Verdict {
    // What all others are measured by.
    let rounds = context.rounds.max(NOTHING_ROUNDS);
    let nothing = agree(rounds, &Expected::default(), || count(NOTHING))?;
    for (work, known) in works {
        let expected = Expected::more(&nothing, known)?;
        agree(context.rounds, &expected, || count(work))
            .with_context(|| format!("work `{work}`"))?;
    }
    Ok(())
}

/// A command, of which it is known what it does.
fn command(context: &mut Context) -> Verdict {
    const WORKS: &[Known] = &[
        (
            "touch 500",
            &[
                ("page-faults", 500),
                ("minor-faults", 500),
                ("major-faults", 0),
            ],
        ),
        ("rename 300", &[("task:task_rename", 300)]),
        (
            "sleep 30",
            &[("context-switches", 30), ("sched:sched_switch", 30)],
        ),
        (
            "children 3 rename 50",
            &[
                ("sched:sched_process_fork", 3),
                ("sched:sched_process_exit", 3),
                // Each gets its name when it is executed, too.
                ("task:task_rename", 3 * 51),
            ],
        ),
    ];
    compare(context, WORKS, |work| context.both(&["-e", EVENTS], work))
}

/// A command that goes from one CPU to another.
fn migrations(context: &mut Context) -> Verdict {
    if context.other.is_none() {
        return Err(skip("there is one CPU only"));
    }
    let works: &[Known] = &[("move 20", &[("cpu-migrations", 20)])];
    compare(context, works, |work| context.both(&["-e", EVENTS], work))
}

/// A command that computes for a time.
fn time(context: &mut Context) -> Verdict {
    let options = ["-e", "task-clock,cpu-clock"];
    let runs = agree(context.rounds, &Expected::default(), || {
        context.both(&options, "spin 50")
    })?;
    for event in ["task-clock", "cpu-clock"] {
        for tool in TOOLS {
            let count = usual(&runs, tool, event)?;
            ensure!(
                count >= 50e6,
                "{tool} says {event} {count} ns of a command that spins for 50 ms"
            );
        }
    }
    Ok(())
}

/// What of a command is of user space only, or of the kernel only.
fn modifiers(context: &mut Context) -> Verdict {
    let options = ["-e", "page-faults:u,page-faults:k,{faults:uk,cs:uk}"];
    let works: &[Known] = &[(
        "touch 500",
        &[
            ("page-faults:u", 500),
            ("page-faults:k", 0),
            ("faults:uk", 500),
        ],
    )];
    compare(context, works, |work| context.both(&options, work))
}

/// What a tool counts while a process that is there already does some work; it gets `options`.
fn meanwhile(
    context: &Context,
    tool: Tool,
    options: &[&str],
    work: impl FnOnce() -> Verdict,
) -> Result<Counts> {
    let path = context.folder.path().join("meet");
    let listener = UnixListener::bind(&path)?;
    let meet = format!("meet {}", path.display());
    let mut child = tool.command(arguments(options, &meet)?).spawn()?;
    let begin = Instant::now();
    listener.set_nonblocking(true)?;
    let met = loop {
        match listener.accept() {
            Ok((met, _)) => break Some(met),
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
            Err(_) if child.try_wait()?.is_some() => break None,
            Err(_) => sleep(Duration::from_millis(1)),
        }
        if begin.elapsed() > PATIENCE {
            child.kill()?;
            break None;
        }
    };
    let worked = met.as_ref().map(|_| work());
    // The command ends when it is let go, and the tool with it.
    drop(met);
    let output = child.wait_with_output()?;
    fs::remove_file(&path)?;
    let counts = tool
        .counts(&output)
        .with_context(|| format!("{tool} {options:?}"))?;
    worked.with_context(|| format!("{tool} did not run its command"))??;
    Ok(counts)
}

/// What both count while the worker does what it is told.
fn both_meanwhile(
    context: &Context,
    options: &[&str],
    worker: &mut Worker,
    order: &str,
) -> Result<[Counts; 2]> {
    context.alone(|| {
        let mut count = |tool| meanwhile(context, tool, options, || worker.order(order));
        Ok([count(Tool::Perf)?, count(Tool::Weir)?])
    })
}

/// A process that is there already, and what it starts.
fn process(context: &mut Context) -> Verdict {
    let mut worker = context.alone(Worker::start)?;
    let pid = worker.pid().to_string();
    let options = ["-p", &pid, "-e", EVENTS];
    // What is done for the first time needs memory.
    for order in ["touch 500", "children 1 touch 0"] {
        worker.order(order)?;
    }
    let works: &[Known] = &[
        ("touch 500", &[("page-faults", 500)]),
        ("rename 200", &[("task:task_rename", 200)]),
        (
            "children 2 rename 10",
            &[
                ("sched:sched_process_fork", 2),
                ("task:task_rename", 2 * 11),
            ],
        ),
    ];
    compare(context, works, |work| {
        both_meanwhile(context, &options, &mut worker, work)
    })?;
    worker.end()
}

/// Everything on all CPUs, where nobody else does such things.
fn all_cpus(context: &mut Context) -> Verdict {
    let options = ["-a", "-e", "task:task_rename,sched:sched_process_fork"];
    let works: &[Known] = &[
        ("rename 300", &[("task:task_rename", 300)]),
        ("children 3 touch 0", &[("sched:sched_process_fork", 3)]),
    ];
    compare(context, works, |work| context.both(&options, work))
}

/// A CPU on which nothing else happens, and the sum of it and that of the tools.
fn some_cpus(context: &mut Context) -> Verdict {
    let other = context.other.ok_or_else(|| skip("there is one CPU only"))?;
    let mut worker = on_cpu(other, Worker::start)??;
    let one = other.to_string();
    let two = format!("{},{other}", context.cpu);
    worker.order("touch 500")?;
    for cpus in [&one, &two] {
        let options = ["-C", cpus, "-e", "task:task_rename"];
        let works: &[Known] = &[("rename 250", &[("task:task_rename", 250)])];
        compare(context, works, |work| {
            both_meanwhile(context, &options, &mut worker, work)
        })
        .with_context(|| format!("CPUs {cpus}"))?;
    }
    worker.end()
}

/// Several runs of a command that does more each time: the mean and how far it is to be trusted.
fn repeated(context: &mut Context) -> Verdict {
    const EVENT: &str = "task:task_rename";
    let path = context.folder.path().join("runs");
    let work = format!("more {}", path.display());
    for tool in TOOLS {
        // 1 for the name that it gets when it is executed.
        let expected: Vec<f64> = (0..4).map(|run| f64::from(1 + 100 * run)).collect();
        fs::write(&path, "0")?;
        let arguments = arguments(&["-r", "4", "-e", EVENT], &work)?;
        let counts = context.alone(|| tool.count(&arguments))?;
        let count = counts[EVENT].with_context(|| format!("{tool} did not count"))?;
        let mean = expected.iter().sum::<f64>() / 4.0;
        let squares = expected.iter().map(|value| (value - mean).powi(2));
        let percent = (squares.sum::<f64>() / 3.0 / 4.0).sqrt() / mean * 100.0;
        ensure!(
            count.value == mean,
            "{tool}: the mean of {expected:?} is {count:?}"
        );
        // As precise as perf prints it.
        let spread = count
            .spread
            .with_context(|| format!("{tool} has no spread"))?;
        ensure!(
            (spread - percent).abs() < 0.006,
            "{tool}: the spread of {expected:?} is {spread} %, not {percent}"
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    if let Some(status) = work() {
        return status;
    }
    if child::role().as_deref() == Some(worker::ROLE) {
        return child::end(worker::obey());
    }
    let rounds = Arguments::parse().rounds;
    ktap::main(
        || Context::new(rounds),
        &[
            ("command", command),
            ("migrations", migrations),
            ("time", time),
            ("modifiers", modifiers),
            ("process", process),
            ("all_cpus", all_cpus),
            ("some_cpus", some_cpus),
            ("repeated", repeated),
        ],
    )
}
