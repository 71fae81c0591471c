// SPDX-License-Identifier: GPL-2.0

//! Which CPUs there are.

use crate::error::{
    Error,
    Result, //
};

const ONLINE: &str = "/sys/devices/system/cpu/online";
const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// The CPUs that are online now.
///
/// # Errors
///
/// [`Error::Cpus`] where the kernel's list cannot be read.
pub fn online() -> Result<Vec<u32>> {
    read(ONLINE)
}

/// The CPUs that can ever be online.
///
/// # Errors
///
/// [`Error::Cpus`] where the kernel's list cannot be read.
pub fn possible() -> Result<Vec<u32>> {
    read(POSSIBLE)
}

fn read(path: &'static str) -> Result<Vec<u32>> {
    let error = |reason: String| Error::Cpus { path, reason };
    let text = std::fs::read_to_string(path)
        .map_err(|reason| error(format!("{reason}; is /sys mounted?")))?;
    parse_list(&text).ok_or_else(|| error(format!("`{}` is not a list of CPUs", text.trim())))
}

/// Parses the kernel's list format, as in `0-3,5`.
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        // More than any kernel has would be a mistake, and fill the memory.
        if first > last || last > 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_parsed() {
        assert_eq!(parse_list("0\n"), Some(vec![0]));
        assert_eq!(parse_list("0-2,5,7-8\n"), Some(vec![0, 1, 2, 5, 7, 8]));
        for bad in ["", "3-1", "a", "1,,2", "0-4294967295", "-1"] {
            assert_eq!(parse_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn this_machine_has_some() {
        if !std::path::Path::new("/sys/devices/system/cpu").exists() {
            eprintln!("SKIP: /sys is not mounted");
            return;
        }
        let online = online().unwrap();
        let possible = possible().unwrap();
        assert!(!online.is_empty());
        assert!(online.iter().all(|cpu| possible.contains(cpu)));
    }
}
