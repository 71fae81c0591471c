// SPDX-License-Identifier: GPL-2.0

//! What criterion measured of the engine.

use anyhow::{
    ensure,
    Context,
    Result, //
};
use serde::{
    de::DeserializeOwned,
    Deserialize, //
};
use std::{
    fs,
    path::Path, //
};
use weir_bench::measurement::Measurement;

/// Samples are ps, which is ns for so many.
const PER: u64 = 1000;

#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
}

/// Each sample is so many calls, and ns that they took.
#[derive(Deserialize)]
struct Samples {
    iters: Vec<f64>,
    times: Vec<f64>,
}

/// Reads all results of a folder, by name.
///
/// # Errors
///
/// Where there is none, or one is not what criterion writes.
pub fn read(folder: &Path) -> Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))? {
        let new = entry?.path().join("new");
        // Others are criterion's own.
        if new.exists() {
            measurements.push(read_one(&new)?);
        }
    }
    ensure!(!measurements.is_empty(), "{} is empty", folder.display());
    measurements.sort_by_key(|one: &Measurement| in_order(&one.name));
    Ok(measurements)
}

/// What a name is sorted by: 64 comes before 16384.
fn in_order(name: &str) -> String {
    let words = name.split(' ').map(|word| match word.parse::<u64>() {
        Ok(number) => format!("{number:020}"),
        Err(_) => word.into(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn read_one(folder: &Path) -> Result<Measurement> {
    let benchmark: Benchmark = parse(&folder.join("benchmark.json"))?;
    let samples: Samples = parse(&folder.join("sample.json"))?;
    let ps = |(&ns, &calls): (&f64, &f64)| (ns * PER as f64 / calls).round() as u64;
    Ok(Measurement {
        part: "engine".into(),
        name: benchmark.full_id,
        per: PER,
        samples: samples.times.iter().zip(&samples.iters).map(ps).collect(),
        ..Default::default()
    })
}

fn parse<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| format!("no {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not criterion's", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_sorted_as_such() {
        assert!(in_order("paged, 64 pages") < in_order("paged, 16384 pages"));
        assert!(in_order("clock") < in_order("paged, 64 pages"));
    }

    #[test]
    fn what_criterion_wrote_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("clock/new");
        fs::create_dir_all(&new).unwrap();
        fs::create_dir_all(folder.path().join("report")).unwrap();
        assert!(read(folder.path()).is_err());
        fs::write(new.join("benchmark.json"), r#"{"full_id":"clock","x":1}"#).unwrap();
        fs::write(
            new.join("sample.json"),
            r#"{"sampling_mode":"Linear","iters":[10.0,20.0],"times":[85.0,180.0]}"#,
        )
        .unwrap();
        let read = read(folder.path()).unwrap();
        assert_eq!(read[0].name, "clock");
        assert_eq!(read[0].samples, [8500, 9000]);
        assert_eq!(read[0].least(), 8.5);
    }
}
