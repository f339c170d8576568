//! What is on its way to the file: bounded, and never waited for by those who bring it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Progress, Record, Saved};

/// How many entries may wait, and how many bytes.
const MOST: usize = 4096;
const MOST_BYTES: usize = 64 << 20;
/// How long the thread lets entries gather: a caller that runs one program after the other wakes it once in this time.
const GATHER: Duration = Duration::from_millis(100);

/// Something to be written. A record is made by the thread, so that its maker need not wait for it.
pub enum Entry {
    Run(Box<dyn FnOnce() -> Record + Send>),
    Followed(Box<dyn FnOnce() -> Record + Send>, Progress),
    Saved(Saved),
}

#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    /// Wakes the thread.
    filled: Condvar,
    /// Wakes those who wait for it.
    written: Condvar,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// Entries that were ever taken in, and that were ever written.
    pushed: u64,
    done: u64,
    is_asleep: bool,
    is_urgent: bool,
    is_closed: bool,
}

/// What the thread is to do next.
pub struct Batch {
    pub entries: VecDeque<Entry>,
    pub is_last: bool,
}

impl Queue {
    /// Takes an entry in; false if there is no room. Never waits: the lock is held for moments only.
    pub fn push(&self, entry: Entry, weight: usize) -> bool {
        let mut state = self.lock();
        if state.entries.len() >= MOST || state.bytes + weight > MOST_BYTES || state.is_closed {
            return false;
        }
        state.entries.push_back(entry);
        state.bytes += weight;
        state.pushed += 1;
        // To wake a thread is a system call: only the first entry after a pause pays for it.
        if std::mem::take(&mut state.is_asleep) {
            self.filled.notify_one();
        }
        true
    }

    /// The next entries. Waits for the first, and then a moment for more; not longer than `most` if it is given.
    pub fn take(&self, most: Option<Duration>) -> Batch {
        let start = Instant::now();
        let mut state = self.lock();
        while state.entries.is_empty() && !state.is_closed {
            state.is_asleep = true;
            state = match most {
                None => self
                    .filled
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(most) if start.elapsed() >= most => break,
                Some(most) => self.wait(&self.filled, state, most.saturating_sub(start.elapsed())),
            };
        }
        let begun = Instant::now();
        while !state.is_urgent && !state.is_closed && !state.entries.is_empty() {
            match GATHER.checked_sub(begun.elapsed()) {
                None => break,
                Some(left) => state = self.wait(&self.filled, state, left),
            }
        }
        (state.is_asleep, state.is_urgent, state.bytes) = (false, false, 0);
        Batch {
            entries: std::mem::take(&mut state.entries),
            is_last: state.is_closed,
        }
    }

    /// As many entries are written as were taken.
    pub fn written(&self, entries: usize) {
        self.lock().done += entries as u64;
        self.written.notify_all();
    }

    /// Waits until everything is written that came before, or `most` is over.
    pub fn flush(&self, most: Duration) {
        let end = Instant::now() + most;
        let mut state = self.lock();
        let wanted = state.pushed;
        while state.done < wanted && !state.is_closed {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state.is_urgent = true;
            state.is_asleep = false;
            self.filled.notify_one();
            state = self.wait(&self.written, state, left);
        }
    }

    /// Takes nothing more in; the thread ends when it has written the rest.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_one();
    }

    fn wait<'a>(
        &self,
        what: &Condvar,
        state: MutexGuard<'a, State>,
        most: Duration,
    ) -> MutexGuard<'a, State> {
        let waited = what.wait_timeout(state, most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
