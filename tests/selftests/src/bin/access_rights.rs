// SPDX-License-Identifier: GPL-2.0

//! Who may create a channel: whoever perf lets watch whole CPUs.

use anyhow::{
    bail,
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    ioctl::channel_create,
    ChannelOptions,
    Errno, //
};
use nix::unistd::Uid;
use std::process::{
    ExitCode,
    Stdio, //
};
use weir_selftests::{
    child,
    ktap::{
        self,
        skip,
        Skip,
        Verdict, //
    },
    paranoid::{
        become_nobody,
        Paranoid, //
    },
    session::open_device,
};

/// What a process of `nobody` is there for: to create a channel of the default size, with the limit of memory
/// that it has, one that is too low, and one that is not.
const CREATE: &str = "create";
const LIMITED: &str = "limited";
const ENOUGH: &str = "not limited";

struct Context {
    /// [`None`] where the kernel has no perf events.
    paranoid: Option<Paranoid>,
}

fn setup() -> Result<Context> {
    drop(open_device()?);
    ensure!(
        Uid::effective().is_root(),
        "these tests are for root, who can become somebody else"
    );
    let paranoid = match Paranoid::get() {
        Ok(paranoid) => Some(paranoid),
        Err(error) if error.is::<Skip>() => None,
        Err(error) => return Err(error),
    };
    Ok(Context { paranoid })
}

impl Context {
    fn paranoid(&self) -> Result<&Paranoid> {
        self.paranoid
            .as_ref()
            .ok_or_else(|| skip("this kernel has no perf_event_paranoid"))
    }
}

/// What a process of `nobody` is given that creates a channel on a descriptor which root has opened: the
/// right to open is the file's, and not what is tested here.
fn create_as_nobody() -> Result<Result<(), Errno>> {
    as_nobody(CREATE)
}

fn as_nobody(role: &str) -> Result<Result<(), Errno>> {
    let device = open_device()?;
    let mut command = child::command(role)?;
    command.stdin(Stdio::from(device));
    let output = command.output().context("starting a process of nobody")?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.trim() {
        "created" => Ok(Ok(())),
        number => match number.parse() {
            Ok(number) => Ok(Err(Errno::from_raw_os_error(number))),
            Err(_) => bail!(
                "it gave {}: {text}{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ),
        },
    }
}

/// The process that becomes `nobody`, and may lock only so much memory.
fn create(limit: Option<u64>) -> Result<()> {
    if let Some(limit) = limit {
        let limit = limit.into();
        let limits = rustix::process::Rlimit {
            current: limit,
            maximum: limit,
        };
        rustix::process::setrlimit(rustix::process::Resource::Memlock, limits)
            .context("setting the limit")?;
    }
    become_nobody()?;
    let mut req = ChannelOptions::default().request();
    match channel_create(std::io::stdin(), &mut req) {
        Ok(()) => println!("created"),
        Err(errno) => println!("{}", errno.raw_os_error()),
    }
    Ok(())
}

fn refused(context: &mut Context) -> Verdict {
    for value in [2, 1] {
        context.paranoid()?.set(value)?;
        let result = create_as_nobody()?;
        ensure!(
            result == Err(Errno::ACCESS),
            "nobody with perf_event_paranoid {value} got {result:?}"
        );
    }
    Ok(())
}

fn allowed(context: &mut Context) -> Verdict {
    for value in [0, -1] {
        context.paranoid()?.set(value)?;
        let result = create_as_nobody()?;
        ensure!(
            result == Ok(()),
            "nobody with perf_event_paranoid {value} got {result:?}"
        );
    }
    Ok(())
}

/// Pages of a channel count as memory that its maker has locked.
fn limited(context: &mut Context) -> Verdict {
    context.paranoid()?.set(-1)?;
    for (role, wanted) in [(LIMITED, Err(Errno::PERM)), (ENOUGH, Ok(()))] {
        let result = as_nobody(role)?;
        ensure!(
            result == wanted,
            "nobody who is {role} got {result:?} instead of {wanted:?}"
        );
    }
    Ok(())
}

/// Root may whatever the setting is.
fn root(context: &mut Context) -> Verdict {
    if let Some(paranoid) = &context.paranoid {
        paranoid.set(2)?;
    }
    let mut req = ChannelOptions::default().request();
    channel_create(open_device()?, &mut req).context("root creating a channel")
}

/// Where the setting is missing, capabilities decide alone.
fn refused_without_perf_events(context: &mut Context) -> Verdict {
    if context.paranoid.is_some() {
        return Err(skip("this kernel has perf events"));
    }
    let result = create_as_nobody()?;
    ensure!(
        matches!(result, Err(Errno::ACCESS | Errno::PERM)),
        "nobody got {result:?} from a kernel without perf events"
    );
    Ok(())
}

fn main() -> ExitCode {
    if let Some(role) = child::role() {
        return child::end(create(match role.as_str() {
            LIMITED => Some(256 << 10),
            ENOUGH => Some(8 << 20),
            _ => None,
        }));
    }
    ktap::main(
        setup,
        &[
            ("refused", refused),
            ("allowed", allowed),
            ("limited", limited),
            ("root", root),
            ("refused_without_perf_events", refused_without_perf_events),
        ],
    )
}
