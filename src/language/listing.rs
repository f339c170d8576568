//! All languages and what this machine has for each: `hotcell languages` and the
//! resource of the same name.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;

use super::{Definition, Listed, Registry, Runtime, Surroundings, UnsupportedPlatform, Versions};
use crate::runtimes::RuntimesFolder;

/// One language on this machine.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Row {
    pub id: String,
    pub name: Option<String>,
    pub aliases: Vec<String>,
    pub extensions: Vec<String>,
    pub available: bool,
    /// The command that would be used, its version and its program.
    pub runtime: Option<String>,
    pub version: Option<String>,
    pub path: Option<String>,
    /// Where the program comes from: the system's PATH, a recipe, or hotcell itself.
    pub from: Option<&'static str>,
    /// Whether a server keeps pre-started sandboxes for it.
    pub start: Option<&'static str>,
    /// The one system it exists on, if it is bound to one.
    pub platform: Option<&'static str>,
    /// Why it cannot run, if it cannot.
    pub problem: Option<String>,
    pub hint: Option<String>,
    /// The command that would install it.
    pub install: Option<String>,
}

/// Asking is mostly waiting for others to start.
const THREADS: usize = 4;

/// Every language, sorted by id; `pools` says whether cells may wait at all. Asks runtimes
/// that are new to us for their version, which may take seconds the first time.
pub fn rows(registry: &Registry, around: &Surroundings, pools: bool) -> Vec<Row> {
    let listed = registry.list();
    let versions = Versions::load(around);
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let answers = Mutex::new(Vec::new());
    let work = || {
        while let Some(one) = listed.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut row = row(one);
            if let (Ok(definition), true) = (one.definition, row.problem.is_none()) {
                match Runtime::find(definition, around) {
                    Ok(runtime) => {
                        let answered = versions.ask(definition, &runtime, around);
                        row.available = true;
                        row.version = answered.version().map(str::to_owned);
                        row.path = Some(runtime.path.display().to_string());
                        row.from = Some(runtime.origin(around));
                        let waits = pools && runtime.waits(definition);
                        row.start = Some(if waits { "warm" } else { "cold" });
                        row.runtime = Some(runtime.command);
                        lock(&answers).push(answered);
                    }
                    Err(missing) => {
                        row.problem = Some(missing.to_string());
                        row.hint = missing.hint();
                        row.install = missing.install.map(String::from);
                    }
                }
            }
            lock(&rows).push(row);
        }
    };
    thread::scope(|scope| {
        // A thread that cannot be had is not needed: this one works too.
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let _others: Vec<_> = (1..THREADS).map(start).collect();
        work();
    });
    let mut remembered = Versions::default();
    lock(&answers)
        .drain(..)
        .for_each(|answer| remembered.add(answer));
    remembered.save(around);
    let mut rows = std::mem::take(&mut *lock(&rows));
    rows.sort_by(|a, b| a.id.cmp(&b.id));
    rows
}

impl Runtime {
    /// Where its program comes from, in a word.
    fn origin(&self, around: &Surroundings) -> &'static str {
        let fetched = around.data.as_deref().map(RuntimesFolder::in_data);
        match fetched.and_then(|place| place.receipt_of(&self.path)) {
            _ if self.is_embedded() => "built in",
            Some(_) => "fetched",
            None => "system",
        }
    }

    /// Whether programs of the language find it started, if they ask for nothing special.
    fn waits(&self, definition: &Definition) -> bool {
        self.way.warm.is_some() || (definition.warm.is_some() && self.way.embedded.is_none())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What does not depend on the machine.
fn row(listed: &Listed<'_>) -> Row {
    let id = listed.id.to_owned();
    let definition = match listed.definition {
        Ok(definition) => definition,
        Err(error) => {
            let problem = Some(error.to_string());
            return Row {
                id,
                problem,
                ..Row::default()
            };
        }
    };
    Row {
        id,
        name: Some(definition.name.clone()),
        aliases: definition.aliases.iter().map(ToString::to_string).collect(),
        extensions: definition.extensions.clone(),
        platform: definition.platform.map(|platform| platform.name()),
        problem: UnsupportedPlatform::check(definition)
            .err()
            .map(|it| it.to_string()),
        ..Row::default()
    }
}
