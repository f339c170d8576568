//! Memory that is held for callers: counted in bytes, with one ceiling for the process.
//!
//! A request that does not fit is told that the server is busy, and those that are there already go on. What is held goes with the
//! [`Hold`] on it, so nothing is counted longer than it is there.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// What all requests and answers together may have in memory.
const MOST: u64 = 256 << 20;

/// What one of them has in any case: who asks for little is served while others fill the rest. There are a few hundred at a time.
const SMALL: u64 = 64 << 10;

/// After so much was held, and so little again, the allocator gives back what it has kept of it, when the last of it is freed.
const MUCH: u64 = 32 << 20;
const LITTLE: u64 = 4 << 20;
const SOON: Duration = Duration::from_secs(1);

static NOW: AtomicU64 = AtomicU64::new(0);
static WAS_MUCH: AtomicBool = AtomicBool::new(false);

/// Why a request is turned away.
pub const BUSY: &str = "the server is busy: too much is held for other requests; try again";

/// Some bytes that are held, until it is dropped.
#[derive(Debug, Default)]
pub struct Hold(u64);

impl Hold {
    /// None if there is no room for so many.
    pub fn of(bytes: usize) -> Option<Self> {
        let mut hold = Self::default();
        hold.grow(bytes).then_some(hold)
    }

    /// Both as one.
    pub fn and(mut self, mut other: Self) -> Self {
        self.0 += std::mem::take(&mut other.0);
        self
    }

    /// Whether there is room for so many more; then they are held too.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let more = bytes as u64;
        let is_small = self.0 + more <= SMALL;
        let fits = |now: u64| {
            let sum = now.checked_add(more);
            sum.filter(|sum| is_small || *sum <= MOST)
        };
        let taken = NOW.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        if let Ok(before) = taken {
            self.0 += more;
            if before + more > MUCH {
                WAS_MUCH.store(true, Ordering::Relaxed);
            }
        }
        taken.is_ok()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let before = NOW.fetch_sub(self.0, Ordering::Relaxed);
        if before - self.0 < LITTLE && WAS_MUCH.swap(false, Ordering::Relaxed) {
            let give_back = || {
                thread::sleep(SOON);
                jail::sys::give_freed_memory_back();
            };
            // Without a thread to be had it is kept.
            let _ = thread::Builder::new().spawn(give_back);
        }
    }
}

/// How many values a text of JSON has at most: each is the first of a list or object, or has a comma before it. Once it is read each may take a
/// hundred times its text.
pub fn json_values(json: &[u8]) -> usize {
    let (mut count, mut in_text, mut is_escaped) = (1, false, false);
    for byte in json {
        if in_text {
            in_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
        } else {
            in_text = *byte == b'"';
            count += usize::from(matches!(byte, b',' | b'[' | b'{'));
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_is_overlooked_and_no_text_counts() {
        for (json, count) in [
            (r#"{"a":[],"b":{},"c":[1,[2]]}"#, 9),
            (r#""a,[{\",[{""#, 1),
            (r#"["\\",1]"#, 3),
            ("", 1),
        ] {
            assert_eq!(json_values(json.as_bytes()), count, "{json}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_what_goes_makes_room() {
        // Others count too while the tests run, but never nearly as much.
        let half = (MOST / 2) as usize;
        let mut first = Hold::of(half).expect("room");
        assert!(!first.grow(half + 1));
        assert!(Hold::of(usize::MAX).is_none());
        assert!(first.grow(half / 2));
        assert!(Hold::of(half).is_none());
        drop(first);
        assert!(Hold::of(half).is_some());
    }
}
