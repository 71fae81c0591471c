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
use crate::symbols::Symbols;

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

/// The search at the end of a run, when everything that is to be freed is.
pub struct Search {
    wanted: bool,
    /// Since when everything that is looked at exists.
    start: Instant,
    symbols: Symbols,
}

impl Search {
    /// Begins when the programs have ended and the modules are there still.
    pub fn new(plan: &Plan) -> Result<Self> {
        let wanted = wanted(plan);
        Ok(Self {
            wanted,
            start: Instant::now(),
            symbols: match wanted {
                true => Symbols::of_modules()?,
                false => Symbols::default(),
            },
        })
    }

    /// Looks for leaks and reports them. With the modules, what only they pointed to is leaked.
    pub fn look(self, guest: &mut Guest) -> Result<()> {
        if !self.wanted {
            return Ok(());
        }
        thread::sleep(MINIMUM_AGE.saturating_sub(self.start.elapsed()));
        guest.step(Step::Leaks, |guest| {
            // An object counts as leaked when two scans in a row find it unchanged.
            command("scan")?;
            command("scan")?;
            let leaks = fs::read(KMEMLEAK).with_context(|| format!("cannot read {KMEMLEAK}"))?;
            if leaks.is_empty() {
                return Ok(Outcome::Well);
            }
            let text = String::from_utf8_lossy(&leaks);
            let shown = self.symbols.translate(&text);
            guest.send(
                &Event::Output,
                &shown.as_bytes()[..shown.len().min(BODY_MAX)],
            )?;
            let count = text.matches("unreferenced object").count();
            Ok(Outcome::Error(format!("{count} leaked objects")))
        })
    }
}
