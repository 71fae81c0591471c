// SPDX-License-Identifier: GPL-2.0

//! Overflows as samples in a channel: `PERF_RECORD_SAMPLE`, with its fields in perf's order.

use super::overflow::Accidents;
use crate::{
    abs::{
        perf_event::{
            Attr,
            Overflow,
            SAMPLE_ADDR,
            SAMPLE_CALLCHAIN,
            SAMPLE_CPU,
            SAMPLE_ID,
            SAMPLE_IDENTIFIER,
            SAMPLE_IP,
            SAMPLE_PERIOD,
            SAMPLE_STREAM_ID,
            SAMPLE_TID,
            SAMPLE_TIME, //
        },
        pin::PinnedCpu,
        stack::{
            self,
            ChainBuffers,
            Depth, //
        },
    },
    channel::{
        Channel,
        Room, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc, //
    },
};
use weir_core::{
    uapi::{
        RecordHeader,
        Throttle,
        MISC_KERNEL,
        MISC_USER,
        RECORD_SAMPLE,
        RECORD_THROTTLE,
        RECORD_UNTHROTTLE, //
    },
    Class,
    Pinned, //
};
use zerocopy::IntoBytes;

/// Words of every field but the chain, and of the header.
const MOST_WORDS: usize = 11;

/// Writes a sample for each overflow.
pub(super) struct Sampler {
    channel: Arc<Channel>,
    id: u64,
    sample_type: u64,
    /// The event counts user space only, so that an address of the kernel, where the interrupt came late, is
    /// not for who reads.
    hides_kernel: bool,
    chain: Option<(Arc<ChainBuffers>, Depth)>,
    throttled: Atomic<bool>,
    accidents: Arc<Accidents>,
}

impl Sampler {
    /// Writes the samples of an event to `channel`, with number `id`. Call chains need `buffers`.
    pub(super) fn new(
        attr: &Attr,
        channel: Arc<Channel>,
        id: u32,
        buffers: Option<Arc<ChainBuffers>>,
        accidents: Arc<Accidents>,
    ) -> Self {
        let depth = Depth {
            kernel: !attr.excludes_kernel() && !attr.callchain_excludes_kernel(),
            user: !attr.callchain_excludes_user(),
            callers: match attr.max_stack() {
                0 => stack::MOST,
                callers => usize::from(callers),
            },
        };
        Self {
            channel,
            id: u64::from(id),
            sample_type: attr.sample_type() | SAMPLE_IDENTIFIER,
            hides_kernel: attr.excludes_kernel(),
            chain: buffers.map(|buffers| (buffers, depth)),
            throttled: Atomic::new(false),
            accidents,
        }
    }

    fn has(&self, field: u64) -> bool {
        self.sample_type & field != 0
    }

    /// Writes the sample. With interrupts off, also in an NMI.
    pub(super) fn overflow(&self, pin: &PinnedCpu, overflow: &Overflow<'_>) {
        if self.throttled.load(Relaxed) {
            self.throttled.store(false, Relaxed);
            self.write_throttle(pin, RECORD_UNTHROTTLE);
        }
        match &self.chain {
            Some((buffers, depth)) if self.has(SAMPLE_CALLCHAIN) => {
                buffers.with(pin, overflow, *depth, |chain| {
                    self.write(pin, overflow, chain)
                });
            }
            _ => self.write(pin, overflow, &[]),
        }
        if overflow.is_throttled() {
            self.accidents.throttled.add(1u64, Relaxed);
            self.throttled.store(true, Relaxed);
            self.write_throttle(pin, RECORD_THROTTLE);
        }
    }

    fn write(&self, pin: &PinnedCpu, overflow: &Overflow<'_>, chain: &[u64]) {
        let mut words = Words::default();
        // The header comes last, when the size is known; so does the time, which is that of the reservation.
        let mut time_at = None;
        words.push(0);
        words.push(self.id);
        if self.has(SAMPLE_IP) {
            words.push(match self.hides_kernel && !overflow.is_user() {
                true => 0,
                false => overflow.ip(),
            });
        }
        if self.has(SAMPLE_TID) {
            let (pid, tid) = self.channel.current_ids();
            words.push(halves(pid, tid));
        }
        if self.has(SAMPLE_TIME) {
            time_at = Some(words.len);
            words.push(0);
        }
        if self.has(SAMPLE_ADDR) {
            words.push(overflow.address());
        }
        if self.has(SAMPLE_ID) {
            words.push(self.id);
        }
        if self.has(SAMPLE_STREAM_ID) {
            words.push(self.id);
        }
        if self.has(SAMPLE_CPU) {
            words.push(halves(pin.cpu() as u32, 0));
        }
        if self.has(SAMPLE_PERIOD) {
            words.push(overflow.period());
        }
        if self.has(SAMPLE_CALLCHAIN) {
            words.push(chain.len() as u64);
        }

        let fields = words.len * size_of::<u64>();
        let size = fields + size_of_val(chain);
        let Some(room) = self.reserve(pin, size) else {
            return;
        };
        if let Some(at) = time_at {
            words.set(at, room.time());
        }
        let header = RecordHeader {
            type_: RECORD_SAMPLE,
            misc: match overflow.is_user() {
                true => MISC_USER,
                false => MISC_KERNEL,
            },
            // It fits a page.
            size: size as u16,
        };
        room.write(0, words.as_bytes());
        room.write(0, header.as_bytes());
        room.write(fields, chain.as_bytes());
        room.commit();
    }

    fn write_throttle(&self, pin: &PinnedCpu, type_: u32) {
        let Some(room) = self.reserve(pin, size_of::<Throttle>()) else {
            return;
        };
        let mut sample_id = self.channel.sample_id(pin, room.time());
        sample_id.id = self.id;
        let record = Throttle {
            header: RecordHeader {
                type_,
                misc: 0,
                size: size_of::<Throttle>() as u16,
            },
            time: room.time(),
            id: self.id,
            stream_id: self.id,
            sample_id,
        };
        room.write(0, record.as_bytes());
        room.commit();
    }

    /// The channel counts a loss, and so does the counter.
    fn reserve<'a>(&'a self, pin: &'a PinnedCpu, size: usize) -> Option<Room<'a>> {
        match self.channel.reserve(pin, size, Class::Live) {
            Ok(room) => Some(room),
            Err(_) => {
                self.accidents.lost.add(1u64, Relaxed);
                None
            }
        }
    }
}

/// Two numbers in the order that they stand in memory.
fn halves(first: u32, second: u32) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    let (a, b) = bytes.split_at_mut(size_of::<u32>());
    a.copy_from_slice(&first.to_ne_bytes());
    b.copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// A record that is being put together.
#[derive(Default)]
struct Words {
    words: [u64; MOST_WORDS],
    len: usize,
}

impl Words {
    fn push(&mut self, word: u64) {
        self.set(self.len, word);
        self.len += 1;
    }

    fn set(&mut self, at: usize, word: u64) {
        if let Some(to) = self.words.get_mut(at) {
            *to = word;
        }
    }

    fn as_bytes(&self) -> &[u8] {
        self.words.get(..self.len).unwrap_or(&[]).as_bytes()
    }
}
