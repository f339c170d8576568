//! How many runs go on at a time, and how many may wait for their turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::caller::Caller;

/// Lets a bounded number of runs go on side by side, and a bounded number wait.
pub struct Queue {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    size: QueueSize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSize {
    /// Runs side by side.
    pub running: usize,
    /// Runs that may wait for their turn.
    pub waiting: usize,
}

impl Default for QueueSize {
    fn default() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            // Many programs wait more than they work: eight that sleep for a second
            // should take one second on two processors.
            running: cpus * 4,
            waiting: 256,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server is busy: {running} programs are running and {waiting} are waiting")]
pub struct QueueFull {
    pub running: usize,
    pub waiting: usize,
}

/// A caller's turn to run something, until it is dropped.
pub struct Turn {
    pub caller: Caller,
    _permit: OwnedSemaphorePermit,
}

impl Queue {
    pub fn new(size: QueueSize) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(size.running.max(1))),
            waiting: AtomicUsize::new(0),
            size,
        }
    }

    /// How many have their turn, and how many wait for it.
    pub fn load(&self) -> (usize, usize) {
        let free = self.turns.available_permits();
        let running = self.size.running.max(1).saturating_sub(free);
        (running, self.waiting.load(Ordering::Relaxed))
    }

    /// Waits for a turn, in the order of asking. Dropping the future leaves the queue.
    pub async fn enter(&self, caller: Caller) -> Result<Turn, QueueFull> {
        let turn = |permit| Turn {
            caller,
            _permit: permit,
        };
        if let Ok(permit) = self.turns.clone().try_acquire_owned() {
            return Ok(turn(permit));
        }
        let full = QueueFull {
            running: self.size.running,
            waiting: self.size.waiting,
        };
        let waiting = Waiting::join(&self.waiting, self.size.waiting).ok_or_else(|| {
            tracing::warn!("a run is refused: the queue is full");
            full
        })?;
        let permit = self.turns.clone().acquire_owned().await;
        drop(waiting);
        // The semaphore is never closed.
        permit.map(turn).map_err(|_| full)
    }
}

/// One more that waits, until it is dropped.
pub struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    /// None if so many wait already.
    pub fn join(waiting: &'a AtomicUsize, most: usize) -> Option<Self> {
        let one_more = |now: usize| (now < most).then_some(now + 1);
        waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .ok()
            .map(|_| Self(waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Duration, timeout};

    #[tokio::test]
    async fn beyond_its_places_a_queue_waits_and_beyond_that_refuses() {
        let queue = Queue::new(QueueSize {
            running: 1,
            waiting: 1,
        });
        let enter = || queue.enter(Caller::local());
        let first = enter().await.unwrap();
        let mut second = Box::pin(enter());
        let soon = Duration::from_millis(20);
        assert!(timeout(soon, &mut second).await.is_err());
        assert!(enter().await.is_err());
        drop(first);
        let second = second.await.unwrap();
        // One that gives up waiting leaves its place in the queue.
        assert!(timeout(soon, enter()).await.is_err());
        assert!(timeout(soon, enter()).await.is_err());
        drop(second);
        assert!(enter().await.is_ok());
    }
}
