//! What the owner of a server, or of a program that uses the library, has decided about runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::queue::QueueSize;
use super::sessions::SessionBounds;
use crate::cell::Requirement;
use crate::config::{Config, ConfigError};
use crate::engine::{Engine, Trust};
use crate::language::{Surroundings, Tiers};
use crate::records::Keeping;
use crate::request::{IsolationChoice, Network};
use crate::store::Retention;
use crate::upstream::{Called, Functions, Tool};

#[derive(Clone)]
pub struct Settings {
    /// What was decided for all runs of this machine, if that has been read, or why it cannot be known.
    pub config: Option<Result<Config, Arc<ConfigError>>>,
    pub requirement: Requirement,
    /// Who builds the walls of sandboxes, if not who the configuration says.
    pub isolation: Option<IsolationChoice>,
    pub queue: QueueSize,
    pub sessions: SessionBounds,
    /// Pre-started sandboxes kept ready for each runtime; none: each run gets a new one.
    pub pool: Option<usize>,
    /// What callers may know of each other.
    pub trust: Trust,
    /// What pre-started runtimes have loaded beside the usual.
    pub tiers: Tiers,
    pub budget: Budget,
    /// After which time a run that its caller waits for becomes a job, which its caller can ask for.
    pub answer_within: Duration,
    /// How long output that is over the budget is stored, and how much of it.
    pub retention: Retention,
    /// Where runs are recorded; none: nowhere.
    pub records: Option<Keeping>,
    /// What a call may ask to reach, if not what the configuration says.
    pub network: Option<Network>,
    /// Where packages are stored, if not where the configuration says.
    pub packages: Option<PathBuf>,
    /// Functions of this process that programs may call, each set as the tools of an upstream
    /// server of that name.
    pub functions: Vec<(String, Arc<dyn Functions>)>,
}

/// How many characters of a stream an answer may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub stdout: usize,
    pub stderr: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            // Some clients refuse more than 25,000 tokens; this is safely below.
            stdout: 24_000,
            stderr: 8_000,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            queue: QueueSize::default(),
            pool: Some(4),
            ..Self::for_one_run()
        }
    }
}

impl Settings {
    /// For a process that runs one program and ends: it asks nothing of the host.
    pub fn for_one_run() -> Self {
        Self {
            config: None,
            requirement: Requirement::default(),
            isolation: None,
            queue: QueueSize {
                running: 1,
                waiting: 0,
            },
            sessions: SessionBounds::default(),
            pool: None,
            trust: Trust::default(),
            tiers: Tiers::default(),
            budget: Budget::default(),
            // Common clients give up after 60 s.
            answer_within: Duration::from_secs(50),
            retention: Retention::default(),
            records: None,
            network: None,
            packages: None,
            functions: Vec::new(),
        }
    }

    /// The engine that does as they say. Reads files.
    pub(super) fn engine(&self) -> Engine {
        let around = Surroundings::from_env();
        let engine = match self.pool {
            Some(size) => Engine::warm(around, size, self.trust),
            None => Engine::new(around),
        };
        let engine = match &self.config {
            Some(config) => engine.with_config(config.clone()),
            None => engine,
        };
        let engine = engine
            .with_isolation(self.isolation)
            .with_packages(self.packages.clone())
            .with_ceiling(self.network.clone())
            .with_tiers(&self.tiers);
        let functions = self.functions.iter().cloned();
        functions.fold(engine, |engine, (name, own)| {
            engine.with_functions(&name, own)
        })
    }
}

impl Functions for Arc<dyn Functions> {
    fn tools(&self) -> Vec<Tool> {
        (**self).tools()
    }

    fn hidden(&self) -> &[&str] {
        (**self).hidden()
    }

    fn is_named_in(&self, code: &str) -> Option<bool> {
        (**self).is_named_in(code)
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: Map<String, Value>) -> Called<'a> {
        (**self).call(tool, arguments)
    }
}
