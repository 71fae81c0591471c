// SPDX-License-Identifier: GPL-2.0

//! The events of a counter on all CPUs that it counts on.
//!
//! A lane is a CPU, or the one task. Perf takes the events of a CPU that goes offline off for ever, but lets
//! them be read; so when the CPU comes back, it gets new ones, which go on where those were.
//!
//! Events of the processor, of clocks, and breakpoints are made in the callback that tells of the CPU. For others
//! perf takes `cpus_read_lock()`, directly or under a mutex, which would be for ever there; a work item makes
//! them, a moment later.

use super::{
    overflow::{
        Accidents,
        Callback,
        Overflows, //
    },
    sampler::Sampler,
    slot::Slot, //
};
use crate::{
    abs::{
        cpus,
        hotplug::Online,
        interrupts::InterruptsOff,
        perf_event::{
            Attr,
            PerfEvent,
            Reading,
            Target,
            SAMPLE_CALLCHAIN, //
        },
        rcu_slot::RcuSlot,
        stack::ChainBuffers,
        task_switch::TaskSwitch, //
    },
    channel::Channel, //
};
use kernel::{
    alloc::KVVec,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        new_mutex,
        rcu,
        Arc,
        Mutex, //
    },
    task::Task, //
};

/// A CPU that does not become idle copies its readings so often, in ns.
const COPY_INTERVAL: u64 = 1_000_000;

/// Where events are counted.
pub(crate) enum Scope {
    /// On every CPU, and on those that come online later.
    AllCpus,
    /// On one CPU, until it goes offline.
    Cpu(usize),
    /// In one task, and its children if the event says so.
    Task(ARef<Task>),
}

/// Where overflows go.
pub(crate) enum Destination {
    /// Nowhere: there are none.
    Nowhere,
    /// Into a channel, the first event with this number, the next with the one that follows.
    Channel(Arc<Channel>, u32),
    /// To kernel code.
    Call(Arc<dyn Callback>),
}

/// A CPU, or the task.
struct Lane {
    current: RcuSlot<Slot>,
    /// It is to be counted there and is not.
    missing: Atomic<bool>,
    /// Of each event.
    accidents: KVec<Arc<Accidents>>,
}

/// What is changed under the lock.
pub(super) struct Slots {
    /// Whether new events are to be enabled.
    pub(super) enabled: bool,
    pub(super) attrs: KVec<Attr>,
    /// Of each lane.
    pub(super) slots: KVVec<Option<Arc<Slot>>>,
}

/// All lanes of a counter.
///
/// Callbacks read the counter they are of, from any CPU, until the last event is released, and slots are
/// dropped one after the other: so they find none from when that begins.
#[pin_data(PinnedDrop)]
pub(super) struct Lanes {
    closed: Atomic<bool>,
    scope: Scope,
    destination: Destination,
    chains: Option<Arc<ChainBuffers>>,
    events: usize,
    /// Whether they are made in the callback.
    at_once: bool,
    lanes: KVVec<Lane>,
    #[pin]
    slots: Mutex<Slots>,
}

impl Lanes {
    /// Makes those of a counter, without events yet. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new(
        attrs: KVec<Attr>,
        scope: Scope,
        destination: Destination,
    ) -> Result<Arc<Self>> {
        let events = attrs.len();
        let at_once = attrs.iter().all(Attr::can_be_created_in_hotplug);
        let count = match scope {
            Scope::AllCpus => cpus::count(),
            Scope::Cpu(_) | Scope::Task(_) => 1,
        };
        let wants_chains = attrs
            .iter()
            .any(|attr| attr.sample_period() != 0 && attr.sample_type() & SAMPLE_CALLCHAIN != 0);
        let chains = match (&destination, wants_chains) {
            (Destination::Channel(..), true) => Some(Arc::new(ChainBuffers::new()?, GFP_KERNEL)?),
            _ => None,
        };
        let mut lanes = KVVec::with_capacity(count, GFP_KERNEL)?;
        let mut slots = KVVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            let mut accidents = KVec::with_capacity(events, GFP_KERNEL)?;
            for _ in 0..events {
                accidents.push(Arc::new(Accidents::new(), GFP_KERNEL)?, GFP_KERNEL)?;
            }
            lanes.push(
                Lane {
                    current: RcuSlot::new(),
                    missing: Atomic::new(false),
                    accidents,
                },
                GFP_KERNEL,
            )?;
            slots.push(None, GFP_KERNEL)?;
        }
        Arc::pin_init(
            pin_init!(Self {
                closed: Atomic::new(false),
                scope,
                destination,
                chains,
                events,
                at_once,
                lanes,
                slots <- new_mutex!(
                    Slots {
                        enabled: false,
                        attrs,
                        slots,
                    },
                    "weir_slots"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// Number of events.
    pub(super) fn events(&self) -> usize {
        self.events
    }

    /// Number of lanes.
    pub(super) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// Whether there is a lane for each CPU.
    pub(super) fn is_machine_wide(&self) -> bool {
        matches!(self.scope, Scope::AllCpus)
    }

    pub(super) fn is_of_task(&self) -> bool {
        matches!(self.scope, Scope::Task(_))
    }

    /// The slots, locked. Who holds this creates and releases no event.
    pub(super) fn lock(&self) -> impl core::ops::DerefMut<Target = Slots> + '_ {
        self.slots.lock()
    }

    /// The CPU of a lane; none for a task.
    pub(super) fn cpu_of(&self, lane: usize) -> Option<usize> {
        match self.scope {
            Scope::AllCpus => Some(lane),
            Scope::Cpu(cpu) => Some(cpu),
            Scope::Task(_) => None,
        }
    }

    /// The lane of a CPU; the one of a task is every CPU's.
    fn lane_of(&self, cpu: usize) -> Option<&Lane> {
        match self.scope {
            Scope::AllCpus => self.lanes.get(cpu),
            Scope::Cpu(own) if own != cpu => None,
            Scope::Cpu(_) | Scope::Task(_) => self.lanes.first(),
        }
    }

    /// Calls `f` with what counts on this CPU, or in the current task. Any context.
    pub(super) fn here<R>(&self, off: &InterruptsOff, f: impl FnOnce(&Slot) -> R) -> Option<R> {
        if self.closed.load(Relaxed) {
            return None;
        }
        self.lane_of(off.cpu())?.current.with(off, f)
    }

    /// Whether an event counts on `cpu`, or waits for its turn there; or, with `all`, whether there is any.
    pub(super) fn counts_on(&self, off: &InterruptsOff, cpu: usize, all: bool) -> bool {
        let lane = self.lane_of(cpu);
        let counts = |slot: &Slot| all || slot.counts_on(cpu, self.is_of_task());
        lane.and_then(|lane| lane.current.with(off, counts))
            .unwrap_or(false)
    }

    /// Whether a lane is to be counted and is not.
    pub(super) fn is_missing(&self, lane: usize) -> bool {
        let missing = |lane: &Lane| lane.missing.load(Relaxed);
        self.lanes.get(lane).is_some_and(missing) && cpus::is_online(lane)
    }

    /// What else happened to an event in a lane.
    pub(super) fn accidents(&self, lane: usize, event: usize) -> Option<&Accidents> {
        let accidents = &self.lanes.get(lane)?.accidents;
        Some(accidents.get(event)?)
    }

    /// Creates the events of every lane: all, or none. Sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`PerfEvent::new`].
    pub(super) fn attach_all(&self) -> Result {
        if !self.is_machine_wide() {
            return self.attach(0, false);
        }
        let mut attached = false;
        for lane in 0..self.count() {
            match self.attach(lane, false) {
                Ok(()) => attached = true,
                // It is offline.
                Err(error) if error == ENODEV => {}
                Err(error) => return Err(error),
            }
        }
        attached.then_some(()).ok_or(ENODEV)
    }

    /// Creates the events of a lane. If it has some, `replace` says whether they are replaced, as they are of
    /// the time before its CPU went away.
    fn attach(&self, lane: usize, replace: bool) -> Result {
        let attrs = {
            let slots = self.slots.lock();
            if !replace && matches!(slots.slots.get(lane), Some(Some(_))) {
                return Ok(());
            }
            let mut attrs = KVec::with_capacity(self.events, GFP_KERNEL)?;
            attrs.extend_from_slice(&slots.attrs, GFP_KERNEL)?;
            attrs
        };
        let slot = Arc::new(Slot::new(self.create_events(lane, &attrs)?)?, GFP_KERNEL)?;
        let mut raw = KVec::from_elem(Reading::default(), self.events, GFP_KERNEL)?;
        let mut values = KVec::from_elem(Reading::default(), self.events, GFP_KERNEL)?;
        // What is replaced, or came too late, is released when the lock is not held any more.
        let released = {
            let mut slots = self.slots.lock();
            let enabled = slots.enabled;
            let periods_changed = |event: usize| {
                let (created, now) = (attrs.get(event)?, slots.attrs.get(event)?);
                (created.sample_period() != now.sample_period()).then_some(now.sample_period())
            };
            for (event, perf_event) in slot.events().iter().enumerate() {
                if let Some(period) = periods_changed(event) {
                    perf_event.set_period(period)?;
                }
            }
            let entry = slots.slots.get_mut(lane).ok_or(EINVAL)?;
            match entry {
                Some(_) if !replace => Some(slot),
                _ => {
                    if let Some(old) = entry {
                        old.read_raw(u64::MAX, &mut raw);
                        for (event, (value, raw)) in values.iter_mut().zip(&raw).enumerate() {
                            *value = old.value(event, *raw);
                        }
                    }
                    if enabled {
                        for event in slot.events() {
                            // If it gets no place, the reading says so.
                            let _ = event.enable();
                        }
                    }
                    slot.read_raw(u64::MAX, &mut raw);
                    slot.rebase(&values, &raw);
                    let old = entry.replace(slot.clone());
                    if let Some(lane) = self.lanes.get(lane) {
                        lane.missing.store(false, Relaxed);
                        drop(lane.current.replace(Some(slot)));
                    }
                    old
                }
            }
        };
        drop(released);
        Ok(())
    }

    fn create_events(&self, lane: usize, attrs: &[Attr]) -> Result<KVec<PerfEvent<Overflows>>> {
        let target = match &self.scope {
            Scope::AllCpus => Target::Cpu(lane),
            Scope::Cpu(cpu) => Target::Cpu(*cpu),
            Scope::Task(task) => Target::Task(task),
        };
        let mut events = KVec::with_capacity(attrs.len(), GFP_KERNEL)?;
        for (number, attr) in attrs.iter().enumerate() {
            let overflows = self.overflows(lane, number, attr);
            events.push(PerfEvent::new(attr, target, overflows)?, GFP_KERNEL)?;
        }
        Ok(events)
    }

    fn overflows(&self, lane: usize, event: usize, attr: &Attr) -> Option<Overflows> {
        if attr.sample_period() == 0 {
            return None;
        }
        let accidents = self.lanes.get(lane)?.accidents.get(event)?.clone();
        match &self.destination {
            Destination::Nowhere => None,
            Destination::Channel(channel, first) => Some(Overflows::Samples(Sampler::new(
                attr,
                channel.clone(),
                first.wrapping_add(event as u32),
                self.chains.clone(),
                accidents,
            ))),
            Destination::Call(callback) => Some(Overflows::Call {
                event,
                callback: callback.clone(),
                accidents,
            }),
        }
    }
}

#[pinned_drop]
impl PinnedDrop for Lanes {
    fn drop(self: Pin<&mut Self>) {
        if matches!(self.destination, Destination::Call(_)) {
            self.closed.store(true, Relaxed);
            // Who looks at a slot has interrupts off, and has seen none since, or is done after this.
            rcu::synchronize_rcu();
        }
    }
}

impl Online for Lanes {
    fn online(&self, cpu: usize) -> bool {
        let Some(lane) = self.lanes.get(cpu) else {
            return false;
        };
        lane.missing.store(true, Relaxed);
        if self.at_once {
            // If it fails, the lane stays missing, and readings say so.
            let _ = self.attach(cpu, true);
        }
        !self.at_once
    }

    fn online_late(&self) {
        for (number, lane) in self.lanes.iter().enumerate() {
            if lane.missing.load(Relaxed) {
                // As above.
                let _ = self.attach(number, true);
            }
        }
    }
}

impl TaskSwitch for Lanes {
    fn switch(&self, off: &InterruptsOff, idle: bool) {
        self.here(off, |slot| {
            let age = super::slot::now().wrapping_sub(slot.copied_at());
            if idle || age >= COPY_INTERVAL {
                slot.refresh(off);
            }
        });
    }
}
