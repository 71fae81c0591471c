// SPDX-License-Identifier: GPL-2.0

//! Asks kmemleak for memory that nothing points to any more.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{
    Duration,
    Instant, //
};

use anyhow::{
    Context,
    Result, //
};
use weir_vm::plan::{
    Plan,
    Step, //
};
use weir_vm::report::{
    Event,
    Outcome,
    BODY_MAX, //
};

use crate::guest::Guest;

const KMEMLEAK: &str = "/sys/kernel/debug/kmemleak";

/// kmemleak says nothing of an object younger than this (`MSECS_MIN_AGE`), with some more for its
/// clock of jiffies.
const MINIMUM_AGE: Duration = Duration::from_millis(5200);

/// Stops kmemleak's own scans, which would come at any time and tell of leaks in any step.
pub fn prepare(plan: &Plan) -> Result<()> {
    if wanted(plan) {
        command("scan=off")?;
    }
    Ok(())
}

fn wanted(plan: &Plan) -> bool {
    plan.leaks && !plan.shell && Path::new(KMEMLEAK).exists()
}

fn command(text: &str) -> Result<()> {
    fs::write(KMEMLEAK, text).with_context(|| format!("cannot write '{text}' to {KMEMLEAK}"))
}

/// The search at the end of a run.
pub struct Search {
    wanted: bool,
    /// Since when everything that is looked at exists.
    start: Instant,
    waited: bool,
}

impl Search {
    /// Begins when the programs have ended; what is allocated later is not looked at.
    pub fn new(plan: &Plan) -> Self {
        Self {
            wanted: wanted(plan),
            start: Instant::now(),
            waited: false,
        }
    }

    /// Looks for leaks and reports them, each only once.
    pub fn look(&mut self, guest: &mut Guest) -> Result<()> {
        if !self.wanted {
            return Ok(());
        }
        if !self.waited {
            thread::sleep(MINIMUM_AGE.saturating_sub(self.start.elapsed()));
            self.waited = true;
        }
        guest.step(Step::Leaks, |guest| {
            // An object counts as leaked when two scans in a row find it unchanged.
            command("scan")?;
            command("scan")?;
            let leaks = fs::read(KMEMLEAK).with_context(|| format!("cannot read {KMEMLEAK}"))?;
            // What was told of is not told of again.
            command("clear")?;
            if leaks.is_empty() {
                return Ok(Outcome::Well);
            }
            let shown = &leaks[..leaks.len().min(BODY_MAX)];
            guest.send(&Event::Output, shown)?;
            let text = String::from_utf8_lossy(&leaks);
            let count = text.matches("unreferenced object").count();
            Ok(Outcome::Error(format!("{count} leaked objects")))
        })
    }
}
