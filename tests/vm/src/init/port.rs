// SPDX-License-Identifier: GPL-2.0

//! Opens the report port.

use std::fs::{
    self,
    File,
    OpenOptions, //
};
use std::io::{
    self,
    Write, //
};
use std::path::PathBuf;
use std::thread;
use std::time::{
    Duration,
    Instant, //
};

use anyhow::{
    bail,
    Context,
    Result, //
};
use weir_vm::plan;

use crate::mount;

/// The port's driver names its ports some time after it has found the device.
const NAME_TIMEOUT: Duration = Duration::from_secs(10);

/// Where user-mode Linux shows the folder of the host.
const HOST_FOLDER: &str = "/mnt";

/// An open port.
pub struct Port {
    file: File,
    /// The file is cached by the guest, so that the host sees nothing until it is synced.
    cached: bool,
}

impl Write for Port {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.cached {
            true => self.file.sync_data(),
            false => Ok(()),
        }
    }
}

/// Opens the port that the plan names.
pub fn open(port: &plan::Port) -> Result<Port> {
    let (path, cached) = match port {
        plan::Port::Virtio(name) => (find_virtio(name)?, false),
        plan::Port::HostFile(file) => {
            mount::host_folder(HOST_FOLDER)?;
            (PathBuf::from(format!("{HOST_FOLDER}{file}")), true)
        }
    };
    let file = OpenOptions::new().write(true).open(&path);
    let file = file.with_context(|| format!("cannot open the report port {}", path.display()))?;
    Ok(Port { file, cached })
}

/// The device node of the virtio-serial port of that name.
fn find_virtio(wanted: &str) -> Result<PathBuf> {
    const CLASS: &str = "/sys/class/virtio-ports";
    let start = Instant::now();
    loop {
        // The class is there once the driver is.
        for entry in fs::read_dir(CLASS).into_iter().flatten() {
            let entry = entry.with_context(|| format!("cannot read {CLASS}"))?;
            // A port that has no name yet has no such file, or an empty one.
            let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            if name.trim_end() == wanted {
                return Ok(PathBuf::from("/dev").join(entry.file_name()));
            }
        }
        if start.elapsed() > NAME_TIMEOUT {
            bail!("there is no virtio-serial port '{wanted}': does the kernel have CONFIG_VIRTIO_CONSOLE and CONFIG_VIRTIO_PCI?");
        }
        thread::sleep(Duration::from_millis(5));
    }
}
