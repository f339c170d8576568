//! What was run, in one SQLite file: for `hotcell logs` and `hotcell replay`, for jobs whose server has ended, and for saved outputs that
//! outlive their server.
//!
//! Everything is written by one thread of its own, behind the answers. Its queue is bounded: what does not fit is counted and dropped, and
//! nobody ever waits for it. Nothing here knows what a request or a result looks like: whoever has one written brings its JSON.
//!
//! SECURITY: the file has what callers sent and programs printed, so its folder is for its owner alone. Over MCP a caller finds its own
//! records and no others.

mod alive;
mod database;
mod date;
mod error;
mod incoming;
mod location;
mod queue;
mod reader;
mod retention;
mod writer;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use crate::caller::Caller;
use crate::random::random_name;
use crate::spool::Spooled;

use database::Database;
pub use database::milliseconds;
pub use date::date;
pub use error::RecordsError;
pub use incoming::leave;
use queue::{Entry, Queue};
pub use reader::{Kept, Reader};

/// The output of a run that goes on is recorded so often.
const FOLLOWED_EVERY: Duration = Duration::from_secs(1);
/// How long a caller waits for what is on its way to the file.
const PATIENCE: Duration = Duration::from_secs(2);
/// Larger outputs are not written to the file.
const LARGEST: u64 = 16 << 20;

/// Where records are kept, for how long, and how many bytes of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeping {
    pub folder: PathBuf,
    pub time: Duration,
    pub bytes: u64,
}

/// One run, as it is written.
#[derive(Debug, Clone)]
pub struct Record {
    pub id: String,
    pub caller: Caller,
    pub started: SystemTime,
    /// None while it runs.
    pub ended: Option<SystemTime>,
    pub status: String,
    pub language: Option<String>,
    pub session: Option<String>,
    /// JSON.
    pub request: String,
    /// JSON, once it has ended.
    pub result: Option<String>,
    /// What belongs to it, by name: its program, what it printed.
    pub contents: Vec<(String, Vec<u8>)>,
}

/// What a run that goes on has printed: bytes after an offset, and how many there were in all. None once it has ended.
pub type Progress = Box<dyn Fn(u64) -> Option<(Vec<u8>, u64)> + Send>;

/// An output of a run that its caller may read for a while.
pub struct Saved {
    pub caller: Caller,
    pub run: String,
    pub name: String,
    pub output: Arc<Spooled>,
    pub until: SystemTime,
}

/// The records of this process on their way to the file, and those of all that are there.
pub struct Records {
    keeping: Keeping,
    queue: Arc<Queue>,
    dropped: Arc<AtomicU64>,
    thread: Mutex<Option<JoinHandle<()>>>,
    reader: Mutex<Option<Reader>>,
}

impl Records {
    /// Starts the thread. Nothing is opened before there is something to write.
    pub fn start(keeping: Keeping) -> Arc<Self> {
        let queue = Arc::new(Queue::default());
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = writer::Writer {
            keeping: keeping.clone(),
            queue: queue.clone(),
            dropped: dropped.clone(),
            server: random_name(),
        };
        let thread = std::thread::Builder::new().name("records".to_owned());
        // Without a thread the queue fills up, and what does not fit is dropped as ever.
        let thread = thread.spawn(move || writer.run()).ok();
        Arc::new(Self {
            keeping,
            queue,
            dropped,
            thread: Mutex::new(thread),
            reader: Mutex::default(),
        })
    }

    pub fn keeping(&self) -> &Keeping {
        &self.keeping
    }

    /// Has a record made and written by the thread; `weight` is about how many bytes wait for that.
    pub fn write(&self, weight: usize, make: impl FnOnce() -> Record + Send + 'static) {
        self.push(Entry::Run(Box::new(make)), weight);
    }

    /// Has a run recorded that goes on, and what it prints, until it ends or this process does.
    pub fn follow(&self, make: impl FnOnce() -> Record + Send + 'static, progress: Progress) {
        self.push(Entry::Followed(Box::new(make), progress), 0);
    }

    /// Has an output written, unless it is too large for that.
    pub fn save(&self, saved: Saved) {
        if saved.output.len() <= LARGEST {
            let weight = saved.output.len() as usize;
            self.push(Entry::Saved(saved), weight);
        }
    }

    /// How many records there was no room for, or that could not be written.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all is written that came before, for a while.
    pub fn flush(&self) {
        self.queue.flush(PATIENCE);
    }

    /// Writes the rest and ends the thread.
    pub fn close(&self) {
        self.queue.close();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// Looks something up in the file; none if there is no file, or it cannot be read. Blocks.
    pub fn look_up<T>(
        &self,
        question: impl FnOnce(&Reader) -> Result<T, RecordsError>,
    ) -> Option<T> {
        self.flush();
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if reader.is_none() {
            *reader = Reader::open(&self.keeping.folder).ok();
        }
        let answer = question(reader.as_ref()?);
        answer
            .inspect_err(|error| tracing::warn!(%error, "records"))
            .ok()
    }

    fn push(&self, entry: Entry, weight: usize) {
        if !self.queue.push(entry, weight) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Takes in what processes have left that ran one program, if there is something.
pub fn gather(keeping: &Keeping) -> Result<(), RecordsError> {
    match incoming::is_waiting(&keeping.folder) {
        true => incoming::gather(&mut Database::open(keeping)?),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
