//! The runs that go on, for whoever looks at the server meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::jobs::JobLog;
use super::run::RunContext;
use crate::caller::Caller;
use crate::request::RunRequest;

/// Characters of a program's first line that are told.
const LINE: usize = 80;

/// All of them, the oldest first.
#[derive(Default)]
pub struct LiveRuns(Mutex<Vec<Arc<LiveRun>>>);

/// One that goes on.
pub struct LiveRun {
    caller: Caller,
    /// What it has printed lately; it can be ended there.
    pub log: Arc<JobLog>,
    /// As it was asked for.
    pub language: Option<String>,
    pub session: Option<String>,
    pub first_line: String,
}

/// A run is among them until this is dropped.
pub struct Entered<'a> {
    runs: &'a LiveRuns,
    run: Arc<LiveRun>,
}

impl LiveRuns {
    /// Adds a run, if it can be followed.
    pub fn enter<O, S>(
        &self,
        request: &RunRequest,
        context: &RunContext<O, S>,
    ) -> Option<Entered<'_>> {
        let run = Arc::new(LiveRun {
            caller: context.caller.clone(),
            log: context.log.clone()?,
            language: request.asked_language().map(str::to_owned),
            session: request.session().map(ToString::to_string),
            first_line: first_line(request.code()),
        });
        self.all().push(run.clone());
        Some(Entered { runs: self, run })
    }

    /// SECURITY: another caller's run is not there.
    pub fn of(&self, caller: &Caller) -> Vec<Arc<LiveRun>> {
        let all = self.all();
        let own = all.iter().filter(|run| run.caller == *caller);
        own.cloned().collect()
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<LiveRun>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.runs.all().retain(|run| !Arc::ptr_eq(run, &self.run));
    }
}

/// The first line of a program that has something in it, as far as it is told.
pub fn first_line(code: &[u8]) -> String {
    let code = &code[..code.len().min(4 * LINE)];
    let code = String::from_utf8_lossy(code);
    let first = code.lines().map(str::trim).find(|line| !line.is_empty());
    first.unwrap_or_default().chars().take(LINE).collect()
}
