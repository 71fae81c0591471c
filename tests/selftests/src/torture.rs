// SPDX-License-Identifier: GPL-2.0

//! Driving `weir_torture.ko`.

mod interface;

pub use interface::{
    Create,
    Source,
    Start,
    Status,
    COME_BACK,
    IN_PLACE,
    PAYLOAD_MIN,
    REFUSED,
    START, //
};

use interface::{
    CPU_WORDS,
    CREATE,
    DESTROY,
    STATUS,
    STOP, //
};

use crate::{
    ktap::{
        skip,
        Skip, //
    },
    syscall::{
        ioctl,
        Argument, //
    },
};
use anyhow::{
    bail,
    Context,
    Result, //
};
use libweir::{
    Channel,
    ChannelOptions, //
};
use rustix::{
    fd::{
        AsFd,
        AsRawFd,
        OwnedFd, //
    },
    fs::{
        Mode,
        OFlags, //
    },
    io::Errno,
};
use std::{
    cell::Cell,
    time::{
        Duration,
        Instant, //
    },
};
use zerocopy::IntoBytes;

const DEVICE: &str = "/dev/weir_torture";

/// The device of the torture module.
#[derive(Debug)]
pub struct Torture {
    fd: OwnedFd,
}

/// Writers that were started, and perhaps still run.
#[derive(Debug)]
pub struct Run<'a> {
    torture: &'a Torture,
    request: Start,
    stopped: Cell<bool>,
}

impl Torture {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// That of the call; a skip where the module is not loaded.
    pub fn open() -> Result<Self> {
        match rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => Ok(Torture { fd }),
            Err(Errno::NOENT) => Err(skip("weir_torture.ko is not loaded")),
            Err(errno) => Err(errno).with_context(|| format!("opening {DEVICE}")),
        }
    }

    /// Starts writers into `channel`.
    ///
    /// # Errors
    ///
    /// Those of `WEIR_TORTURE_IOC_START`; a skip where this machine has no NMI.
    pub fn start<Fd: AsFd>(&self, channel: Fd, request: Start) -> Result<Run<'_>> {
        let mut request = Start {
            channel: channel.as_fd().as_raw_fd(),
            ..request
        };
        match ioctl(&self.fd, START, Argument::Bytes(request.as_mut_bytes())) {
            Ok(()) => Ok(Run {
                torture: self,
                request,
                stopped: Cell::new(false),
            }),
            Err(Errno::OPNOTSUPP) => Err(skip("there is no NMI that could be sent here")),
            Err(errno) => Err(errno).context("starting the torture writers"),
        }
    }

    /// Creates a channel of the module's own.
    ///
    /// # Errors
    ///
    /// Those of `WEIR_TORTURE_IOC_CREATE`.
    pub fn create(&self, name: &str, model: u32, mode: u32, pages: u32) -> Result<Create, Errno> {
        let options = ChannelOptions {
            model,
            mode,
            pages,
            ..Default::default()
        };
        self.create_with(name, &options)
    }

    /// The same, with more of `options`.
    ///
    /// # Errors
    ///
    /// As [`Torture::create`].
    pub fn create_with(&self, name: &str, options: &ChannelOptions) -> Result<Create, Errno> {
        let options = options.request();
        let mut request = Create {
            size: size_of::<Create>() as u32,
            model: options.model,
            mode: options.mode,
            pages: options.pages,
            page_size: options.page_size,
            watermark: options.watermark,
            max_latency_ns: options.max_latency_ns,
            clock: options.clock,
            ..Default::default()
        };
        let room = request.name.get_mut(..name.len()).ok_or(Errno::INVAL)?;
        room.copy_from_slice(name.as_bytes());
        ioctl(&self.fd, CREATE, Argument::Bytes(request.as_mut_bytes()))?;
        Ok(request)
    }

    /// Destroys it.
    ///
    /// # Errors
    ///
    /// None that are known.
    pub fn destroy(&self) -> Result<(), Errno> {
        ioctl(&self.fd, DESTROY, Argument::Null)
    }

    /// The sources that this machine has.
    ///
    /// # Errors
    ///
    /// Those of a channel, and of [`Torture::start`].
    pub fn sources(&self) -> Result<Vec<Source>> {
        let channel = Channel::create(&ChannelOptions::default())?;
        let request = Start::new(&[Source::Nmi], PAYLOAD_MIN..=PAYLOAD_MIN).records(1);
        match self.start(&channel, request) {
            Ok(run) => {
                run.stop()?;
                Ok(Source::ALL.to_vec())
            }
            Err(error) if error.is::<Skip>() => Ok(Source::ALL
                .into_iter()
                .filter(|source| *source != Source::Nmi)
                .collect()),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Torture {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Run<'_> {
    /// The CPUs that it runs on.
    pub fn cpus(&self) -> Vec<u32> {
        (0..64 * CPU_WORDS as u32)
            .filter(|cpu| self.request.cpus[*cpu as usize / 64] & 1 << (cpu % 64) != 0)
            .collect()
    }

    /// The counts of one writer.
    ///
    /// # Errors
    ///
    /// Those of `WEIR_TORTURE_IOC_STATUS`.
    pub fn status(&self, cpu: u32, source: Source) -> Result<Status> {
        let mut status = Status {
            size: size_of::<Status>() as u32,
            cpu,
            source: source as u32,
            ..Default::default()
        };
        ioctl(
            &self.torture.fd,
            STATUS,
            Argument::Bytes(status.as_mut_bytes()),
        )
        .with_context(|| format!("the status of {source:?} on CPU {cpu}"))?;
        Ok(status)
    }

    /// The counts of all writers.
    ///
    /// # Errors
    ///
    /// As [`Run::status`].
    pub fn statuses(&self) -> Result<Vec<Status>> {
        let mut statuses = Vec::new();
        for cpu in self.cpus() {
            for source in Source::ALL {
                if self.request.sources & 1 << source as u32 != 0 {
                    statuses.push(self.status(cpu, source)?);
                }
            }
        }
        Ok(statuses)
    }

    /// Stops all writers. The counts stay.
    ///
    /// # Errors
    ///
    /// Those of `WEIR_TORTURE_IOC_STOP`.
    pub fn stop(&self) -> Result<()> {
        // Another run may be there by the time this one is dropped.
        self.stopped.set(true);
        ioctl(&self.torture.fd, STOP, Argument::Null).context("stopping the torture writers")
    }

    /// Waits until all writers have ended by themselves, then stops them.
    ///
    /// # Errors
    ///
    /// As [`Run::status`] and [`Run::stop`], or they go on after `patience`.
    pub fn wait(&self, patience: Duration) -> Result<()> {
        let begin = Instant::now();
        loop {
            let statuses = self.statuses()?;
            let running = statuses.first().map_or(0, |status| status.running);
            if running == 0 {
                return self.stop();
            }
            if begin.elapsed() > patience {
                self.stop()?;
                bail!("{running} writers have not ended after {patience:?}: {statuses:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if !self.stopped.get() {
            // A test that failed left them running; the failure it reports is the first one.
            let _ = self.stop();
        }
    }
}
