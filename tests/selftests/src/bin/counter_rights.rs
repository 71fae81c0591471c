// SPDX-License-Identifier: GPL-2.0

//! Who may count what: whoever perf lets, and whom perf takes it from again.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    ioctl::{
        counter_control,
        counter_create,
        COUNTER_RELEASE, //
    },
    perf,
    sample_type::{
        CALLCHAIN,
        IP, //
    },
    Attr,
    Channel,
    CounterOptions,
    Errno,
    Event,
    Scope, //
};
use nix::unistd::Uid;
use rustix::fd::AsFd;
use std::{
    fs,
    io::stdin,
    os::unix::fs::PermissionsExt,
    path::{
        Path,
        PathBuf, //
    },
    process::{
        ExitCode,
        Stdio, //
    },
};
use weir_selftests::{
    beside::{
        channel,
        Perf, //
    },
    child,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    paranoid::{
        become_nobody,
        Paranoid, //
    },
    work::{
        task_rename,
        watched,
        PAGE_FAULTS,
        TYPE_TRACEPOINT, //
    },
    worker::{
        self,
        Worker, //
    },
};

/// A process of `nobody`, which creates counters on the channel that is its standard input. What follows is the
/// setting, and the number of a tracepoint, or 0: tracefs is not for `nobody`.
const CREATE: &str = "create ";
/// A process of `nobody` that obeys.
const OBEY: &str = "obey";

struct Context {
    channel: Channel,
    paranoid: Paranoid,
}

fn setup() -> Result<Context> {
    ensure!(
        Uid::effective().is_root(),
        "these tests are for root, who can become somebody else"
    );
    Ok(Context {
        channel: channel()?,
        paranoid: Paranoid::get()?,
    })
}

/// What is asked for.
struct Case {
    what: &'static str,
    attr: Attr,
    /// It is of the kernel, too.
    kernel: bool,
}

fn cases(tracepoint: Option<Attr>) -> Vec<Case> {
    let faults = Attr::new(PAGE_FAULTS);
    let chains = faults.sample_type(CALLCHAIN | IP).period(1000);
    let case = |what, attr, kernel| Case { what, attr, kernel };
    let mut cases = vec![
        case("counts everything", faults, true),
        case("counts user space", faults.exclude_kernel(true), false),
        case(
            "counts the kernel",
            faults.exclude_user(true).exclude_kernel(false),
            true,
        ),
        case(
            "samples user space",
            faults.exclude_kernel(true).period(1000),
            false,
        ),
        case(
            "samples user space, with all callers",
            chains.exclude_kernel(true),
            true,
        ),
        case(
            "samples user space, with callers in user space",
            chains.exclude_kernel(true).exclude_callchain_kernel(true),
            false,
        ),
        case(
            "samples everything, with callers in user space",
            chains.exclude_callchain_kernel(true),
            true,
        ),
        case("a breakpoint", watched(0).exclude_kernel(true), false),
    ];
    if let Some(attr) = tracepoint {
        cases.push(case("a tracepoint", attr, true));
    }
    cases
}

/// Creates with weir what is asked for, as the user that this process is of.
fn create(attr: Attr, scope: Scope) -> Result<(), Errno> {
    let task = match scope {
        Scope::Task(pid) => Some(perf::open_task(pid)?),
        _ => None,
    };
    let options = CounterOptions::new(attr, scope);
    let mut request = options.request(task.as_ref().map(AsFd::as_fd));
    counter_create(stdin(), &mut request, &mut [attr])?;
    counter_control(stdin(), COUNTER_RELEASE, request.id, 0)
}

/// In the process of `nobody`: with each setting, everything.
fn create_as_nobody(arguments: &str) -> Verdict {
    let (paranoid, tracepoint) = arguments.split_once(' ').context("two numbers follow")?;
    let (paranoid, tracepoint): (i32, u64) = (paranoid.parse()?, tracepoint.parse()?);
    let tracepoint = (tracepoint != 0).then(|| Attr::new(Event::new(TYPE_TRACEPOINT, tracepoint)));
    become_nobody()?;
    let mut wrong = Vec::new();
    for case in cases(tracepoint) {
        for (scope, pid, cpu) in [
            (Scope::Task(0), 0, -1),
            (Scope::Cpu(0), -1, 0),
            (Scope::All, -1, 0),
        ] {
            let is_task = matches!(scope, Scope::Task(_));
            let may =
                paranoid <= 2 && (paranoid <= 1 || !case.kernel) && (paranoid <= 0 || is_task);
            let expected = may.then_some(()).ok_or(Errno::ACCESS);
            let ours = create(case.attr, scope);
            let theirs = perf::open(&case.attr, pid, cpu, None).map(drop);
            if ours != expected || theirs != expected {
                wrong.push(format!(
                    "{} in {scope:?}: {ours:?}, perf gives {theirs:?}, and {expected:?} is expected",
                    case.what
                ));
            }
        }
    }
    // Where the first process is root's.
    let init = perf::open_task(1).map(drop);
    if init != Err(Errno::ACCESS) {
        wrong.push(format!("the first process may be observed: {init:?}"));
    }
    // An address of the kernel is for those with a capability, whatever the setting is.
    let kernel = watched(0).breakpoint(2, 0xffff_ffff_8100_0000, 8);
    let (ours, theirs) = (
        create(kernel, Scope::Task(0)),
        perf::open(&kernel, 0, -1, None).map(drop),
    );
    if ours != theirs || ours.is_ok() {
        wrong.push(format!("the kernel's memory: {ours:?}, perf {theirs:?}"));
    }
    // What is wrong with an event is not told to who may not have it.
    let unknown = Attr::new(Event::new(libweir::event::TYPE_SOFTWARE, 999));
    let (ours, theirs) = (
        create(unknown, Scope::Cpu(0)),
        perf::open(&unknown, -1, 0, None).map(drop),
    );
    if paranoid > 0 && (ours != Err(Errno::ACCESS)) {
        wrong.push(format!("an unknown event: {ours:?}, perf {theirs:?}"));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// For every setting, scope and kind of event, `nobody` gets from weir what perf gives, on a channel that root has
/// made.
fn as_perf_does(context: &mut Context) -> Verdict {
    let tracepoint = task_rename()?.map_or(0, |attr| attr.raw().config);
    for value in [3, 2, 1, 0, -1] {
        context.paranoid.set(value)?;
        let mut command = child::command(&format!("{CREATE}{value} {tracepoint}"))?;
        let channel = context.channel.as_fd().try_clone_to_owned()?;
        command.stdin(Stdio::from(channel));
        let output = command.output().context("starting a process of nobody")?;
        ensure!(
            output.status.success(),
            "perf_event_paranoid {value}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// A program in a place of its own, which is root's and runs as root; it is gone when this is dropped.
struct SetUid(PathBuf);

impl SetUid {
    fn new() -> Result<Self> {
        let path = Path::new("/tmp").join(format!("weir-setuid-{}", std::process::id()));
        fs::copy("/proc/self/exe", &path).with_context(|| path.display().to_string())?;
        let this = Self(path);
        fs::set_permissions(&this.0, fs::Permissions::from_mode(0o4755))?;
        Ok(this)
    }
}

impl Drop for SetUid {
    fn drop(&mut self) {
        // The machine, or who looks after /tmp, takes it away in the end.
        let _ = fs::remove_file(&self.0);
    }
}

/// A task that gets rights which its observer may lack is lost to the observer, as it is with perf.
fn rights_that_a_program_gives(context: &mut Context) -> Verdict {
    let rename = task_rename()?.ok_or_else(|| skip("this kernel has no tracepoints"))?;
    let program = SetUid::new()?;
    let mut worker = Worker::from_command(child::command(OBEY)?)?;
    let scope = Scope::Task(worker.pid());
    let task = perf::open_task(worker.pid())?;
    let counter = context
        .channel
        .counter_create(&CounterOptions::new(rename, scope))?;
    let perf = Perf::open(&rename, scope)?;
    counter.enable()?;
    worker.order("rename 4")?;
    // An ordinary program changes nothing.
    worker.order("exec")?;
    worker.order("rename 4")?;
    let before = counter.read_first()?.value;
    ensure!(before == 9, "two times 4, and a program, are {before}");
    let options = CounterOptions::new(rename, scope);
    let create = || {
        let mut request = options.request(Some(task.as_fd()));
        counter_create(&context.channel, &mut request, &mut [rename])
    };
    create().context("before the program")?;

    worker.order(&format!("exec {}", program.0.display()))?;
    worker.order("rename 4")?;
    let (value, perfs) = (counter.read_first()?, perf.read()?);
    note(format_args!("{before} before, {} after", value.value));
    ensure!(
        value.value == perfs.value && value.value <= before + 1,
        "after {before}, and then with other rights: {value:?}, {perfs:?}"
    );
    let result = create();
    ensure!(
        result == Err(Errno::ACCESS),
        "with the old descriptor: {result:?}"
    );
    let errno = counter.enable().err().and_then(|error| error.errno());
    ensure!(errno == Some(Errno::SRCH), "enabling it again: {errno:?}");
    worker.order("rename 4")?;
    ensure!(
        counter.read_first()?.value == value.value,
        "it is counted again"
    );
    // Who may, observes it anew.
    let counter = context.channel.counter_create(&options)?;
    counter.enable()?;
    worker.order("rename 4")?;
    ensure!(counter.read_first()?.value == 4, "{counter:?}");
    Ok(())
}

fn main() -> ExitCode {
    let Some(role) = child::role() else {
        return ktap::main(
            setup,
            &[
                ("as_perf_does", as_perf_does),
                ("rights_that_a_program_gives", rights_that_a_program_gives),
            ],
        );
    };
    child::end(match role.strip_prefix(CREATE) {
        Some(arguments) => create_as_nobody(arguments),
        None if role == OBEY => become_nobody().and_then(|()| worker::obey()),
        None => worker::obey(),
    })
}
