//! Output with more characters than an answer may hold: recorded while it comes, and stored
//! for its caller.
//!
//! A run captures the beginning of each stream for its result. Only what follows is recorded
//! here, so output of usual length is captured once.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Service;
use super::settings::Budget;
use crate::caller::Caller;
use crate::engine::RunResult;
use crate::run::{Captured, OutputEvent, Stream};
use crate::spool::{Spool, Spooled};
use crate::store::address;

/// A stream with more characters than an answer may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongStream {
    /// `stdout` or `stderr`.
    pub name: &'static str,
    pub bytes: u64,
    /// The address under which it is stored, if it could be.
    pub stored: Option<String>,
}

/// Records what follows the first [`Captured::HEAD`] bytes of each stream.
#[derive(Clone)]
pub(super) struct Recorder(Arc<Mutex<Spools>>);

struct Spools {
    stdout: Spool,
    stderr: Spool,
}

/// A whole stream that may be over its budget.
pub(super) struct Candidate {
    name: &'static str,
    budget: usize,
    whole: io::Result<Spooled>,
}

impl Recorder {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Spools {
            stdout: Spool::after(Captured::HEAD),
            stderr: Spool::after(Captured::HEAD),
        })))
    }

    pub fn add(&self, event: &OutputEvent) {
        let mut spools = self.lock();
        match event.stream {
            Stream::Stdout => spools.stdout.add(&event.bytes),
            Stream::Stderr => spools.stderr.add(&event.bytes),
            Stream::Notice | Stream::Progress => {}
        }
    }

    /// The streams that may be too long for an answer. A text has at most as many characters
    /// as bytes, so the others are certain to fit.
    pub fn finish(&self, result: &RunResult, budget: Budget) -> Vec<Candidate> {
        let mut spools = self.lock();
        let Spools { stdout, stderr } = &mut *spools;
        let streams = [
            ("stdout", stdout, &result.stdout, budget.stdout),
            ("stderr", stderr, &result.stderr, budget.stderr),
        ];
        let long = streams
            .into_iter()
            .filter(|(_, _, captured, budget)| captured.total > *budget as u64);
        long.map(|(name, spool, captured, budget)| Candidate {
            name,
            budget,
            whole: std::mem::take(spool).finish_with(captured.head()),
        })
        .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Spools> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// Stores a stream or a file, and lets go of it when its time is over even if nobody ever asks
    /// again; false if it is too large.
    pub fn store_output(&self, caller: &Caller, run: &str, name: &str, output: Spooled) -> bool {
        let is_stored = self.store.of(caller).insert(run, name, output);
        if is_stored {
            self.expire_later();
        }
        is_stored
    }

    fn expire_later(&self) {
        let (store, time) = (Arc::downgrade(&self.store), self.settings.retention.time);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            if let Some(store) = store.upgrade() {
                store.remove_expired();
            }
        });
    }

    /// Stores what a run left and showed; the name and the address of each that could be.
    pub(super) fn store_contents(
        &self,
        (caller, run): (&Caller, &str),
        contents: Vec<(String, Spooled)>,
    ) -> Vec<(String, String)> {
        if contents.is_empty() {
            return Vec::new();
        }
        let store = |(name, bytes): (String, Spooled)| {
            let is_stored = self.store.of(caller).insert(run, &name, bytes);
            let address = is_stored.then(|| address(run, &name))?;
            Some((name, address))
        };
        self.expire_later();
        contents.into_iter().filter_map(store).collect()
    }

    /// Stores the streams whose text is over its budget.
    pub(super) fn store_long(
        &self,
        (caller, run): (&Caller, &str),
        [stdout, stderr]: [&str; 2],
        candidates: Vec<Candidate>,
    ) -> Vec<LongStream> {
        let store = |Candidate {
                         name,
                         budget,
                         whole,
                     }| {
            let text = match name {
                "stdout" => stdout,
                _ => stderr,
            };
            // Nothing to store if all of it fits.
            text.chars().nth(budget)?;
            let bytes = whole.as_ref().map_or(text.len() as u64, Spooled::len);
            let is_stored = whole.is_ok_and(|whole| self.store_output(caller, run, name, whole));
            Some(LongStream {
                name,
                bytes,
                stored: is_stored.then(|| address(run, name)),
            })
        };
        candidates.into_iter().filter_map(store).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;
    use crate::service::Settings;

    fn whole(bytes: &[u8]) -> io::Result<Spooled> {
        let mut spool = Spool::default();
        spool.add(bytes);
        spool.finish()
    }

    #[tokio::test]
    async fn only_a_text_over_its_budget_is_stored_and_only_for_its_caller() {
        let service = Service::new(Settings::for_one_run());
        // Ten characters in twenty bytes, and eleven in eleven.
        let (stdout, stderr) = ("é".repeat(10), "x".repeat(11));
        let candidates = [("stdout", &stdout), ("stderr", &stderr)];
        let candidates = candidates.into_iter().map(|(name, text)| Candidate {
            name,
            budget: 10,
            whole: whole(text.as_bytes()),
        });
        let (owner, other) = (Caller::token(), Caller::local());
        let long = service.store_long((&owner, "r"), [&stdout, &stderr], candidates.collect());
        let [stream] = &long[..] else {
            panic!("{long:?}");
        };
        assert_eq!((stream.name, stream.bytes), ("stderr", 11));
        let stored = stream.stored.as_deref().expect("it is small");
        let (run, _) = crate::store::parse_address(stored).expect("an address");
        assert!(service.outputs(&owner).find(run, "stderr").is_some());
        assert!(service.outputs(&other).find(run, "stderr").is_none());
        assert!(service.outputs(&owner).find(run, "stdout").is_none());
    }
}
