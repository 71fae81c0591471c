// SPDX-License-Identifier: GPL-2.0

//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{
    anyhow,
    bail,
    Context,
    Error,
    Result, //
};
use clap::{
    Args,
    Parser,
    Subcommand,
    ValueEnum, //
};

use crate::board::Architecture;

/// Runs kernel tests in a virtual machine.
#[derive(Debug, Parser)]
#[command(name = "weir-vm", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// See [`Cli`].
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Loads modules, runs programs, and judges them and the kernel.
    ///
    /// Exit status: 0 all passed, 1 a test failed, 2 the machine could not be set up, 3 the kernel
    /// complained (even where the tests passed), 4 the machine was lost, 5 the machine hung.
    #[command(args_override_self = true)]
    Run(Run),
    /// Loads modules and gives a shell on the console.
    #[command(args_override_self = true)]
    Shell(Machine),
    /// Adds up the lines that --summary wrote.
    Total {
        /// The file.
        file: PathBuf,
    },
    /// Becomes another program that dies when this one's parent does.
    #[command(hide = true)]
    Tied {
        /// The process that must be the parent.
        parent: u32,
        /// The program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        argv: Vec<std::ffi::OsString>,
    },
}

/// What the machine is and what is in it.
#[derive(Debug, Args)]
pub struct Machine {
    /// Which kernel it is: says how results name it, and that `um` is a program of its own.
    #[arg(long, value_enum)]
    pub kernel: Kernel,
    /// The kernel's architecture, but for `um`.
    #[arg(long, value_enum, default_value = "x86_64")]
    pub arch: Architecture,
    /// The kernel: a bzImage or Image, or for `um` the program `linux`.
    #[arg(long)]
    pub image: PathBuf,
    /// Modules to load, in this order.
    #[arg(long, value_delimiter = ',', value_name = "FILE,...")]
    pub modules: Vec<PathBuf>,
    /// One more module to load after those, with its parameters.
    #[arg(long, value_name = "FILE [PARAMETER...]")]
    pub module: Vec<ModuleArg>,
    /// A program to run, a static one or a script; SECONDS stands for --program-timeout, and
    /// FILE may be guest:PATH for one that the guest has, such as guest:/bin/sh.
    #[arg(long, value_name = "NAME[:SECONDS]=FILE [ARGUMENT...]")]
    pub program: Vec<ProgramArg>,
    /// A file or folder to put into the guest.
    #[arg(long, value_name = "HOST:GUEST")]
    pub file: Vec<Pair>,
    /// A file to bring back at the end.
    #[arg(long, value_name = "GUEST:HOST")]
    pub collect: Vec<Pair>,
    /// Longest that the machine may run, in seconds.
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    pub timeout: u64,
    /// Longest that its init may take to say something, in seconds.
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    pub boot_timeout: u64,
    /// Longest that one program, or loading one module, may take, in seconds.
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    pub program_timeout: u64,
    /// Processors.
    #[arg(long, default_value_t = 2)]
    pub smp: u32,
    /// Memory; by default 1G in QEMU and 256M in user-mode Linux.
    #[arg(long)]
    pub memory: Option<String>,
    /// More for the kernel's command line.
    #[arg(long, value_name = "PARAMETER", allow_hyphen_values = true)]
    pub append: Vec<String>,
    /// QEMU's accelerator: tcg, kvm, or what `qemu -accel` takes; by default kvm where the
    /// processor has vmx or svm and /dev/kvm can be opened, and tcg else.
    #[arg(long, env = "WEIR_ACCEL")]
    pub accel: Option<String>,
    /// Has the processor's counter count instructions: one for each, so that they can be measured. For one
    /// processor that is emulated.
    #[arg(long)]
    pub icount: bool,
    /// Has QEMU send a non-maskable interrupt to every processor so many times a second, where the
    /// architecture has them.
    #[arg(long, value_name = "HZ")]
    pub nmi: Option<u32>,
    /// Where to write what the console shows.
    #[arg(long, value_name = "FILE")]
    pub console_log: Option<PathBuf>,
    /// Leaves the modules loaded at the end.
    #[arg(long)]
    pub keep_modules: bool,
    /// The guest's init, a static program; by default weir-init beside this program.
    #[arg(long, env = "WEIR_INIT")]
    pub init: Option<PathBuf>,
    /// A static busybox for the guest; by default that of the host.
    #[arg(long, value_name = "FILE")]
    pub busybox: Option<PathBuf>,
    /// QEMU; by default the one of the architecture.
    #[arg(long, value_name = "FILE")]
    pub qemu: Option<PathBuf>,
}

/// What `run` takes.
#[derive(Debug, Args)]
pub struct Run {
    /// The machine.
    #[command(flatten)]
    pub machine: Machine,
    /// KUnit suites that must have a result when the modules are loaded.
    #[arg(long, value_delimiter = ',', value_name = "SUITE,...")]
    pub expect_kunit: Vec<String>,
    /// Does not look for leaked memory, which takes some seconds where the kernel can.
    #[arg(long)]
    pub no_leaks: bool,
    /// File to add a line to: PASSED FAILED SKIPPED RETRIED VERDICT KERNEL.
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Shows everything that programs write.
    #[arg(long)]
    pub verbose: bool,
    /// Shows what programs write as it is, and nothing else unless something is wrong.
    #[arg(long, conflicts_with = "verbose")]
    pub passthrough: bool,
}

impl Machine {
    /// As results name what runs in it.
    pub fn name(&self) -> String {
        let architecture = match (self.kernel, self.arch) {
            (Kernel::Um, _) | (_, Architecture::X86_64) => "",
            (_, Architecture::Arm64) => "arm64-",
        };
        let icount = if self.icount { "-icount" } else { "" };
        format!("{architecture}{}{icount}", self.kernel.name())
    }
}

/// The project's kernel configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// What benchmarks use.
    Release,
    /// Checks everything.
    Debug,
    /// User-mode Linux.
    Um,
}

impl Kernel {
    /// As results name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Debug => "debug",
            Self::Um => "um",
        }
    }
}

/// A module with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleArg {
    /// File of the host.
    pub file: PathBuf,
    /// Words.
    pub parameters: String,
}

impl FromStr for ModuleArg {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (file, parameters) = text.split_once(' ').unwrap_or((text, ""));
        Ok(Self {
            file: file.into(),
            parameters: parameters.trim().to_owned(),
        })
    }
}

/// A program, where it is from, and what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramArg {
    /// How results name it.
    pub name: String,
    /// In seconds.
    pub timeout: Option<u64>,
    /// Where it is.
    pub source: ProgramSource,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// Where a program is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramSource {
    /// A file of the host, to be put into the guest.
    Host(PathBuf),
    /// A file that the guest has.
    Guest(String),
}

impl FromStr for ProgramArg {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, command) = text
            .split_once('=')
            .context("a program is NAME=FILE ARGUMENT...")?;
        let (name, timeout) = match name.split_once(':') {
            Some((name, seconds)) => {
                let seconds = seconds.parse();
                (
                    name,
                    Some(seconds.context("the timeout is a number of seconds")?),
                )
            }
            None => (name, None),
        };
        if name.is_empty() || name.contains(char::is_whitespace) {
            bail!("'{name}' is no name for a program");
        }
        let words = shlex::split(command).ok_or_else(|| anyhow!("a quote is not closed"))?;
        let mut words = words.into_iter();
        let file = words.next().context("there is no file after the name")?;
        Ok(Self {
            name: name.into(),
            timeout,
            source: match file.strip_prefix("guest:") {
                Some(path) => ProgramSource::Guest(path.into()),
                None => ProgramSource::Host(file.into()),
            },
            arguments: words.collect(),
        })
    }
}

/// Two paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Where from.
    pub from: String,
    /// Where to.
    pub to: String,
}

impl FromStr for Pair {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok(Self {
                from: from.into(),
                to: to.into(),
            }),
            _ => bail!("'{text}' is not FROM:TO"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_program_is_read() {
        let program: ProgramArg = "torture:300=out/torture --mode 'a b' x=y".parse().unwrap();
        assert_eq!(
            program,
            ProgramArg {
                name: "torture".into(),
                timeout: Some(300),
                source: ProgramSource::Host("out/torture".into()),
                arguments: vec!["--mode".into(), "a b".into(), "x=y".into()],
            }
        );
        let program: ProgramArg = "sh=guest:/bin/sh".parse().unwrap();
        assert_eq!(program.source, ProgramSource::Guest("/bin/sh".into()));
        assert_eq!(program.timeout, None);
    }

    #[test]
    fn what_is_no_program_is_refused() {
        for text in ["a", "=x", "a b=x", "a=", "a:x=y", "a='b"] {
            assert!(text.parse::<ProgramArg>().is_err(), "{text}");
        }
    }

    #[test]
    fn modules_and_pairs_are_read() {
        let module: ModuleArg = "a.ko cpus=0,1 b=2".parse().unwrap();
        assert_eq!(module.file, PathBuf::from("a.ko"));
        assert_eq!(module.parameters, "cpus=0,1 b=2");
        let pair: Pair = "/tmp/x:out/x".parse().unwrap();
        assert_eq!((pair.from.as_str(), pair.to.as_str()), ("/tmp/x", "out/x"));
        assert!("x".parse::<Pair>().is_err());
        assert!(":x".parse::<Pair>().is_err());
    }
}
