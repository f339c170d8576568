//! One language's TOML file, read and checked.
//!
//! All checks happen while the file is read, so that each complaint has a line,
//! and a [`Definition`] that exists can be planned with.

mod binding;
mod compile;
mod display;
mod packages;
mod rule;
mod session;
mod way;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, de};

use super::LanguageId;
use super::failure::Failure;
use crate::request::{CellPath, check_variable};

pub use binding::Binding;
pub use compile::{Compile, Problem};
pub use display::{Display, Wants};
pub use packages::{Ecosystem, Installer, Packages};
pub use rule::Rule;
pub use session::{Magic, Session, Worker};
pub use way::{Piece, Way, Word};

/// What is known about a language; `languages/README.md` explains the fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Not in the file: the file's name is the id.
    #[serde(skip, default = "unnamed")]
    pub id: LanguageId,
    pub name: String,
    #[serde(default)]
    pub aliases: Vec<LanguageId>,
    /// Lower case, without the dot.
    #[serde(default, deserialize_with = "extensions")]
    pub extensions: Vec<String>,
    /// Whole names of files: `Makefile`.
    #[serde(default)]
    pub files: Vec<String>,
    /// Languages whose programs are programs of this one.
    #[serde(default)]
    pub includes: Vec<LanguageId>,
    #[serde(default, deserialize_with = "program_names")]
    pub shebangs: Vec<String>,
    /// What its programs look like: a pattern and how much it says.
    #[serde(default)]
    pub hints: Vec<(Rule, i32)>,
    /// The one system it exists on, if it is bound to one.
    pub platform: Option<Platform>,
    #[serde(default)]
    pub runtime: Programs,
    pub source: Source,
    /// How each of `[runtime] commands` is started; or there are ways.
    run: Option<Command>,
    /// In order of preference.
    #[serde(default, rename = "command")]
    ways: Vec<Way>,
    #[serde(default)]
    pub compile: Compile,
    #[serde(default, deserialize_with = "variables")]
    pub env: BTreeMap<String, String>,
    #[serde(default)]
    pub version: Version,
    #[serde(default)]
    pub failure: Failure,
    /// How runs of it are kept waiting, if they are.
    pub warm: Option<Warm>,
    /// How its programs get packages, if they do.
    pub packages: Option<Packages>,
    /// How its programs call the tools of other servers, if they can.
    pub binding: Option<Binding>,
    /// How its programs show something, if they can.
    pub display: Option<Display>,
    /// How its programs are kept between calls, if they can be.
    pub session: Option<Session>,
}

/// A runtime that has started before its program comes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Warm {
    /// Each pre-started sandbox starts a runtime of its own, after the language was first used.
    /// Otherwise one runtime lends its image to all of them.
    #[serde(default)]
    pub fresh: bool,
    /// It looks at more of the workspace than the program before it waits, so a program
    /// with files beside it gets a new one.
    #[serde(default)]
    pub alone: bool,
    /// What it is given when it reads of the program before it has loaded all, and does not
    /// care for: it waits when it reads on.
    #[serde(default)]
    pub first: String,
    /// The first line, or two, of programs that may be begun so: it is shown with those
    /// bytes if it is wrong. Others wait where it opens them.
    pub first_line: Option<Rule>,
    /// How many MiB a pre-started sandbox with such a runtime takes up.
    #[serde(default = "usual_weight")]
    pub weight: u32,
    /// How a line begins that asks for a module.
    #[serde(default)]
    pub imports: Vec<String>,
    /// What lets a program have the first tier: it could see what the others do.
    #[serde(default)]
    pub exact: Vec<String>,
    /// What lets a program have a new runtime: it could see for how long another waited.
    #[serde(default)]
    pub cold: Vec<String>,
    /// What the runtime runs once, before it waits, and in each cell before the program;
    /// `{tier}` is the tier's own part. Not in the first tier.
    #[serde(default)]
    pub before: String,
    #[serde(default)]
    pub after: String,
    /// What it runs when the program has ended, instead of taking itself apart.
    #[serde(default)]
    pub leave: String,
    /// The first is the runtime as it is; the second is for programs that no other knows.
    #[serde(default)]
    pub tiers: Vec<Tier>,
}

/// What a pre-started runtime has loaded already.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Modules that let a program that asks for one of them have this tier.
    pub modules: Vec<String>,
    #[serde(default)]
    pub before: String,
    #[serde(default)]
    pub after: String,
}

fn usual_weight() -> u32 {
    8
}

impl Warm {
    /// What a runtime for `code` runs beforehand, in each cell, and at its end. A program with files
    /// beside it, which may be named like modules, gets no tier that has loaded some.
    /// `None` for one that wants a new runtime.
    pub fn code(&self, code: &str, is_alone: bool) -> Option<[String; 3]> {
        let mentions = |words: &[String]| words.iter().any(|word| code.contains(word));
        if mentions(&self.cold) || (self.alone && !is_alone) {
            return None;
        }
        let parts = |tier: Option<&Tier>| {
            tier.map_or_else(Default::default, |it| (it.before.clone(), it.after.clone()))
        };
        if mentions(&self.exact) {
            let (before, after) = parts(self.tiers.first());
            return Some([before, after, String::new()]);
        }
        let known = self.tier(code).filter(|_| is_alone);
        let (before, after) = parts(known.or(self.tiers.get(1)));
        Some([
            self.before.replace("{tier}", &before),
            self.after.replace("{tier}", &after),
            self.leave.clone(),
        ])
    }

    /// What the runtime is given before a program that begins like this one.
    pub fn first(&self, code: &str) -> &str {
        let end = code
            .match_indices('\n')
            .nth(1)
            .map_or(code.len(), |it| it.0);
        let fits = |rule: &Rule| rule.is_in(&code[..end]);
        if self.first_line.as_ref().is_none_or(fits) {
            &self.first
        } else {
            ""
        }
    }

    /// The last tier that knows a module the program asks for.
    ///
    /// A guess by the look of lines: a wrong one costs time and nothing else.
    fn tier(&self, code: &str) -> Option<&Tier> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let asks = |line: &str| self.imports.iter().any(|start| line.starts_with(start));
        let asked: Vec<&str> = code
            .lines()
            .map(str::trim_start)
            .filter(|line| asks(line))
            .flat_map(|line| line.split(|c| !is_word(c)))
            .collect();
        let knows = |tier: &&Tier| tier.modules.iter().any(|m| asked.contains(&m.as_str()));
        self.tiers.iter().rev().find(knows)
    }
}

/// A system by the name Rust has for it, and by the one people have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Platform {
    Windows,
    MacOs,
}

/// How the language's runtime is found on a host.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// The first that is found wins.
    #[serde(default, deserialize_with = "program_names")]
    pub commands: Vec<String>,
    /// Arguments that make the runtime print the path of its real program.
    #[serde(default, rename = "where")]
    pub locate: Vec<String>,
    #[serde(default)]
    pub install: Install,
    /// Folders below `/etc` and `/var/lib` that the tool chain reads; the last part may have a `*`.
    #[serde(default, deserialize_with = "shown")]
    pub shows: Vec<String>,
    /// Where it comes from when no package manager has it, as a sentence.
    pub elsewhere: Option<String>,
}

/// The package that holds the runtime, for each package manager we know.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Install {
    pub apt: Option<String>,
    pub dnf: Option<String>,
    pub apk: Option<String>,
    pub pacman: Option<String>,
    pub brew: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// May hold `{name}`.
    pub file: CellPath,
    /// Patterns whose first group is the program's name for itself, as in `class X`; the first that fits wins.
    #[serde(default)]
    pub name: Vec<Rule>,
    /// The name of a program that has none.
    #[serde(default = "main_name")]
    pub nameless: String,
    /// Whether `{name}` is written in lower case in file names.
    #[serde(default)]
    pub lower_case: bool,
    /// Whether a program that came as a file of this language keeps its name.
    #[serde(default = "yes")]
    pub keep_name: bool,
    /// Text that the runtime needs at the beginning, unless the program has it.
    pub prepend: Option<Prepend>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepend {
    pub text: String,
    pub unless: Rule,
}

/// How a runtime tells its version.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Version {
    pub args: Vec<String>,
    /// The first group is the version.
    pub pattern: Rule,
}

impl Default for Version {
    fn default() -> Self {
        Self {
            args: vec!["--version".to_owned()],
            pattern: Rule::new(r"(\d+(?:\.\d+)+)"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    #[serde(deserialize_with = "simple")]
    argv: Vec<Word>,
}

/// A definition that cannot be used, and where in it the trouble is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {message}", file.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct DefinitionError {
    pub file: PathBuf,
    pub line: Option<usize>,
    pub message: String,
}

impl Definition {
    /// Reads one file's text; `id` is its name without the ending.
    pub fn parse(id: &str, text: &str, file: &Path) -> Result<Self, DefinitionError> {
        let fail = |line, message| DefinitionError {
            file: file.to_owned(),
            line,
            message,
        };
        let id = LanguageId::parse(id).map_err(|error| fail(None, error.to_string()))?;
        let definition: Self = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map(|span| 1 + text[..span.start].matches('\n').count());
            // One line: this is shown as an error message.
            fail(line, error.message().lines().collect::<Vec<_>>().join("; "))
        })?;
        let mut definition = Self { id, ..definition };
        if let (Some(warm), Some(display)) = (&mut definition.warm, &definition.display) {
            let script = display.scripts.first().map_or("", |script| script.text);
            warm.before = warm.before.replace("{display}", script);
        }
        let ways = definition.ways().map_err(|message| fail(None, message))?;
        Ok(Self { ways, ..definition })
    }

    /// Whether every pattern is one. Not a part of reading: it costs more than all the
    /// rest, and the built-in files are checked by a test.
    pub fn check_patterns(&self) -> Result<(), String> {
        let hints = self.hints.iter().map(|(rule, _)| rule);
        let names = self.source.name.iter();
        let when = self.ways.iter().filter_map(|way| way.when.as_ref());
        let unless = self.source.prepend.iter().map(|prepend| &prepend.unless);
        let display = self.display.iter().flat_map(|it| &it.value);
        let value = display.map(|value| &value.unless);
        let mut all = hints
            .chain(names)
            .chain(when)
            .chain(unless)
            .chain(value)
            .chain([&self.version.pattern]);
        all.try_for_each(Rule::check)
    }

    /// The ways to run it, in order of preference: at least one, each checked.
    pub fn commands(&self) -> &[Way] {
        &self.ways
    }

    /// The same with other ways, which must be some of its own.
    pub(super) fn with_commands(&self, ways: Vec<Way>) -> Self {
        Self {
            ways,
            ..self.clone()
        }
    }

    fn ways(&self) -> Result<Vec<Way>, String> {
        let commands = &self.runtime.commands;
        match (&self.run, self.ways.as_slice()) {
            (Some(_), []) if commands.is_empty() => {
                Err("`[runtime] commands` names no program".to_owned())
            }
            (Some(run), []) => Ok(commands
                .iter()
                .map(|command| Way {
                    needs: vec![command.clone()],
                    locate: self.runtime.locate.clone(),
                    run: run.argv.clone(),
                    ..Way::default()
                })
                .collect()),
            (None, []) => Err("there is neither `[run]` nor a `[[command]]`".to_owned()),
            (None, ways) if commands.is_empty() => {
                ways.iter().try_for_each(Way::check)?;
                if ways
                    .iter()
                    .any(|way| way.needs.is_empty() && way.embedded.is_none())
                {
                    return Err("a command has neither `needs` nor `embedded`".to_owned());
                }
                Ok(ways.to_vec())
            }
            _ => Err(
                "use either `[[command]]` or `[runtime] commands` with `[run]`, not both"
                    .to_owned(),
            ),
        }
    }

    /// Whether it is a file of this language, by its name.
    pub fn owns(&self, file: &str) -> bool {
        let extension = Path::new(file).extension().and_then(|it| it.to_str());
        self.files.iter().any(|name| name == file)
            || extension.is_some_and(|it| self.extensions.contains(&it.to_ascii_lowercase()))
    }
}

impl Platform {
    /// The name people have for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Windows => "Windows",
            Self::MacOs => "macOS",
        }
    }

    /// Whether this is the system we are on.
    pub fn is_here(self) -> bool {
        let name = match self {
            Self::Windows => "windows",
            Self::MacOs => "macos",
        };
        std::env::consts::OS == name
    }
}

fn unnamed() -> LanguageId {
    LanguageId::parse("unnamed").expect("a fixed good name")
}

fn main_name() -> String {
    "main".to_owned()
}

fn yes() -> bool {
    true
}

/// The command of a runtime that takes the program's file and nothing else.
fn simple<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Word>, D::Error> {
    let words = way::words(Vec::<String>::deserialize(from)?).map_err(de::Error::custom)?;
    let count = |wanted: &Word| words.iter().filter(|word| *word == wanted).count();
    if words.first() != Some(&Word::Runtime) || count(&Word::Runtime) != 1 {
        return Err(de::Error::custom(
            "a command must start with `{runtime}` and contain it once",
        ));
    }
    let way = Way {
        run: words.clone(),
        ..Way::default()
    };
    way.check().map_err(de::Error::custom)?;
    Ok(words)
}

fn program_names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    list(
        from,
        |name| name.bytes().all(plain) && !name.starts_with(['.', '-']),
        "the plain name of a program",
    )
}

/// SECURITY: a program sees all of such a folder, so it must be a tool chain's own.
fn shown<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    let good = |path: &str| {
        let inside = ["/etc/", "/var/lib/"]
            .iter()
            .find_map(|it| path.strip_prefix(it));
        inside.is_some_and(|inside| {
            let (folder, last) = inside.rsplit_once('/').unwrap_or(("", inside));
            let before = last.split('*').next().unwrap_or_default();
            let named = folder
                .split('/')
                .all(|part| part != ".." && part.bytes().all(plain));
            named
                && !last.is_empty()
                && (before == last || before.len() >= 2)
                && !last.contains("..")
                && last.matches('*').count() <= 1
                && last.bytes().all(|byte| plain(byte) || byte == b'*')
        })
    };
    list(
        from,
        good,
        "a folder of a tool chain below /etc or /var/lib",
    )
}

fn extensions<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_+-".contains(&byte);
    list(
        from,
        |name| name.bytes().all(plain),
        "an extension: lower case, without a dot",
    )
}

fn list<'de, D: Deserializer<'de>>(
    from: D,
    good: impl Fn(&str) -> bool,
    wanted: &str,
) -> Result<Vec<String>, D::Error> {
    let items = Vec::<String>::deserialize(from)?;
    match items.iter().find(|item| item.is_empty() || !good(item)) {
        Some(bad) => Err(de::Error::custom(format!("{bad:?} is not {wanted}"))),
        None => Ok(items),
    }
}

fn variables<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let variables = BTreeMap::<String, String>::deserialize(from)?;
    for (name, value) in &variables {
        check_variable(name, value).map_err(de::Error::custom)?;
    }
    Ok(variables)
}

#[cfg(test)]
mod tests;
