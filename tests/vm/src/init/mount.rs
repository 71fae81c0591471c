// SPDX-License-Identifier: GPL-2.0

//! Mounts what programs expect to find.

use std::fs;
use std::os::unix::fs::symlink;

use anyhow::{
    Context,
    Result, //
};
use rustix::mount::MountFlags;

/// Type of the file system, and where it goes. What the kernel does not have is left out, but for
/// the first three, without which nothing here works.
const FILE_SYSTEMS: &[(&str, &str)] = &[
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/run"),
    ("devpts", "/dev/pts"),
    ("tmpfs", "/dev/shm"),
    ("debugfs", "/sys/kernel/debug"),
    ("tracefs", "/sys/kernel/tracing"),
    ("bpf", "/sys/fs/bpf"),
    ("cgroup2", "/sys/fs/cgroup"),
];
const NEEDED: usize = 3;

const LINKS: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// Mounts them all.
pub fn file_systems() -> Result<()> {
    let (needed, others) = FILE_SYSTEMS.split_at(NEEDED);
    for (kind, target) in needed {
        mount(kind, target)?;
    }
    let known = fs::read_to_string("/proc/filesystems").context("cannot read /proc/filesystems")?;
    for (kind, target) in others {
        if !known
            .lines()
            .any(|line| line.ends_with(&format!("\t{kind}")))
        {
            continue;
        }
        // Folders in /sys are the kernel's; those in /dev are to be made.
        if !target.starts_with("/sys") {
            fs::create_dir_all(target).with_context(|| format!("cannot create {target}"))?;
        }
        mount(kind, target)?;
    }
    // What shells and scripts take for granted, and udev makes elsewhere.
    for (name, target) in LINKS {
        symlink(target, name).with_context(|| format!("cannot create {name}"))?;
    }
    Ok(())
}

/// Mounts the only folder of the host that user-mode Linux shows.
pub fn host_folder(target: &str) -> Result<()> {
    mount("hostfs", target)
}

fn mount(kind: &str, target: &str) -> Result<()> {
    rustix::mount::mount(kind, target, kind, MountFlags::empty(), None)
        .with_context(|| format!("cannot mount {kind} on {target}"))
}
