//! How long a pool that could not be filled is left alone: longer each time, never for good.

use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

#[derive(Default)]
pub struct Backoff {
    /// One after the other.
    failures: u32,
    until: Option<Instant>,
}

impl Backoff {
    pub fn lasts(&self, now: Instant) -> bool {
        self.until.is_some_and(|end| now < end)
    }

    /// Takes in how a filling ended.
    pub fn note(&mut self, now: Instant, is_filled: bool) {
        if is_filled {
            *self = Self::default();
            return;
        }
        let rest = FIRST.saturating_mul(1 << self.failures.min(16));
        self.until = Some(now + rest.min(LONGEST));
        self.failures = self.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_that_fails_is_tried_again_and_less_often_each_time() {
        let (mut backoff, mut now) = (Backoff::default(), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..20 {
            assert!(!backoff.lasts(now));
            backoff.note(now, false);
            let pause = (1..=400).find(|&n| !backoff.lasts(now + Duration::from_secs(n)));
            pauses.push(pause.expect("it ends"));
            now += LONGEST;
        }
        assert_eq!(pauses[..4], [1, 2, 4, 8]);
        assert_eq!(pauses[19], 300);
        backoff.note(now, true);
        backoff.note(now, false);
        assert!(!backoff.lasts(now + FIRST), "one that worked begins anew");
    }
}
