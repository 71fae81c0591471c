// SPDX-License-Identifier: GPL-2.0

//! The report: a stream of frames from `weir-init` to the host.
//!
//! A frame is two little-endian 32-bit lengths, then an [`Event`] as JSON of the first length, then
//! bytes of the second. A stream is whole only if it ends with [`Event::Done`]: whatever stops short
//! of it, be it between two frames or within one, is a lost machine.

use std::io::{
    self,
    ErrorKind,
    Read,
    Write, //
};

use serde::{
    Deserialize,
    Serialize, //
};

use crate::plan::Step;

/// Most bytes of an event's JSON.
pub const EVENT_MAX: usize = 64 << 10;
/// Most bytes that go with one event.
pub const BODY_MAX: usize = 1 << 20;

/// What `weir-init` says. Bytes that go with an event are named in parentheses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// First of all: the guest is up.
    Hello {
        /// `plan::PROTOCOL` of the guest.
        protocol: u32,
        /// `uname -r`.
        release: String,
        /// Online processors.
        processors: usize,
    },
    /// A step begins.
    Begin {
        /// Which.
        step: Step,
    },
    /// The step under way wrote something (what). For [`Step::Collect`]: the next part of the file.
    Output,
    /// The kernel logged something (lines, each with its `<priority>` in front, as syslog has it).
    Log {
        /// Whether records were overwritten in the kernel's buffer before these could be read.
        gap: bool,
    },
    /// The step under way has ended.
    End {
        /// Which.
        step: Step,
        /// How.
        outcome: Outcome,
        /// Time it took, in milliseconds.
        milliseconds: u64,
    },
    /// Last of all: the guest powers off now.
    Done,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The program exited with this status.
    Exit(i32),
    /// The program was ended by this signal.
    Signal(i32),
    /// It was stopped for taking longer than this many seconds.
    TimedOut(u64),
    /// What is no program went well.
    Well,
    /// It did not, or the program could not be started: the reason.
    Error(String),
}

/// Why no frame could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The stream ended within a frame.
    #[error("the report ends in the middle of a frame")]
    Truncated,
    /// The bytes make no sense.
    #[error("the report is garbled: {0}")]
    Garbled(String),
    /// The port itself failed.
    #[error("cannot read the report")]
    Io(#[from] io::Error),
}

/// Sends one frame and flushes it.
///
/// # Errors
///
/// Those of the port; and `InvalidInput` for more than [`BODY_MAX`] bytes.
pub fn send(port: &mut impl Write, event: &Event, body: &[u8]) -> io::Result<()> {
    let json = serde_json::to_vec(event)?;
    if json.len() > EVENT_MAX || body.len() > BODY_MAX {
        return Err(io::Error::new(ErrorKind::InvalidInput, "frame too long"));
    }
    let length = |bytes: &[u8]| (bytes.len() as u32).to_le_bytes();
    let mut frame = Vec::with_capacity(8 + json.len() + body.len());
    frame.extend(length(&json));
    frame.extend(length(body));
    frame.extend(&json);
    frame.extend(body);
    port.write_all(&frame)?;
    port.flush()
}

/// Reads one frame; `None` where the stream ends before it.
///
/// # Errors
///
/// See [`ReadError`]. After an error nothing more can be read: the stream has no marks to find again.
pub fn receive(port: &mut impl Read) -> Result<Option<(Event, Vec<u8>)>, ReadError> {
    let mut lengths = [0; 8];
    match fill(port, &mut lengths)? {
        0 => return Ok(None),
        8 => (),
        _ => return Err(ReadError::Truncated),
    }
    let length = |at: usize| {
        let word = [0, 1, 2, 3].map(|byte| lengths[at + byte]);
        u32::from_le_bytes(word) as usize
    };
    let (event_length, body_length) = (length(0), length(4));
    if event_length > EVENT_MAX || body_length > BODY_MAX {
        return Err(ReadError::Garbled(format!(
            "a frame of {event_length} + {body_length} bytes"
        )));
    }
    let mut event = vec![0; event_length];
    let mut body = vec![0; body_length];
    for part in [&mut event, &mut body] {
        if fill(port, part)? != part.len() {
            return Err(ReadError::Truncated);
        }
    }
    let event = serde_json::from_slice(&event).map_err(|error| {
        ReadError::Garbled(format!("{error} in '{}'", String::from_utf8_lossy(&event)))
    })?;
    Ok(Some((event, body)))
}

/// Reads until the buffer is full or the stream ends; gives the number of bytes.
fn fill(port: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match port.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            Just(Step::Boot),
            Just(Step::Load),
            any::<usize>().prop_map(Step::Program),
            any::<usize>().prop_map(Step::Collect),
            Just(Step::End),
        ]
    }

    fn outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            any::<i32>().prop_map(Outcome::Exit),
            any::<i32>().prop_map(Outcome::Signal),
            any::<u64>().prop_map(Outcome::TimedOut),
            Just(Outcome::Well),
            any::<String>().prop_map(Outcome::Error),
        ]
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            (any::<u32>(), any::<String>(), any::<usize>()).prop_map(
                |(protocol, release, processors)| Event::Hello {
                    protocol,
                    release,
                    processors,
                }
            ),
            step().prop_map(|step| Event::Begin { step }),
            Just(Event::Output),
            any::<bool>().prop_map(|gap| Event::Log { gap }),
            (step(), outcome(), any::<u64>()).prop_map(|(step, outcome, milliseconds)| {
                Event::End {
                    step,
                    outcome,
                    milliseconds,
                }
            }),
            Just(Event::Done),
        ]
    }

    /// Gives at most three bytes at a time, as a port may.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(3);
            self.0.read(&mut buffer[..most])
        }
    }

    type Frame = (Event, Vec<u8>);

    fn receive_all(port: &mut impl Read) -> (Vec<Frame>, Option<ReadError>) {
        let mut frames = Vec::new();
        loop {
            match receive(port) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return (frames, None),
                Err(error) => return (frames, Some(error)),
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_is_received(
            frames in prop::collection::vec((event(), prop::collection::vec(any::<u8>(), 0..300)), 0..8)
        ) {
            let mut stream = Vec::new();
            for (event, body) in &frames {
                send(&mut stream, event, body).unwrap();
            }
            let (received, error) = receive_all(&mut Trickle(&stream));
            prop_assert!(error.is_none());
            prop_assert_eq!(received, frames);
        }

        #[test]
        fn a_cut_stream_gives_the_whole_frames_and_then_says_that_it_was_cut(
            frames in prop::collection::vec((event(), prop::collection::vec(any::<u8>(), 0..50)), 1..4),
            at in any::<prop::sample::Index>(),
        ) {
            let mut stream = Vec::new();
            let mut edges = vec![0];
            for (event, body) in &frames {
                send(&mut stream, event, body).unwrap();
                edges.push(stream.len());
            }
            let cut = at.index(stream.len());
            let (received, error) = receive_all(&mut &stream[..cut]);
            let whole = edges.iter().filter(|edge| **edge <= cut).count() - 1;
            prop_assert_eq!(&received[..], &frames[..whole]);
            let between = edges.contains(&cut);
            prop_assert_eq!(between, error.is_none());
            prop_assert!(between || matches!(error, Some(ReadError::Truncated)));
        }

        #[test]
        fn any_bytes_are_read_without_panic(stream in prop::collection::vec(any::<u8>(), 0..200)) {
            receive_all(&mut stream.as_slice());
        }
    }

    #[test]
    fn a_frame_that_claims_gigabytes_is_garbled() {
        let stream = [0xff; 64];
        let (_, error) = receive_all(&mut stream.as_slice());
        assert!(matches!(error, Some(ReadError::Garbled(_))));
    }

    #[test]
    fn a_body_that_is_too_long_is_not_sent() {
        let mut stream = Vec::new();
        let error = send(&mut stream, &Event::Output, &vec![0; BODY_MAX + 1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(stream.is_empty());
    }
}
