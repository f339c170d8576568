//! Which container engines this machine has, and whether a program in a container of each finds what it must.

use serde::Serialize;

use super::{State, cells, judge};
use crate::cell::{EngineKind, in_containers};
use crate::engine::Engine;

/// What is known of one engine.
#[derive(Debug, Serialize)]
pub struct EngineReport {
    pub name: &'static str,
    /// Whether a program can be run in a container of it.
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
            (Some(found), Some(fix)) => format!("starts no container: {found}. {fix}"),
            (Some(found), None) => format!("starts no container: {found}"),
            (None, _) => format!(
                "starts containers (`--isolation {}`), which lack: {}",
                self.name,
                self.lacking.join(", ")
            ),
        }
    }
}

/// Every engine that is on the PATH, one after the other.
pub async fn examine(engine: &Engine) -> Vec<EngineReport> {
    let settings = engine.config().map(|config| config.container.clone());
    let settings = settings.unwrap_or_default();
    let mut reports = Vec::new();
    for kind in [EngineKind::Podman, EngineKind::Docker] {
        if !kind.is_there() {
            continue;
        }
        let provider = in_containers(Some(kind), &settings, None);
        let found = cells::probe_facts(&provider).await;
        let name = kind.name();
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
