// SPDX-License-Identifier: GPL-2.0

//! Taking a list of events apart, without a look at what they are.

use super::{
    breakpoint,
    EventError, //
};

/// Splits at the commas that stand neither in braces nor between the slashes of a PMU.
pub(super) fn split(text: &str) -> Result<Vec<&str>, EventError> {
    let error = |reason| Err(EventError::syntax(text, reason));
    let mut items = Vec::new();
    let (mut start, mut braces, mut slashes) = (0, false, false);
    // A breakpoint has one slash, in front of its length.
    let is_pmu = |start: usize| !text[start..].starts_with(breakpoint::PREFIX);
    let mut item = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'/' if is_pmu(item) => slashes = !slashes,
            _ if slashes => {}
            b'{' if braces => return error("a set within a set"),
            b'{' => {
                braces = true;
                item = at + 1;
            }
            b'}' if !braces => return error("`}` without `{`"),
            b'}' => braces = false,
            b',' => {
                item = at + 1;
                if !braces {
                    items.push(&text[start..at]);
                    start = at + 1;
                }
            }
            _ => {}
        }
    }
    if braces {
        return error("`{` without `}`");
    }
    if slashes {
        return error("one `/` too few: it is PMU/TERMS/, or PMU/TERMS/MODIFIERS");
    }
    items.push(&text[start..]);
    if items.iter().any(|item| item.is_empty()) {
        return error("nothing stands beside a comma");
    }
    Ok(items)
}

/// What is in the braces of a set, and the modifiers behind; `None` where the item is no set.
pub(super) fn set(item: &str) -> Result<Option<(&str, &str)>, EventError> {
    let Some(begin) = item.find('{') else {
        return Ok(None);
    };
    let error = |reason| Err(EventError::syntax(item, reason));
    if begin != 0 {
        return error("something stands in front of the `{` of a set");
    }
    // Modifiers have no braces.
    let Some((inner, after)) = item[1..].rsplit_once('}') else {
        return error("`{` without `}`");
    };
    match after.strip_prefix(':') {
        Some(modifiers) if !modifiers.is_empty() => Ok(Some((inner, modifiers))),
        None if after.is_empty() => Ok(Some((inner, after))),
        _ => error("behind the `}` of a set, modifiers stand behind a colon, as in {a,b}:u"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_braces_and_slashes_are_left_alone() {
        assert_eq!(split("a").unwrap(), ["a"]);
        assert_eq!(split("a,b:u").unwrap(), ["a", "b:u"]);
        assert_eq!(
            split("{a,cpu/x=1,y/u,b}:k,cpu/x,y=2/,c").unwrap(),
            ["{a,cpu/x=1,y/u,b}:k", "cpu/x,y=2/", "c"]
        );
        assert_eq!(
            split("mem:0x1/4:w,cycles,{mem:1/2,cs},cpu/a,b/").unwrap(),
            ["mem:0x1/4:w", "cycles", "{mem:1/2,cs}", "cpu/a,b/"]
        );
    }

    #[test]
    fn what_is_open_is_an_error() {
        for wrong in [
            "", "a,", ",a", "a,,b", "{a", "a}", "{a,{b}}", "cpu/a", "cpu/a,b",
        ] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_set_has_modifiers_behind_it() {
        assert_eq!(set("a:u").unwrap(), None);
        assert_eq!(set("{a,b}").unwrap(), Some(("a,b", "")));
        assert_eq!(set("{a,b}:ku").unwrap(), Some(("a,b", "ku")));
        for wrong in ["x{a}", "{a}u", "{a}:"] {
            assert!(set(wrong).is_err(), "{wrong}");
        }
    }
}
