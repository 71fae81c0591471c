// SPDX-License-Identifier: GPL-2.0

//! `weir_watchdog` looks at every CPU, also at one that went and came back, and tells of one that is stuck.

use crate::{
    on_cpu,
    Samples, //
};
use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use std::{
    collections::BTreeMap,
    fs,
    hint::black_box,
    thread::sleep,
    time::{
        Duration,
        Instant, //
    },
};
use weir_selftests::{
    hotplug::Hotplug,
    ktap::{
        note,
        Verdict, //
    },
    syscall,
};

/// 50 looks a second; stuck after 200 ms.
const PARAMETERS: &str = "frequency=50 patience=10";
const STUCK: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(30);

/// What the file says of a CPU.
#[derive(Clone, Copy, Debug)]
struct Watch {
    looks: u64,
    switches: u64,
    stuck: u64,
}

fn watches() -> Result<BTreeMap<u32, Watch>> {
    let text = fs::read_to_string("/sys/kernel/debug/weir_watchdog")?;
    let mut watches = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let ["cpu", cpu, "looks", looks, "switches", switches, "stuck", stuck] = words[..] else {
            anyhow::bail!("`{line}`");
        };
        let watch = Watch {
            looks: looks.parse()?,
            switches: switches.parse()?,
            stuck: stuck.parse()?,
        };
        let twice = watches.insert(cpu.parse()?, watch);
        ensure!(twice.is_none(), "CPU {cpu} has two lines:\n{text}");
    }
    Ok(watches)
}

fn watch(cpu: u32) -> Result<Watch> {
    let watches = watches()?;
    let watch = watches.get(&cpu);
    Ok(*watch.with_context(|| format!("CPU {cpu} is not in {watches:?}"))?)
}

/// Computes. A counter of cycles does not look at a CPU that has nothing to do.
fn spin(duration: Duration) {
    let begin = Instant::now();
    let mut x = 1u64;
    while begin.elapsed() < duration {
        for _ in 0..1000 {
            x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7));
        }
    }
}

/// Waits until a CPU was looked at five more times, and has switched to this task and away from it.
fn is_watched(cpu: u32) -> Result<Watch> {
    let before = watch(cpu)?;
    on_cpu(cpu, || {
        let begin = Instant::now();
        loop {
            spin(Duration::from_millis(20));
            sleep(Duration::from_millis(1));
            let now = watch(cpu)?;
            if now.looks >= before.looks + 5 && now.switches > before.switches {
                return Ok(now);
            }
            ensure!(
                begin.elapsed() < PATIENCE,
                "CPU {cpu} was looked at: first {before:?}, now {now:?}"
            );
        }
    })
}

pub(crate) fn follows_cpus(samples: &mut Samples) -> Verdict {
    let module = samples.load_counting("weir_watchdog", PARAMETERS)?;
    let online = libweir::cpu::online()?;
    for &cpu in &online {
        note(format_args!("CPU {cpu}: {:?}", is_watched(cpu)?));
    }
    ensure!(
        watches()?.keys().eq(&online),
        "CPUs {online:?} are online, and watched are {:?}",
        watches()?
    );
    let hotplug = Hotplug::find()?;
    let cpu = hotplug.number as u32;
    for _ in 0..3 {
        hotplug.set(false)?;
        // It keeps what it has while it is gone, and the others go on.
        let gone = watch(cpu)?;
        is_watched(online[0])?;
        let still = watch(cpu)?;
        ensure!(
            still.looks == gone.looks && still.switches == gone.switches,
            "CPU {cpu} is offline, and had {gone:?}, then {still:?}"
        );
        hotplug.set(true)?;
        let back = is_watched(cpu)?;
        ensure!(
            back.looks > gone.looks && back.switches > gone.switches,
            "CPU {cpu} had {gone:?}, and has {back:?} now that it is back"
        );
    }
    note(format_args!("CPU {cpu} is back: {:?}", watch(cpu)?));
    module.unload()
}

pub(crate) fn finds_a_stuck_cpu(samples: &mut Samples) -> Verdict {
    let module = samples.load_counting("weir_watchdog", PARAMETERS)?;
    for cpu in libweir::cpu::online()? {
        let before = is_watched(cpu)?;
        on_cpu(cpu, || {
            // Where this is stuck for longer than that, others get a share of the CPU.
            for attempt in 1..=10 {
                syscall::with_real_time(1, || spin(3 * STUCK))?;
                let now = watch(cpu)?;
                if now.stuck > before.stuck {
                    note(format_args!("CPU {cpu}, attempt {attempt}: {now:?}"));
                    return Ok(());
                }
            }
            anyhow::bail!(
                "a task had CPU {cpu} for {} ms, ten times, and the watchdog had {before:?}, now {:?}",
                (3 * STUCK).as_millis(),
                watch(cpu)?
            )
        })?;
    }
    module.unload()
}
