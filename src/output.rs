//! A result as the world sees it: what `--json` prints and MCP returns.
//!
//! The shapes are here; how each comes about is in the modules below. What a hint says is the
//! surface's to decide, so nothing here can be printed before one is named.

mod diagnosis;
mod folder;
mod installs;
mod of_result;
mod parts;
mod refusal;
mod unworded;
mod verdict;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::cell::Isolation;
use crate::display::Displayed;
use crate::egress;
use crate::hint::{Hint, Surface};
use crate::language::By;
use crate::plan::RunPlan;
use crate::upstream::Calls;

pub use parts::{
    CompileOutput, DetectedOutput, ErrorOutput, FileOutput, ImageOutput, PackagesOutput,
    RuntimeOutput, UsageOutput,
};
pub use unworded::Unworded;
pub use verdict::Verdict;

/// What `hotcell run` exits with if nothing could be run as it was asked for.
pub const BAD_INPUT: u8 = 2;
/// What it exits with when hotcell itself could not do its part.
pub const OUR_FAILURE: u8 = 125;

/// How a run ended, in one stable word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    Failed,
    Killed,
    Timeout,
    Memory,
    Cancelled,
    Lost,
    /// Nothing was executed.
    Rejected,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[derive(Debug, Serialize)]
pub struct RunOutput {
    pub status: Status,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub stdout: String,
    pub stderr: String,
    /// The files that it left in its workspace, new or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileOutput>,
    /// The files of its session that it deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<String>,
    /// The session that it is a call of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What it printed, if that is a picture and not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageOutput>,
    /// What its last expression came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The same as a page, for surfaces that can show one.
    #[serde(skip)]
    pub page: Option<String>,
    /// What `hotcell run` exits with.
    #[serde(skip)]
    pub shell_code: u8,
    /// What it showed, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub displays: Vec<Displayed>,
    /// Pictures among its files, for surfaces that can show them.
    #[serde(skip)]
    pub saved: Vec<Displayed>,
    /// Whether a stream was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// How many bytes those that were cut had in all.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub total_bytes: BTreeMap<&'static str, u64>,
    pub error: Option<ErrorOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// How the language was told, if it was not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detected: Option<DetectedOutput>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeOutput>,
    /// What became of the compile step, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compile: Option<CompileOutput>,
    /// The packages that it had, if it had any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packages: Option<PackagesOutput>,
    pub duration_ms: f64,
    pub usage: UsageOutput,
    /// What it asked of its network, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<egress::Report>,
    /// Which tools of upstream servers it called.
    #[serde(skip_serializing_if = "Calls::is_empty")]
    pub calls: Calls,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
}

impl RunOutput {
    /// What the network refused, and how a surface lets it be granted: one line for each.
    pub fn refusals(&self, surface: Surface) -> Vec<String> {
        let denied = self.network.iter().flat_map(|network| &network.denied);
        let line = |denied: &egress::Denied| {
            let why = format!("`{}` was refused: {}", denied.host, denied.reason.words());
            match &denied.grant {
                Some(host) => {
                    let grant = Hint::GrantRefused(host.clone());
                    format!("network: {why}. {}", grant.words(surface))
                }
                None => format!("network: {why}"),
            }
        };
        denied.map(line).collect()
    }

    /// That of a run whose end nobody saw; `printed` is what came of it until then.
    pub fn unfinished(status: Status, plan: Option<&RunPlan>, printed: Vec<u8>) -> Self {
        Self {
            stdout: String::from_utf8_lossy(&printed).into_owned(),
            ..Self::empty(status, plan)
        }
    }

    /// One that says nothing but whose program it is about.
    fn empty(status: Status, plan: Option<&RunPlan>) -> Self {
        Self {
            status,
            exit_code: None,
            signal: None,
            stdout: String::new(),
            stderr: String::new(),
            files: Vec::new(),
            deleted: Vec::new(),
            session: None,
            image: None,
            value: None,
            page: None,
            shell_code: match status {
                Status::Rejected => BAD_INPUT,
                _ => OUR_FAILURE,
            },
            displays: Vec::new(),
            saved: Vec::new(),
            truncated: false,
            total_bytes: BTreeMap::new(),
            error: None,
            language: plan.map(|plan| plan.language.to_string()),
            detected: plan.and_then(|plan| match plan.chosen {
                (By::Request, _) => None,
                (by, certainty) => Some(DetectedOutput {
                    by,
                    certainty: (certainty * 100.0).floor() / 100.0,
                }),
            }),
            runtime: plan.map(|plan| RuntimeOutput {
                name: plan.runtime.command.clone(),
                version: None,
                path: plan.runtime.path.display().to_string(),
                start: None,
            }),
            compile: None,
            packages: None,
            duration_ms: 0.0,
            usage: UsageOutput::default(),
            network: None,
            calls: Calls::default(),
            notes: plan.map(|plan| plan.notes.clone()).unwrap_or_default(),
            isolation: None,
        }
    }
}
