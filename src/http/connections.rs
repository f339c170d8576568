//! How many connections there may be, and which is closed when one more comes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

const MOST: usize = 256;

/// The open connections, the oldest first.
#[derive(Clone, Default)]
pub struct Connections(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    next: u64,
    all: BTreeMap<u64, Arc<State>>,
}

#[derive(Default)]
struct State {
    busy: AtomicBool,
    evicted: Notify,
}

/// One of them; forgotten when its last clone is dropped.
#[derive(Clone)]
pub struct Connection {
    state: Arc<State>,
    _entry: Arc<Entry>,
}

struct Entry {
    id: u64,
    connections: Connections,
}

impl Connections {
    /// Makes room for one more: at the cost of the oldest one that has no request
    /// at work, so that a thousand slow strangers cannot keep a client out.
    pub fn enter(&self) -> Option<Connection> {
        let mut open = self.open();
        if open.all.len() >= MOST {
            let idle = |(_, state): &(&u64, &Arc<State>)| !state.busy.load(Ordering::Relaxed);
            let oldest = *open.all.iter().find(idle)?.0;
            let state = open.all.remove(&oldest)?;
            state.evicted.notify_one();
        }
        let id = open.next;
        open.next += 1;
        let state = Arc::new(State::default());
        open.all.insert(id, state.clone());
        Some(Connection {
            state,
            _entry: Arc::new(Entry {
                id,
                connections: self.clone(),
            }),
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Notes that a request of a known client is at work, until the guard is dropped.
    pub fn at_work(&self) -> AtWork {
        self.state.busy.store(true, Ordering::Relaxed);
        AtWork(self.clone())
    }

    pub async fn evicted(&self) {
        self.state.evicted.notified().await;
    }
}

pub struct AtWork(Connection);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.state.busy.store(false, Ordering::Relaxed);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.connections.open().all.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_than_may_be_costs_the_oldest_that_is_idle() {
        let connections = Connections::default();
        let mut all: Vec<Connection> = (0..MOST).map(|_| connections.enter().unwrap()).collect();
        let working = all[0].at_work();
        let newest = connections.enter().unwrap();
        let ids: Vec<u64> = connections.open().all.keys().copied().collect();
        assert_eq!(ids.len(), MOST);
        assert_eq!(&ids[..2], [0, 2]);
        drop(working);
        let busy: Vec<AtWork> = all
            .iter()
            .chain([&newest])
            .map(Connection::at_work)
            .collect();
        assert!(connections.enter().is_none());
        drop(busy);
        all.clear();
        assert_eq!(connections.open().all.len(), 1);
    }
}
