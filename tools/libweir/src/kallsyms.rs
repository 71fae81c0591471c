// SPDX-License-Identifier: GPL-2.0

//! The kernel's symbols, as `/proc/kallsyms` lists them.

use std::{
    fmt,
    path::Path, //
};

/// Where the running kernel lists its symbols.
pub const KALLSYMS: &str = "/proc/kallsyms";

/// A symbol whose end nothing marks reaches this far past its page, as perf takes it.
const PAGE: u64 = 4096;

/// The list could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KallsymsError {
    /// The file could not be read.
    #[error("cannot read {path}: {reason}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        reason: std::io::Error,
    },
    /// A line is not `ADDRESS TYPE NAME [MODULE]`.
    #[error("line {line} is not `ADDRESS TYPE NAME [MODULE]`: `{text}`")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What it says.
        text: String,
    },
    /// The kernel shows zeros for addresses.
    #[error("the addresses are hidden: read it as root with `sysctl kernel.kptr_restrict=1` or 0")]
    Hidden,
    /// There is no symbol of kernel code.
    #[error("it lists no code")]
    Empty,
}

/// A function of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Symbol {
    start: u64,
    end: u64,
    /// Whether it is code; what is not only marks where code ends.
    code: bool,
    /// Better names of one address come first.
    rank: u8,
    name: Box<str>,
    module: Option<Box<str>>,
}

/// The symbols of a kernel, sorted.
#[derive(Clone, Debug)]
pub struct Kallsyms {
    symbols: Vec<Symbol>,
}

/// What an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved<'a> {
    /// The function.
    pub name: &'a str,
    /// Its module, where it has one.
    pub module: Option<&'a str>,
    /// Where it begins.
    pub start: u64,
    /// Where it ends: the first address that does not belong to it.
    pub end: u64,
    /// Bytes from `start` to the address.
    pub offset: u64,
}

impl fmt::Display for Resolved<'_> {
    /// As in `schedule+0x12` and `weir_read+0x8 [weir]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", self.name, self.offset)?;
        match self.module {
            Some(module) => write!(f, " [{module}]"),
            None => Ok(()),
        }
    }
}

impl Kallsyms {
    /// Reads a list from a file.
    ///
    /// # Errors
    ///
    /// [`KallsymsError`].
    pub fn read(path: &Path) -> Result<Self, KallsymsError> {
        let bytes = std::fs::read(path).map_err(|reason| KallsymsError::Io {
            path: path.display().to_string(),
            reason,
        })?;
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Parses the text of a list.
    ///
    /// # Errors
    ///
    /// [`KallsymsError`], but not [`KallsymsError::Io`].
    pub fn parse(text: &str) -> Result<Self, KallsymsError> {
        let mut symbols = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let symbol = parse_line(line).ok_or_else(|| KallsymsError::Line {
                line: index + 1,
                text: line.to_owned(),
            })?;
            symbols.extend(symbol);
        }
        if !symbols.iter().any(|symbol| symbol.code) {
            return Err(KallsymsError::Empty);
        }
        if symbols.iter().all(|symbol| symbol.start == 0) {
            return Err(KallsymsError::Hidden);
        }
        // Stable, so that of equals the first in the list comes first.
        symbols.sort_by_key(|symbol| (symbol.start, symbol.rank));
        symbols.dedup_by_key(|symbol| symbol.start);
        set_ends(&mut symbols);
        Ok(Kallsyms { symbols })
    }

    /// What a kernel address belongs to.
    pub fn resolve(&self, ip: u64) -> Option<Resolved<'_>> {
        let after = self.symbols.partition_point(|symbol| symbol.start <= ip);
        let symbol = &self.symbols[after.checked_sub(1)?];
        (symbol.code && ip < symbol.end).then(|| Resolved {
            name: &symbol.name,
            module: symbol.module.as_deref(),
            start: symbol.start,
            end: symbol.end,
            offset: ip - symbol.start,
        })
    }
}

/// A symbol ends where the next one begins; the last one before another module, or of all, where its
/// page does, and a page more.
fn set_ends(symbols: &mut [Symbol]) {
    for index in 0..symbols.len() {
        let own = &symbols[index];
        let far = (own.start / PAGE + 2).saturating_mul(PAGE);
        symbols[index].end = match symbols.get(index + 1) {
            Some(next) if next.module == own.module => next.start,
            Some(next) => next.start.min(far),
            None => far,
        };
    }
}

/// Parses a line; the inner `None` is a symbol that is no address.
fn parse_line(line: &str) -> Option<Option<Symbol>> {
    let mut words = line.split_ascii_whitespace();
    let (address, type_, name) = (words.next()?, words.next()?, words.next()?);
    let start = u64::from_str_radix(address, 16).ok()?;
    let module = match words.next() {
        None => None,
        Some(word) => Some(word.strip_prefix('[')?.strip_suffix(']')?.into()),
    };
    let mut letters = type_.chars();
    let (letter, None) = (letters.next()?, letters.next()) else {
        return None;
    };
    if words.next().is_some() {
        return None;
    }
    let (code, binding) = match letter {
        'T' => (true, 0),
        'W' | 'V' => (letter == 'W', 1),
        't' => (true, 2),
        'w' | 'v' | 'i' => (letter != 'v', 3),
        // Absolute: a number, and where per-CPU memory lies in its own space.
        'A' | 'a' => return Some(None),
        _ => (false, 4),
    };
    // Of aliases, the global one with the fewest underscores in front is what people know.
    let underscores = name.bytes().take_while(|byte| *byte == b'_').count();
    Some(Some(Symbol {
        start,
        end: start,
        code,
        rank: binding * 8 + underscores.min(7) as u8,
        name: name.into(),
        module,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000100 t helper
ffffffff81000200 T __do_work
ffffffff81000200 W do_work
ffffffff81000300 T last
ffffffff82000000 D jiffies
ffffffffc0001000 t weir_read\t[weir]
ffffffffc0001040 t weir_poll\t[weir]
ffffffffc0100000 t other\t[other]
";

    fn resolve(ip: u64) -> Option<String> {
        let kallsyms = Kallsyms::parse(TEXT).unwrap();
        let text = kallsyms.resolve(ip).map(|resolved| resolved.to_string());
        text
    }

    #[test]
    fn addresses_belong_to_the_symbol_before_them() {
        assert_eq!(resolve(0xffff_ffff_8100_0100).unwrap(), "helper+0x0");
        assert_eq!(resolve(0xffff_ffff_8100_01ff).unwrap(), "helper+0xff");
        assert_eq!(
            resolve(0xffff_ffff_c000_1044).unwrap(),
            "weir_poll+0x4 [weir]"
        );
    }

    #[test]
    fn of_aliases_the_global_and_plain_one_is_taken() {
        assert_eq!(resolve(0xffff_ffff_8100_0004).unwrap(), "startup_64+0x4");
        assert_eq!(resolve(0xffff_ffff_8100_0200).unwrap(), "__do_work+0x0");
    }

    #[test]
    fn what_is_beyond_code_is_nothing() {
        // Before everything, in data, behind the last symbol of a module and of all.
        for ip in [
            0x1000,
            0xffff_ffff_8200_0000,
            0xffff_ffff_c000_3000,
            0xffff_ffff_c010_2000,
            u64::MAX,
        ] {
            assert_eq!(resolve(ip), None, "{ip:#x}");
        }
        assert!(resolve(0xffff_ffff_c000_2fff).is_some());
    }

    #[test]
    fn hidden_addresses_and_other_texts_are_told_apart() {
        let hidden = "0000000000000000 T _text\n0000000000000000 t helper\n";
        assert!(matches!(
            Kallsyms::parse(hidden),
            Err(KallsymsError::Hidden)
        ));
        assert!(matches!(Kallsyms::parse(""), Err(KallsymsError::Empty)));
        for bad in ["zz T x", "10 TT x", "10 T", "10 T x y", "10 T x [y] z"] {
            let text = format!("ffffffff81000000 T _text\n{bad}\n");
            match Kallsyms::parse(&text) {
                Err(KallsymsError::Line { line: 2, text }) => assert_eq!(text, bad),
                other => panic!("{bad}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_running_kernels_list_is_understood() {
        match Kallsyms::read(Path::new(KALLSYMS)) {
            // Where this test may not see addresses, or the kernel has no list, it says so.
            Ok(_) | Err(KallsymsError::Hidden | KallsymsError::Io { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
