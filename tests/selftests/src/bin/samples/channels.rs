// SPDX-License-Identifier: GPL-2.0

//! Samples that write into a channel.

use crate::{
    attach,
    Samples, //
};
use anyhow::{
    ensure,
    Context as _,
    Result, //
};
use libweir::{
    Channel,
    Errno,
    Page,
    Record, //
};
use std::{
    collections::BTreeSet,
    process::Command,
    thread::sleep,
    time::Duration, //
};
use weir_selftests::{
    child::tid,
    ktap::{
        note,
        Verdict, //
    },
};

/// The words of every event that is there now.
fn events(channel: &Channel) -> Result<Vec<Vec<u8>>> {
    let mut events = Vec::new();
    channel.flush()?;
    channel.drain(&mut channel.buffer(64), |bytes| {
        let page = Page::parse(bytes)?;
        page.verify()?;
        for record in page.records() {
            if let Record::Event { data, .. } = record? {
                events.push(data.to_vec());
            }
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(events)
}

fn pid_at(data: &[u8], offset: usize) -> Result<u32> {
    let bytes = data
        .get(offset..offset + 4)
        .context("the record has no such field")?;
    Ok(u32::from_ne_bytes(bytes.try_into()?))
}

/// Each `sleep()` of this task is a switch away from it and one back to it.
pub(crate) fn switches(samples: &mut Samples) -> Verdict {
    let module = samples.load("weir_switches", "")?;
    let channel = attach("weir_switches")?;
    for _ in 0..10 {
        sleep(Duration::from_millis(1));
    }
    let me = tid();
    let all = events(&channel)?;
    let (mut away, mut back) = (0, 0);
    for event in &all {
        ensure!(event.len() == 32, "a switch of {} bytes", event.len());
        away += u32::from(pid_at(event, 0)? == me);
        back += u32::from(pid_at(event, 4)? == me);
    }
    note(format_args!(
        "{} switches, {away} of them from this task and {back} to it",
        all.len()
    ));
    ensure!(
        away >= 10 && back >= 10 && away.abs_diff(back) <= 1,
        "this task slept ten times"
    );
    // The module may go while its channel is attached: that ends.
    module.unload()?;
    events_to_the_end(&channel)
}

fn events_to_the_end(channel: &Channel) -> Verdict {
    let mut buffer = vec![0; 1 << 20];
    loop {
        match rustix::io::read(channel, &mut buffer[..]) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(Errno::AGAIN) => anyhow::bail!("the channel of a module that has gone has no end"),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A task that sleeps is woken.
pub(crate) fn wakeups(samples: &mut Samples) -> Verdict {
    let module = samples.load("weir_wakeups", "")?;
    let channel = attach("weir_wakeups")?;
    for _ in 0..10 {
        sleep(Duration::from_millis(1));
    }
    let me = tid();
    let all = events(&channel)?;
    let mut woken = 0;
    let mut tasks = BTreeSet::new();
    for event in &all {
        ensure!(event.len() == 24, "a wake-up of {} bytes", event.len());
        let pid = pid_at(event, 0)?;
        tasks.insert(pid);
        if pid == me {
            woken += 1;
            ensure!(
                event[4..].starts_with(b"samples\0"),
                "this task is not called {:?}",
                String::from_utf8_lossy(&event[4..])
            );
        }
    }
    note(format_args!(
        "{} wake-ups of {} tasks, {woken} of them of this one",
        all.len(),
        tasks.len()
    ));
    ensure!(woken >= 10, "this task slept ten times");
    module.unload()
}

/// The program in C prints as many switches as it is asked for.
pub(crate) fn print_switches(samples: &mut Samples) -> Verdict {
    let program = samples.file("print_switches")?;
    let module = samples.load("weir_switches", "")?;
    let output = Command::new(&program)
        .arg("7")
        .output()
        .with_context(|| format!("running {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && text.lines().count() == 7,
        "{}: {text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    for line in text.lines() {
        ensure!(line.contains(" cpu ") && line.contains(" -> "), "{line}");
    }
    note(text.lines().next().unwrap_or_default());
    module.unload()
}
