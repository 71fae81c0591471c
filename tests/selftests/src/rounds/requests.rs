// SPDX-License-Identifier: GPL-2.0

//! What is asked of a channel, and of the CPUs, while others read and write.

use super::plan::{
    Ask,
    Script, //
};
use crate::{
    hotplug::Hotplug,
    times::Times, //
};
use anyhow::{
    ensure,
    Context,
    Result, //
};
use libweir::Channel;
use std::{
    sync::atomic::{
        AtomicBool,
        Ordering, //
    },
    thread::sleep,
    time::{
        Duration,
        Instant, //
    },
};

/// Makes a call; whether it had an answer.
///
/// # Errors
///
/// Those that it is not to have, and wrong answers.
pub fn ask(channel: &Channel, what: Ask) -> Result<bool> {
    match what {
        Ask::Flush => channel.flush()?,
        Ask::Freeze => channel.freeze(true)?,
        Ask::Thaw => channel.freeze(false)?,
        Ask::Status => {
            for cpu in libweir::cpu::possible()? {
                channel.status(cpu)?;
            }
        }
        Ask::Mark => return Ok(mark(channel)?.is_some()),
    }
    Ok(true)
}

/// Asks for a mark.
///
/// # Errors
///
/// That of the call, and a mark that is later than now.
pub fn mark(channel: &Channel) -> Result<Option<u64>> {
    let mark = channel.mark()?;
    let now = Times::of(channel)?.now();
    ensure!(
        mark.is_none_or(|mark| mark <= now),
        "a mark of {mark:?} at {now}"
    );
    Ok(mark)
}

/// Sleeps until `time`; not to the end if it is `over`. Whether it slept to the end.
fn sleep_until(time: Instant, over: &AtomicBool) -> bool {
    const LONGEST: Duration = Duration::from_millis(10);
    loop {
        if over.load(Ordering::Relaxed) {
            return false;
        }
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        sleep(left.min(LONGEST));
    }
}

/// Calls `f` for each line of a script when it is time for that, until it is over. What takes longer makes what
/// comes after it later. Returns how many lines there were.
fn follow<T: Copy>(
    script: &Script<T>,
    over: &AtomicBool,
    mut f: impl FnMut(T) -> Result<()>,
) -> Result<u64> {
    let mut lines = 0;
    let mut time = Instant::now();
    for (delay, what) in script {
        time = (time + *delay).max(Instant::now());
        if !sleep_until(time, over) {
            break;
        }
        f(*what)?;
        lines += 1;
    }
    Ok(lines)
}

/// Asks a channel what a script says. Returns how many answers there were, and how many not.
///
/// # Errors
///
/// As [`ask`].
pub fn ask_all(channel: &Channel, script: &Script<Ask>, over: &AtomicBool) -> Result<(u64, u64)> {
    let mut unanswered = 0;
    let lines = follow(script, over, |what| {
        let answered = ask(channel, what).with_context(|| format!("{what:?}"))?;
        unanswered += u64::from(!answered);
        Ok(())
    })?;
    Ok((lines - unanswered, unanswered))
}

/// Takes CPUs off and brings them back, as a script says. In the end all are there. Returns how often one went
/// or came.
///
/// # Errors
///
/// A CPU does not go, or does not come back.
pub fn toggle_all(cpus: &[Hotplug], script: &Script<usize>, over: &AtomicBool) -> Result<u64> {
    let mut online = vec![true; cpus.len()];
    let result = follow(script, over, |index| {
        cpus[index].set(!online[index])?;
        online[index] = !online[index];
        Ok(())
    });
    let mut back = 0;
    for (cpu, _) in cpus.iter().zip(&online).filter(|(_, online)| !**online) {
        cpu.set(true)?;
        back += 1;
    }
    Ok(result? + back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_followed_to_its_end_or_until_it_is_over() {
        let moment = Duration::from_millis(1);
        let script: Script<u32> = (0..5).map(|number| (moment, number)).collect();
        let over = AtomicBool::new(false);
        let mut seen = Vec::new();
        let lines = follow(&script, &over, |number| {
            seen.push(number);
            Ok(())
        });
        assert_eq!(lines.unwrap(), 5);
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        let lines = follow(&script, &over, |number| {
            over.store(number == 2, Ordering::Relaxed);
            Ok(())
        });
        assert_eq!(lines.unwrap(), 3);
        assert!(follow(&script, &AtomicBool::new(false), |_| anyhow::bail!("no")).is_err());
    }
}
