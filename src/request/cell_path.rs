//! A path inside the workspace.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A relative path below `/workspace`: one or more components, none of them
/// empty, `.` or `..`, each at most 255 bytes, no NUL, at most 4000 bytes in all.
///
/// The only way to get one is [`CellPath::parse`], so joining one to a folder
/// names something in that folder, as long as no link is followed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CellPath(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a path inside the workspace: {why}", path.escape_debug())]
pub struct BadCellPath {
    pub path: String,
    pub why: &'static str,
}

impl CellPath {
    /// Checks a path; `./a//b/` is the same as `a/b`.
    pub fn parse(path: &str) -> Result<Self, BadCellPath> {
        let bad = |why| {
            Err(BadCellPath {
                // Long enough to be recognised, short enough to be read.
                path: path.chars().take(100).collect(),
                why,
            })
        };
        if path.starts_with('/') {
            return bad("it is absolute");
        }
        if path.contains('\0') {
            return bad("it has a NUL byte");
        }
        let parts: Vec<&str> = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        if parts.is_empty() {
            return bad("it names no file");
        }
        if parts.contains(&"..") {
            return bad("it has `..`");
        }
        if parts.iter().any(|part| part.len() > 255) || path.len() > 4000 {
            return bad("it is too long");
        }
        Ok(Self(parts.join("/")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }
}

impl TryFrom<String> for CellPath {
    type Error = BadCellPath;

    fn try_from(path: String) -> Result<Self, BadCellPath> {
        Self::parse(&path)
    }
}

impl From<CellPath> for String {
    fn from(path: CellPath) -> Self {
        path.0
    }
}

impl fmt::Display for CellPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_path_cannot_leave_the_workspace() {
        let long = "x".repeat(256);
        let deep = "a/".repeat(2001);
        for bad in [
            "",
            ".",
            "./",
            "/",
            "/etc/passwd",
            "//a",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "a\0b",
            &long,
            &deep,
        ] {
            assert!(CellPath::parse(bad).is_err(), "{bad:?}");
        }
        for (given, kept) in [
            ("a", "a"),
            ("./a//b/./c/", "a/b/c"),
            ("..a", "..a"),
            ("a b\n", "a b\n"),
            ("...", "..."),
        ] {
            assert_eq!(CellPath::parse(given).unwrap().as_str(), kept);
        }
    }

    #[test]
    fn a_complaint_about_a_path_is_one_line() {
        let error = CellPath::parse("/a\nb").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`/a\\nb` is not a path inside the workspace: it is absolute"
        );
    }
}
