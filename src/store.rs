//! Output that is too long for an answer, stored for a while so that it can be read later.
//!
//! Each entry belongs to the caller whose run printed it, and nobody else finds it. The bytes
//! are in memory or in files without a name, so nothing is left when the server ends, by
//! whatever means; where runs are recorded, a copy outlives it for as long as the entry would have.
//! Entries go when they are too old, and the oldest when all of them together are too large.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::caller::Caller;
use crate::records::{Records, Saved};
use crate::spool::{Spool, Spooled};

const SCHEME: &str = "run://";

/// The address of a stream or file of a run.
pub fn address(run: &str, name: &str) -> String {
    let mut address = format!("{SCHEME}{run}/");
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                address.push(byte.into());
            }
            _ => address += &format!("%{byte:02X}"),
        }
    }
    address
}

/// The run and the name in an address, whether or not there is such an entry.
pub fn parse_address(address: &str) -> Option<(&str, String)> {
    let (run, encoded) = address.strip_prefix(SCHEME)?.split_once('/')?;
    let mut name = Vec::new();
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        name.push(match byte {
            b'%' => (digit()? * 16 + digit()?) as u8,
            byte => byte,
        });
    }
    Some((run, String::from_utf8(name).ok()?))
}

/// How long output is stored, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub time: Duration,
    pub bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(30 * 60),
            bytes: 512 << 20,
        }
    }
}

/// How many there may be, whatever they have: those of a few bytes are in memory.
const MOST_ENTRIES: usize = 4096;

/// The stored outputs of all callers, the oldest first.
#[derive(Default)]
pub struct Store {
    retention: Retention,
    entries: Mutex<VecDeque<Entry>>,
    /// Where they outlive this process.
    records: Option<Arc<Records>>,
}

struct Entry {
    caller: Caller,
    run: String,
    /// `stdout`, `stderr`, or `files/` and a path in the workspace.
    name: String,
    since: Instant,
    output: Arc<Spooled>,
}

impl Store {
    pub fn new(retention: Retention, records: Option<Arc<Records>>) -> Self {
        Self {
            retention,
            entries: Mutex::default(),
            records,
        }
    }

    /// What this caller may read and add.
    pub fn of<'a>(&'a self, caller: &'a Caller) -> CallerOutputs<'a> {
        CallerOutputs {
            store: self,
            caller,
        }
    }

    /// Lets go of what has been stored long enough.
    pub fn remove_expired(&self) {
        let mut entries = self.entries();
        entries.retain(|entry| entry.since.elapsed() < self.retention.time);
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stored outputs of one caller.
#[derive(Clone, Copy)]
pub struct CallerOutputs<'a> {
    store: &'a Store,
    caller: &'a Caller,
}

impl CallerOutputs<'_> {
    /// Stores a stream or a file of a run; false if it alone is more than may be stored.
    pub fn insert(&self, run: &str, name: &str, output: Spooled) -> bool {
        let most = self.store.retention.bytes;
        if output.len() > most {
            return false;
        }
        let output = Arc::new(output.set_down());
        if let Some(records) = &self.store.records {
            records.save(Saved {
                caller: self.caller.clone(),
                run: run.to_owned(),
                name: name.to_owned(),
                output: output.clone(),
                until: SystemTime::now() + self.store.retention.time,
            });
        }
        let mut entries = self.store.entries();
        entries.push_back(Entry {
            caller: self.caller.clone(),
            run: run.to_owned(),
            name: name.to_owned(),
            since: Instant::now(),
            output,
        });
        let mut all: u64 = entries.iter().map(|entry| entry.output.len()).sum();
        while all > most || entries.len() > MOST_ENTRIES {
            all -= entries.pop_front().map_or(all, |entry| entry.output.len());
        }
        true
    }

    /// SECURITY: another caller's output is not there, however its name became known.
    pub fn find(&self, run: &str, name: &str) -> Option<Arc<Spooled>> {
        self.store.remove_expired();
        let is_it =
            |entry: &&Entry| entry.run == run && entry.name == name && entry.caller == *self.caller;
        let found = self
            .store
            .entries()
            .iter()
            .find(is_it)
            .map(|entry| entry.output.clone());
        found.or_else(|| self.find_recorded(run, name))
    }

    /// What another process has stored, this one's predecessor for instance. Blocks for a moment.
    fn find_recorded(&self, run: &str, name: &str) -> Option<Arc<Spooled>> {
        let records = self.store.records.as_ref()?;
        let bytes = records.look_up(|reader| reader.output(self.caller, run, name))??;
        let mut spool = Spool::default();
        spool.add(&bytes);
        Some(Arc::new(spool.finish().ok()?))
    }

    /// For how long output can be found.
    pub fn time(&self) -> Duration {
        self.store.retention.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(bytes: &[u8]) -> Spooled {
        let mut spool = Spool::default();
        spool.add(bytes);
        spool.finish().unwrap()
    }

    fn store(time: Duration) -> Store {
        Store::new(Retention { time, bytes: 10 }, None)
    }

    #[test]
    fn the_oldest_goes_when_all_are_too_large() {
        let store = store(Duration::from_secs(60));
        let caller = Caller::local();
        let outputs = store.of(&caller);
        assert!(outputs.insert("a", "stdout", output(b"1234")));
        assert!(outputs.insert("b", "stdout", output(b"12345")));
        assert!(outputs.insert("c", "stdout", output(b"123")));
        assert!(outputs.find("a", "stdout").is_none());
        assert!(outputs.find("b", "stdout").is_some());
        assert!(outputs.find("b", "stderr").is_none());
        assert!(!outputs.insert("d", "stdout", output(b"12345678901")));
        assert!(outputs.find("c", "stdout").is_some());
    }

    #[test]
    fn an_address_is_read_as_it_was_written() {
        for name in ["stdout", "files/a b/ü%?#.csv", "files/..%2f"] {
            let address = address("abc", name);
            assert!(!address.contains([' ', '?', '#']), "{address}");
            assert_eq!(parse_address(&address), Some(("abc", name.to_owned())));
        }
        for bad in [
            "run://abc",
            "run://abc/%f",
            "run://abc/%zz",
            "run://abc/%ff",
        ] {
            assert_eq!(parse_address(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_was_stored_long_enough_is_gone() {
        let store = store(Duration::ZERO);
        let caller = Caller::local();
        store.of(&caller).insert("a", "stdout", output(b"1234"));
        assert!(store.of(&caller).find("a", "stdout").is_none());
    }

    #[test]
    fn an_output_is_found_by_its_own_caller_alone() {
        let store = store(Duration::from_secs(60));
        let callers = [Caller::local(), Caller::token(), Caller::anonymous()];
        for owner in &callers {
            store.of(owner).insert("a", "stdout", output(b"123"));
            for caller in &callers {
                let found = store.of(caller).find("a", "stdout").is_some();
                assert_eq!(found, caller == owner, "{caller:?} of {owner:?}");
            }
            store.entries().clear();
        }
    }
}
