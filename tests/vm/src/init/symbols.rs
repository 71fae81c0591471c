// SPDX-License-Identifier: GPL-2.0

//! Names for the addresses of modules that are gone.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{
    Context,
    Result, //
};

/// A name with an offset beyond this is more likely another module's memory.
const FARTHEST: u64 = 1 << 20;

/// The symbols of all modules, by address.
#[derive(Debug, Default)]
pub struct Symbols(BTreeMap<u64, String>);

impl Symbols {
    /// Those of the modules that are loaded now.
    pub fn of_modules() -> Result<Self> {
        let text = fs::read_to_string("/proc/kallsyms").context("cannot read /proc/kallsyms")?;
        Ok(Self::parse(&text))
    }

    /// Lines are `address type name`, and for a module's symbol `[module]` after a tab.
    fn parse(text: &str) -> Self {
        let symbols = text.lines().filter_map(|line| {
            let (symbol, module) = line.split_once('\t')?;
            let mut words = symbol.split(' ');
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let name = words.nth(1)?;
            Some((address, format!("{name} {module}")))
        });
        Self(symbols.collect())
    }

    /// Replaces lines of nothing but an address by the name that it had.
    pub fn translate(&self, text: &str) -> String {
        let mut translated = String::with_capacity(text.len());
        for line in text.lines() {
            match self.name(line.trim()) {
                Some(name) => {
                    let indent = &line[..line.len() - line.trim_start().len()];
                    translated.push_str(indent);
                    translated.push_str(&name);
                }
                None => translated.push_str(line),
            }
            translated.push('\n');
        }
        translated
    }

    fn name(&self, word: &str) -> Option<String> {
        let address = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
        let (start, symbol) = self.0.range(..=address).next_back()?;
        let offset = address - start;
        let (name, module) = symbol.split_once(' ')?;
        (offset < FARTHEST).then(|| format!("{name}+0x{offset:x} {module}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_modules_get_their_names_back() {
        let symbols = Symbols::parse(
            "ffffffff81000000 T _text\n\
             ffffffffa0000000 t weir_open\t[weir]\n\
             ffffffffa0000100 t weir_read\t[weir]\n",
        );
        assert_eq!(
            symbols.translate(
                "unreferenced object 0xffff888008833a00 (size 256):\n\
                 \u{20}   __kmalloc_cache_noprof+0x286/0x430\n\
                 \u{20}   0xffffffffa00000fe\n\
                 \u{20}   0xffffffffa0000100\n\
                 \u{20}   0xffffffff81000000\n\
                 \u{20}   0xffffffffb0000000\n"
            ),
            "unreferenced object 0xffff888008833a00 (size 256):\n\
             \u{20}   __kmalloc_cache_noprof+0x286/0x430\n\
             \u{20}   weir_open+0xfe [weir]\n\
             \u{20}   weir_read+0x0 [weir]\n\
             \u{20}   0xffffffff81000000\n\
             \u{20}   0xffffffffb0000000\n"
        );
    }
}
