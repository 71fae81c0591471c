// SPDX-License-Identifier: GPL-2.0

//! From addresses in the kernel to names.

use crate::{
    notes::NotedSymbol,
    summary::{
        Code,
        Summary, //
    },
};
use libweir::Kallsyms;
use std::collections::BTreeMap;

/// Where names come from.
#[derive(Debug)]
pub(crate) enum Symbols {
    /// From a list of all that the kernel has.
    List(Kallsyms),
    /// From what was noted when the capture was made, by where each begins.
    Noted(BTreeMap<u64, NotedSymbol>),
    /// From nowhere.
    None,
}

impl Symbols {
    /// Takes names from notes.
    pub(crate) fn noted(symbols: &[NotedSymbol]) -> Self {
        Symbols::Noted(
            symbols
                .iter()
                .map(|symbol| (symbol.start, symbol.clone()))
                .collect(),
        )
    }

    /// The function that an address belongs to.
    pub(crate) fn resolve(&self, ip: u64) -> Option<NotedSymbol> {
        match self {
            Symbols::List(list) => list.resolve(ip).map(|found| NotedSymbol {
                start: found.start,
                end: found.end,
                name: found.name.to_owned(),
                module: found.module.map(str::to_owned),
            }),
            Symbols::Noted(noted) => {
                let (_, symbol) = noted.range(..=ip).next_back()?;
                (ip < symbol.end).then(|| symbol.clone())
            }
            Symbols::None => None,
        }
    }

    /// The functions that samples hit, each once.
    pub(crate) fn used(&self, summary: &Summary) -> Vec<NotedSymbol> {
        let mut used = BTreeMap::new();
        for (key, _) in summary.samples() {
            if let Code::Kernel(ip) = key.code {
                if let Some(symbol) = self.resolve(ip) {
                    used.insert(symbol.start, symbol);
                }
            }
        }
        used.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_answer_like_the_list_they_were_made_from() {
        let list = Kallsyms::parse(
            "ffffffff81000000 T a\nffffffff81000100 t b\nffffffff81000200 D data\n\
             ffffffffc0000000 t c\t[m]\n",
        )
        .unwrap();
        let list = Symbols::List(list);
        let ips = [
            0xffff_ffff_8100_0000u64,
            0xffff_ffff_8100_01ff,
            0xffff_ffff_8100_0200,
            0xffff_ffff_c000_0010,
            0x1000,
        ];
        let used: Vec<NotedSymbol> = ips.iter().filter_map(|ip| list.resolve(*ip)).collect();
        assert_eq!(used.len(), 3);
        let noted = Symbols::noted(&used);
        for ip in ips {
            assert_eq!(noted.resolve(ip), list.resolve(ip), "{ip:#x}");
        }
        assert_eq!(Symbols::None.resolve(ips[0]), None);
    }
}
