// SPDX-License-Identifier: GPL-2.0

//! The machine as user-mode Linux.
//!
//! It has no virtio-serial port. Its report goes into a file in a folder of the host, the only one
//! that it can see.

use std::ffi::OsString;
use std::fs::File;
use std::io::{
    self,
    Read, //
};
use std::path::Path;
use std::sync::atomic::{
    AtomicBool,
    Ordering, //
};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{
    bail,
    Context,
    Result, //
};
use tempfile::TempDir;
use weir_vm::initramfs::Initramfs;

use crate::args;
use crate::guest_files::find_program;
use crate::machine::{
    inherited_path,
    initramfs_file,
    Launch, //
};

const MEMORY: &str = "256M";

/// How to start it.
///
/// # Errors
///
/// Where the image is not there, or no folder can be made for the report.
pub fn launch(machine: &args::Machine, initramfs: &Initramfs, interactive: bool) -> Result<Launch> {
    if find_program(&machine.image).is_none() {
        bail!("there is no {}", machine.image.display());
    }
    if machine.nmi.is_some() {
        bail!("user-mode Linux has no non-maskable interrupts: leave out --nmi");
    }
    let scratch = scratch_folder().context("cannot make a temporary folder")?;
    let path = scratch.path().to_str().unwrap_or(",");
    if path.contains([',', ' ']) {
        bail!(
            "user-mode Linux cannot take a folder of the name {}; set TMPDIR",
            scratch.path().display()
        );
    }
    let report = scratch.path().join("report");
    let report = File::create_new(&report)
        .and_then(|_| File::open(&report))
        .context("cannot make the report file")?;
    let gone = Arc::new(AtomicBool::new(false));
    let initrd = initramfs_file(initramfs)?;
    let mut words: Vec<String> = vec![
        format!("mem={}", machine.memory.as_deref().unwrap_or(MEMORY)),
        format!("ncpus={}", machine.smp),
        format!("initrd={}", inherited_path(&initrd)),
        format!("hostfs={path}"),
        // What it keeps about itself, which it leaves behind when it dies.
        format!("uml_dir={path}/uml"),
    ];
    words.extend(match interactive {
        true => vec!["con0=fd:0,fd:1".into(), "quiet".into()],
        false => vec!["con0=null,fd:1".into()],
    });
    // A tick is 10 ms there, and a grace period several of them: without haste, closing channels is
    // most of what the tests wait for. The machines in QEMU take the ordinary way.
    words.push("rcupdate.rcu_expedited=1".into());
    let fixed =
        "rdinit=/init con=null ssl=null seccomp=on noreboot panic=-1 oops=panic panic_on_warn=1";
    words.extend(fixed.split(' ').map(str::to_owned));
    words.extend(machine.append.iter().cloned());
    Ok(Launch {
        program: machine.image.clone(),
        arguments: words.into_iter().map(OsString::from).collect(),
        inherited: vec![initrd],
        report: Box::new(Growing {
            file: report,
            gone: gone.clone(),
        }),
        console: None,
        monitor: None,
        gone,
        scratch: Some(scratch),
    })
}

/// In memory where possible: the guest waits for each frame to be on the disk.
fn scratch_folder() -> io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    tempfile::Builder::new()
        .prefix("weir-vm.")
        .tempdir_in(memory)
        .or_else(|_| tempfile::Builder::new().prefix("weir-vm.").tempdir())
}

/// Reads a file that another process is writing, and ends only when that process is gone.
struct Growing {
    file: File,
    gone: Arc<AtomicBool>,
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // Asked for before the file: what was written before the end is then seen.
            let gone = self.gone.load(Ordering::Acquire);
            match self.file.read(buffer)? {
                0 if !gone => thread::sleep(Duration::from_millis(3)),
                count => return Ok(count),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_growing_file_ends_with_its_writer() {
        let mut writer = tempfile::NamedTempFile::new().unwrap();
        let gone = Arc::new(AtomicBool::new(false));
        let mut reader = Growing {
            file: writer.reopen().unwrap(),
            gone: gone.clone(),
        };
        let reading = thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        for word in ["one ", "two ", "three"] {
            writer.write_all(word.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(10));
        }
        gone.store(true, Ordering::Release);
        assert_eq!(reading.join().unwrap().unwrap(), "one two three");
    }
}
