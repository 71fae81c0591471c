// SPDX-License-Identifier: GPL-2.0

//! QEMU's monitor, for the one thing that nothing else can do: a non-maskable interrupt.

use std::io::{
    self,
    BufRead,
    BufReader,
    Write, //
};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

/// A monitor that speaks QMP.
pub struct Monitor {
    socket: UnixStream,
}

impl Monitor {
    /// Begins the conversation.
    ///
    /// # Errors
    ///
    /// Those of the socket.
    pub fn new(mut socket: UnixStream) -> io::Result<Self> {
        let answers = BufReader::new(socket.try_clone()?);
        // QEMU stops listening when its answers are not read.
        thread::spawn(move || {
            for line in answers.lines().map_while(Result::ok) {
                if line.starts_with("{\"error\"") {
                    eprintln!("weir-vm: QEMU's monitor: {line}");
                }
            }
        });
        socket.write_all(b"{\"execute\":\"qmp_capabilities\"}\n")?;
        Ok(Self { socket })
    }

    /// Sends one non-maskable interrupt.
    ///
    /// # Errors
    ///
    /// Those of the socket: QEMU is gone.
    pub fn inject_nmi(&mut self) -> io::Result<()> {
        self.socket.write_all(b"{\"execute\":\"inject-nmi\"}\n")
    }

    /// Sends so many a second until QEMU is gone.
    pub fn keep_injecting(mut self, hz: u32) {
        let pause = Duration::from_secs(1) / hz.max(1);
        thread::spawn(move || {
            while self.inject_nmi().is_ok() {
                thread::sleep(pause);
            }
        });
    }
}
