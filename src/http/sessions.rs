//! The sessions of legacy clients: what they said at `initialize`, by an id.
//!
//! A session holds no work and no files. Without one a client is served as well,
//! only its cancellations cannot be kept apart from another client's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::mcp::Session;
use crate::random::random_name;

const MOST: usize = 4096;
const IDLE: Duration = Duration::from_secs(24 * 3600);

#[derive(Default)]
pub struct Sessions(Mutex<HashMap<String, Entry>>);

struct Entry {
    session: Arc<Session>,
    used: Instant,
}

impl Sessions {
    pub fn add(&self, session: Arc<Session>) -> String {
        let mut all = self.all();
        if all.len() >= MOST {
            all.retain(|_, entry| entry.used.elapsed() < IDLE);
        }
        if all.len() >= MOST {
            let oldest = all.iter().min_by_key(|(_, entry)| entry.used);
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.map(|id| all.remove(&id));
        }
        let id = random_name();
        let used = Instant::now();
        all.insert(id.clone(), Entry { session, used });
        id
    }

    pub fn find(&self, id: &str) -> Option<Arc<Session>> {
        let mut all = self.all();
        let entry = all.get_mut(id)?;
        if entry.used.elapsed() >= IDLE {
            all.remove(id);
            return None;
        }
        entry.used = Instant::now();
        Some(entry.session.clone())
    }

    pub fn end(&self, id: &str) -> bool {
        self.all().remove(id).is_some()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_bounded_and_the_one_unused_for_longest_goes_first() {
        let sessions = Sessions::default();
        let ids: Vec<String> = (0..MOST).map(|_| sessions.add(Arc::default())).collect();
        assert!(sessions.find(&ids[0]).is_some());
        let newest = sessions.add(Arc::default());
        assert!(sessions.find(&ids[1]).is_none());
        assert!(sessions.find(&ids[0]).is_some());
        assert!(sessions.end(&newest));
        assert!(sessions.find(&newest).is_none());
        assert!(!sessions.end(&newest));
    }
}
