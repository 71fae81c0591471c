// SPDX-License-Identifier: GPL-2.0

//! Samples with the fields that were asked for, and what stands in them.

use anyhow::{
    ensure,
    Context as _, //
};
use libweir::{
    cpu,
    sample::{
        CONTEXT_KERNEL,
        CONTEXT_USER, //
    },
    sample_type::{
        ADDR,
        CALLCHAIN,
        CPU,
        ID,
        IDENTIFIER,
        IP,
        PERIOD,
        STREAM_ID,
        TID,
        TIME, //
    },
    Attr,
    Channel,
    CounterOptions,
    Kallsyms,
    SampleLayouts,
    Scope, //
};
use std::{
    path::Path,
    process::ExitCode,
    thread,
    time::Duration, //
};
use weir_selftests::{
    affinity::on_cpu,
    beside::channel,
    child::tid,
    ktap::{
        self,
        note,
        skip,
        Verdict, //
    },
    sampled::{
        is_own_code,
        Sample,
        Sampled, //
    },
    session::now,
    syscall::{
        descend_code,
        Guarded, //
    },
    work::{
        breakpoints_overflow,
        rename,
        spin,
        task_rename,
        watched,
        watched_address,
        write_below,
        write_watched,
        CPU_CLOCK,
        PAGE_FAULTS, //
    },
};

const FIELDS: [u64; 10] = [
    IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD, CALLCHAIN, IDENTIFIER,
];

/// Every combination of fields, of which each is what is known of the event.
fn every_combination(channel: &mut Channel) -> Verdict {
    breakpoints_overflow()?;
    const WRITES: u64 = 2;
    let cpu = *cpu::online()?.last().context("there is a CPU")?;
    let mut all = 0;
    // So many fit into the channel.
    let combinations: Vec<u64> = (0..1 << FIELDS.len()).collect();
    for some in combinations.chunks(64) {
        let mut layouts = SampleLayouts::new();
        let mut expected = Vec::new();
        let begin = now();
        for combination in some {
            let has = |(bit, _): &(usize, &u64)| combination >> bit & 1 != 0;
            let fields = FIELDS.iter().enumerate().filter(has);
            let sample_type = fields.fold(0, |sum, (_, field)| sum | field);
            let attr = watched(0).sample_type(sample_type).period(1);
            let options = CounterOptions::new(attr, Scope::Task(0));
            let counter = channel.counter_create(&options)?;
            // Those of a sample are the default of who asks for none.
            let sample_type = counter.attrs()[0].raw().sample_type;
            layouts.add(&counter);
            counter.enable()?;
            on_cpu(cpu, || write_watched(WRITES))?;
            expected.push((u64::from(counter.id()), sample_type));
        }
        let end = now();
        let sampled = Sampled::take(channel, &layouts)?;
        ensure!(sampled.lost == 0, "{} were lost", sampled.lost);
        let mut last = begin;
        let mut samples = sampled.samples.iter();
        for (id, sample_type) in expected {
            for _ in 0..WRITES {
                let sample = samples.next().context("there are too few samples")?;
                check(sample, id, sample_type, cpu)
                    .with_context(|| format!("fields {sample_type:#x}: {sample:x?}"))?;
                if let Some(time) = sample.time {
                    ensure!(
                        (last..=end).contains(&time),
                        "{time} after {last}, before {end}"
                    );
                    last = time;
                }
                all += 1;
            }
        }
        ensure!(samples.next().is_none(), "there are too many samples");
    }
    note(format_args!("{all} samples"));
    Ok(())
}

fn check(sample: &Sample, id: u64, sample_type: u64, cpu: u32) -> Verdict {
    let has = |field| sample_type & field != 0;
    ensure!(sample.id == id, "event {id}");
    ensure!(!sample.kernel, "user space wrote");
    ensure!(sample.ip.is_some() == has(IP));
    if let Some(ip) = sample.ip {
        ensure!(is_own_code(ip)?, "its address is not of this program");
    }
    let task = (std::process::id(), tid());
    ensure!(sample.task == has(TID).then_some(task), "the task {task:?}");
    ensure!(sample.time.is_some() == has(TIME));
    let addr = watched_address(0);
    ensure!(sample.addr == has(ADDR).then_some(addr), "to {addr:#x}");
    ensure!(sample.stream_id == has(STREAM_ID).then_some(id));
    ensure!(sample.cpu == has(CPU).then_some(cpu), "on CPU {cpu}");
    ensure!(sample.period == has(PERIOD).then_some(1));
    ensure!(sample.callchain.is_some() == has(CALLCHAIN));
    if let Some(chain) = &sample.callchain {
        ensure!(chain.first() == Some(&CONTEXT_USER), "it begins there");
        let first = chain.get(1).copied();
        ensure!(first.is_some() && sample.ip.is_none_or(|ip| first == Some(ip)));
    }
    Ok(())
}

/// A page fault has the address that was touched.
fn addresses_of_page_faults(channel: &mut Channel) -> Verdict {
    const PAGES: usize = 50;
    let attr = Attr::new(PAGE_FAULTS).sample_type(ADDR | IP).period(1);
    let counter = channel.counter_create(&CounterOptions::new(attr, Scope::Task(0)))?;
    let mut layouts = SampleLayouts::new();
    layouts.add(&counter);
    nix::sys::prctl::set_thp_disable(true)?;
    let mut memory = Guarded::new(PAGES)?;
    let page = rustix::param::page_size();
    let begin = memory.bytes().as_ptr().addr() as u64;
    let touched: Vec<_> = (0..PAGES).map(|n| n * page + n * 8).collect();
    counter.enable()?;
    for at in &touched {
        memory.bytes()[*at] = 1;
    }
    counter.disable()?;
    let sampled = Sampled::take(channel, &layouts)?;
    let found: Vec<_> = sampled
        .samples
        .iter()
        .filter_map(|sample| sample.addr?.checked_sub(begin))
        .map(|at| at as usize)
        .filter(|at| *at < PAGES * page)
        .collect();
    ensure!(found == touched, "{found:x?} instead of {touched:x?}");
    for sample in &sampled.samples {
        ensure!(
            sample.kernel || is_own_code(sample.ip.context("it has one")?)?,
            "{sample:x?}"
        );
    }
    Ok(())
}

/// Every function on the way is in the chain, as far as it may go.
fn callers_of_user_space(channel: &mut Channel) -> Verdict {
    breakpoints_overflow()?;
    let code = descend_code();
    for depth in [0, 1, 10, 60, 126, 300] {
        for (max_stack, most) in [(0, 127), (1, 1), (2, 2), (9, 9), (127, 127)] {
            let attr = watched(0).sample_type(CALLCHAIN | IP).period(1);
            let attr = attr.sample_max_stack(max_stack);
            let counter = channel.counter_create(&CounterOptions::new(attr, Scope::Task(0)))?;
            let mut layouts = SampleLayouts::new();
            layouts.add(&counter);
            counter.enable()?;
            write_below(depth);
            counter.disable()?;
            let sampled = Sampled::take(channel, &layouts)?;
            ensure!(sampled.samples.len() == 1, "{sampled:x?}");
            let sample = &sampled.samples[0];
            let callers = sample.callers(CONTEXT_USER);
            let context = || format!("{depth} deep, at most {most}: {code:x?} {sample:x?}");
            ensure!(callers.len() <= most, "{}", context());
            // Where it wrote, where each call returns to, and where the first does.
            let known = (depth as usize + 2).min(most);
            ensure!(callers.len() >= known, "{}", context());
            ensure!(sample.ip == callers.first().copied(), "{}", context());
            for (number, caller) in callers[..known].iter().enumerate() {
                let inside = number <= depth as usize;
                ensure!(code.contains(caller) == inside, "{number}: {}", context());
                ensure!(is_own_code(*caller)?, "{number}: {}", context());
            }
            let returns = &callers[1..known.min(depth as usize + 1).max(1)];
            ensure!(
                returns.windows(2).all(|pair| pair[0] == pair[1]),
                "{}",
                context()
            );
        }
    }
    Ok(())
}

/// The kernel's functions come first, from where the event happened, to the system call; and only who is wanted.
fn callers_of_the_kernel(channel: &mut Channel) -> Verdict {
    let attr = task_rename()?.ok_or_else(|| skip("this kernel has no tracepoints"))?;
    let symbols = Kallsyms::read(Path::new("/proc/kallsyms"))?;
    for (no_kernel, no_user) in [(false, false), (false, true), (true, false), (true, true)] {
        for most in [0, 2] {
            let attr = attr
                .sample_type(CALLCHAIN | IP)
                .period(1)
                .sample_max_stack(most)
                .exclude_callchain_kernel(no_kernel)
                .exclude_callchain_user(no_user);
            let counter = channel.counter_create(&CounterOptions::new(attr, Scope::Task(0)))?;
            let mut layouts = SampleLayouts::new();
            layouts.add(&counter);
            counter.enable()?;
            rename(1)?;
            counter.disable()?;
            let sampled = Sampled::take(channel, &layouts)?;
            ensure!(sampled.samples.len() == 1, "{sampled:x?}");
            let sample = &sampled.samples[0];
            let ip = sample.ip.context("it has one")?;
            let chain = sample.callchain.as_ref().context("it has one")?;
            let kernel = sample.callers(CONTEXT_KERNEL);
            let user = sample.callers(CONTEXT_USER);
            let name = |ip| symbols.resolve(ip).map(|at| at.name);
            let names: Vec<_> = kernel.iter().map(|ip| name(*ip)).collect();
            let context = || format!("at most {most}: {sample:x?}, {names:?}");
            ensure!(sample.kernel, "{}", context());
            ensure!(
                chain.contains(&CONTEXT_KERNEL) != no_kernel,
                "{}",
                context()
            );
            ensure!(chain.contains(&CONTEXT_USER) != no_user, "{}", context());
            ensure!(
                most == 0 || kernel.len() + user.len() <= usize::from(most),
                "{}",
                context()
            );
            if !no_kernel {
                ensure!(chain.first() == Some(&CONTEXT_KERNEL), "{}", context());
                ensure!(kernel.first() == Some(&ip), "{}", context());
                ensure!(names.iter().all(Option::is_some), "{}", context());
                let names: Vec<_> = names.iter().flatten().collect();
                ensure!(
                    names.iter().any(|name| name.contains("set_task_comm")),
                    "{}",
                    context()
                );
                ensure!(
                    most != 0 || names.iter().any(|name| name.contains("sys_prctl")),
                    "{}",
                    context()
                );
            }
            let called = user.first().copied();
            ensure!(
                no_user || (most != 0 && !no_kernel) || called.is_some(),
                "{}",
                context()
            );
            if let Some(called) = called {
                ensure!(is_own_code(called)?, "{}", context());
            }
        }
    }
    Ok(())
}

/// Time that passes in the kernel and in programs is told apart.
fn kernel_and_user(channel: &mut Channel) -> Verdict {
    let attr = Attr::new(CPU_CLOCK)
        .sample_type(IP | TID | TIME | CPU | CALLCHAIN)
        .period(500_000);
    let counter = channel.counter_create(&CounterOptions::new(attr, Scope::All))?;
    let mut layouts = SampleLayouts::new();
    layouts.add(&counter);
    let (user, kernel) = (Duration::from_millis(40), Duration::from_millis(40));
    counter.enable()?;
    spin(user);
    let begin = std::time::Instant::now();
    while begin.elapsed() < kernel {
        let memory = Guarded::new(256)?;
        drop(memory);
    }
    thread::sleep(Duration::from_millis(5));
    counter.disable()?;
    let sampled = Sampled::take(channel, &layouts)?;
    let mut mine = [0, 0];
    for sample in &sampled.samples {
        let (ip, task) = (
            sample.ip.context("it has one")?,
            sample.task.context("it has one")?,
        );
        // The kernel's half.
        ensure!(sample.kernel == (ip >> 63 == 1), "{sample:x?}");
        let of_kernel = sample.callers(CONTEXT_KERNEL);
        ensure!(of_kernel.is_empty() != sample.kernel, "{sample:x?}");
        ensure!(
            !sample.kernel || of_kernel.first() == Some(&ip),
            "{sample:x?}"
        );
        ensure!(of_kernel.iter().all(|ip| ip >> 63 == 1), "{sample:x?}");
        let of_user = sample.callers(CONTEXT_USER);
        ensure!(of_user.iter().all(|ip| ip >> 63 == 0), "{sample:x?}");
        if task == (std::process::id(), tid()) {
            mine[usize::from(sample.kernel)] += 1;
            ensure!(sample.kernel || is_own_code(ip)?, "{sample:x?}");
        }
    }
    note(format_args!(
        "{} samples, of this thread {mine:?} in user space and in the kernel",
        sampled.samples.len()
    ));
    ensure!(mine[0] >= 10 && mine[1] >= 5, "{mine:?}");
    Ok(())
}

fn main() -> ExitCode {
    ktap::main(
        channel,
        &[
            ("every_combination", every_combination),
            ("addresses_of_page_faults", addresses_of_page_faults),
            ("callers_of_user_space", callers_of_user_space),
            ("callers_of_the_kernel", callers_of_the_kernel),
            ("kernel_and_user", kernel_and_user),
        ],
    )
}
