//! How long a server is left alone that does not start, or does not stay.

use std::time::{Duration, Instant};

/// The backoff after a server could not be started, which doubles each time, up to the second.
const BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// A server that ends sooner has ended early, and is started again at once only so often.
const EARLY: Duration = Duration::from_secs(30);
const FREE_STARTS: u32 = 3;

/// How often it failed in a row, and what that means.
#[derive(Default)]
pub struct Failures {
    count: u32,
    until: Option<Instant>,
    why: String,
}

impl Failures {
    /// It runs.
    pub fn began(&mut self) {
        self.until = None;
    }

    /// It could not be started.
    pub fn failed(&mut self, why: String) {
        self.count = self.count.saturating_add(1);
        self.why = why;
        self.wait(self.count);
    }

    /// It ran for so long.
    pub fn ended(&mut self, after: Duration) {
        if after >= EARLY {
            *self = Self::default();
            return;
        }
        self.count = self.count.saturating_add(1);
        self.why = "it ends again and again".to_owned();
        if self.count > FREE_STARTS {
            self.wait(self.count - FREE_STARTS);
        }
    }

    fn wait(&mut self, times: u32) {
        let doubled = 2_u32.saturating_pow(times.saturating_sub(1).min(10));
        self.until = Some(Instant::now() + (BACKOFF * doubled).min(LONGEST_BACKOFF));
    }

    pub fn check(&self) -> Result<(), String> {
        let left = self.until.map(|until| until.duration_since(Instant::now()));
        match left {
            Some(left) if !left.is_zero() => Err(format!(
                "{}; it is tried again in {} s",
                self.why,
                left.as_secs() + 1
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_fails_is_left_alone_for_longer_each_time() {
        let left = |failures: &Failures| {
            let until = failures.until.map(|it| it.duration_since(Instant::now()));
            until.map_or(0, |it| it.as_millis().div_ceil(1000))
        };
        let mut failures = Failures::default();
        let waits: Vec<u128> = (0..9)
            .map(|_| {
                failures.failed("why".to_owned());
                left(&failures)
            })
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(
            failures.check().unwrap_err(),
            "why; it is tried again in 60 s"
        );
        failures.ended(EARLY);
        assert!(failures.check().is_ok());
        let waits: Vec<u128> = (0..6)
            .map(|_| {
                failures.ended(Duration::ZERO);
                left(&failures)
            })
            .collect();
        assert_eq!(waits, [0, 0, 0, 1, 2, 4]);
    }
}
