//! How many runs go on at a time, and how many wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A door with so many places behind it and so many before it.
pub struct Queue {
    places: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
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
#[error("{running} programs are running and {waiting} are waiting, which is all that may")]
pub struct QueueFull {
    pub running: usize,
    pub waiting: usize,
}

/// A place to run in, until it is dropped.
pub struct Place(#[expect(dead_code, reason = "held for its end")] OwnedSemaphorePermit);

impl Queue {
    pub fn new(size: QueueSize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(size.running.max(1))),
            waiting: Arc::default(),
            size,
        }
    }

    /// Waits for a place, in the order of asking. Dropping the future leaves the queue.
    pub async fn enter(&self) -> Result<Place, QueueFull> {
        if let Ok(permit) = self.places.clone().try_acquire_owned() {
            return Ok(Place(permit));
        }
        let full = QueueFull {
            running: self.size.running,
            waiting: self.size.waiting,
        };
        let waiting = Waiting::join(&self.waiting, self.size.waiting).ok_or(full)?;
        let permit = self.places.clone().acquire_owned().await;
        drop(waiting);
        // The semaphore is never closed.
        permit.map(Place).map_err(|_| full)
    }
}

struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn join(waiting: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let one_more = |now: usize| (now < most).then_some(now + 1);
        waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .ok()
            .map(|_| Self(waiting.clone()))
    }
}

impl Drop for Waiting {
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
        let first = queue.enter().await.unwrap();
        let mut second = Box::pin(queue.enter());
        let soon = Duration::from_millis(20);
        assert!(timeout(soon, &mut second).await.is_err());
        assert!(queue.enter().await.is_err());
        drop(first);
        let second = second.await.unwrap();
        // One that gives up waiting leaves its place in the queue.
        assert!(timeout(soon, queue.enter()).await.is_err());
        assert!(timeout(soon, queue.enter()).await.is_err());
        drop(second);
        assert!(queue.enter().await.is_ok());
    }
}
