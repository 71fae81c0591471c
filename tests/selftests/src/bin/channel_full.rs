// SPDX-License-Identifier: GPL-2.0

//! A channel that nobody reads counts exactly what it loses, and says so in the pages that come next.

use anyhow::{
    bail,
    ensure,
    Result, //
};
use libweir::{
    uapi::LOST_CAUSES,
    ChannelOptions, //
};
use std::{
    process::ExitCode,
    time::Duration, //
};
use weir_selftests::{
    ktap::{
        self,
        note,
        Verdict, //
    },
    ledger::Ledger,
    session::{
        now,
        Session, //
    },
    torture::{
        Source,
        Start,
        Torture,
        PAYLOAD_MIN, //
    },
};

/// How long writers may take to write what they are told.
const PATIENCE: Duration = Duration::from_secs(60);

/// The smallest pool that there can be.
fn smallest() -> Result<ChannelOptions> {
    Ok(ChannelOptions {
        pages: 4 * libweir::cpu::possible()?.len() as u32,
        // No page is handed over before it is full.
        max_latency: Duration::from_secs(3600),
        ..Default::default()
    })
}

/// Writes `request` to its end and reads nothing.
fn write(torture: &Torture, session: &Session, ledger: &mut Ledger, request: Start) -> Result<()> {
    let run = torture.start(session.channel(), request)?;
    run.wait(PATIENCE)?;
    // The books are closed when what was written has been read.
    ledger.expect(run.statuses()?);
    Ok(())
}

/// Fills the channel to the brim, reads it, writes a little more, and reads that: the losses of the
/// first part stand in the pages of the second at the latest.
fn losses(torture: &Torture, request: Start, cause: usize) -> Verdict {
    let mut session = Session::open(&smallest()?, 16)?;
    let mut ledger = Ledger::new();
    let begin = now();
    write(torture, &session, &mut ledger, request)?;
    let end = now();

    let mut lost = 0;
    for cpu in libweir::cpu::possible()? {
        let status = session.channel().status(cpu)?;
        let count = status.lost[cause];
        let others: u64 = status.lost.iter().sum::<u64>() - count;
        ensure!(
            others == 0,
            "other causes than {cause} on CPU {cpu}: {status:?}"
        );
        if status.lost_begin != 0 {
            ensure!(
                begin <= status.lost_begin
                    && status.lost_begin <= status.lost_end
                    && status.lost_end <= end,
                "losses of {begin} to {end} ns on CPU {cpu}: {status:?}"
            );
        }
        lost += count;
    }
    ensure!(lost > 0, "nothing was lost, so this has shown nothing");

    session.flush(|cpu, record| ledger.record(cpu, record))?;
    let totals = ledger.close_expected()?;
    ensure!(
        totals.refused[cause] == lost,
        "{totals:?} where the channel counts {lost}"
    );
    note(format_args!("{} written, {lost} lost", totals.written));
    ledger.check_channel(&session)?;

    // Every CPU now publishes a page with records.
    let more = Start::new(&[Source::Task], PAYLOAD_MIN..=PAYLOAD_MIN).records(20);
    write(torture, &session, &mut ledger, more)?;
    session.flush(|cpu, record| ledger.record(cpu, record))?;
    let totals = ledger.close_expected()?;
    ensure!(
        totals.refused == [0; LOST_CAUSES],
        "a channel that was read is full: {totals:?}"
    );
    ledger.check_channel(&session)?;
    let reported = session.verifier().sum().lost;
    if reported[cause] != lost || reported.iter().sum::<u64>() != lost {
        bail!("pages report {reported:?} lost by cause, where {lost} were for cause {cause}");
    }
    for cpu in session.verifier().cpus() {
        let status = session.channel().status(cpu)?;
        ensure!(
            status.lost_begin == 0,
            "not all losses stand in pages: {status:?}"
        );
    }
    Ok(())
}

fn nobody_reads(torture: &mut Torture) -> Verdict {
    let request = Start::new(&[Source::Task], PAYLOAD_MIN..=200).records(5_000);
    losses(torture, request, 0)
}

fn nobody_reads_and_interrupts_write(torture: &mut Torture) -> Verdict {
    let sources = [Source::Task, Source::Softirq, Source::Irq];
    let request = Start::new(&sources, PAYLOAD_MIN..=200).records(500);
    losses(torture, request, 0)
}

fn larger_than_a_page(torture: &mut Torture) -> Verdict {
    let request = Start::new(&[Source::Task, Source::Irq], 65_536..=65_536).records(100);
    losses(torture, request, 2)
}

/// One CPU that writes without end takes no page that another one needs to write at all.
fn one_cpu_does_not_starve_another(torture: &mut Torture) -> Verdict {
    let cpus = libweir::cpu::online()?;
    let [first, second, ..] = cpus[..] else {
        return Err(ktap::skip("there is only one CPU"));
    };
    let mut session = Session::open(&smallest()?, 16)?;
    let mut ledger = Ledger::new();
    let flood = Start::new(&[Source::Task], PAYLOAD_MIN..=200);
    write(
        torture,
        &session,
        &mut ledger,
        flood.on(first).records(5_000),
    )?;
    let lost = session.channel().status(first)?.lost[0];
    ensure!(
        lost > 0,
        "CPU {first} has lost nothing, so this has shown nothing"
    );
    write(torture, &session, &mut ledger, flood.on(second).records(5))?;
    let status = session.channel().status(second)?;
    ensure!(
        status.lost == [0; LOST_CAUSES],
        "CPU {second} got no page: {status:?}"
    );
    session.flush(|cpu, record| ledger.record(cpu, record))?;
    ledger.close_expected()?;
    ledger.check_channel(&session)
}

/// A channel that was full goes on as if nothing had been, over and over.
fn full_and_read_in_turns(torture: &mut Torture) -> Verdict {
    let mut session = Session::open(&smallest()?, 16)?;
    let mut ledger = Ledger::new();
    for _ in 0..20 {
        let request = Start::new(&[Source::Task, Source::Irq], PAYLOAD_MIN..=1000).records(100);
        write(torture, &session, &mut ledger, request)?;
        session.flush(|cpu, record| ledger.record(cpu, record))?;
        ledger.close_expected()?;
        ledger.check_channel(&session)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(
        Torture::open,
        &[
            ("nobody_reads", nobody_reads),
            (
                "nobody_reads_and_interrupts_write",
                nobody_reads_and_interrupts_write,
            ),
            ("larger_than_a_page", larger_than_a_page),
            (
                "one_cpu_does_not_starve_another",
                one_cpu_does_not_starve_another,
            ),
            ("full_and_read_in_turns", full_and_read_in_turns),
        ],
    )
}
