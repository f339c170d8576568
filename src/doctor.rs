//! Tests the walls from inside a real cell.
//!
//! A probe, which is this very binary, is put into ordinary cells. It says what it finds and tries what must not work; the judgement is
//! made out here, where a witness stands. What is wrong comes with how to fix it.

mod cells;
mod engines;
mod fix;
mod judge;
mod probe;
mod question;
mod stores;
mod witness;

use std::process::ExitCode;
use std::time::Instant;

use jail::init::seccomp;
use serde::Serialize;

pub use self::engines::{EngineReport, examine as examine_engines, found as engines_found};
pub use self::stores::{Kept, verify};
use crate::cell::{CellError, Isolation};
use crate::engine::Engine;
use crate::language::Runtime;

/// Everything the doctor found.
#[derive(Debug, Serialize)]
pub struct Report {
    pub isolation: Level,
    /// The names of all checks that are not in order, walls first.
    pub lacking: Vec<&'static str>,
    pub checks: Vec<Check>,
    /// The release of the running kernel.
    pub kernel: String,
    /// A short name for exactly the filter that programs get.
    pub filter: Option<String>,
    pub languages: Languages,
    /// The container engines and the gVisor of this machine, as programs in their sandboxes find them; if they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<EngineReport>,
    /// What is wrong with the configuration, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    pub duration_ms: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Every check is in order.
    Full,
    /// A cell can be made, but not everything about it is as it should be.
    Reduced,
    /// No cell can be made.
    None,
}

/// One promise, and whether this host keeps it.
#[derive(Debug, Serialize)]
pub struct Check {
    pub group: Group,
    pub name: &'static str,
    pub state: State,
    /// What it is for.
    pub means: String,
    /// What was found instead, if it failed.
    pub found: Option<String>,
    pub fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Whether there can be a cell.
    Cell,
    /// What a program in a sandbox is and can do.
    Inside,
    /// What ends a program that wants too much.
    Limits,
    /// What the cell is made of.
    Walls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    /// The host cannot give it, and says so.
    Missing,
    /// It should hold and does not.
    Failed,
}

#[derive(Debug, Serialize)]
pub struct Languages {
    pub known: usize,
    /// The ids of those whose runtime is on this machine.
    pub runnable: Vec<String>,
}

/// Becomes a probe if this process was started as one; else returns nothing.
pub fn hook() -> Option<ExitCode> {
    let name = std::env::args_os().next()?;
    (name == probe::PROGRAM).then(probe::main)
}

/// Examines this host. Takes as long as its probe of the deadline, and little more.
pub async fn examine(engine: &Engine) -> Report {
    let started = Instant::now();
    let (checks, filter) = match cells::probe(engine.provider()).await {
        Ok(findings) => {
            let filter = filter_name(&findings.result.isolation);
            (judge::checks(&findings), Some(filter))
        }
        Err(error) => (vec![no_cell(&error)], None),
    };
    let named = |state| {
        let checks = checks.iter().filter(move |check| check.state == state);
        checks.map(|check| check.name)
    };
    let lacking: Vec<_> = named(State::Missing).chain(named(State::Failed)).collect();
    let isolation = match (&filter, lacking.is_empty()) {
        (None, _) => Level::None,
        (Some(_), true) => Level::Full,
        (Some(_), false) => Level::Reduced,
    };
    let kernel = rustix::system::uname();
    Report {
        isolation,
        lacking,
        checks,
        kernel: kernel.release().to_string_lossy().into_owned(),
        filter,
        languages: languages(engine),
        engines: Vec::new(),
        config: None,
        duration_ms: started.elapsed().as_secs_f64() * 1e3,
    }
}

fn no_cell(error: &CellError) -> Check {
    Check {
        group: Group::Cell,
        name: "cell",
        state: State::Failed,
        means: "a sandbox for one program; nothing runs without it".to_owned(),
        found: Some(error.to_string()),
        fix: Some(fix::fix(error, &fix::Host::look())),
    }
}

fn filter_name(isolation: &Isolation) -> String {
    // The spawner chooses the filter by the same rule.
    let grouped = isolation
        .walls
        .iter()
        .any(|wall| wall.name == "control groups" && wall.stands);
    seccomp::hash(&seccomp::program(seccomp::Filter::Cell {
        grouped,
        writes_host: false,
    }))
}

fn languages(engine: &Engine) -> Languages {
    let listed = engine.registry().list();
    let can_run = |definition| Runtime::find(definition, engine.surroundings()).is_ok();
    Languages {
        known: listed.len(),
        runnable: listed
            .iter()
            .filter(|language| language.definition.is_ok_and(can_run))
            .map(|language| language.id.to_owned())
            .collect(),
    }
}
