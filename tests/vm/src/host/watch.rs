// SPDX-License-Identifier: GPL-2.0

//! Watches a machine from its start to its end.

use std::fs::{
    self,
    File, //
};
use std::io::{
    Read,
    Write, //
};
use std::path::Path;
use std::sync::atomic::{
    AtomicUsize,
    Ordering, //
};
use std::sync::mpsc::{
    self,
    Receiver,
    RecvTimeoutError,
    Sender, //
};
use std::sync::Arc;
use std::thread;
use std::time::{
    Duration,
    Instant, //
};

use anyhow::{
    Context,
    Result, //
};
use weir_vm::report::{
    self,
    Event, //
};
use weir_vm::session::{
    Ending,
    Session, //
};

use crate::machine::{
    Machine,
    Streams, //
};
use crate::monitor::Monitor;

/// How long the machine may take to be gone after its last word.
const POWER_OFF_TIME: Duration = Duration::from_secs(20);
/// How long a hung kernel may take to say where it is.
const AUTOPSY_TIME: Duration = Duration::from_secs(3);
/// How long streams may take to end after the machine.
const DRAIN_TIME: Duration = Duration::from_secs(2);
/// How often something is looked at that does not announce itself.
const TICK: Duration = Duration::from_millis(50);

/// How long the machine may take; `None` where a person sits at it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Until its init says something.
    pub boot: Duration,
    /// Altogether.
    pub whole: Duration,
}

/// What else there is to know.
pub struct Options<'a> {
    /// See [`Limits`].
    pub limits: Option<Limits>,
    /// Interrupts a second.
    pub nmi: Option<u32>,
    /// The file for the console's text.
    pub console_log: Option<&'a Path>,
    /// Set to a signal's number when it came.
    pub signal: Arc<AtomicUsize>,
}

/// How it went.
pub enum Watched {
    /// The machine is gone; the text is what its program said on standard error.
    Ended(Ending, String),
    /// A signal of this number came, and the machine was stopped.
    Interrupted(usize),
}

enum Message {
    Report(Event, Vec<u8>),
    ReportEnd(Option<String>),
    Console(Vec<u8>),
    Errors(Vec<u8>),
}

struct Watch<'a, 's> {
    session: &'a mut Session<'s>,
    receiver: Receiver<Message>,
    console_log: Option<File>,
    errors: Vec<u8>,
    /// All streams have ended.
    silent: bool,
}

/// Watches the machine to its end.
///
/// # Errors
///
/// What the session cannot take; see [`Session::event`].
pub fn watch(
    machine: &mut Machine,
    streams: Streams,
    session: &mut Session<'_>,
    options: &Options<'_>,
) -> Result<Watched> {
    let console_log = options.console_log.map(create).transpose()?;
    let mut monitor = streams
        .monitor
        .map(Monitor::new)
        .transpose()
        .context("cannot talk to QEMU's monitor")?;
    let (sender, receiver) = mpsc::channel();
    read_report(streams.report, sender.clone());
    if let Some(console) = streams.console {
        read_bytes(console, sender.clone(), Message::Console);
    }
    if let Some(errors) = streams.errors {
        read_bytes(errors, sender.clone(), Message::Errors);
    }
    drop(sender);
    let mut watch = Watch {
        session,
        receiver,
        console_log,
        errors: Vec::new(),
        silent: false,
    };
    let start = Instant::now();
    let mut done = None;
    loop {
        watch.pump(TICK)?;
        if let Some(status) = machine.ended()? {
            watch.drain(DRAIN_TIME)?;
            let errors = String::from_utf8_lossy(&watch.errors).trim().to_owned();
            let ending = Ending::Gone(status.success(), status.to_string());
            return Ok(Watched::Ended(ending, errors));
        }
        match options.signal.load(Ordering::Relaxed) {
            0 => (),
            signal => {
                machine.stop().context("cannot stop the VM")?;
                return Ok(Watched::Interrupted(signal));
            }
        }
        // Before that, the firmware or the early kernel might not survive it.
        if let Some(hz) = options.nmi.filter(|_| watch.session.greeted()) {
            if let Some(monitor) = monitor.take() {
                monitor.keep_injecting(hz);
            }
        }
        if watch.session.done() && done.is_none() {
            done = Some(Instant::now());
        }
        let Some(limits) = options.limits else {
            continue;
        };
        let over = |since: Instant, limit: Duration| since.elapsed() > limit;
        if over(start, limits.whole)
            || (!watch.session.greeted() && over(start, limits.boot))
            || done.is_some_and(|done| over(done, POWER_OFF_TIME))
        {
            let seconds = start.elapsed().as_secs();
            watch.session.out_of_time();
            if let Some(monitor) = &mut monitor {
                // A guest that can still take it panics and says where it was.
                if monitor.inject_nmi().is_ok() {
                    watch.drain(AUTOPSY_TIME)?;
                }
            }
            machine.stop().context("cannot stop the VM")?;
            watch.drain(DRAIN_TIME)?;
            let errors = String::from_utf8_lossy(&watch.errors).trim().to_owned();
            return Ok(Watched::Ended(Ending::OutOfTime(seconds), errors));
        }
    }
}

impl Watch<'_, '_> {
    /// Takes messages until there has been none for `most`.
    fn pump(&mut self, most: Duration) -> Result<()> {
        match self.receiver.recv_timeout(most) {
            Ok(message) => self.take(message)?,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                if self.silent {
                    thread::sleep(Duration::from_millis(5));
                }
                self.silent = true;
                return Ok(());
            }
        }
        // What has come meanwhile, but no more: the caller has clocks to look at.
        for _ in 0..256 {
            match self.receiver.try_recv() {
                Ok(message) => self.take(message)?,
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Takes messages until the streams end, or for so long.
    fn drain(&mut self, most: Duration) -> Result<()> {
        let start = Instant::now();
        while !self.silent && start.elapsed() < most {
            self.pump(TICK)?;
        }
        Ok(())
    }

    fn take(&mut self, message: Message) -> Result<()> {
        match message {
            Message::Report(event, body) => self.session.event(event, &body)?,
            Message::ReportEnd(problem) => self.session.report_ended(problem),
            Message::Console(bytes) => {
                if let Some(log) = &mut self.console_log {
                    log.write_all(&bytes)
                        .context("cannot write the console's log")?;
                }
                self.session.console(&bytes);
            }
            Message::Errors(bytes) => self.errors.extend(bytes),
        }
        Ok(())
    }
}

fn create(path: &Path) -> Result<File> {
    let cannot = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(cannot)?;
    }
    File::create(path).with_context(cannot)
}

/// A send fails when nobody watches any more; the thread then ends.
fn read_report(mut report: Box<dyn Read + Send>, sender: Sender<Message>) {
    thread::spawn(move || loop {
        let message = match report::receive(&mut report) {
            Ok(Some((event, body))) => Message::Report(event, body),
            Ok(None) => Message::ReportEnd(None),
            Err(error) => Message::ReportEnd(Some(error.to_string())),
        };
        let last = matches!(message, Message::ReportEnd(_));
        if sender.send(message).is_err() || last {
            return;
        }
    });
}

fn read_bytes(
    mut stream: Box<dyn Read + Send>,
    sender: Sender<Message>,
    wrap: impl Fn(Vec<u8>) -> Message + Send + 'static,
) {
    thread::spawn(move || {
        let mut buffer = vec![0; 64 << 10];
        // A stream that breaks has ended.
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if sender.send(wrap(buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
}
