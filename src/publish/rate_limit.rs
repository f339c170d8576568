//! How much a script may say to the client while it runs.

use std::time::Instant;

/// Reports and log lines that a script may send at once, and for each second after.
const BURST: f64 = 100.0;
const PER_SECOND: f64 = 50.0;

/// How fast a script may speak to the client. What is too fast is not passed on.
pub struct RateLimit {
    left: f64,
    since: Instant,
}

impl RateLimit {
    pub fn new() -> Self {
        Self {
            left: BURST,
            since: Instant::now(),
        }
    }

    /// Whether one more may be said now.
    pub fn allows(&mut self) -> bool {
        let now = Instant::now();
        let gained = now.duration_since(self.since).as_secs_f64() * PER_SECOND;
        self.left = (self.left + gained).min(BURST);
        self.since = now;
        if self.left < 1.0 {
            return false;
        }
        self.left -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_a_flood_does_not() {
        let mut pace = RateLimit::new();
        let passed = (0..10_000).filter(|_| pace.allows()).count();
        assert!((100..1000).contains(&passed), "{passed}");
    }
}
