// SPDX-License-Identifier: GPL-2.0

//! Counters in tasks: other ones, their children, those that execute programs, and those that end.

use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    ioctl::counter_create,
    perf,
    Attr,
    Channel,
    CounterOptions,
    Errno,
    Scope, //
};
use rustix::{
    event::{
        epoll,
        eventfd,
        EventfdFlags, //
    },
    fd::{
        AsFd,
        AsRawFd,
        BorrowedFd,
        OwnedFd, //
    },
};
use std::{
    process::ExitCode,
    sync::mpsc,
    thread, //
};
use weir_selftests::{
    beside::{
        channel,
        Beside,
        Perf, //
    },
    child::{
        self,
        tid, //
    },
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    session::open_device,
    work::{
        rename,
        task_rename,
        touch,
        PAGE_FAULTS, //
    },
    worker::{
        self,
        Worker, //
    },
};

struct Context {
    channel: Channel,
    rename: Attr,
}

fn setup() -> Result<Context> {
    let channel = channel()?;
    let rename = task_rename()?.ok_or_else(|| skip("this kernel has no tracepoints"))?;
    Ok(Context { channel, rename })
}

fn another_process(context: &mut Context) -> Verdict {
    let mut worker = Worker::start()?;
    let scope = Scope::Task(worker.pid());
    Beside::new(&context.channel, PAGE_FAULTS.into(), scope)?
        .exactly(150, &mut || worker.order("touch 150"))?;
    let renames = Beside::new(&context.channel, context.rename, scope)?;
    renames.exactly(30, &mut || worker.order("rename 30"))?;
    // What this one does is not that one's.
    renames.exactly(0, &mut || rename(3))?;
    renames.exactly(0, &mut || worker.order("threads 2 rename 3"))
}

fn another_thread(context: &mut Context) -> Verdict {
    let (order, orders) = mpsc::channel::<usize>();
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || -> Verdict {
        done.send(tid())?;
        for pages in orders {
            touch(pages)?;
            rename(pages as u64)?;
            done.send(0)?;
        }
        Ok(())
    });
    let scope = Scope::Task(is_done.recv()? as i32);
    let mut work = || -> Result<()> {
        order.send(70)?;
        is_done.recv()?;
        Ok(())
    };
    Beside::new(&context.channel, PAGE_FAULTS.into(), scope)?.exactly(70, &mut work)?;
    let renames = Beside::new(&context.channel, context.rename, scope)?;
    renames.exactly(70, &mut work)?;
    renames.exactly(0, &mut || rename(3))?;
    drop(order);
    thread.join().expect("it does not panic")
}

/// Threads and children are counted with the task if that is wanted, while they live and after they ended.
fn inherited(context: &mut Context) -> Verdict {
    let mut worker = Worker::start()?;
    let scope = Scope::Task(worker.pid());
    let attr = context.rename.inherit(true);
    let renames = Beside::new(&context.channel, attr, scope)?;
    renames.exactly(5, &mut || worker.order("rename 5"))?;
    renames.exactly(4 * 5, &mut || worker.order("threads 4 rename 5"))?;
    // A process has its name from the program that it executes.
    renames.exactly(3 * (1 + 5), &mut || worker.order("children 3 rename 5"))?;
    let grandchildren = "children 2 children 3 threads 2 rename 5";
    renames.exactly(2 * (1 + 3 * (1 + 2 * 5)), &mut || {
        worker.order(grandchildren)
    })?;
    let faults = Beside::new(
        &context.channel,
        Attr::from(PAGE_FAULTS).inherit(true),
        scope,
    )?;
    // An executed program has page faults of its own.
    let compared = faults.during(&mut || worker.order("children 2 touch 500"))?;
    ensure!(compared.value >= 2 * 500, "{compared:?}");
    note(format_args!("{compared:?}"));
    // What was counted before the end of the task stays.
    let before = renames.counter.read_first()?;
    worker.end()?;
    let after = renames.counter.read_first()?;
    ensure!(after.value == before.value, "{before:?}, then {after:?}");
    Ok(())
}

/// A child is there while the counter is read, again and again.
fn read_while_children_live(context: &mut Context) -> Verdict {
    let mut worker = Worker::start()?;
    let scope = Scope::Task(worker.pid());
    let options = CounterOptions {
        attrs: vec![context.rename.inherit(true); 2],
        scope,
        cached: false,
    };
    let counter = context.channel.counter_create(&options)?;
    counter.enable()?;
    let orders = thread::spawn(move || -> Verdict {
        worker.order("children 5 threads 3 rename 400")?;
        worker.end()
    });
    let (mut before, mut changed) = ([0; 2], 0);
    while !orders.is_finished() {
        let values = counter.read()?;
        let now = [values[0].value, values[1].value];
        ensure!(
            now[0] >= before[0] && now[1] >= before[1],
            "{before:?}, then {now:?}"
        );
        changed += u64::from(now != before);
        before = now;
    }
    orders.join().expect("it does not panic")?;
    note(format_args!("{changed} different values"));
    let values = counter.read()?;
    let known = 5 * (1 + 3 * 400);
    ensure!(
        values.iter().all(|value| value.value == known),
        "{known} are {values:?}"
    );
    Ok(())
}

/// A counter that waits for a program begins with it.
fn enable_on_exec(context: &mut Context) -> Verdict {
    let mut worker = Worker::start()?;
    let scope = Scope::Task(worker.pid());
    let attr = context.rename.enable_on_exec(true);
    let options = CounterOptions {
        attrs: vec![attr, attr],
        scope,
        cached: false,
    };
    let counter = context.channel.counter_create(&options)?;
    let perf = Perf::open(&attr, scope)?;
    worker.order("rename 10")?;
    let value = counter.read_first()?;
    ensure!(
        (value.value, value.enabled) == (0, 0),
        "before the program: {value:?}"
    );
    worker.order("exec")?;
    worker.order("rename 10")?;
    let (values, perfs) = (counter.read()?, perf.read()?);
    ensure!(
        perfs.value >= 10 && values.iter().all(|value| value.value == perfs.value),
        "{values:?}, but perf has counted {perfs:?}"
    );
    ensure!(
        values
            .iter()
            .all(|value| value.enabled > 0 && value.together),
        "{values:?}"
    );
    // It can be disabled as any other.
    counter.disable()?;
    worker.order("rename 10")?;
    let stopped = counter.read_first()?;
    ensure!(stopped.value == perfs.value, "{stopped:?} after {perfs:?}");
    counter.enable()?;
    worker.order("rename 10")?;
    let value = counter.read_first()?;
    ensure!(value.value == perfs.value + 10, "{value:?} after {perfs:?}");
    Ok(())
}

/// A task that has gone can be read, and nothing else.
fn ended(context: &mut Context) -> Verdict {
    let mut worker = Worker::start()?;
    let pid = worker.pid();
    let options = CounterOptions::new(context.rename, Scope::Task(pid));
    let counter = context.channel.counter_create(&options)?;
    let idle = context.channel.counter_create(&options)?;
    let task = perf::open_task(pid)?;
    counter.enable()?;
    worker.order("rename 8")?;
    worker.end()?;
    let value = counter.read_first()?;
    ensure!(value.value == 8, "{value:?}");
    for counter in [&counter, &idle] {
        let errno = counter.enable().err().and_then(|error| error.errno());
        ensure!(errno == Some(Errno::SRCH), "enabling it: {errno:?}");
        counter.disable()?;
        counter.reset()?;
        ensure!(counter.read_first()?.value == 0, "after a reset");
    }
    let errno = create(&context.channel, context.rename, Some(task.as_fd()));
    ensure!(errno == Err(Errno::SRCH), "a task that has gone: {errno:?}");
    let errno = context
        .channel
        .counter_create(&options)
        .err()
        .and_then(|error| error.errno());
    ensure!(errno == Some(Errno::SRCH), "its number: {errno:?}");
    Ok(())
}

fn create(channel: &Channel, attr: Attr, task: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
    let options = CounterOptions::new(attr, Scope::Task(0));
    counter_create(channel, &mut options.request(task), &mut [attr])
}

/// Only perf's own descriptors tell that a task may be observed.
fn descriptors(context: &mut Context) -> Verdict {
    let channel = &context.channel;
    let attr = Attr::from(PAGE_FAULTS);
    let (pipe, _other) = rustix::pipe::pipe()?;
    let others: [(&str, OwnedFd); 6] = [
        ("an eventfd", eventfd(0, EventfdFlags::empty())?),
        ("an epoll", epoll::create(epoll::CreateFlags::CLOEXEC)?),
        ("/dev/weir", open_device()?),
        ("a pipe", pipe),
        ("a file", std::fs::File::open("/proc/self/status")?.into()),
        ("an event of a CPU", perf::open(&attr, -1, 0, None)?),
    ];
    for (name, fd) in &others {
        let result = create(channel, attr, Some(fd.as_fd()));
        ensure!(result == Err(Errno::INVAL), "{name}: {result:?}");
    }
    let result = create(channel, attr, Some(channel.as_fd()));
    ensure!(result == Err(Errno::INVAL), "the channel: {result:?}");
    let result = create(channel, attr, None);
    ensure!(result == Err(Errno::BADF), "-1: {result:?}");
    let closed = perf::open_task(0)?;
    let mut request = CounterOptions::new(attr, Scope::Task(0)).request(Some(closed.as_fd()));
    ensure!(request.target == closed.as_raw_fd(), "{request:?}");
    drop(closed);
    let result = counter_create(channel, &mut request, &mut [attr]);
    ensure!(result == Err(Errno::BADF), "a closed one: {result:?}");
    // Any event of a task will do, also one on a CPU, and it may be closed afterwards.
    for cpu in [-1, 0] {
        let task = perf::open(&context.rename, 0, cpu, None)?;
        let options = CounterOptions::new(attr, Scope::Task(0));
        let mut request = options.request(Some(task.as_fd()));
        counter_create(channel, &mut request, &mut [attr]).context("an event of a task")?;
        drop(task);
        let count = |id| -> Result<u64> {
            let values = channel.read_counters(Default::default())?;
            let value = values.iter().find(|value| value.id == id);
            Ok(value.context("it is there")?.value)
        };
        libweir::ioctl::counter_control(channel, libweir::ioctl::COUNTER_ENABLE, request.id, 0)?;
        touch(20)?;
        let value = count(request.id)?;
        ensure!((20..100).contains(&value), "20 faults are {value}");
    }
    Ok(())
}

fn main() -> ExitCode {
    if child::role().is_some() {
        return child::end(worker::obey());
    }
    ktap::main(
        setup,
        &[
            ("another_process", another_process),
            ("another_thread", another_thread),
            ("inherited", inherited),
            ("read_while_children_live", read_while_children_live),
            ("enable_on_exec", enable_on_exec),
            ("ended", ended),
            ("descriptors", descriptors),
        ],
    )
}
