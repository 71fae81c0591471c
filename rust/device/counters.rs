// SPDX-License-Identifier: GPL-2.0

//! What the ioctls of counters do.

use super::request::Request;
use crate::{
    abs::{
        perf_event::{
            Attr,
            TaskDescriptor, //
        },
        rights, //
    },
    channel::Channel,
    counter::{
        Config,
        Counter,
        Destination,
        Freshness,
        Part,
        Scope,
        Table, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};
use weir_core::uapi::{
    self,
    CounterCtl,
    CounterRead,
    CounterReq,
    CounterValue, //
};
use zerocopy::IntoBytes;

/// Where an attr says how long it is.
const SIZE_OFFSET: usize = 4;

/// Events of one file; one for each of many threads, say.
const MOST: u32 = 1 << 16;

/// The counters of one open file.
#[pin_data]
pub(crate) struct Counters {
    #[pin]
    table: Table,
}

impl Counters {
    /// None yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            table <- Table::new(),
        })
    }

    /// Does what the ioctl with number `nr` asks for.
    ///
    /// # Errors
    ///
    /// See the header.
    pub(crate) fn ioctl(&self, channel: &Arc<Channel>, nr: u32, arg: usize) -> Result {
        match nr {
            uapi::IOC_COUNTER_CREATE => {
                Request::<CounterReq>::update(arg, |request| self.create(channel, request))
            }
            uapi::IOC_COUNTER_READ => Request::<CounterRead>::update(arg, |r| self.read(r)),
            _ => Request::<CounterCtl>::update(arg, |request| self.control(nr, request)),
        }
    }

    fn create(&self, channel: &Arc<Channel>, request: &mut CounterReq) -> Result {
        if request.flags & !uapi::COUNTER_CACHED != 0 || request.count == 0 {
            return Err(EINVAL);
        }
        if request.count > uapi::COUNTER_EVENTS {
            return Err(E2BIG);
        }
        let attrs = read_attrs(request)?;
        let descriptor = match request.scope {
            uapi::SCOPE_TASK => Some(TaskDescriptor::get(request.target)?),
            _ => None,
        };
        let scope = match (&descriptor, request.scope, request.target) {
            (Some(descriptor), ..) => Scope::Task(descriptor.task()),
            (None, uapi::SCOPE_ALL, 0) => Scope::AllCpus,
            (None, uapi::SCOPE_CPU, cpu) => Scope::Cpu(usize::try_from(cpu).map_err(|_| EINVAL)?),
            _ => return Err(EINVAL),
        };
        for attr in &attrs {
            attr.check()?;
            if !attr.excludes_kernel() || attr.samples_kernel() {
                rights::allow_kernel()?;
            }
        }
        if descriptor.is_none() {
            rights::allow_cpu()?;
        }
        let most = rights::most_events().min(MOST);
        request.id = self.table.add(request.count, most, |first_id| {
            let counter = Counter::new(Config {
                attrs,
                scope,
                destination: Destination::Channel(channel.clone(), first_id),
                cached: request.flags & uapi::COUNTER_CACHED != 0,
                trusted: false,
            })?;
            // The caller had the right when the descriptor was made; did it last until now?
            if descriptor.is_some_and(|descriptor| !descriptor.is_valid()) {
                return Err(EACCES);
            }
            Ok(counter)
        })?;
        Ok(())
    }

    fn control(&self, nr: u32, request: &CounterCtl) -> Result {
        let has_value = matches!(nr, uapi::IOC_COUNTER_PERIOD | uapi::IOC_COUNTER_REFRESH);
        if !has_value && request.value != 0 {
            return Err(EINVAL);
        }
        match nr {
            uapi::IOC_COUNTER_ENABLE => self.table.get(request.id)?.enable(),
            uapi::IOC_COUNTER_DISABLE => self.table.get(request.id)?.disable(),
            uapi::IOC_COUNTER_RESET => self.table.get(request.id)?.reset(),
            uapi::IOC_COUNTER_RELEASE => self.table.release(request.id),
            uapi::IOC_COUNTER_REFRESH => {
                let overflows = u32::try_from(request.value).map_err(|_| EINVAL)?;
                self.table.get(request.id)?.refresh(overflows)
            }
            uapi::IOC_COUNTER_PERIOD => {
                let (counter, event) = self.table.event(request.id)?;
                counter.set_period(event, request.value)
            }
            _ => Err(ENOTTY),
        }
    }

    fn read(&self, request: &mut CounterRead) -> Result {
        if request.flags & !(uapi::READ_PER_CPU | uapi::READ_CACHED) != 0 {
            return Err(EINVAL);
        }
        let part = match request.flags & uapi::READ_PER_CPU {
            0 => Part::Sum,
            _ => Part::EachCpu,
        };
        let freshness = match request.flags & uapi::READ_CACHED {
            0 => Freshness::Now,
            _ => Freshness::Cached,
        };
        let counters = match request.id {
            0 => self.table.all()?,
            id => {
                let mut one = KVVec::new();
                one.push((id, self.table.get(id)?), GFP_KERNEL)?;
                one
            }
        };
        let mut borrowed = KVec::with_capacity(counters.len(), GFP_KERNEL)?;
        for (first_id, counter) in &counters {
            borrowed.push((*first_id, &**counter), GFP_KERNEL)?;
        }
        // User memory is written when no lock is held, as that may take as long as its owner likes.
        let mut values: KVVec<CounterValue> = KVVec::new();
        Counter::read_all(&borrowed, part, freshness, &mut |value| {
            if values.len() >= request.count as usize {
                return Err(ENOSPC);
            }
            Ok(values.push(value, GFP_KERNEL)?)
        })?;
        let to = UserPtr::from_addr(usize::try_from(request.values).map_err(|_| EFAULT)?);
        let bytes = values.as_bytes();
        UserSlice::new(to, bytes.len())
            .writer()
            .write_slice(bytes)?;
        request.count = values.len() as u32;
        Ok(())
    }
}

/// Reads the attrs, of any size, from user space.
fn read_attrs(request: &CounterReq) -> Result<KVec<Attr>> {
    let count = request.count as usize;
    let at = UserPtr::from_addr(usize::try_from(request.attrs).map_err(|_| EFAULT)?);
    let mut addresses = UserSlice::new(at, count * size_of::<u64>()).reader();
    let mut attrs = KVec::with_capacity(count, GFP_KERNEL)?;
    for _ in 0..count {
        let address = usize::try_from(addresses.read::<u64>()?).map_err(|_| EFAULT)?;
        attrs.push(read_attr(UserPtr::from_addr(address))?, GFP_KERNEL)?;
    }
    Ok(attrs)
}

fn read_attr(at: UserPtr) -> Result<Attr> {
    let size_at = at.wrapping_byte_add(SIZE_OFFSET);
    let size = UserSlice::new(size_at, size_of::<u32>())
        .reader()
        .read::<u32>()?;
    let attr = Attr::length(size).and_then(|length| {
        let mut bytes = KVec::new();
        UserSlice::new(at, length).read_all(&mut bytes, GFP_KERNEL)?;
        Attr::from_bytes(&bytes)
    });
    if matches!(attr, Err(error) if error == E2BIG) {
        // As the system call: the caller may try again with so much.
        UserSlice::new(size_at, size_of::<u32>())
            .writer()
            .write(&(Attr::SIZE as u32))?;
    }
    attr
}
