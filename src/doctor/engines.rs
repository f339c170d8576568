//! Which engines this machine has beside our own jail, and whether a program in a sandbox of each finds what it must.

use serde::Serialize;

use super::{State, cells, judge};
use crate::cell::engines;
use crate::config::ContainerSettings;
use crate::engine::Engine;

/// What is known of one engine.
#[derive(Debug, Serialize)]
pub struct EngineReport {
    pub name: &'static str,
    /// Whether a program can be run in a sandbox of it.
    pub works: bool,
    /// The checks inside that are not in order, and the walls that are missing.
    pub lacking: Vec<&'static str>,
    /// Why nothing can be run in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl EngineReport {
    pub fn words(&self) -> String {
        match (&self.found, &self.fix) {
            (Some(found), Some(fix)) => format!("starts no sandbox: {found}. {fix}"),
            (Some(found), None) => format!("starts no sandbox: {found}"),
            (None, _) => format!(
                "starts sandboxes (`--isolation {}`), which lack: {}",
                self.name,
                self.lacking.join(", ")
            ),
        }
    }
}

/// The names of those that are on the PATH. Nothing is started.
pub fn found(engine: &Engine) -> Vec<&'static str> {
    let found = engines(&settings(engine)).into_iter();
    found.map(|(name, _)| name).collect()
}

fn settings(engine: &Engine) -> ContainerSettings {
    let settings = engine.config().map(|config| config.container.clone());
    settings.unwrap_or_default()
}

/// Every engine that is on the PATH, one after the other.
pub async fn examine(engine: &Engine) -> Vec<EngineReport> {
    let mut reports = Vec::new();
    for (name, provider) in engines(&settings(engine)) {
        let found = cells::probe_facts(&provider).await;
        reports.push(match found {
            Ok((result, outside)) => {
                let checks = judge::of_program(&result, &outside).into_iter();
                let lacking = checks.filter(|check| check.state != State::Ok);
                EngineReport {
                    name,
                    works: true,
                    lacking: lacking.map(|check| check.name).collect(),
                    found: None,
                    fix: None,
                }
            }
            Err(error) => EngineReport {
                name,
                works: false,
                lacking: Vec::new(),
                found: Some(error.to_string()),
                fix: error
                    .hint()
                    .map(|hint| hint.words(crate::hint::Surface::CommandLine)),
            },
        });
    }
    reports
}
