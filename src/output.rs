//! A result as the world sees it: what `--json` prints and MCP returns.
//!
//! The shapes are here; how each comes about is in the modules below. What a hint says is the
//! surface's to decide, so nothing here can be printed before one is named.

mod diagnosis;
mod folder;
mod of_result;
mod refusal;
mod verdict;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::cell::Isolation;
use crate::display::Displayed;
use crate::egress;
use crate::error_kind::ErrorKind;
use crate::hint::{Hint, Surface};
use crate::language::{By, Problem};
use crate::plan::RunPlan;
use crate::spool::{Spool, Spooled};

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
    /// Which streams were cut, and how many bytes they had in all.
    pub truncated: BTreeMap<&'static str, u64>,
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
}

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
    fn new(kind: ErrorKind, message: String) -> Self {
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

/// An output whose hint nobody has put into words yet: only a surface knows by which flag or
/// parameter its reader can follow it.
#[derive(Debug)]
pub struct Unworded {
    output: RunOutput,
    hint: Option<Hint>,
}

impl Unworded {
    pub fn stdout(&self) -> &str {
        &self.output.stdout
    }

    pub fn stderr(&self) -> &str {
        &self.output.stderr
    }

    /// A copy to be written down: pictures without their bytes, and no hint, which would be in the words of one surface.
    pub fn record(&self) -> RunOutput {
        let it = &self.output;
        RunOutput {
            status: it.status,
            exit_code: it.exit_code,
            signal: it.signal.clone(),
            stdout: it.stdout.clone(),
            stderr: it.stderr.clone(),
            files: it.files.clone(),
            deleted: it.deleted.clone(),
            session: it.session.clone(),
            image: it.image.as_ref().map(|image| ImageOutput {
                data: Vec::new(),
                ..*image
            }),
            value: it.value.clone(),
            page: None,
            shell_code: it.shell_code,
            displays: it.displays.iter().map(Displayed::without_data).collect(),
            saved: Vec::new(),
            truncated: it.truncated.clone(),
            error: it.error.clone(),
            language: it.language.clone(),
            detected: it.detected.clone(),
            runtime: it.runtime.clone(),
            compile: it.compile.clone(),
            packages: it.packages.clone(),
            duration_ms: it.duration_ms,
            usage: it.usage.clone(),
            network: it.network.clone(),
            notes: it.notes.clone(),
            isolation: it.isolation.clone(),
        }
    }

    pub fn words(self, surface: Surface) -> RunOutput {
        let mut output = self.output;
        if let Some(error) = &mut output.error {
            error.hint = self.hint.map(|hint| hint.words(surface));
        }
        output
    }

    /// What it showed that is not all in the answer, each with its name as part of a run.
    pub fn shown_contents(&self) -> Vec<(String, Spooled)> {
        let numbered = self.output.displays.iter().enumerate();
        let others = numbered.filter(|(_, it)| !it.is_whole_text());
        let content = |(at, it): (usize, &Displayed)| {
            let mut spool = Spool::default();
            spool.add(&it.data);
            Some((display_name(at, it), spool.finish().ok()?))
        };
        others.filter_map(content).collect()
    }

    /// The same with the addresses of what is stored of it, by name.
    pub fn with_stored(mut self, stored: &[(String, String)]) -> Self {
        let address = |name: String| {
            let found = stored.iter().find(|(other, _)| *other == name);
            found.map(|(_, address)| address.clone())
        };
        for file in &mut self.output.files {
            file.uri = address(format!("files/{}", file.name));
        }
        for (at, displayed) in self.output.displays.iter_mut().enumerate() {
            displayed.uri = address(display_name(at, displayed));
        }
        self
    }

    /// The same as the answer to a call of a session, with what its caller should know of that.
    pub fn in_session(mut self, name: String, notes: impl IntoIterator<Item = String>) -> Self {
        self.output.session = Some(name);
        self.output.notes.extend(notes);
        self
    }

    /// The same with the version of its runtime.
    pub fn with_version(mut self, version: Option<String>) -> Self {
        if let Some(runtime) = &mut self.output.runtime {
            runtime.version = version;
        }
        self
    }
}

fn display_name(at: usize, displayed: &Displayed) -> String {
    format!("display/{}.{}", at + 1, displayed.kind.extension())
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
            truncated: BTreeMap::new(),
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
            }),
            compile: None,
            packages: None,
            duration_ms: 0.0,
            usage: UsageOutput::default(),
            network: None,
            notes: plan.map(|plan| plan.notes.clone()).unwrap_or_default(),
            isolation: None,
        }
    }
}
