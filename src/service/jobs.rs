//! Runs whose caller does not wait for them: jobs.
//!
//! A job goes on when its request was answered and its connection is gone, and ends with the server. Its output so far and, once it has
//! ended, its answer are found by its id, by its own caller alone.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use super::recording::Facts;
use crate::caller::Caller;
use crate::random::random_name;
use crate::run::{OutputEvent, Stream};

/// How many jobs of one caller may run at a time.
const MOST_RUNNING: usize = 16;
/// How many that have ended are known, of all callers.
const MOST_ENDED: usize = 256;
/// What the answers of those may have together: pictures are in them.
const MOST_BYTES: usize = 64 << 20;
/// How much of its newest output a job holds.
const KEPT: usize = 256 << 10;

/// The jobs of all callers, each with an answer of type `T`; the oldest first.
pub struct Jobs<T> {
    entries: Arc<Mutex<Entries<T>>>,
    /// How long one that has ended is known.
    retention: Duration,
    /// Bytes of an answer.
    size: fn(&T) -> usize,
}

type Entries<T> = VecDeque<Arc<Job<T>>>;

/// One run that goes on by itself.
pub struct Job<T> {
    pub id: String,
    caller: Caller,
    pub started: Instant,
    pub log: Arc<JobLog>,
    ended: OnceLock<(Instant, T)>,
    over: watch::Sender<bool>,
}

impl<T: Send + Sync + 'static> Jobs<T> {
    pub fn new(retention: Duration, size: fn(&T) -> usize) -> Self {
        Self {
            entries: Arc::default(),
            retention,
            size,
        }
    }

    /// Whether a caller may have one more job.
    pub fn has_room(&self, caller: &Caller) -> bool {
        let entries = self.entries();
        let running = entries
            .iter()
            .filter(|it| it.is_of(caller) && !it.is_over());
        running.count() < MOST_RUNNING
    }

    /// Lets a run go on by itself.
    pub fn adopt(
        &self,
        caller: &Caller,
        log: Arc<JobLog>,
        run: impl Future<Output = T> + Send + 'static,
    ) -> Arc<Job<T>> {
        log.is_detached.store(true, Ordering::Relaxed);
        let job = Arc::new(Job {
            id: log.id.clone(),
            caller: caller.clone(),
            started: log.started,
            log,
            ended: OnceLock::new(),
            over: watch::Sender::new(false),
        });
        let mut entries = self.entries();
        let is_kept = |it: &Arc<Job<T>>| {
            let ended = it.ended.get();
            ended.is_none_or(|(since, _)| since.elapsed() < self.retention)
        };
        entries.retain(is_kept);
        entries.push_back(job.clone());
        drop(entries);
        let (running, all, size) = (job.clone(), self.entries.clone(), self.size);
        tokio::spawn(async move {
            let answer = run.await;
            let _ = running.ended.set((Instant::now(), answer));
            running.over.send_replace(true);
            trim(&mut lock(&all), size);
        });
        job
    }

    /// SECURITY: another caller's job is not there, however its id became known.
    pub fn find(&self, caller: &Caller, id: &str) -> Option<Arc<Job<T>>> {
        let entries = self.entries();
        let found = entries.iter().find(|it| it.id == id && it.is_of(caller));
        found.cloned()
    }

    pub fn all_of(&self, caller: &Caller) -> Vec<Arc<Job<T>>> {
        let entries = self.entries();
        entries
            .iter()
            .filter(|it| it.is_of(caller))
            .cloned()
            .collect()
    }

    fn entries(&self) -> MutexGuard<'_, Entries<T>> {
        lock(&self.entries)
    }
}

fn lock<T>(entries: &Mutex<Entries<T>>) -> MutexGuard<'_, Entries<T>> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets those that ended first until no more are left than may be. The last one stays in any case: whoever waits for it has yet to read it.
fn trim<T>(entries: &mut Entries<T>, size: fn(&T) -> usize) {
    let mut ended: Vec<&(Instant, T)> = entries.iter().filter_map(|it| it.ended.get()).collect();
    ended.sort_by_key(|(since, _)| std::cmp::Reverse(*since));
    let mut bytes = 0;
    let fits = |(at, (_, answer)): &(usize, &(Instant, T))| {
        bytes += size(answer);
        *at == 0 || (*at < MOST_ENDED && bytes <= MOST_BYTES)
    };
    let kept = ended.into_iter().enumerate().take_while(fits);
    let first = kept.last().map(|(_, (since, _))| *since);
    entries.retain(|it| it.ended_at() >= first || it.ended_at().is_none());
}

impl<T> Job<T> {
    fn is_of(&self, caller: &Caller) -> bool {
        self.caller == *caller
    }

    pub fn is_over(&self) -> bool {
        self.ended.get().is_some()
    }

    /// Its answer, if it has ended.
    pub fn answer(&self) -> Option<&T> {
        self.ended.get().map(|(_, answer)| answer)
    }

    /// When it ended, if it has.
    pub fn ended_at(&self) -> Option<Instant> {
        self.ended.get().map(|(since, _)| *since)
    }

    /// Waits for its end.
    pub async fn ended(&self) {
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    /// Waits for its end, so long at most.
    pub async fn wait(&self, most: Duration) {
        let mut over = self.over.subscribe();
        let _ = tokio::time::timeout(most, over.wait_for(|over| *over)).await;
    }

    /// Ends its program. What it printed until then is in its answer.
    pub fn cancel(&self) {
        self.log.cancel();
    }
}

/// What a run has printed lately, for whoever asks while it goes on, and whether it is to be ended.
pub struct JobLog {
    /// Under which the run is found, while it goes on and later.
    pub id: String,
    started: Instant,
    newest: Mutex<Newest>,
    cancelled: Notify,
    is_detached: AtomicBool,
    noted: OnceLock<Arc<Facts>>,
}

#[derive(Default)]
struct Newest {
    bytes: VecDeque<u8>,
    /// Bytes that there were in all.
    total: u64,
}

impl Default for JobLog {
    fn default() -> Self {
        Self {
            id: random_name(),
            started: Instant::now(),
            newest: Mutex::default(),
            cancelled: Notify::new(),
            is_detached: AtomicBool::new(false),
            noted: OnceLock::new(),
        }
    }
}

impl JobLog {
    pub fn add(&self, event: &OutputEvent) {
        if !matches!(event.stream, Stream::Stdout | Stream::Stderr) {
            return;
        }
        let mut newest = self.newest();
        let bytes = &event.bytes;
        newest.total += bytes.len() as u64;
        let tail = &bytes[bytes.len().saturating_sub(KEPT)..];
        newest.bytes.extend(tail);
        let over = newest.bytes.len().saturating_sub(KEPT);
        newest.bytes.drain(..over);
    }

    /// What came after the first `offset` bytes, as far as it is held, and how many there were in all.
    pub fn since(&self, offset: u64) -> (Vec<u8>, u64) {
        let newest = self.newest();
        let first = newest.total - newest.bytes.len() as u64;
        let passed = offset.saturating_sub(first).min(newest.bytes.len() as u64);
        let bytes = newest.bytes.iter().skip(passed as usize).copied();
        (bytes.collect(), newest.total)
    }

    /// How long it has been going on.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Ends its program.
    pub fn cancel(&self) {
        self.cancelled.notify_one();
    }

    /// What is recorded of its request.
    pub(super) fn noted(&self) -> Option<&Arc<Facts>> {
        self.noted.get()
    }

    pub(super) fn note(&self, facts: Arc<Facts>) {
        let _ = self.noted.set(facts);
    }

    /// Whether its request has been answered.
    pub fn is_detached(&self) -> bool {
        self.is_detached.load(Ordering::Relaxed)
    }

    /// Ends when the run is to be ended.
    pub async fn cancelled(self: Arc<Self>) {
        self.cancelled.notified().await;
    }

    fn newest(&self) -> MutexGuard<'_, Newest> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(bytes: &[u8]) -> OutputEvent {
        OutputEvent {
            stream: Stream::Stdout,
            bytes: bytes.to_vec(),
        }
    }

    #[test]
    fn output_is_read_from_where_the_last_reader_stopped() {
        let log = JobLog::default();
        log.add(&printed(b"one "));
        let (first, next) = log.since(0);
        log.add(&printed(b"two"));
        assert_eq!((first.as_slice(), next), (&b"one "[..], 4));
        assert_eq!(log.since(next), (b"two".to_vec(), 7));
        assert_eq!(log.since(99), (Vec::new(), 7));
        log.add(&printed(&vec![b'x'; 3 * KEPT]));
        assert_eq!(log.since(0).0.len(), KEPT);
    }

    #[tokio::test]
    async fn a_job_is_found_by_its_own_caller_alone_until_it_is_old() {
        let jobs = Jobs::new(Duration::ZERO, |_| 1);
        let (owner, other) = (Caller::token(), Caller::local());
        let job = jobs.adopt(&owner, Arc::default(), async { 7 });
        job.wait(Duration::from_secs(5)).await;
        assert_eq!(job.answer(), Some(&7));
        assert!(jobs.find(&owner, &job.id).is_some());
        assert!(jobs.find(&other, &job.id).is_none());
        assert!(jobs.all_of(&other).is_empty());
        jobs.adopt(&owner, Arc::default(), async { 8 });
        assert!(jobs.find(&owner, &job.id).is_none());
    }

    #[tokio::test]
    async fn a_caller_has_so_many_running_jobs_and_no_more() {
        let jobs = Jobs::new(Duration::from_secs(60), |()| 0);
        let caller = Caller::local();
        for _ in 0..MOST_RUNNING {
            assert!(jobs.has_room(&caller));
            jobs.adopt(&caller, Arc::default(), std::future::pending::<()>());
        }
        assert!(!jobs.has_room(&caller));
        assert!(jobs.has_room(&Caller::token()));
    }

    #[tokio::test]
    async fn those_that_have_ended_are_bounded_in_number_and_in_bytes() {
        let caller = Caller::local();
        let patience = Duration::from_secs(5);
        for (each, most) in [(1, MOST_ENDED), (MOST_BYTES / 8, 8), (MOST_BYTES * 2, 1)] {
            let jobs = Jobs::new(Duration::from_secs(60), |size: &usize| *size);
            let goes_on = jobs.adopt(&caller, Arc::default(), std::future::pending());
            let mut last = goes_on.clone();
            for _ in 0..most + 3 {
                last = jobs.adopt(&caller, Arc::default(), async move { each });
                last.wait(patience).await;
                // The list is looked at when its end has been told.
                tokio::task::yield_now().await;
            }
            assert_eq!(jobs.all_of(&caller).len(), most + 1, "{each} bytes each");
            for job in [goes_on, last] {
                assert!(jobs.find(&caller, &job.id).is_some());
            }
        }
    }
}
