//! What outlives a run: output too long for its answer, for a while.
//!
//! Bytes lie in files without a name, so nothing is left when the server ends by
//! any means. Entries go when they are too old, and the oldest when all of them
//! together are too large.

mod spool;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use spool::{Kept, Spool};

/// How long output is kept, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub time: Duration,
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30 * 60),
            bytes: 512 << 20,
        }
    }
}

/// The outputs that are kept, the oldest first.
#[derive(Default)]
pub struct Store {
    retention: Retention,
    entries: Mutex<VecDeque<Entry>>,
}

struct Entry {
    run: String,
    stream: &'static str,
    since: Instant,
    kept: Arc<Kept>,
}

impl Store {
    pub fn new(retention: Retention) -> Self {
        Self {
            retention,
            entries: Mutex::default(),
        }
    }

    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// Keeps one stream of a run; false if it alone is more than may be kept.
    pub fn keep(&self, run: &str, stream: &'static str, kept: Kept) -> bool {
        if kept.len() > self.retention.bytes {
            return false;
        }
        let mut entries = self.entries();
        entries.push_back(Entry {
            run: run.to_owned(),
            stream,
            since: Instant::now(),
            kept: Arc::new(kept),
        });
        let mut all: u64 = entries.iter().map(|entry| entry.kept.len()).sum();
        while all > self.retention.bytes {
            all -= entries.pop_front().map_or(all, |entry| entry.kept.len());
        }
        true
    }

    pub fn find(&self, run: &str, stream: &str) -> Option<Arc<Kept>> {
        self.forget_old();
        let entries = self.entries();
        let found = entries
            .iter()
            .find(|entry| entry.run == run && entry.stream == stream);
        found.map(|entry| entry.kept.clone())
    }

    /// Lets go of what has been kept long enough.
    pub fn forget_old(&self) {
        let mut entries = self.entries();
        entries.retain(|entry| entry.since.elapsed() < self.retention.time);
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bytes: &[u8]) -> Kept {
        let mut spool = Spool::default();
        spool.add(bytes);
        spool.finish().unwrap()
    }

    #[test]
    fn the_oldest_goes_when_all_are_too_large() {
        let store = Store::new(Retention {
            time: Duration::from_secs(60),
            bytes: 10,
        });
        assert!(store.keep("a", "stdout", kept(b"1234")));
        assert!(store.keep("b", "stdout", kept(b"12345")));
        assert!(store.keep("c", "stdout", kept(b"123")));
        assert!(store.find("a", "stdout").is_none());
        assert!(store.find("b", "stdout").is_some());
        assert!(store.find("b", "stderr").is_none());
        assert!(!store.keep("d", "stdout", kept(b"12345678901")));
        assert!(store.find("c", "stdout").is_some());
    }

    #[test]
    fn what_was_kept_long_enough_is_gone() {
        let store = Store::new(Retention {
            time: Duration::ZERO,
            bytes: 10,
        });
        store.keep("a", "stdout", kept(b"1234"));
        assert!(store.find("a", "stdout").is_none());
    }
}
