// SPDX-License-Identifier: GPL-2.0

//! Turns the command line into a plan and an initramfs.

use std::env;
use std::path::{
    Path,
    PathBuf, //
};

use anyhow::{
    Context,
    Result, //
};
use weir_vm::initramfs::Initramfs;
use weir_vm::plan::{
    self,
    Module,
    Plan,
    Port,
    Program, //
};

use crate::args::{
    Kernel,
    Machine,
    ModuleArg,
    ProgramSource, //
};

/// How the report port is called.
pub const PORT: &str = "weir.report";

/// What the guest is to do, beyond what the machine's own options say.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Gives a shell.
    pub shell: bool,
    /// Looks for leaks.
    pub leaks: bool,
}

/// Makes both. The plan is in the initramfs as well.
///
/// # Errors
///
/// Where a file is missing or of no use to the guest.
pub fn prepare(machine: &Machine, task: Task) -> Result<(Plan, Initramfs)> {
    let mut initramfs = Initramfs::default();
    let init = match &machine.init {
        Some(path) => path.clone(),
        None => env::current_exe()
            .context("cannot find this program's own folder")?
            .with_file_name("weir-init"),
    };
    initramfs
        .copy("/init", &init)
        .context("cannot take the guest's init; --init names another one")?;
    add_busybox(&mut initramfs, machine.busybox.as_deref())?;

    let mut modules = Vec::new();
    let plain = machine.modules.iter().map(|file| ModuleArg {
        file: file.clone(),
        parameters: String::new(),
    });
    for module in plain.chain(machine.module.iter().cloned()) {
        modules.push(Module {
            path: bring(&mut initramfs, &module.file)?,
            parameters: module.parameters,
        });
    }
    let mut programs = Vec::new();
    for program in &machine.program {
        let path = match &program.source {
            ProgramSource::Host(file) => bring(&mut initramfs, file)?,
            ProgramSource::Guest(path) => path.clone(),
        };
        let mut argv = vec![path];
        argv.extend(program.arguments.iter().cloned());
        programs.push(Program {
            name: program.name.clone(),
            argv,
            timeout_s: program.timeout.unwrap_or(machine.program_timeout),
        });
    }
    for pair in &machine.file {
        initramfs.copy(&pair.to, Path::new(&pair.from))?;
    }
    let plan = Plan {
        protocol: plan::PROTOCOL,
        kernel: machine.name(),
        icount: machine.icount && machine.kernel != Kernel::Um,
        port: match machine.kernel {
            Kernel::Um => Port::HostFile("/report".into()),
            Kernel::Release | Kernel::Debug => Port::Virtio(PORT.into()),
        },
        modules,
        module_timeout_s: machine.program_timeout,
        shell: task.shell,
        programs,
        leaks: task.leaks,
        keep_modules: machine.keep_modules,
        collect: machine
            .collect
            .iter()
            .map(|pair| pair.from.clone())
            .collect(),
    };
    initramfs.file(plan::PATH, serde_json::to_vec_pretty(&plan)?, 0o644)?;
    Ok((plan, initramfs))
}

/// Puts a file of the host into the guest's folder; gives its path there.
fn bring(initramfs: &mut Initramfs, file: &Path) -> Result<String> {
    let name = file.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{} has no name for the guest", file.display()))?;
    let path = format!("{}/{name}", plan::FOLDER);
    initramfs.copy(&path, file)?;
    Ok(path)
}

/// Its names are made in the guest, where it can be asked for them.
fn add_busybox(initramfs: &mut Initramfs, chosen: Option<&Path>) -> Result<()> {
    let busybox = match chosen {
        Some(path) => path.to_owned(),
        None => find_program(Path::new("busybox"))
            .context("there is no busybox for the guest; install the package busybox-static")?,
    };
    initramfs
        .copy(plan::BUSYBOX, &busybox)
        .context("cannot take busybox; the package busybox-static has one that can be used")
}

/// Looks a program up as a shell does.
pub fn find_program(name: &Path) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.exists().then(|| name.to_owned());
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}
