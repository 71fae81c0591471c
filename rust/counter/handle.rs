// SPDX-License-Identifier: GPL-2.0

//! A counter: one event, or several that are read together, on a CPU, on all, or in a task.

use super::{
    lanes::{
        Destination,
        Lanes,
        Scope,
        Slots, //
    },
    overflow::Overflows,
    read::{
        self,
        Freshness,
        Part, //
    },
};
use crate::abs::{
    credentials::KernelCredentials,
    hotplug::Registration,
    interrupts::InterruptsOff,
    perf_event::{
        Attr,
        PerfEvent,
        Reading, //
    },
    task_switch::SwitchProbe, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::ordering::Relaxed,
        Arc, //
    },
};
use weir_core::uapi::{
    CounterValue,
    COUNTER_EVENTS, //
};

/// What a counter shall be.
pub(crate) struct Config {
    /// What is counted.
    pub(crate) attrs: KVec<Attr>,
    /// Where.
    pub(crate) scope: Scope,
    /// Where overflows go.
    pub(crate) destination: Destination,
    /// Whether CPUs keep copies of their readings.
    pub(crate) cached: bool,
    /// Whether it is made with the rights of the kernel, not of the current task.
    pub(crate) trusted: bool,
}

/// A counter. When it is dropped, no overflow is being handled any more, and none will be.
///
/// Fields are dropped in this order: who adds events, who looks at them, then the events, of which nobody else
/// has a reference then.
pub(crate) struct Counter {
    _hotplug: Option<Pin<KBox<Registration>>>,
    switches: Option<Pin<KBox<SwitchProbe>>>,
    lanes: Arc<Lanes>,
}

impl Counter {
    /// Makes a counter, disabled: all events, or none. Sleeps; not under `cpus_read_lock()`.
    ///
    /// # Errors
    ///
    /// `EINVAL` (no events, or one that overflows to nowhere), `E2BIG` (too many), and as `perf_event_open()`.
    pub(crate) fn new(config: Config) -> Result<Self> {
        let Config {
            attrs,
            scope,
            destination,
            cached,
            trusted,
        } = config;
        if attrs.is_empty() {
            return Err(EINVAL);
        }
        if attrs.len() > COUNTER_EVENTS as usize {
            return Err(E2BIG);
        }
        for attr in &attrs {
            attr.check()?;
            if attr.sample_period() == 0 {
                continue;
            }
            if matches!(destination, Destination::Nowhere) {
                return Err(EINVAL);
            }
            if attr.is_frequency() {
                PerfEvent::<Overflows>::check_frequency(attr.sample_period())?;
            }
        }
        // Copies are made by CPUs, which tasks come to and leave.
        if cached && matches!(scope, Scope::Task(_)) {
            return Err(EINVAL);
        }
        let lanes = Lanes::new(attrs, scope, destination)?;
        // Before the CPUs are gone through, so that none is left out that comes meanwhile.
        let hotplug = match lanes.is_machine_wide() {
            true => Some(Registration::new(lanes.clone())?),
            false => None,
        };
        let credentials = trusted.then(KernelCredentials::new);
        lanes.attach_all()?;
        drop(credentials);
        let switches = match cached {
            true => Some(SwitchProbe::new(lanes.clone())?),
            false => None,
        };
        Ok(Self {
            _hotplug: hotplug,
            switches,
            lanes,
        })
    }

    /// Number of events.
    pub(crate) fn events(&self) -> usize {
        self.lanes.events()
    }

    /// Counts from now on. Sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`PerfEvent::enable`], with nothing enabled.
    pub(crate) fn enable(&self) -> Result {
        self.start(PerfEvent::enable)
    }

    /// Counts from now on, until each event has overflowed so many times on each CPU. Sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`PerfEvent::refresh`], with nothing enabled.
    pub(crate) fn refresh(&self, overflows: u32) -> Result {
        self.start(|event| event.refresh(overflows))
    }

    fn start(&self, enable: impl Fn(&PerfEvent<Overflows>) -> Result) -> Result {
        let mut slots = self.lanes.lock();
        self.rebased(&mut slots, |slots| {
            slots.enabled = true;
            let result = self.for_each(slots, &enable);
            if result.is_err() {
                slots.enabled = false;
                self.stop(slots);
            }
            result
        })?
    }

    /// Calls `f` for each event; it may fail for those of a CPU which has gone.
    fn for_each(&self, slots: &Slots, f: &impl Fn(&PerfEvent<Overflows>) -> Result) -> Result {
        for event in slots.slots.iter().flatten().flat_map(|slot| slot.events()) {
            match f(event) {
                // Its CPU went away, or does so just now.
                Err(_) if self.lanes.is_machine_wide() && event.has_gone() => {}
                result => result?,
            }
        }
        Ok(())
    }

    fn stop(&self, slots: &Slots) {
        for event in slots.slots.iter().flatten().flat_map(|slot| slot.events()) {
            event.disable();
        }
    }

    /// Counts no more. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, with nothing done.
    pub(crate) fn disable(&self) -> Result {
        let mut slots = self.lanes.lock();
        self.rebased(&mut slots, |slots| {
            slots.enabled = false;
            self.stop(slots);
        })
    }

    /// Begins at zero again, at one instant on each CPU. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, with nothing done.
    pub(crate) fn reset(&self) -> Result {
        let slots = self.lanes.lock();
        let events = self.events();
        let mut raw = KVec::from_elem(Reading::default(), events, GFP_KERNEL)?;
        let zero = KVec::from_elem(Reading::default(), events, GFP_KERNEL)?;
        let since = self.refresh_copies();
        for (lane, slot) in slots.slots.iter().enumerate() {
            for event in 0..events {
                if let Some(accidents) = self.lanes.accidents(lane, event) {
                    accidents.reset();
                }
            }
            if let Some(slot) = slot {
                slot.read_raw(since, &mut raw);
                slot.rebase(&zero, &raw);
            }
        }
        Ok(())
    }

    /// Counts no more, gives what each event says, and may begin at zero after that. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn pause(&self, reset: bool, give: impl FnMut(CounterValue)) -> Result {
        self.disable()?;
        self.read(Part::Sum, Freshness::Now, give)?;
        match reset {
            true => self.reset(),
            false => Ok(()),
        }
    }

    /// Copies that others read without asking are made of disabled events, too, so that they are not older than
    /// the offset that goes with them.
    fn refresh_copies(&self) -> u64 {
        let lanes = [&*self.lanes];
        read::refresh(|| lanes.iter().copied(), self.switches.is_some())
    }

    /// Does something to the events, and goes on as if nothing had been counted meanwhile: so all events of a
    /// CPU count from one instant, and to one, although they are enabled and disabled one after the other.
    fn rebased<R>(&self, slots: &mut Slots, f: impl FnOnce(&mut Slots) -> R) -> Result<R> {
        let events = self.events();
        let mut raw = KVec::from_elem(Reading::default(), events, GFP_KERNEL)?;
        let mut values =
            KVec::from_elem(Reading::default(), events * self.lanes.count(), GFP_KERNEL)?;
        let since = self.refresh_copies();
        // No more lanes than CPUs, and no more events than there may be.
        let of_lane = |lane: usize| lane * events..(lane + 1) * events;
        for (lane, slot) in slots.slots.iter().enumerate() {
            if let (Some(slot), Some(values)) = (slot, values.get_mut(of_lane(lane))) {
                slot.read_raw(since, &mut raw);
                for (event, (value, raw)) in values.iter_mut().zip(&raw).enumerate() {
                    *value = slot.value(event, *raw);
                }
            }
        }
        let result = f(slots);
        let since = self.refresh_copies();
        for (lane, slot) in slots.slots.iter().enumerate() {
            if let (Some(slot), Some(values)) = (slot, values.get(of_lane(lane))) {
                slot.read_raw(since, &mut raw);
                slot.rebase(values, &raw);
            }
        }
        Ok(result)
    }

    /// Changes the period of an event, or its frequency. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such event, it does not overflow, or cannot so; `ENODEV` if its PMU has gone.
    pub(crate) fn set_period(&self, event: usize, period: u64) -> Result {
        let is_frequency = {
            let slots = self.lanes.lock();
            slots.attrs.get(event).ok_or(EINVAL)?.is_frequency()
        };
        // Not under the lock: it creates an event.
        if is_frequency {
            PerfEvent::<Overflows>::check_frequency(period)?;
        }
        let mut slots = self.lanes.lock();
        let attr = slots.attrs.get_mut(event).ok_or(EINVAL)?;
        if attr.sample_period() == 0 {
            return Err(EINVAL);
        }
        let before = attr.sample_period();
        attr.set_sample_period(period);
        for slot in slots.slots.iter().flatten() {
            let Some(of_slot) = slot.events().get(event) else {
                continue;
            };
            if let Err(error) = of_slot.set_period(period) {
                // What is refused by one is refused by all, the first already.
                if let Some(attr) = slots.attrs.get_mut(event) {
                    attr.set_sample_period(before);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Gives what each event says. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are no copies; `ENODEV` if one CPU is asked for on which it never counted; `ENOMEM`.
    pub(crate) fn read(
        &self,
        part: Part,
        freshness: Freshness,
        mut give: impl FnMut(CounterValue),
    ) -> Result {
        Self::read_all(&[(0, self)], part, freshness, &mut |value| {
            give(value);
            Ok(())
        })
    }

    /// Gives what each event of several counters says, whose first events have these numbers. Sleeps.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), and those of `give`.
    pub(crate) fn read_all(
        counters: &[(u32, &Self)],
        part: Part,
        freshness: Freshness,
        give: &mut dyn FnMut(CounterValue) -> Result,
    ) -> Result {
        let mut lanes = KVec::with_capacity(counters.len(), GFP_KERNEL)?;
        for (_, counter) in counters {
            if freshness == Freshness::Cached && counter.switches.is_none() {
                return Err(EINVAL);
            }
            lanes.push(&*counter.lanes, GFP_KERNEL)?;
        }
        let since = match freshness {
            Freshness::Now => read::refresh(|| lanes.iter().copied(), false),
            Freshness::Cached => 0,
        };
        for (first_id, counter) in counters {
            read::values(&counter.lanes, *first_id, part, freshness, since, give)?;
        }
        Ok(())
    }

    /// What each event says on this CPU, or in the current task, one after the other. Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it counts on another CPU or in another task, and those of [`PerfEvent::read_local`].
    pub(crate) fn read_local(&self, mut give: impl FnMut(CounterValue)) -> Result {
        let off = InterruptsOff::new();
        let cpu = off.cpu();
        let lane = match self.lanes.is_machine_wide() {
            true => cpu,
            false => 0,
        };
        let read = |slot: &super::slot::Slot| -> Result {
            for event in 0..self.events() {
                let reading = slot.read_local(&off, event)?;
                let accidents = self.lanes.accidents(lane, event);
                give(CounterValue {
                    id: event as u32,
                    cpu: match self.lanes.is_of_task() {
                        true => -1,
                        false => cpu as i32,
                    },
                    value: reading.value,
                    enabled: reading.enabled,
                    running: reading.running,
                    lost: accidents.map_or(0, |accidents| accidents.lost.load(Relaxed)),
                    throttled: accidents.map_or(0, |accidents| accidents.throttled.load(Relaxed)),
                    ..CounterValue::default()
                });
            }
            Ok(())
        };
        self.lanes.here(&off, read).unwrap_or(Err(EINVAL))
    }
}
