// SPDX-License-Identifier: GPL-2.0

//! Every allocation of every call fails once: the call says `ENOMEM`, gives back what it had, and works the
//! next time. That nothing leaks is for the kernel's own checks to see.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use clap::Parser;
use libweir::{
    event::TYPE_SOFTWARE,
    ioctl::channel_create,
    uapi::{
        MODEL_PAGED,
        MODEL_PER_CPU,
        MODEL_SHARED,
        MODE_DISCARD,
        MODE_OVERWRITE, //
    },
    Attr,
    Channel,
    ChannelOptions,
    CounterOptions,
    Errno,
    Event,
    Scope, //
};
use std::{
    fs::{
        self,
        File, //
    },
    os::unix::fs::FileExt,
    path::{
        Path,
        PathBuf, //
    },
    process::ExitCode,
    time::Duration, //
};
use weir_selftests::{
    counters::Counters,
    dump::request,
    exercise::small,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    requests::still_works,
    session::{
        absent,
        open_device, //
    },
    spliced::Pipe,
    torture::Torture,
};

const PAGE_FAULTS: Event = Event::new(TYPE_SOFTWARE, 2);

const DEBUGFS: &str = "/sys/kernel/debug";
/// Counts down with every allocation of this thread that may fail; the one at which it is one fails.
const FAIL_NTH: &str = "/proc/thread-self/fail-nth";
/// More than any call makes.
const MOST: u32 = 2000;

/// Tests that every call stands every allocation that fails.
///
/// Needs weir.ko, a kernel with fault injection, and root.
#[derive(Parser)]
struct Arguments {
    /// File of weir_counters.ko, to load it where it is not there.
    #[arg(long, env = "WEIR_COUNTERS_KO", value_name = "FILE")]
    counters: Option<PathBuf>,
}

/// A setting of the kernel that is put back in the end.
struct Setting(&'static str, String);

impl Setting {
    fn set(name: &'static str, value: &str) -> Result<Self> {
        let path = Path::new(DEBUGFS).join(name);
        let before = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        fs::write(&path, value).with_context(|| path.display().to_string())?;
        Ok(Self(name, before.trim().to_owned()))
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if let Err(error) = fs::write(Path::new(DEBUGFS).join(self.0), &self.1) {
            note(format_args!("{}: {error}; it was {}", self.0, self.1));
        }
    }
}

struct Context {
    faults: Faults,
    counters: Option<PathBuf>,
    _settings: Vec<Setting>,
}

/// The file that makes an allocation fail. It is open all the time: to open it takes allocations, too.
struct Faults(File);

impl Faults {
    /// Lets the allocation that comes as number `nth` from now on fail, or none with zero.
    fn arm(&self, nth: u32) -> Verdict {
        self.0
            .write_all_at(nth.to_string().as_bytes(), 0)
            .context(FAIL_NTH)
    }

    /// Whether it has come; none fails any more.
    fn disarm(&self) -> Result<bool> {
        let mut text = [0; 16];
        let count = self.0.read_at(&mut text, 0).context(FAIL_NTH)?;
        self.arm(0)?;
        Ok(text[..count].trim_ascii() == b"0")
    }
}

fn setup(arguments: Arguments) -> Result<Context> {
    drop(open_device()?);
    if !Path::new(FAIL_NTH).exists() || !Path::new(DEBUGFS).join("failslab").exists() {
        return Err(skip("this kernel cannot make allocations fail"));
    }
    // Allocations that may wait are to fail as well, and nothing is to be said of each.
    let settings = [
        ("failslab/ignore-gfp-wait", "N"),
        ("failslab/verbose", "0"),
        ("fail_page_alloc/ignore-gfp-wait", "N"),
        ("fail_page_alloc/min-order", "0"),
        ("fail_page_alloc/verbose", "0"),
    ];
    let faults = File::options()
        .read(true)
        .write(true)
        .open(FAIL_NTH)
        .context(FAIL_NTH)?;
    Ok(Context {
        faults: Faults(faults),
        counters: arguments.counters,
        _settings: settings
            .into_iter()
            .map(|(name, value)| Setting::set(name, value))
            .collect::<Result<_>>()?,
    })
}

/// Calls `call` again and again, each time with one allocation more that succeeds before one fails, until
/// none fails any more. `prepare` makes what it is called on, without failures.
fn every_allocation<T>(
    faults: &Faults,
    what: &str,
    prepare: impl Fn() -> Result<T>,
    call: impl Fn(&T) -> Result<(), Errno>,
) -> Verdict {
    for nth in 1..MOST {
        let on = prepare().with_context(|| format!("before {what}"))?;
        faults.arm(nth)?;
        let result = call(&on);
        let failed = faults.disarm()?;
        // What can do without may go on.
        ensure!(
            matches!(result, Ok(()) | Err(Errno::NOMEM)),
            "{what}, of which allocation {nth} failed, gave {result:?}"
        );
        drop(on);
        still_works().with_context(|| format!("after {what}, of which allocation {nth} failed"))?;
        if !failed {
            note(format_args!("{what}: {} allocations", nth - 1));
            ensure!(result.is_ok(), "{what} without a failure gave {result:?}");
            ensure!(
                nth > 1,
                "{what} has no allocation, so this has shown nothing"
            );
            return Ok(());
        }
    }
    anyhow::bail!("{what} makes {MOST} allocations")
}

fn create(context: &mut Context) -> Verdict {
    for model in [MODEL_PAGED, MODEL_PER_CPU, MODEL_SHARED] {
        for mode in [MODE_DISCARD, MODE_OVERWRITE] {
            let options = ChannelOptions {
                model,
                mode,
                ..small()
            };
            every_allocation(
                &context.faults,
                &format!("creating model {model}, mode {mode}"),
                open_device,
                |fd| channel_create(fd, &mut options.request()),
            )?;
        }
    }
    Ok(())
}

fn channel() -> Result<Channel> {
    Channel::create(&small()).map_err(absent)
}

fn errno<T>(result: libweir::Result<T>) -> Result<(), Errno> {
    match result {
        Ok(_) => Ok(()),
        Err(error) => Err(error.errno().unwrap_or(Errno::IO)),
    }
}

fn map(context: &mut Context) -> Verdict {
    every_allocation(&context.faults, "mapping", channel, |channel| {
        errno(channel.map())
    })
}

/// Without the memory that lending needs, pages are copied; without that for a copy, they stay.
fn splice(context: &mut Context) -> Verdict {
    for model in [MODEL_PAGED, MODEL_PER_CPU] {
        let prepare = || {
            let channel = Channel::create(&ChannelOptions { model, ..small() })?;
            channel.inject(&mut request(Default::default(), 3, 0))?;
            channel.flush()?;
            Ok((channel, Pipe::new(64 << 10)?))
        };
        every_allocation(
            &context.faults,
            &format!("splicing from model {model}"),
            prepare,
            |(channel, pipe)| pipe.fill(channel, 1 << 16).map(drop),
        )?;
    }
    Ok(())
}

fn open(context: &mut Context) -> Verdict {
    every_allocation(
        &context.faults,
        "opening",
        || Ok(()),
        |()| {
            rustix::fs::open(
                libweir::DEVICE,
                rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
                rustix::fs::Mode::empty(),
            )
            .map(drop)
        },
    )
}

/// Injecting, flushing and reading allocate nothing that could not be done without; so what they do is done.
fn use_it(context: &mut Context) -> Verdict {
    for nth in 1..20 {
        let channel = channel()?;
        let mut buffer = channel.buffer(16);
        context.faults.arm(nth)?;
        let mut call = request(Default::default(), 3, 0);
        let injected = errno(channel.inject(&mut call));
        let flushed = errno(channel.flush());
        let read = errno(channel.read_pages(&mut buffer));
        context.faults.disarm()?;
        for result in [injected, flushed, read] {
            ensure!(
                matches!(result, Ok(()) | Err(Errno::NOMEM)),
                "with allocation {nth} failing came {result:?}"
            );
        }
    }
    still_works()
}

fn create_by_name(context: &mut Context) -> Verdict {
    every_allocation(
        &context.faults,
        "a channel of a module",
        Torture::open,
        |torture| {
            torture
                .create("weir_faults", MODEL_PAGED, MODE_DISCARD, 0)
                .map(drop)
        },
    )
}

/// Counters of the device: created, enabled, read, reset and released.
fn device_counters(context: &mut Context) -> Verdict {
    for scope in [Scope::All, Scope::Cpu(0), Scope::Task(0)] {
        let mut options = CounterOptions::new(Attr::default().frequency(100), scope);
        // Each takes as long as its allocations are many.
        if scope == Scope::All {
            options.attrs.push(Attr::new(PAGE_FAULTS));
            options.cached = true;
        }
        every_allocation(
            &context.faults,
            &format!("counters in {scope:?}"),
            channel,
            |channel| {
                errno(channel.counter_create(&options).and_then(|counter| {
                    counter.enable()?;
                    counter.read()?;
                    counter.read_per_cpu()?;
                    counter.reset()?;
                    counter.disable()?;
                    counter.release()
                }))
            },
        )?;
    }
    Ok(())
}

/// Counters of kernel code: created, enabled, read, alone and several at once, and reset.
fn kernel_counters(context: &mut Context) -> Verdict {
    let counters = Counters::open(context.counters.as_deref(), Duration::ZERO)?;
    for name in ["create_on_cpu", "create_on_all", "create_in_task"] {
        every_allocation(
            &context.faults,
            name,
            || Ok(()),
            |()| counters.call_only(name),
        )?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    ktap::main(
        || setup(arguments),
        &[
            ("open", open),
            ("create", create),
            ("map", map),
            ("splice", splice),
            ("use_it", use_it),
            ("create_by_name", create_by_name),
            ("device_counters", device_counters),
            ("kernel_counters", kernel_counters),
        ],
    )
}
