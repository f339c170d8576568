//! One recipe: which archives make a runtime, pinned to the byte, and what of
//! them is kept.
//!
//! All checks happen while the file is read. A recipe that exists names nothing
//! on the list of names that are never used.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What is known about one runtime; `recipes/README.md` explains the fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Not in the file: the file's name is the recipe's.
    #[serde(skip)]
    pub name: String,
    pub version: String,
    /// The ids of the languages that it runs.
    pub languages: Vec<String>,
    /// Lower is offered first, where several recipes run a language.
    #[serde(default = "usual_rank")]
    pub rank: u32,
    /// Other recipes that its programs run on.
    #[serde(default)]
    pub requires: Vec<String>,
    /// The programs by name, and where in the tree each is.
    pub programs: BTreeMap<String, Inside>,
    /// Folders of the tree that its programs load libraries from.
    #[serde(default)]
    pub libraries: Vec<Inside>,
    /// What its programs need in the environment; `{root}` is the tree in the cell.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    #[serde(rename = "archive")]
    pub archives: Vec<Archive>,
}

/// One file of a registry.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    pub from: Registry,
    /// The package's name in the registry.
    pub name: String,
    /// The file: a name in the registry, or a path below its root.
    pub file: String,
    /// The machine that it is for; any, if there is none.
    pub arch: Option<String>,
    /// Left out only where nobody could tell it when the recipe was written.
    pub size: Option<u64>,
    pub sha256: Sha256Sum,
    /// Which folders and files of the archive are kept, and where in the tree.
    pub take: Option<BTreeMap<Inside, Inside>>,
    /// The folder of the tree that all of it goes into.
    #[serde(default)]
    pub into: Inside,
}

/// Where an archive comes from, and so what kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Registry {
    Npm,
    Pypi,
    Debian,
    DebianSecurity,
    /// The builds of CPython that uv installs.
    PythonBuilds,
    /// Anywhere: `file` is the whole address.
    Url,
    /// Go's modules. No recipe takes from there.
    #[serde(skip)]
    Go,
    /// Rust's crates, likewise.
    #[serde(skip)]
    Crates,
}

/// A relative path that stays inside: no `..`, no root, no odd bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Inside(PathBuf);

/// Sixty-four hexadecimal digits, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Sha256Sum(String);

/// A recipe that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("recipe {file}: {message}")]
pub struct RecipeError {
    pub file: String,
    pub message: String,
}

impl Recipe {
    /// Reads one file's text. `never` says why a package may not be used, if it may not.
    pub fn parse(
        name: &str,
        text: &str,
        file: &Path,
        never: impl Fn(&Archive) -> Option<String>,
    ) -> Result<Self, RecipeError> {
        let fail = |message: String| RecipeError {
            file: file.display().to_string(),
            message,
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
        let is_plain = |text: &str| {
            !text.is_empty() && text.bytes().all(plain) && !text.starts_with(['.', '-'])
        };
        // Both become names of folders and links.
        if !is_plain(name) {
            return Err(fail(format!("{name:?} is not a recipe's name")));
        }
        let recipe: Self = toml::from_str(text)
            .map_err(|error| fail(error.message().lines().collect::<Vec<_>>().join("; ")))?;
        let names = recipe.programs.keys().chain([&recipe.version]);
        if let Some(bad) = names.chain(&recipe.requires).find(|name| !is_plain(name)) {
            return Err(fail(format!("{bad:?} is not a plain name")));
        }
        if recipe.programs.is_empty() || recipe.archives.is_empty() {
            return Err(fail("it has no program or no archive".to_owned()));
        }
        if let Some(why) = recipe.archives.iter().find_map(never) {
            return Err(fail(why));
        }
        Ok(Self {
            name: name.to_owned(),
            ..recipe
        })
    }

    /// The archives for this machine; none if it is not for this machine.
    pub fn archives_for(&self, arch: &str) -> Vec<&Archive> {
        let fits = |it: &&Archive| it.arch.as_deref().is_none_or(|own| own == arch);
        // One that is for other machines only leaves just what goes along with it.
        let named = |it: &Archive| it.arch.is_some();
        let found: Vec<&Archive> = self.archives.iter().filter(fits).collect();
        if self.archives.iter().any(named) && !found.iter().any(|it| named(it)) {
            return Vec::new();
        }
        found
    }

    /// The name of its folder: another version or another content is another folder.
    pub fn folder(&self, arch: &str) -> String {
        let sums = self.archives_for(arch);
        let sum = sums.iter().map(|it| it.sha256.as_str()).collect::<String>();
        let mark = super::download::sha256(sum.as_bytes());
        format!("{}-{}-{}", self.name, self.version, &mark[..12])
    }
}

impl Archive {
    /// Where a file of the archive goes in the tree; none if it is not kept.
    pub fn placed(&self, path: &Inside) -> Option<Inside> {
        let usual = self.usual_take();
        let take = self.take.as_ref().unwrap_or(&usual);
        let fitting = take.iter().filter(|(from, _)| path.0.starts_with(&from.0));
        // The longest says most.
        let (from, to) = fitting.max_by_key(|(from, _)| from.0.components().count())?;
        let rest = path.0.strip_prefix(&from.0).ok()?;
        let mut placed = self.into.0.join(&to.0);
        // Joining nothing would leave a slash at the end.
        if !rest.as_os_str().is_empty() {
            placed.push(rest);
        }
        Some(Inside(placed))
    }

    fn usual_take(&self) -> BTreeMap<Inside, Inside> {
        let pairs: &[(&str, &str)] = match self.from {
            Registry::Npm => &[("package", "")],
            // A package's own `/usr` becomes the tree, and older paths go along.
            Registry::Debian | Registry::DebianSecurity => {
                &[("usr", ""), ("lib", "lib"), ("bin", "bin")]
            }
            Registry::PythonBuilds => &[("python", "")],
            Registry::Pypi | Registry::Url | Registry::Go | Registry::Crates => &[("", "")],
        };
        let inside = |text: &str| Inside(PathBuf::from(text));
        let pairs = pairs.iter().map(|(from, to)| (inside(from), inside(to)));
        pairs.collect()
    }
}

impl Inside {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut inside = PathBuf::new();
        if text.chars().any(char::is_control) {
            return Err(format!("{text:?} has a control character in it"));
        }
        for part in Path::new(text).components() {
            match part {
                Component::Normal(part) => inside.push(part),
                Component::CurDir => {}
                _ => return Err(format!("{text:?} leads out of its folder")),
            }
        }
        Ok(Self(inside))
    }

    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The same path below a folder.
    pub fn below(&self, folder: &Path) -> PathBuf {
        folder.join(&self.0)
    }
}

impl TryFrom<String> for Inside {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Inside> for String {
    fn from(inside: Inside) -> Self {
        inside.0.to_string_lossy().into_owned()
    }
}

impl Sha256Sum {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Sha256Sum {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 64 && text.bytes().all(digit) {
            Ok(Self(text))
        } else {
            Err(format!("{text:?} is not a SHA-256 in hexadecimal"))
        }
    }
}

impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Npm => "the npm registry",
            Self::Pypi => "PyPI",
            Self::Debian | Self::DebianSecurity => "Debian",
            Self::PythonBuilds => "uv's builds of CPython",
            Self::Url => "its own address",
            Self::Go => "Go's module proxy",
            Self::Crates => "the index of crates",
        })
    }
}

fn usual_rank() -> u32 {
    10
}
