// SPDX-License-Identifier: GPL-2.0

//! What counters have written into a channel.

use anyhow::{
    bail,
    Context,
    Result, //
};
use libweir::{
    sample::CONTEXT_MAX,
    uapi::{
        MISC_CPUMODE_MASK,
        MISC_KERNEL,
        MISC_USER,
        RECORD_THROTTLE, //
    },
    Channel,
    Errno,
    Page,
    PageBuffer,
    Record,
    SampleLayouts, //
};
use std::fs;

/// A sample: the fields that it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Of the kernel, or else of user space.
    pub kernel: bool,
    /// Which event.
    pub id: u64,
    /// Where the code was.
    pub ip: Option<u64>,
    /// Process and thread.
    pub task: Option<(u32, u32)>,
    /// When.
    pub time: Option<u64>,
    /// What was accessed.
    pub addr: Option<u64>,
    /// The event once more.
    pub stream_id: Option<u64>,
    /// Which CPU.
    pub cpu: Option<u32>,
    /// Events since the last.
    pub period: Option<u64>,
    /// Who called, with markers.
    pub callchain: Option<Vec<u64>>,
}

impl Sample {
    /// The callers in a context.
    pub fn callers(&self, context: u64) -> Vec<u64> {
        let words = self.callchain.iter().flatten().copied();
        words
            .skip_while(|word| *word != context)
            .skip(1)
            .take_while(|word| *word < CONTEXT_MAX)
            .collect()
    }
}

/// Everything that counters have written.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// Samples, of one CPU in order of time.
    pub samples: Vec<Sample>,
    /// How often an event was stopped by perf, and started again.
    pub throttled: u64,
    /// How often it was started again.
    pub unthrottled: u64,
    /// Records that the pages tell of as lost.
    pub lost: u64,
}

impl Sampled {
    /// Takes everything out of a channel on which only counters write.
    ///
    /// # Errors
    ///
    /// Those of reading; a page that is not right, or a record of another kind.
    pub fn take(channel: &Channel, layouts: &SampleLayouts) -> Result<Self> {
        let mut sampled = Self::default();
        let mut buffer = PageBuffer::new(channel.granted().page_size as usize, 64);
        channel.flush()?;
        channel.drain(&mut buffer, |page| -> Result<()> {
            let page = Page::parse(page)?.with_layouts(layouts);
            page.verify()?;
            for record in page.records() {
                sampled.add(record?)?;
            }
            Ok(())
        })?;
        // A loss may have no page that tells of it.
        for cpu in libweir::cpu::possible()? {
            match channel.status(cpu) {
                Ok(status) => sampled.lost += status.lost.iter().sum::<u64>(),
                Err(error) if error.errno() == Some(Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(sampled)
    }

    fn add(&mut self, record: Record<'_>) -> Result<()> {
        let kernel = match record.header().misc & MISC_CPUMODE_MASK {
            MISC_KERNEL => true,
            MISC_USER => false,
            _ if matches!(record, Record::Throttle(_)) => false,
            mode => bail!("mode {mode} in {record:?}"),
        };
        match record {
            Record::Sample(sample) => self.samples.push(Sample {
                kernel,
                id: sample.id,
                ip: Some(sample.ip),
                task: Some((sample.pid, sample.tid)),
                time: Some(sample.time),
                cpu: Some(sample.cpu),
                period: Some(sample.period),
                ..Default::default()
            }),
            Record::SampleFields(fields) => self.samples.push(Sample {
                kernel,
                id: fields.id,
                ip: fields.ip,
                task: fields.task,
                time: fields.time,
                addr: fields.addr,
                stream_id: fields.stream_id,
                cpu: fields.cpu,
                period: fields.period,
                callchain: fields.callchain.map(|chain| chain.words().collect()),
            }),
            Record::Throttle(record) if record.header.type_ == RECORD_THROTTLE => {
                self.throttled += 1;
            }
            Record::Throttle(_) => self.unthrottled += 1,
            other => bail!("{other:?} where only counters write"),
        }
        Ok(())
    }
}

/// Whether an address is of code of this process.
///
/// # Errors
///
/// `/proc` is not as it is known.
pub fn is_own_code(address: u64) -> Result<bool> {
    const MAPS: &str = "/proc/self/maps";
    let maps = fs::read_to_string(MAPS).context(MAPS)?;
    for line in maps.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (range, rights) = (fields.next(), fields.next());
        let (begin, end) = range
            .and_then(|range| range.split_once('-'))
            .context(MAPS)?;
        let (begin, end) = (
            u64::from_str_radix(begin, 16)?,
            u64::from_str_radix(end, 16)?,
        );
        if (begin..end).contains(&address) {
            return Ok(rights.is_some_and(|rights| rights.contains('x')));
        }
    }
    Ok(false)
}
