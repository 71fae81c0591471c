// SPDX-License-Identifier: GPL-2.0

//! The module comes and goes: not while somebody uses it, and cleanly whenever its last user is killed.

use anyhow::{
    bail,
    ensure,
    Context as _,
    Result, //
};
use clap::Parser;
use libweir::{
    uapi::PAGE_MAGIC,
    Channel,
    ChannelOptions,
    DumpOptions, //
};
use nix::kmod::{
    delete_module,
    finit_module,
    DeleteModuleFlags,
    ModuleInitFlags, //
};
use std::{
    ffi::CString,
    fs::{
        self,
        File, //
    },
    path::{
        Path,
        PathBuf, //
    },
    process::ExitCode,
    thread::{
        self,
        sleep, //
    },
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    child::{
        self,
        Standing, //
    },
    dump,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    session::Session,
    spliced::{
        lent,
        Pipe, //
    },
    tasks,
};

const WEIR: &str = "weir";
const TORTURE: &str = "weir_torture";

/// How long a killed process may take to let go of the module.
const PATIENCE: Duration = Duration::from_secs(30);

/// The role of a process that uses the module until it is killed.
const VICTIM: &str = "victim";

/// What its threads do, each on a channel of its own.
const USES: [fn(&Channel) -> Verdict; 4] = [read, poll, dump_once, flush];

/// Tests that the module can be unloaded and loaded again, readers being killed meanwhile.
///
/// Needs root, and the module's file.
#[derive(Parser)]
struct Arguments {
    /// File of weir.ko; the tests are skipped without it.
    #[arg(long, env = "WEIR_KO", value_name = "FILE")]
    module: Option<PathBuf>,
    /// File of weir_torture.ko: needed where that is loaded, to load it again in the end.
    #[arg(long, env = "WEIR_TORTURE_KO", value_name = "FILE")]
    torture: Option<PathBuf>,
    /// How often it is unloaded and loaded.
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    times: u32,
}

struct Context {
    module: PathBuf,
    times: u32,
    /// To be loaded again in the end.
    torture: Option<PathBuf>,
}

fn is_loaded(name: &str) -> Result<bool> {
    let modules = fs::read_to_string("/proc/modules").context("reading /proc/modules")?;
    Ok(modules
        .lines()
        .any(|line| line.split(' ').next() == Some(name)))
}

fn load(path: &Path) -> Verdict {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    finit_module(&file, c"", ModuleInitFlags::empty())
        .with_context(|| format!("loading {}", path.display()))
}

fn try_unload(name: &str) -> nix::Result<()> {
    let name = CString::new(name).map_err(|_| nix::Error::EINVAL)?;
    delete_module(&name, DeleteModuleFlags::O_NONBLOCK)
}

/// Unloads a module whose last user has just ended; the kernel may take a moment to notice.
fn unload(name: &str) -> Verdict {
    let begin = Instant::now();
    loop {
        match try_unload(name) {
            Err(nix::Error::EAGAIN | nix::Error::EBUSY) if begin.elapsed() < PATIENCE => {
                sleep(Duration::from_millis(1));
            }
            result => return result.with_context(|| format!("unloading {name}")),
        }
    }
}

fn setup(arguments: Arguments) -> Result<Context> {
    let Some(module) = arguments.module else {
        return Err(skip("no module file was given (--module or WEIR_KO)"));
    };
    let torture = if is_loaded(TORTURE)? {
        let Some(path) = arguments.torture else {
            return Err(skip(
                "weir_torture is loaded, and its file was not given (--torture or WEIR_TORTURE_KO)",
            ));
        };
        unload(TORTURE)?;
        Some(path)
    } else {
        None
    };
    if !is_loaded(WEIR)? {
        load(&module)?;
    }
    Ok(Context {
        module,
        times: arguments.times,
        torture,
    })
}

/// An open descriptor keeps the module, with and without a channel.
fn busy(context: &mut Context) -> Verdict {
    let unused = weir_selftests::session::open_device()?;
    check_busy("an open descriptor")?;
    drop(unused);
    let channel = Channel::create(&ChannelOptions::default())?;
    check_busy("a channel")?;
    // And it still works.
    dump_once(&channel)?;
    // What was spliced from it without a copy keeps the module after it.
    channel.inject(&mut dump::request(Default::default(), 0, 0))?;
    channel.flush()?;
    let mut pipe = Pipe::new(64 << 10)?;
    let count = pipe.fill(&channel, channel.granted().page_size as usize)?;
    ensure!(lent(&channel)? == 1, "a page was not lent");
    drop(channel);
    check_busy("a page in a pipe")?;
    let bytes = pipe.empty()?;
    ensure!(
        bytes.len() == count && bytes.starts_with(&PAGE_MAGIC.to_ne_bytes()),
        "the page in the pipe is none"
    );
    drop(pipe);
    // Now it can go.
    unload(WEIR)?;
    load(&context.module)
}

fn check_busy(what: &str) -> Verdict {
    match try_unload(WEIR) {
        Err(nix::Error::EAGAIN | nix::Error::EBUSY) => Ok(()),
        result => bail!("unloading it in spite of {what} gave {result:?}"),
    }
}

/// Loads it again and again, while a process that sleeps and works in it is killed.
fn reload(context: &mut Context) -> Verdict {
    let mut waited = Duration::ZERO;
    for time in 0..context.times {
        let victim = Standing::start(child::command(VICTIM)?)?;
        // Sooner and later after it has said that it begins.
        sleep(Duration::from_micros(u64::from(time % 10) * 700));
        victim.kill()?;
        let begin = Instant::now();
        unload(WEIR).with_context(|| format!("time {time}"))?;
        waited += begin.elapsed();
        ensure!(!is_loaded(WEIR)?, "it is still there after it was unloaded");
        load(&context.module).with_context(|| format!("time {time}"))?;
    }
    note(format_args!(
        "{} times, {waited:?} in unloading",
        context.times
    ));
    Ok(())
}

/// After all that it does what it always does.
fn works(context: &mut Context) -> Verdict {
    let mut session = Session::open(&ChannelOptions::default(), 64)?;
    let before = tasks::all()?;
    let (dumped, _) = dump::dump(&mut session, 0, 0)?;
    dump::compare(&dumped, &before, &tasks::all()?)?;
    drop(session);
    // Left as it was found.
    match context.torture.take() {
        Some(path) => load(&path),
        None => Ok(()),
    }
}

fn dump_once(channel: &Channel) -> Verdict {
    let mut buffer = channel.buffer(64);
    channel.dump_tasks(&DumpOptions::default(), &mut buffer, |_| {
        Ok::<_, libweir::Error>(())
    })?;
    Ok(())
}

fn read(channel: &Channel) -> Verdict {
    channel.read_pages(&mut channel.buffer(4))?;
    Ok(())
}

fn poll(channel: &Channel) -> Verdict {
    channel.poll(None)?;
    Ok(())
}

fn flush(channel: &Channel) -> Verdict {
    Ok(channel.flush()?)
}

fn victim() -> Verdict {
    for use_it in USES {
        let channel = Channel::create(&ChannelOptions::default())?;
        thread::spawn(move || loop {
            if let Err(error) = use_it(&channel) {
                eprintln!("{error:#}");
                // Whoever wants to kill this process finds that it has ended.
                std::process::exit(1);
            }
        });
    }
    child::stay()
}

fn main() -> ExitCode {
    if child::role().as_deref() == Some(VICTIM) {
        return child::end(victim());
    }
    let arguments = Arguments::parse();
    ktap::main(
        || setup(arguments),
        &[("busy", busy), ("reload", reload), ("works", works)],
    )
}
