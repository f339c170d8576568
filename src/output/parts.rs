//! The parts of a result.

use serde::Serialize;

use crate::error_kind::ErrorKind;
use crate::language::{By, Problem};

#[derive(Debug, Clone, Serialize)]
pub struct ErrorOutput {
    pub kind: ErrorKind,
    pub message: String,
    /// There once a surface has put it into words: see [`Unworded`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Where in the workspace, if the runtime said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// All that a compiler complained about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Problem>,
    /// What could not be imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The languages that the program may be in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// The programs that were searched, and where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub searched: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The command that would install what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// The program of another system that it would need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requires: Option<String>,
}

impl ErrorOutput {
    pub(super) fn new(kind: ErrorKind, message: String) -> Self {
        Self {
            kind,
            message,
            hint: None,
            file: None,
            line: None,
            column: None,
            diagnostics: Vec::new(),
            module: None,
            candidates: Vec::new(),
            searched: Vec::new(),
            path: None,
            install: None,
            requires: None,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct FileOutput {
    /// Its path in the workspace.
    pub name: String,
    pub size: u64,
    #[serde(rename = "type")]
    pub media_type: &'static str,
    /// Of its content, if that was brought back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Where its content can be read, if it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// What a call of a session changed in it, if it is a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct ImageOutput {
    pub mime_type: &'static str,
    pub bytes: usize,
    /// For surfaces that can show it; as text it would only be long.
    #[serde(skip)]
    pub data: Vec<u8>,
}

#[derive(Debug, Clone, Serialize)]
pub struct RuntimeOutput {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub path: String,
    /// Whether it was started before the program came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<&'static str>,
}

#[derive(Debug, Clone, Serialize)]
pub struct DetectedOutput {
    pub by: By,
    /// From 0 to 1.
    pub certainty: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct CompileOutput {
    pub duration_ms: f64,
    /// It was built before, and only looked up.
    pub cached: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct PackagesOutput {
    /// `name==version`.
    pub installed: Vec<String>,
    /// To have exactly these again: pass it as `packages`.
    pub lock: String,
    /// They were there already.
    pub cached: bool,
    /// How long it took to install them, if they were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct UsageOutput {
    pub cpu_ms: Option<f64>,
    pub memory_peak_bytes: Option<u64>,
}
