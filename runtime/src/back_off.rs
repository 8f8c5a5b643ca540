//! How long to wait before the next attempt.

use std::time::Duration;

/// Exponential back-off with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The longest delay after the first failure.
    pub base: Duration,
    /// The longest delay ever.
    pub cap: Duration,
}

impl BackOff {
    /// The delay after that many failures in a row, at least 1: it doubles from failure to failure, and its upper half
    /// is random, so that many that failed together don't come back together.
    pub fn delay(&self, failures: u32) -> Duration {
        self.delay_at(failures, rand::random::<f64>())
    }

    fn delay_at(&self, failures: u32, unit: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let longest = self.base.saturating_mul(1 << doublings).min(self.cap);
        longest.mul_f64(0.5 + unit / 2.0)
    }
}

impl Default for BackOff {
    /// From 100 ms to 5 minutes.
    fn default() -> Self {
        Self { base: Duration::from_millis(100), cap: Duration::from_secs(300) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_cap() {
        let back_off = BackOff { base: Duration::from_secs(1), cap: Duration::from_secs(10) };
        let longest: Vec<_> = (1..=6).map(|failures| back_off.delay_at(failures, 1.0).as_secs()).collect();
        assert_eq!(longest, [1, 2, 4, 8, 10, 10]);
        assert_eq!(back_off.delay_at(u32::MAX, 1.0), Duration::from_secs(10));
    }

    #[test]
    fn jitter_takes_at_most_half() {
        let back_off = BackOff { base: Duration::from_secs(4), cap: Duration::from_secs(300) };
        assert_eq!(back_off.delay_at(1, 0.0), Duration::from_secs(2));
        assert_eq!(back_off.delay_at(1, 0.5), Duration::from_secs(3));
        for failures in 0..100 {
            let delay = back_off.delay(failures);
            assert!(delay >= Duration::from_secs(2) && delay <= back_off.cap);
        }
    }
}
