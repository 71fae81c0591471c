// SPDX-License-Identifier: GPL-2.0

//! Runs `weir-vm` on a real kernel.

use std::env;
use std::fs;
use std::path::{
    Path,
    PathBuf, //
};
use std::process::{
    Command,
    Output, //
};
use std::sync::{
    Mutex,
    OnceLock, //
};

/// A kernel to run things on.
pub struct Kernel {
    /// As `--kernel` takes it.
    pub name: &'static str,
    /// As the kernel's makefiles take it.
    architecture: &'static str,
    image: PathBuf,
}

impl Kernel {
    /// The kernel whose image the environment variable names. Without it there is nothing to test.
    pub fn from_env(name: &'static str, variable: &str) -> Option<Self> {
        match env::var_os(variable) {
            Some(image) => Some(Self {
                name,
                architecture: if name == "um" { "um" } else { "x86_64" },
                image: image.into(),
            }),
            None => {
                println!("SKIP: {variable} does not name the image of a {name} kernel");
                None
            }
        }
    }

    /// `weir-vm run` on this kernel.
    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-vm"));
        command
            .args(["run", "--timeout=300", "--kernel", self.name, "--image"])
            .arg(&self.image)
            .arg("--init")
            .arg(static_init());
        command
    }

    /// Runs it with these arguments.
    pub fn run<S: AsRef<str>>(&self, arguments: &[S]) -> Ran {
        let mut command = self.command();
        command.args(arguments.iter().map(AsRef::as_ref));
        Ran::new(command.output().unwrap())
    }

    /// A module of `provoke/`, built for this kernel.
    pub fn module(&self, name: &str) -> String {
        static BUILDING: Mutex<()> = Mutex::new(());
        let _one = BUILDING.lock().unwrap();
        let kernel = match self.name {
            "um" => self.image.parent(),
            // arch/x86/boot/bzImage
            _ => self.image.ancestors().nth(4),
        };
        let kernel = kernel.unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("provoke-{}", self.name));
        fs::create_dir_all(&folder).unwrap();
        for entry in fs::read_dir(source("provoke")).unwrap() {
            let path = entry.unwrap().path();
            let copy = folder.join(path.file_name().unwrap());
            let content = fs::read(&path).unwrap();
            // Left alone where it is the same, so that it is not built again.
            if fs::read(&copy).ok().as_ref() != Some(&content) {
                fs::write(&copy, content).unwrap();
            }
        }
        let toolchain = Command::new(source("../../scripts/toolchain.sh"))
            .output()
            .unwrap();
        assert!(toolchain.status.success(), "{toolchain:?}");
        let made = Command::new("make")
            .arg("-C")
            .arg(kernel)
            .arg(format!("M={}", folder.display()))
            .arg(format!("ARCH={}", self.architecture))
            .args(String::from_utf8(toolchain.stdout).unwrap().lines())
            .arg("modules")
            // Cargo's own make is another one.
            .env_remove("MAKEFLAGS")
            .env_remove("MFLAGS")
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        folder.join(name).to_str().unwrap().to_owned()
    }
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A `weir-init` that runs in a guest without libraries: the environment's, or one built for this.
fn static_init() -> &'static Path {
    static INIT: OnceLock<PathBuf> = OnceLock::new();
    INIT.get_or_init(|| {
        if let Some(path) = env::var_os("WEIR_INIT") {
            return path.into();
        }
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("static");
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--release",
                "--bin=weir-init",
                "--target=x86_64-unknown-linux-gnu",
            ])
            .arg("--target-dir")
            .arg(&target)
            .env("RUSTFLAGS", "-C target-feature=+crt-static")
            .current_dir(source("."))
            .output()
            .unwrap();
        assert!(built.status.success(), "{built:?}");
        target.join("x86_64-unknown-linux-gnu/release/weir-init")
    })
}

/// What came of a run.
#[derive(Debug)]
pub struct Ran {
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// Takes what a process left.
    pub fn new(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            status: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Checks the exit status and the last line.
    #[track_caller]
    pub fn is(&self, status: i32, last: &str) {
        assert_eq!(self.status, status, "{self:#?}");
        assert_eq!(self.out.lines().last(), Some(last), "{self:#?}");
    }

    /// Checks that the output has this text.
    #[track_caller]
    pub fn says(&self, text: &str) {
        assert!(self.out.contains(text), "no '{text}' in {self:#?}");
    }
}

/// `--program` of a shell script.
pub fn script(name: &str, text: &str) -> String {
    // Single quotes for the runner's own splitting into words.
    assert!(!text.contains('\''));
    format!("--program={name}=guest:/bin/sh -c '{text}'")
}
