// SPDX-License-Identifier: GPL-2.0

//! Breakpoints: `mem:ADDRESS[/LENGTH][:rwx]`.

use super::{
    Event,
    EventError,
    TYPE_BREAKPOINT, //
};
use perf_event_open_sys::bindings::{
    HW_BREAKPOINT_R,
    HW_BREAKPOINT_W,
    HW_BREAKPOINT_X, //
};

/// How perf spells a breakpoint.
pub(super) const PREFIX: &str = "mem:";

/// Parses what stands behind `mem:`, and gives the modifiers behind it.
pub(super) fn parse(text: &str) -> Result<(Event, &str), EventError> {
    let error = |reason: &str| {
        EventError::syntax(
            &format!("{PREFIX}{text}"),
            format!("{reason}; a breakpoint is mem:ADDRESS[/LENGTH][:rwx]"),
        )
    };
    let mut parts = text.splitn(2, ':');
    let place = parts.next().unwrap_or_default();
    let mut rest = parts.next();
    let (address, len) = match place.split_once('/') {
        Some((address, len)) => (address, Some(len)),
        None => (place, None),
    };
    let address = number(address).ok_or_else(|| error("the address is no number"))?;
    let len = match len.map(number) {
        None => None,
        Some(Some(len @ 1..=8)) => Some(len),
        Some(_) => return Err(error("the length is none from 1 to 8")),
    };
    let mut bp_type = 0;
    // No letter of these is a modifier.
    if let Some(text) = rest.filter(|rest| rest.starts_with(['r', 'w', 'x'])) {
        let (access, after) = match text.split_once(':') {
            Some((access, after)) => (access, Some(after)),
            None => (text, None),
        };
        for letter in access.chars() {
            let bit = match letter {
                'r' => HW_BREAKPOINT_R,
                'w' => HW_BREAKPOINT_W,
                'x' => HW_BREAKPOINT_X,
                _ => return Err(error("the access is none of r, w and x")),
            };
            if bp_type & bit != 0 {
                return Err(error("the access has a letter twice"));
            }
            bp_type |= bit;
        }
        rest = after;
    }
    if bp_type == 0 {
        bp_type = HW_BREAKPOINT_R | HW_BREAKPOINT_W;
    }
    let default = if bp_type == HW_BREAKPOINT_X {
        size_of::<usize>() as u64
    } else {
        4
    };
    let event = Event {
        config1: address,
        config2: len.unwrap_or(default),
        bp_type,
        ..Event::new(TYPE_BREAKPOINT, 0)
    };
    Ok((event, rest.unwrap_or_default()))
}

/// A number as perf takes it: decimal, or hexadecimal behind `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    // Stricter than `from_str_radix`, which takes a sign.
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (u64, u64, u32, &str) {
        let (event, rest) = parse(text).unwrap();
        assert_eq!((event.type_, event.config), (5, 0));
        (event.config1, event.config2, event.bp_type, rest)
    }

    #[test]
    fn parts_may_be_left_out() {
        assert_eq!(parsed("0x1000"), (0x1000, 4, 3, ""));
        assert_eq!(parsed("4096/8"), (4096, 8, 3, ""));
        assert_eq!(parsed("0x1000:w"), (0x1000, 4, 2, ""));
        assert_eq!(parsed("0x1000:x"), (0x1000, 8, 4, ""));
        assert_eq!(parsed("0x1000/1:rw:u"), (0x1000, 1, 3, "u"));
        assert_eq!(parsed("0x1000:k"), (0x1000, 4, 3, "k"));
    }

    #[test]
    fn what_is_none_is_said_to_be_none() {
        for wrong in [
            "", "main", "0x", "+1", "1/", "1/9", "1/0", "1:rr", "1:rz", "0x1/x",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
