// SPDX-License-Identifier: GPL-2.0

//! What stands behind the colon: whose code is counted, and how.

use super::EventError;
use crate::Attr;

/// Modifiers of an event, or of all in a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Modifiers {
    user: bool,
    kernel: bool,
    hypervisor: bool,
    guest: bool,
    host: bool,
    non_idle: bool,
    precise: u8,
    pub(super) precise_max: bool,
    pinned: bool,
    exclusive: bool,
}

impl Modifiers {
    /// Parses letters, such as `ukpp`. There may be none.
    pub(super) fn parse(letters: &str) -> Result<Self, String> {
        let mut modifiers = Modifiers::default();
        for letter in letters.chars() {
            if letter == 'p' {
                modifiers.precise += 1;
                if modifiers.precise > 3 {
                    return Err("more than three `p` is more than precise".to_owned());
                }
                continue;
            }
            let flag = match letter {
                'u' => &mut modifiers.user,
                'k' => &mut modifiers.kernel,
                'h' => &mut modifiers.hypervisor,
                'G' => &mut modifiers.guest,
                'H' => &mut modifiers.host,
                'I' => &mut modifiers.non_idle,
                'P' => &mut modifiers.precise_max,
                'D' => &mut modifiers.pinned,
                'e' => &mut modifiers.exclusive,
                _ => {
                    return Err(format!(
                        "`{letter}` is no modifier; there are u (user), k (kernel), h (hypervisor), \
                         G (guest), H (host), I (not idle), p and P (precise), D (pinned), e (exclusive)"
                    ))
                }
            };
            if std::mem::replace(flag, true) {
                return Err(format!("the modifier `{letter}` stands there twice"));
            }
        }
        Ok(modifiers)
    }

    /// Whether letters are modifiers, and there are some.
    pub(super) fn are(letters: &str) -> bool {
        !letters.is_empty() && Self::parse(letters).is_ok()
    }

    /// Applies them. Where `set` says so they are those of a whole set, which narrow what the event's own left.
    /// `first` is the event that stands for the set: it alone can be pinned or exclusive.
    pub(super) fn apply(&self, attr: &mut Attr, set: bool, first: bool) -> Result<(), EventError> {
        let raw = attr.raw_mut();
        let before = |bit: u64| set && bit != 0;
        let (mut user, mut kernel, mut hypervisor) = (
            before(raw.exclude_user()),
            before(raw.exclude_kernel()),
            before(raw.exclude_hv()),
        );
        // Who names some leaves out the others.
        if (self.user || self.kernel || self.hypervisor) && !(user || kernel || hypervisor) {
            (user, kernel, hypervisor) = (true, true, true);
        }
        user &= !self.user;
        kernel &= !self.kernel;
        hypervisor &= !self.hypervisor;
        let (mut guest, mut host) = (before(raw.exclude_guest()), before(raw.exclude_host()));
        if (self.guest || self.host) && !guest && !host {
            (guest, host) = (true, true);
        }
        guest &= !self.guest;
        host &= !self.host;
        raw.set_exclude_user(user.into());
        raw.set_exclude_kernel(kernel.into());
        raw.set_exclude_hv(hypervisor.into());
        raw.set_exclude_guest(guest.into());
        raw.set_exclude_host(host.into());
        let precise = raw.precise_ip() + u64::from(self.precise);
        if precise > 3 {
            return Err(EventError::syntax(
                "p",
                "the event and its set together have more than three `p`",
            ));
        }
        raw.set_precise_ip(precise);
        if self.non_idle {
            raw.set_exclude_idle(1);
        }
        if self.pinned && first {
            raw.set_pinned(1);
        }
        if self.exclusive && first {
            raw.set_exclusive(1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excluded(attr: &Attr) -> (u64, u64, u64, u64, u64) {
        let raw = attr.raw();
        (
            raw.exclude_user(),
            raw.exclude_kernel(),
            raw.exclude_hv(),
            raw.exclude_guest(),
            raw.exclude_host(),
        )
    }

    fn applied(letters: &str) -> Attr {
        let mut attr = Attr::default();
        let modifiers = Modifiers::parse(letters).unwrap();
        modifiers.apply(&mut attr, false, true).unwrap();
        attr
    }

    #[test]
    fn who_is_named_is_counted_and_nobody_else() {
        assert_eq!(excluded(&applied("")), (0, 0, 0, 0, 0));
        assert_eq!(excluded(&applied("u")), (0, 1, 1, 0, 0));
        assert_eq!(excluded(&applied("k")), (1, 0, 1, 0, 0));
        assert_eq!(excluded(&applied("uk")), (0, 0, 1, 0, 0));
        assert_eq!(excluded(&applied("h")), (1, 1, 0, 0, 0));
        assert_eq!(excluded(&applied("G")), (0, 0, 0, 0, 1));
        assert_eq!(excluded(&applied("H")), (0, 0, 0, 1, 0));
        assert_eq!(excluded(&applied("GH")), (0, 0, 0, 0, 0));
    }

    #[test]
    fn other_letters_are_bits_of_their_own() {
        let attr = applied("ppDeI");
        let raw = attr.raw();
        assert_eq!((raw.precise_ip(), raw.pinned()), (2, 1));
        assert_eq!((raw.exclusive(), raw.exclude_idle()), (1, 1));
        assert!(Modifiers::parse("P").unwrap().precise_max);
    }

    #[test]
    fn those_of_a_set_add_to_those_of_an_event() {
        let mut attr = applied("u");
        let of_set = Modifiers::parse("kpD").unwrap();
        of_set.apply(&mut attr, true, false).unwrap();
        assert_eq!(excluded(&attr), (0, 0, 1, 0, 0));
        assert_eq!((attr.raw().precise_ip(), attr.raw().pinned()), (1, 0));
        let of_set = Modifiers::parse("ppp").unwrap();
        assert!(of_set.apply(&mut attr, true, false).is_err());
    }

    #[test]
    fn what_is_none_is_said_to_be_none() {
        for wrong in ["uu", "x", "pppp", "ü"] {
            assert!(Modifiers::parse(wrong).is_err(), "{wrong}");
        }
        assert!(!Modifiers::are(""));
        assert!(Modifiers::are("u"));
    }
}
