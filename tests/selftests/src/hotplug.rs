// SPDX-License-Identifier: GPL-2.0

//! CPUs that can be taken offline.

use crate::ktap::{
    note,
    skip, //
};
use anyhow::{
    Context,
    Result, //
};
use std::{
    fs,
    path::{
        Path,
        PathBuf, //
    },
};

/// A CPU that can go; it is back when this is dropped.
#[derive(Debug)]
pub struct Hotplug {
    /// Its number.
    pub number: usize,
    online: PathBuf,
}

impl Hotplug {
    /// All that are online and can go. The first CPU always stays.
    ///
    /// # Errors
    ///
    /// Which CPUs there are is not known.
    pub fn all() -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for number in libweir::cpu::possible()? {
            let online = Path::new("/sys/devices/system/cpu").join(format!("cpu{number}/online"));
            if number != 0 && is_online(&online) {
                all.push(Self {
                    number: number as usize,
                    online,
                });
            }
        }
        Ok(all)
    }

    /// The last one that can go.
    ///
    /// # Errors
    ///
    /// As [`Hotplug::all`]; a skip where there is none.
    pub fn find() -> Result<Self> {
        let last = Self::all()?.pop();
        last.ok_or_else(|| skip("there is no CPU that can be taken offline"))
    }

    /// Takes it off or brings it back.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn set(&self, online: bool) -> Result<()> {
        let text = if online { "1" } else { "0" };
        fs::write(&self.online, text)
            .with_context(|| format!("writing {text} to {}", self.online.display()))
    }
}

/// Whether a CPU is there, by the file that says so; one that cannot go has none.
fn is_online(online: &Path) -> bool {
    fs::read_to_string(online).is_ok_and(|text| text.trim() == "1")
}

impl Drop for Hotplug {
    fn drop(&mut self) {
        if is_online(&self.online) {
            return;
        }
        if let Err(error) = self.set(true) {
            note(format_args!("{error:#}"));
        }
    }
}
