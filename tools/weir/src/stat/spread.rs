// SPDX-License-Identifier: GPL-2.0

//! What several runs say of one number.

/// The mean of several numbers, and how far it is to be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    /// The standard error of the mean, in percent of it, as `perf stat` has it; none of a single number.
    pub(crate) percent: Option<f64>,
}

impl Spread {
    /// Of these numbers; none where there is none.
    pub(crate) fn of(numbers: &[f64]) -> Option<Self> {
        if numbers.is_empty() {
            return None;
        }
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count;
        if numbers.len() == 1 {
            return Some(Spread {
                mean,
                percent: None,
            });
        }
        let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let percent = if mean == 0.0 {
            0.0
        } else {
            100.0 * error / mean
        };
        Some(Spread {
            mean,
            percent: Some(percent),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_standard_error_of_the_mean() {
        assert_eq!(Spread::of(&[]), None);
        let one = Spread::of(&[7.0]).unwrap();
        assert_eq!((one.mean, one.percent), (7.0, None));
        // Of 9 and 11: a standard deviation of sqrt(2), of which sqrt(1/2), is 1.
        let two = Spread::of(&[9.0, 11.0]).unwrap();
        assert_eq!(two.mean, 10.0);
        assert!((two.percent.unwrap() - 10.0).abs() < 1e-9);
        let same = Spread::of(&[4.0; 5]).unwrap();
        assert_eq!((same.mean, same.percent), (4.0, Some(0.0)));
        assert_eq!(Spread::of(&[0.0; 2]).unwrap().percent, Some(0.0));
    }
}
