// SPDX-License-Identifier: GPL-2.0

//! What somebody may have meant.

/// Most names to offer.
const OFFERS: usize = 3;

/// The names that are nearest to `text`, the nearest first; none where nothing is near.
pub(super) fn nearest(text: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let lower = text.to_lowercase();
    let length = lower.chars().count();
    let mut near: Vec<(usize, String)> = names
        .into_iter()
        .filter_map(|name| {
            let other = name.to_lowercase();
            // Of `PMU/NAME/` and `SYSTEM:NAME`, somebody may know the name alone.
            let distance = (other.split(['/', ':']).filter(|part| !part.is_empty()))
                .chain([&other[..]])
                .map(|part| strsim::damerau_levenshtein(&lower, part))
                .min()?;
            // What begins, or goes on, in the same way is meant as well: `cache` for `cache-misses`.
            let part = length >= 3 && other.split(['-', '_', ':', '/']).any(|part| part == lower);
            let limit = 1 + length / 4;
            if distance <= limit {
                Some((distance, name))
            } else if part {
                Some((limit + 1, name))
            } else {
                None
            }
        })
        .collect();
    near.sort();
    near.dedup();
    near.into_iter()
        .take(OFFERS)
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        nearest(
            text,
            [
                "cycles",
                "bus-cycles",
                "cache-misses",
                "cs",
                "instructions",
                "power/energy-pkg/",
            ]
            .map(str::to_owned),
        )
    }

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        assert_eq!(of("cycels"), ["cycles"]);
        assert_eq!(of("INSTRUCTION"), ["instructions"]);
        assert_eq!(of("cache"), ["cache-misses"]);
        assert_eq!(of("energy-pgk"), ["power/energy-pkg/"]);
        assert_eq!(of("frobnicate"), [""; 0]);
    }
}
