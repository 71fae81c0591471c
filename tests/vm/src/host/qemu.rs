// SPDX-License-Identifier: GPL-2.0

//! The machine in QEMU.

use std::env;
use std::fs::{
    self,
    OpenOptions, //
};
use std::os::fd::{
    AsRawFd,
    OwnedFd, //
};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{
    Command,
    Stdio, //
};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use anyhow::{
    bail,
    Context,
    Result, //
};
use weir_vm::initramfs::Initramfs;

use crate::args;
use crate::board::Board;
use crate::guest_files::{
    find_program,
    PORT, //
};
use crate::machine::{
    inherited_path,
    initramfs_file,
    Launch, //
};

const MEMORY: &str = "1G";

/// How to start it.
///
/// # Errors
///
/// Where QEMU is not there.
pub fn launch(machine: &args::Machine, initramfs: &Initramfs, interactive: bool) -> Result<Launch> {
    let board = machine.arch.board();
    let wanted = match &machine.qemu {
        Some(path) => path,
        None => Path::new(board.program),
    };
    let program = find_program(wanted).with_context(|| {
        format!(
            "there is no {}; install the package {}",
            wanted.display(),
            board.package
        )
    })?;
    let command_line = command_line(machine, board, interactive)?;
    let initrd = initramfs_file(initramfs)?;
    let accelerator = match machine.icount {
        true => "tcg,thread=single".into(),
        false => accelerator(machine.accel.as_deref(), board.native, || version(&program)),
    };
    let mut arguments = Vec::new();
    let mut option = |name: &str, value: &str| {
        arguments.push(name.into());
        if !value.is_empty() {
            arguments.push(value.into());
        }
    };
    option("-no-user-config", "");
    option("-nodefaults", "");
    option("-no-reboot", "");
    option("-display", "none");
    option("-machine", board.machine);
    option("-accel", &accelerator);
    if machine.icount {
        option("-icount", "shift=0");
    }
    option("-cpu", board.cpu);
    option("-smp", &machine.smp.to_string());
    option("-m", machine.memory.as_deref().unwrap_or(MEMORY));
    let image = machine
        .image
        .to_str()
        .context("the image's path is not UTF-8")?;
    option("-kernel", image);
    option("-initrd", &inherited_path(&initrd));
    option("-append", &command_line);
    let mut inherited = vec![initrd];
    let mut socket = |name: &str| -> Result<(UnixStream, String)> {
        let (ours, theirs) = UnixStream::pair().context("cannot make a socket")?;
        let theirs = OwnedFd::from(theirs);
        let device = format!("socket,id={name},fd={}", theirs.as_raw_fd());
        inherited.push(theirs);
        Ok((ours, device))
    };
    let (report, device) = socket("report")?;
    option("-device", "virtio-serial-pci");
    option("-chardev", &device);
    option(
        "-device",
        &format!("virtserialport,chardev=report,name={PORT}"),
    );
    // It is for nothing else.
    let monitor = match board.nmi {
        Some(_) => {
            let (monitor, device) = socket("monitor")?;
            option("-chardev", &device);
            option("-mon", "chardev=monitor,mode=control");
            Some(monitor)
        }
        None => None,
    };
    let console = if interactive {
        // Ctrl-C is for the guest.
        option("-chardev", "stdio,id=console,signal=off");
        None
    } else {
        let (console, device) = socket("console")?;
        option("-chardev", &device);
        Some(console)
    };
    option("-serial", "chardev:console");
    Ok(Launch {
        program,
        arguments,
        inherited,
        report: Box::new(report),
        console,
        monitor,
        gone: Arc::new(AtomicBool::new(false)),
        scratch: None,
    })
}

fn command_line(machine: &args::Machine, board: &Board, interactive: bool) -> Result<String> {
    let mut words = board.console.to_vec();
    words.extend([
        "rdinit=/init",
        "panic=-1",
        "oops=panic",
        "panic_on_warn=1",
        // Whatever the others do may be why.
        "panic_sys_info=all_bt",
    ]);
    match (machine.nmi, &board.nmi) {
        // Without interrupts of its own making, the host can have a hung guest say where it hangs.
        (None, nmi) => words.extend(nmi.as_ref().map(|nmi| nmi.panics)),
        (Some(_), Some(nmi)) => words.push(nmi.everywhere),
        (Some(_), None) => bail!("{} sends no non-maskable interrupts", board.program),
    }
    if interactive {
        words.push("quiet");
    }
    if machine.kernel == args::Kernel::Debug {
        // Without its caches in front, the allocator keeps no stale pointers that hide leaks.
        words.push("slab_debug=F,kmalloc-*");
    }
    words.extend(machine.append.iter().map(String::as_str));
    Ok(words.join(" "))
}

/// The first major version that is known to run emulated processors in parallel as it should. One
/// before it (7.2) now and then has a processor run an instruction that another has just patched
/// away: of 150 kernels, 6 died so while they booted.
const PARALLEL: u32 = 10;

/// What to give to `-accel`.
fn accelerator(
    chosen: Option<&str>,
    native: &str,
    version: impl FnOnce() -> Option<u32>,
) -> String {
    // An empty variable is as good as none.
    match chosen.filter(|text| !text.is_empty()) {
        Some("tcg") => {}
        Some(other) => return other.into(),
        None if native == env::consts::ARCH && kvm_works() => return "kvm".into(),
        None => {}
    }
    match version() {
        Some(version) if version < PARALLEL => {
            eprintln!(
                "weir-vm: QEMU {version} runs one processor at a time here, since it is not reliable \
                 otherwise; {PARALLEL} or later is faster"
            );
            "tcg,thread=single".into()
        }
        _ => "tcg,thread=multi".into(),
    }
}

/// The major version of QEMU; `None` where it does not say.
fn version(program: &Path) -> Option<u32> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    major(&String::from_utf8_lossy(&output.stdout))
}

fn major(text: &str) -> Option<u32> {
    let rest = text.strip_prefix("QEMU emulator version ")?;
    rest.split('.').next()?.parse().ok()
}

/// Whether KVM can run an ordinary guest. The device may be there on a processor that has neither
/// vmx nor svm (a hypervisor may offer a KVM of another kind), and then it hangs one.
fn kvm_works() -> bool {
    let has_flag = fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| has_virtualisation(&text));
    has_flag
        && OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/kvm")
            .is_ok()
}

fn has_virtualisation(cpuinfo: &str) -> bool {
    cpuinfo
        .lines()
        .filter(|line| line.starts_with("flags"))
        .flat_map(str::split_whitespace)
        .any(|flag| flag == "vmx" || flag == "svm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtualisation_is_a_flag_of_the_processor() {
        assert!(has_virtualisation(
            "model name\t: x\nflags\t\t: fpu vmx sse\n"
        ));
        assert!(has_virtualisation("flags\t\t: fpu svm\n"));
        assert!(!has_virtualisation("flags\t\t: fpu hypervisor svm_lock\n"));
        // These are listed where the processor has them, whether or not they can be used.
        assert!(!has_virtualisation("vmx flags\t: vnmi preemption_timer\n"));
    }

    #[test]
    fn tcg_runs_processors_in_parallel_where_it_can() {
        let of = |chosen, version| accelerator(chosen, "x86_64", || version);
        assert_eq!(of(Some("tcg"), Some(10)), "tcg,thread=multi");
        assert_eq!(of(Some("tcg"), None), "tcg,thread=multi");
        assert_eq!(of(Some("tcg"), Some(7)), "tcg,thread=single");
        assert_eq!(of(Some("tcg,thread=multi"), Some(7)), "tcg,thread=multi");
        assert_eq!(of(Some("kvm"), Some(7)), "kvm");
        assert_eq!(of(Some(""), Some(7)), of(None, Some(7)));
        // Another processor is never run by this one.
        assert_eq!(accelerator(None, "other", || Some(10)), "tcg,thread=multi");
    }

    #[test]
    fn the_version_is_in_the_first_line() {
        let debian = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright\n";
        assert_eq!(major(debian), Some(7));
        assert_eq!(major("QEMU emulator version 10.0.2\n"), Some(10));
        assert_eq!(major("something else 1.2"), None);
    }
}
