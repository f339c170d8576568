//! The thread that writes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::alive::Alive;
use super::database::Database;
use super::queue::{Entry, Queue};
use super::{FOLLOWED_EVERY, Keeping, Progress, RecordsError};

/// How often what is too old or too much is removed, and after how many entries.
const PRUNE_EVERY: Duration = Duration::from_secs(600);
const PRUNE_AFTER: usize = 1000;
/// When a file that could not be opened is tried again.
const RETRY: Duration = Duration::from_secs(30);

pub struct Writer {
    pub keeping: Keeping,
    pub queue: Arc<Queue>,
    pub dropped: Arc<AtomicU64>,
    /// What this process is called in records of runs that go on.
    pub server: String,
}

/// The file once it is open, and what is known of it.
#[derive(Default)]
struct State {
    database: Option<Database>,
    refused: Option<Instant>,
    followed: Vec<Followed>,
    alive: Option<Alive>,
    pruned: Option<Instant>,
    entries: usize,
    counted: u64,
}

/// A run that goes on.
struct Followed {
    run: String,
    progress: Progress,
    /// How many bytes are recorded.
    next: u64,
}

impl Writer {
    pub fn run(self) {
        // Programs come first.
        let _ = rustix::process::nice(10);
        let mut state = State::default();
        loop {
            let tick = (!state.followed.is_empty()).then_some(FOLLOWED_EVERY);
            let batch = self.queue.take(tick);
            let count = batch.entries.len();
            if let Err(error) = self.write(&mut state, batch.entries) {
                tracing::warn!(%error, count, "records were not written");
                self.dropped.fetch_add(count as u64, Ordering::Relaxed);
            }
            self.queue.written(count);
            if batch.is_last {
                return;
            }
        }
    }

    fn write(&self, state: &mut State, entries: VecDeque<Entry>) -> Result<(), RecordsError> {
        state.entries += entries.len();
        if state.refused.is_some_and(|since| since.elapsed() < RETRY) {
            self.dropped
                .fetch_add(entries.len() as u64, Ordering::Relaxed);
            return Ok(());
        }
        if state.database.is_none() {
            let opened = Database::open(&self.keeping);
            state.refused = opened.is_err().then(Instant::now);
            state.database = Some(opened?);
        }
        let Some(mut database) = state.database.take() else {
            return Ok(());
        };
        let written = database.transaction(|database| {
            for entry in entries {
                self.enter(database, state, entry)?;
            }
            state.follow(database)?;
            let dropped = self.dropped.load(Ordering::Relaxed);
            if dropped > state.counted {
                database.count_dropped(dropped - state.counted)?;
                state.counted = dropped;
            }
            Ok(())
        });
        if state.is_time_to_prune()
            && let Err(error) = database.prune(&self.keeping)
        {
            tracing::warn!(%error, "old records were not removed");
        }
        state.database = Some(database);
        written
    }

    fn enter(
        &self,
        database: &Database,
        state: &mut State,
        entry: Entry,
    ) -> Result<(), RecordsError> {
        match entry {
            Entry::Run(make) => {
                let record = make();
                state.followed.retain(|it| it.run != record.id);
                database.insert(&record, None)
            }
            Entry::Followed(make, progress) => {
                let record = make();
                if state.alive.is_none() {
                    state.alive = Alive::hold(&database.folder, &self.server).ok();
                }
                database.insert(&record, Some(&self.server))?;
                state.followed.push(Followed {
                    run: record.id,
                    progress,
                    next: 0,
                });
                Ok(())
            }
            Entry::Saved(saved) => database.save(&saved),
        }
    }
}

impl State {
    /// Records what runs that go on have printed since.
    fn follow(&mut self, database: &Database) -> Result<(), RecordsError> {
        let mut result = Ok(());
        self.followed.retain_mut(|it| {
            let Some((bytes, next)) = (it.progress)(it.next) else {
                return false;
            };
            if !bytes.is_empty() && result.is_ok() {
                result = database.progress(&it.run, next - bytes.len() as u64, &bytes);
                it.next = next;
            }
            true
        });
        result
    }

    fn is_time_to_prune(&mut self) -> bool {
        let is_time = self.entries >= PRUNE_AFTER
            || self
                .pruned
                .is_none_or(|since| since.elapsed() > PRUNE_EVERY);
        if is_time {
            (self.pruned, self.entries) = (Some(Instant::now()), 0);
        }
        is_time
    }
}
