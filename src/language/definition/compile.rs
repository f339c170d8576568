//! What a language's compiler may use, and how it says what is wrong.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::field::variables;
use crate::language::failure::Pattern;
use crate::request::CellPath;

/// The compile step of a language; `languages/README.md` explains the fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compile {
    /// Seconds that each step may take.
    pub timeout: u32,
    /// MiB of memory.
    pub memory: u32,
    /// Endings of the request's other files that are built along, as `{sources...}`.
    pub also: Vec<String>,
    /// Whether those are only the ones in the program's own folder.
    #[serde(default)]
    pub also_here: bool,
    /// Lines that name a place and what is wrong there.
    pub diagnostics: Vec<Pattern>,
    /// The line before such a line is its message.
    pub message_before: bool,
    #[serde(deserialize_with = "variables")]
    pub env: BTreeMap<String, String>,
    /// The tool chain's own cache in the workspace, filled once by building `warm_up`.
    pub cache: Option<CellPath>,
    pub warm_up: String,
}

impl Default for Compile {
    fn default() -> Self {
        Self {
            timeout: 60,
            memory: 1024,
            also: Vec::new(),
            also_here: false,
            diagnostics: Vec::new(),
            message_before: false,
            env: BTreeMap::new(),
            cache: None,
            warm_up: String::new(),
        }
    }
}

/// One thing that a compiler complained about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub file: String,
    pub line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    pub message: String,
}

/// More than anybody reads, less than would hurt.
const MOST: usize = 20;

impl Compile {
    /// What the compiler's output says, in its order.
    pub fn problems(&self, output: &str) -> Vec<Problem> {
        let lines: Vec<&str> = output.lines().filter(|it| !it.trim().is_empty()).collect();
        let mut problems: Vec<Problem> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let mut patterns = self.diagnostics.iter();
            let Some(found) = patterns.find_map(|pattern| pattern.read(line.trim_end())) else {
                continue;
            };
            let (Some(file), Some(number)) = (found.path, found.line) else {
                continue;
            };
            let near = |at: Option<usize>| at.and_then(|at| lines.get(at)).unwrap_or(line);
            let message = match found.message.as_deref().map(str::trim) {
                Some("") => near(at.checked_add(1)).trim(),
                Some(message) => message,
                None if self.message_before => near(at.checked_sub(1)).trim(),
                None => line.trim(),
            };
            let problem = Problem {
                file: workspace_path(&file).to_owned(),
                line: number,
                column: found.column,
                message: message.chars().take(300).collect(),
            };
            if !problems.contains(&problem) && problems.len() < MOST {
                problems.push(problem);
            }
        }
        problems
    }
}

/// The path as the caller knows it: compilers name it absolutely or by `./`.
fn workspace_path(path: &str) -> &str {
    let path = path.trim_start();
    let path = path.strip_prefix("/workspace/").unwrap_or(path);
    path.strip_prefix("./").unwrap_or(path)
}
