// SPDX-License-Identifier: GPL-2.0

//! A process that does known work when it is told to.

use crate::{
    child,
    work::{
        rename,
        touch, //
    },
};
use anyhow::{
    bail,
    ensure,
    Context,
    Result, //
};
use std::{
    io::{
        BufRead,
        BufReader,
        Write, //
    },
    os::unix::process::CommandExt,
    path::Path,
    process::{
        Child,
        ChildStdin,
        ChildStdout,
        Command,
        Stdio, //
    },
    sync::{
        Mutex,
        PoisonError, //
    },
    thread, //
};

/// Children that go on after the order that started them, until this process ends.
static KEPT: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

/// The role of such a process, for `child::command`.
pub const ROLE: &str = "worker";

/// What it answers when it has done what it was told.
const DONE: &str = "done";

/// Such a process, which ends when this is dropped.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn start() -> Result<Self> {
        Self::from_command(child::command(ROLE)?)
    }

    /// Starts `command`, which comes from `child::command` and ends up in [`obey`].
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn from_command(mut command: Command) -> Result<Self> {
        let mut child = command
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let orders = child.stdin.take().context("its input is a pipe")?;
        let answers = child.stdout.take().context("its output is a pipe")?;
        let mut worker = Self {
            child,
            orders: Some(orders),
            answers: BufReader::new(answers),
        };
        worker.answer()?;
        Ok(worker)
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn answer(&mut self) -> Result<()> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(line.trim() == DONE, "a worker said `{}`", line.trim());
        Ok(())
    }

    /// Gives an order, of those that [`obey`] knows, and waits until it was done.
    ///
    /// # Errors
    ///
    /// What the process says went wrong.
    pub fn order(&mut self, order: &str) -> Result<()> {
        let orders = self.orders.as_mut().context("it was ended")?;
        writeln!(orders, "{order}").with_context(|| format!("giving order `{order}`"))?;
        self.answer().with_context(|| format!("order `{order}`"))
    }

    /// Lets it end, and waits for that.
    ///
    /// # Errors
    ///
    /// It failed.
    pub fn end(mut self) -> Result<()> {
        drop(self.orders.take());
        let status = self.child.wait()?;
        ensure!(status.success(), "a worker ended with {status}");
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.orders.take());
        // After `end` there is nothing to wait for.
        let _ = self.child.wait();
    }
}

/// Does what it is told, until there are no more orders:
///
/// - `touch N`: touches new pages
/// - `rename N`: gives itself its name so often
/// - `threads N ORDER`: has N threads do it, and waits for their end
/// - `children N ORDER`: has N processes do it, each a program that is executed, and waits for their end
/// - `again N ORDER`: does it so often
/// - `keep`: starts a process that does nothing yet, but does not end before this one
/// - `kept ORDER`: has each of those do it
/// - `exec`, `exec FILE`: executes the program over again, or another file of it, which answers
///
/// # Errors
///
/// What went wrong.
pub fn obey() -> Result<()> {
    println!("{DONE}");
    for line in std::io::stdin().lock().lines() {
        do_order(&line?)?;
        println!("{DONE}");
    }
    Ok(())
}

fn do_order(order: &str) -> Result<()> {
    let mut words = order.splitn(3, ' ');
    let what = words.next().unwrap_or_default();
    let number = words.next();
    let times = || {
        number
            .context("a number follows")?
            .parse::<u64>()
            .context("it is a number")
    };
    let inner = words.next();
    match what {
        "touch" => touch(times()? as usize),
        "rename" => rename(times()?),
        "threads" => {
            let inner = inner.context("an order follows")?;
            let threads: Vec<_> = (0..times()?)
                .map(|_| {
                    let inner = inner.to_owned();
                    thread::spawn(move || do_order(&inner))
                })
                .collect();
            for thread in threads {
                thread.join().expect("it does not panic")?;
            }
            Ok(())
        }
        "children" => {
            let inner = inner.context("an order follows")?;
            for _ in 0..times()? {
                let mut child = Worker::start()?;
                child.order(inner)?;
                child.end()?;
            }
            Ok(())
        }
        "again" => {
            let inner = inner.context("an order follows")?;
            (0..times()?).try_for_each(|_| do_order(inner))
        }
        "keep" => {
            let worker = Worker::start()?;
            KEPT.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(worker);
            Ok(())
        }
        "kept" => {
            let (_, inner) = order.split_once(' ').context("an order follows")?;
            let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            kept.iter_mut().try_for_each(|worker| worker.order(inner))
        }
        "exec" => {
            let mut command = child::command(ROLE)?;
            if let Some(file) = number {
                command = child::command_of(Path::new(file), ROLE);
            }
            // The new program answers.
            let error = command
                .stdin(Stdio::inherit())
                .stdout(Stdio::inherit())
                .exec();
            Err(error).with_context(|| format!("executing {command:?}"))
        }
        _ => bail!("there is no order `{order}`"),
    }
}
