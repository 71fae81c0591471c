// SPDX-License-Identifier: GPL-2.0

//! Every kind of channel, with writers in every context and readers that are killed and stopped, while CPUs go and
//! come back: in rounds that follow from a seed.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use clap::Parser;
use libweir::{
    Channel,
    ChannelOptions,
    Errno, //
};
use std::{
    process::ExitCode,
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    child,
    hotplug::Hotplug,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    rounds::{
        self,
        plan::{
            kinds_count,
            Machine,
            Plan,
            CLOCKS, //
        },
        Summary, //
    },
    session::absent,
    torture::{
        Source,
        Torture, //
    },
};

/// Tests that nothing is lost, repeated or torn, whatever is done to readers and CPUs.
///
/// Needs weir.ko and weir_torture.ko, and root. A round, and what is done in it, follows from the seed, its number
/// and its length, so a round that failed can be repeated alone.
#[derive(Parser)]
struct Arguments {
    /// What the rounds follow from.
    #[arg(long, value_name = "NUMBER", env = "SEED", default_value_t = 1)]
    seed: u64,
    /// Runs this round alone; else all from the first on.
    #[arg(long, value_name = "NUMBER", env = "ROUND")]
    round: Option<u64>,
    /// How many rounds; by default there is one of every kind.
    #[arg(long, value_name = "NUMBER", conflicts_with = "seconds")]
    rounds: Option<u64>,
    /// Begins no round any more when so many seconds are over.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// How long a round writes.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    length: f64,
}

struct Context {
    arguments: Arguments,
    torture: Torture,
    machine: Machine,
    cpus: Vec<Hotplug>,
    sum: Summary,
}

/// The clocks that channels can have on this machine.
fn clocks() -> Result<Vec<u32>> {
    let mut clocks = Vec::new();
    for (clock, _) in CLOCKS {
        let options = ChannelOptions {
            clock,
            ..Default::default()
        };
        match Channel::create(&options) {
            Ok(_) => clocks.push(clock),
            Err(error) if error.errno() == Some(Errno::OPNOTSUPP) => {}
            Err(error) => return Err(absent(error)),
        }
    }
    Ok(clocks)
}

fn setup(arguments: Arguments) -> Result<Context> {
    let torture = Torture::open()?;
    let cpus = Hotplug::all()?;
    let machine = Machine {
        cpus: libweir::cpu::possible()?.len() as u32,
        removable: cpus.len(),
        sources: torture.sources()?,
        clocks: clocks()?,
    };
    note(format_args!(
        "seed {}, rounds of {} s; {} CPUs, {} of them can go; writers in {:?}",
        arguments.seed, arguments.length, machine.cpus, machine.removable, machine.sources
    ));
    Ok(Context {
        arguments,
        torture,
        machine,
        cpus,
        sum: Summary::default(),
    })
}

fn all_rounds(context: &mut Context) -> Verdict {
    let Arguments {
        seed,
        round,
        rounds,
        seconds,
        length,
    } = context.arguments;
    let length = Duration::try_from_secs_f64(length)?;
    let limit = seconds.map(Duration::try_from_secs_f64).transpose()?;
    let count = match limit {
        Some(_) => u64::MAX,
        None => rounds.unwrap_or(kinds_count()),
    };
    let numbers = match round {
        Some(round) => round..round + 1,
        None => 0..count,
    };
    let begin = Instant::now();
    for number in numbers {
        if limit.is_some_and(|limit| begin.elapsed() >= limit) {
            break;
        }
        let plan = Plan::draw(seed, number, length, &context.machine);
        note(&plan);
        let start = Instant::now();
        let summary = rounds::run(&context.torture, &plan, &context.cpus).with_context(|| {
            format!(
                "{plan}\nto repeat it: make torture SEED={seed} ROUND={number} LENGTH={} SMP={}",
                length.as_secs_f64(),
                context.machine.cpus
            )
        })?;
        note(format_args!(
            "round {number}, {:.1} s: {summary}",
            start.elapsed().as_secs_f64()
        ));
        context.sum.add(&summary);
    }
    note(format_args!(
        "{} rounds of seed {seed}: {}",
        context.sum.rounds, context.sum
    ));
    Ok(())
}

/// Whether what all rounds are for has happened in one of them. Of a single round it is not known.
fn happened(context: &Context, what: &str, count: u64) -> Verdict {
    if context.arguments.round.is_some() {
        return Err(skip("this was one round alone"));
    }
    ensure!(count > 0, "{what} in no round");
    Ok(())
}

fn records_were_read(context: &mut Context) -> Verdict {
    ensure!(context.sum.read > 0, "nothing was read");
    Ok(())
}

fn readers_were_killed_in_calls(context: &mut Context) -> Verdict {
    happened(
        context,
        "no reader was killed in a call",
        context.sum.kills_in_calls,
    )
}

fn writers_were_interrupted(context: &mut Context) -> Verdict {
    happened(
        context,
        "nothing was written inside of another write",
        context.sum.inside,
    )
}

fn records_were_compared_with_marks(context: &mut Context) -> Verdict {
    happened(context, "no record came after a mark", context.sum.marked)
}

fn nmi_wrote(context: &mut Context) -> Verdict {
    if !context.machine.sources.contains(&Source::Nmi) {
        return Err(skip("there is no NMI that could be sent here"));
    }
    let written = context.sum.sources[Source::Nmi as usize];
    happened(context, "an NMI wrote", written)
}

fn cpus_went_and_came(context: &mut Context) -> Verdict {
    if context.cpus.is_empty() {
        return Err(skip("there is no CPU that can be taken offline"));
    }
    happened(context, "a CPU went", context.sum.toggled)
}

fn main() -> ExitCode {
    if let Some(role) = child::role() {
        return child::end(rounds::role(&role));
    }
    let arguments = Arguments::parse();
    ktap::main(
        || setup(arguments),
        &[
            ("all_rounds", all_rounds),
            ("records_were_read", records_were_read),
            ("readers_were_killed_in_calls", readers_were_killed_in_calls),
            ("writers_were_interrupted", writers_were_interrupted),
            (
                "records_were_compared_with_marks",
                records_were_compared_with_marks,
            ),
            ("nmi_wrote", nmi_wrote),
            ("cpus_went_and_came", cpus_went_and_came),
        ],
    )
}
