// SPDX-License-Identifier: GPL-2.0

//! What QEMU emulates for a kernel of each architecture.

use clap::ValueEnum;

/// As the kernel's makefiles name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Architecture {
    /// 64-bit x86.
    #[value(name = "x86_64")]
    X86_64,
    /// 64-bit ARM.
    Arm64,
}

/// A machine and what its kernel must be told of it.
#[derive(Debug)]
pub struct Board {
    /// What emulates it.
    pub program: &'static str,
    /// Debian's package of that.
    pub package: &'static str,
    /// For `-machine`.
    pub machine: &'static str,
    /// For `-cpu`.
    pub cpu: &'static str,
    /// The processor that this one must be for KVM, as Rust names it.
    pub native: &'static str,
    /// Of the kernel's command line: where the console is.
    pub console: &'static [&'static str],
    /// How the kernel takes an interrupt that cannot be masked, where the machine can send one.
    pub nmi: Option<Nmi>,
}

/// Of the kernel's command line.
#[derive(Debug)]
pub struct Nmi {
    /// One is the end.
    pub panics: &'static str,
    /// Every processor gets them.
    pub everywhere: &'static str,
}

impl Architecture {
    /// Its machine.
    pub fn board(self) -> &'static Board {
        match self {
            Self::X86_64 => &X86_64,
            Self::Arm64 => &ARM64,
        }
    }
}

static X86_64: Board = Board {
    program: "qemu-system-x86_64",
    package: "qemu-system-x86",
    // The older `pc` has loops in its ACPI tables that an emulated debug kernel takes half a minute
    // for, and then gives up on. Nothing that is off here is of use to a test, but to be probed.
    machine: "q35,i8042=off,sata=off,smbus=off,usb=off,vmport=off",
    // Without five-level page tables: for a moment at boot the kernel has forgotten that it uses them,
    // and KASAN takes the lock of an interrupt that comes just then for a wild address.
    cpu: "max,la57=off",
    native: "x86_64",
    // There is one; to look for the others takes long.
    console: &["console=ttyS0", "8250.nr_uarts=1"],
    nmi: Some(Nmi {
        panics: "unknown_nmi_panic",
        everywhere: "apic_extnmi=all",
    }),
};

static ARM64: Board = Board {
    program: "qemu-system-aarch64",
    package: "qemu-system-arm",
    machine: "virt,gic-version=3",
    // Pointers are signed by the architecture's own algorithm otherwise, for which an emulated processor
    // takes half of its time.
    cpu: "max,pauth-impdef=on",
    native: "aarch64",
    // The counters interrupt as an NMI does, where interrupts are off.
    console: &["console=ttyAMA0", "irqchip.gicv3_pseudo_nmi=1"],
    nmi: None,
};
