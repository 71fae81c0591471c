// SPDX-License-Identifier: GPL-2.0

//! What the guest is to do: written by the host into the initramfs, carried out by `weir-init`.

use serde::{
    Deserialize,
    Serialize, //
};

/// Where the plan lies in the initramfs.
pub const PATH: &str = "/etc/weir-plan.json";

/// Changes with every change of the plan or of the report; both sides must have the same.
pub const PROTOCOL: u32 = 2;

/// The folder in the guest that holds what the host brought: modules and programs.
pub const FOLDER: &str = "/weir";

/// Where busybox lies in the initramfs.
pub const BUSYBOX: &str = "/bin/busybox";

/// All that `weir-init` does, in the order of the fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// [`PROTOCOL`] of the host.
    pub protocol: u32,
    /// How the kernel is called towards people: `release`, `um`, `arm64-release` and the like.
    pub kernel: String,
    /// The machine executes one instruction in one ns of its own time. Programs are told, since they may then
    /// expect a certain number of instructions where they cannot elsewhere.
    pub icount: bool,
    /// Where the report goes.
    pub port: Port,
    /// Modules to load, in this order.
    pub modules: Vec<Module>,
    /// Longest that loading or unloading one module may take, in seconds.
    pub module_timeout_s: u64,
    /// After loading, gives a person a shell on the console, in place of running the programs.
    pub shell: bool,
    /// Programs to run, one after the other.
    pub programs: Vec<Program>,
    /// Looks for leaked memory at the end, where the kernel has kmemleak.
    pub leaks: bool,
    /// Leaves the modules loaded at the end.
    pub keep_modules: bool,
    /// Files of the guest to send to the host at the end.
    pub collect: Vec<String>,
}

/// A way from `weir-init` to the host that nothing else writes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Port {
    /// The virtio-serial port of this name.
    Virtio(String),
    /// This file in the only folder of the host that user-mode Linux's hostfs shows.
    ///
    /// Its serial lines would do as well, but for their speed: less than 1 MB/s, and the slower
    /// the faster the host reads, as each interrupt says once more that there is room.
    HostFile(String),
}

/// A kernel module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Path of the file in the guest.
    pub path: String,
    /// Parameters as `insmod` takes them, with spaces in between.
    pub parameters: String,
}

impl Module {
    /// What the kernel calls the module: the file's name, without its ending and with underscores.
    pub fn name(&self) -> String {
        let file = self.path.rsplit('/').next().unwrap_or(&self.path);
        file.strip_suffix(".ko").unwrap_or(file).replace('-', "_")
    }
}

/// A program to run in the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// How results name it.
    pub name: String,
    /// Path in the guest, and arguments.
    pub argv: Vec<String>,
    /// Longest that it may run, in seconds; it is killed then.
    pub timeout_s: u64,
}

/// A part of the plan; what the guest reports belongs to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Everything before the first module.
    Boot,
    /// Loading the modules; KUnit suites in them run then.
    Load,
    /// The interactive shell.
    Shell,
    /// [`Plan::programs`], by index.
    Program(usize),
    /// Looking for leaked memory.
    Leaks,
    /// Unloading the modules.
    Unload,
    /// [`Plan::collect`], by index.
    Collect(usize),
    /// Everything after that.
    End,
}

impl Plan {
    /// How results name a step.
    pub fn step_name(&self, step: Step) -> String {
        match step {
            Step::Boot => "boot".into(),
            Step::Load => "modules".into(),
            Step::Shell => "shell".into(),
            Step::Program(index) => match self.programs.get(index) {
                Some(program) => program.name.clone(),
                None => format!("program {index}"),
            },
            Step::Leaks => "leaks".into(),
            Step::Unload => "unload".into(),
            Step::Collect(index) => match self.collect.get(index) {
                Some(path) => format!("collect {path}"),
                None => format!("collect {index}"),
            },
            Step::End => "shutdown".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_named_as_the_kernel_names_it() {
        let module = |path: &str| Module {
            path: path.into(),
            parameters: String::new(),
        };
        assert_eq!(module("/weir/weir.ko").name(), "weir");
        assert_eq!(module("/weir/weir-torture.ko").name(), "weir_torture");
        assert_eq!(module("plain").name(), "plain");
    }

    #[test]
    fn json_keeps_a_plan() {
        let plan = Plan {
            protocol: PROTOCOL,
            kernel: "um".into(),
            icount: false,
            port: Port::HostFile("/report".into()),
            modules: vec![Module {
                path: "/weir/a.ko".into(),
                parameters: "b=1 c=\"d e\"".into(),
            }],
            module_timeout_s: 30,
            shell: false,
            programs: vec![Program {
                name: "p".into(),
                argv: vec!["/bin/sh".into(), "-c".into(), "exit 4".into()],
                timeout_s: 7,
            }],
            leaks: true,
            keep_modules: false,
            collect: vec!["/tmp/x".into()],
        };
        let text = serde_json::to_string_pretty(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }
}
