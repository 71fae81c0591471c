// SPDX-License-Identifier: GPL-2.0

//! What was counted of one event: on each CPU, or in each task.

use libweir::Value;

/// Values of one event, of which each is a part of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) parts: Vec<Value>,
}

impl Tally {
    /// What was added to what it was before.
    pub(crate) fn since(&self, before: &Tally) -> Tally {
        let parts = self.parts.iter().map(|now| {
            let before = (before.parts.iter())
                .find(|before| (before.id, before.cpu) == (now.id, now.cpu))
                .copied()
                .unwrap_or_default();
            let (enabled, running) = (
                now.enabled.saturating_sub(before.enabled),
                now.running.saturating_sub(before.running),
            );
            Value {
                value: now.value.saturating_sub(before.value),
                enabled,
                running,
                lost: now.lost.saturating_sub(before.lost),
                throttled: now.throttled.saturating_sub(before.throttled),
                // What was not so before may be so in this part of the time.
                together: now.together || running >= enabled,
                ..*now
            }
        });
        Tally {
            parts: parts.collect(),
        }
    }

    /// The part on one CPU.
    pub(crate) fn on(&self, cpu: u32) -> Tally {
        let parts = self.parts.iter().filter(|part| part.cpu == Some(cpu));
        Tally {
            parts: parts.copied().collect(),
        }
    }

    /// The CPUs on which it was counted, in order.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.parts.iter().filter_map(|part| part.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// The sum over all parts, each brought up to all of its time; none where nothing was counted. A task that did
    /// not run has nothing that could be missed.
    pub(crate) fn count(&self) -> Option<u64> {
        let enabled = self.parts.iter().filter(|part| part.enabled > 0);
        enabled
            .filter_map(Value::scaled)
            .reduce(u64::saturating_add)
    }

    /// Whether parts are missing in the sum: there was no turn for them, or no counter.
    pub(crate) fn is_incomplete(&self) -> bool {
        let unseen = |part: &Value| part.enabled > 0 && part.running == 0;
        self.parts
            .iter()
            .any(|part| unseen(part) || part.missing || part.revoked)
    }

    /// Whether its PMU has gone.
    pub(crate) fn is_revoked(&self) -> bool {
        self.parts.iter().any(|part| part.revoked)
    }

    /// Whether all events of its set were counted all the time.
    pub(crate) fn is_together(&self) -> bool {
        let mut enabled = self.parts.iter().filter(|part| part.enabled > 0).peekable();
        enabled.peek().is_some() && enabled.all(|part| part.together)
    }

    /// Time in ns for which it was to be counted.
    pub(crate) fn enabled(&self) -> u64 {
        self.sum(|part| part.enabled)
    }

    /// Time in ns for which it was.
    pub(crate) fn running(&self) -> u64 {
        self.sum(|part| part.running)
    }

    /// What was really counted.
    pub(crate) fn value(&self) -> u64 {
        self.sum(|part| part.value)
    }

    fn sum(&self, field: fn(&Value) -> u64) -> u64 {
        self.parts.iter().map(field).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A part: CPU, value, enabled, running.
    pub(crate) fn part(cpu: u32, value: u64, enabled: u64, running: u64) -> Value {
        Value {
            id: 1,
            cpu: Some(cpu),
            value,
            enabled,
            running,
            together: running >= enabled,
            ..Default::default()
        }
    }

    pub(crate) fn tally(parts: &[Value]) -> Tally {
        Tally {
            parts: parts.to_vec(),
        }
    }

    #[test]
    fn each_part_is_scaled_by_its_own_time() {
        let tally = tally(&[part(0, 10, 100, 50), part(1, 7, 100, 100)]);
        assert_eq!(tally.count(), Some(27));
        assert_eq!(
            (tally.value(), tally.enabled(), tally.running()),
            (17, 200, 150)
        );
        assert!(!tally.is_incomplete());
        assert!(!tally.is_together());
        assert_eq!(tally.cpus(), [0, 1]);
        assert_eq!(tally.on(1).count(), Some(7));
        assert_eq!(tally.on(2).count(), None);
    }

    #[test]
    fn a_part_without_a_turn_is_missing_and_one_without_time_is_not() {
        let part_only = tally(&[part(0, 10, 100, 100), part(1, 0, 100, 0)]);
        assert_eq!(
            (part_only.count(), part_only.is_incomplete()),
            (Some(10), true)
        );
        let asleep = tally(&[part(0, 10, 100, 100), part(1, 0, 0, 0)]);
        assert_eq!((asleep.count(), asleep.is_incomplete()), (Some(10), false));
        assert!(asleep.is_together());
        let none = tally(&[part(0, 0, 0, 0)]);
        assert_eq!((none.count(), none.is_together()), (None, false));
        let offline = Value {
            missing: true,
            ..part(0, 1, 1, 1)
        };
        assert!(tally(&[offline]).is_incomplete());
    }

    #[test]
    fn an_interval_is_what_was_added() {
        let before = tally(&[part(0, 10, 100, 50)]);
        let now = tally(&[part(0, 15, 200, 150), part(1, 4, 30, 30)]);
        let added = now.since(&before);
        assert_eq!(added.on(0).parts[0].value, 5);
        assert_eq!((added.enabled(), added.running()), (130, 130));
        assert_eq!(added.count(), Some(9));
        // It was not so for all the time, but it was for this.
        assert!(added.is_together() && !now.is_together());
        // A counter that was reset gives nothing, not a lot.
        assert_eq!(before.since(&now).count(), None);
    }
}
