// SPDX-License-Identifier: GPL-2.0

//! Gives busybox the names that it is called by.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{
    bail,
    Context,
    Result, //
};
use weir_vm::plan::BUSYBOX;

/// Makes a link for each. A program of the host with such a name stays what it is.
pub fn link() -> Result<()> {
    let busybox = Path::new(BUSYBOX);
    let list = Command::new(busybox).arg("--list").output();
    let list = list.with_context(|| format!("cannot run {BUSYBOX}"))?;
    if !list.status.success() {
        bail!("'{BUSYBOX} --list' failed: {}", list.status);
    }
    for applet in String::from_utf8_lossy(&list.stdout).lines() {
        let name = busybox.with_file_name(applet);
        if !name.exists() {
            symlink("busybox", &name)
                .with_context(|| format!("cannot create {}", name.display()))?;
        }
    }
    Ok(())
}
