//! One way to run a language: the programs it needs, how to build, how to start.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, de};

use super::field::{program_names, variables};
use super::{Rule, Warm};
use crate::request::CellPath;

/// One way to run the language; a definition has several in order of preference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// Programs that must all be there. `{runtime}` is the first of them.
    #[serde(default, deserialize_with = "needs")]
    pub needs: Vec<String>,
    /// The way is for programs that look like this, and for no others.
    pub when: Option<Rule>,
    /// Words of which such a program has at least one: to find none is quicker than to look closely.
    #[serde(default)]
    pub mentions: Vec<String>,
    /// Its runtime is never kept waiting, though the language has one that is.
    #[serde(default)]
    pub cold: bool,
    /// The program's name in the workspace, if it is not the language's usual one.
    pub file: Option<CellPath>,
    /// Arguments that make the runtime print the path of its real program.
    #[serde(default, rename = "where")]
    pub locate: Vec<String>,
    /// The program below what `where` prints, if that is a folder.
    pub inside: Option<String>,
    /// Commands that build the program, each in a cell of its own.
    #[serde(default, deserialize_with = "steps")]
    pub compile: Vec<Vec<Word>>,
    #[serde(default, deserialize_with = "step")]
    pub run: Vec<Word>,
    /// The engine of ours that runs it, or that prepares it for `{runtime}`.
    #[serde(default, deserialize_with = "engine")]
    pub embedded: Option<String>,
    /// The engine of ours that has a program give its last value away before `{runtime}` reads it, where the scripts of `[display]` cannot.
    #[serde(default, deserialize_with = "engine")]
    pub value: Option<String>,
    /// Arguments before the program's file that make it load a script first, as `[binding]` has them.
    #[serde(default)]
    pub preload: Vec<String>,
    /// The same for programs that import a module of `[binding]`: what has the runtime look for it.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Arguments behind the program for runs that are granted a network, where the runtime reads no variables: `{port}` is the egress
    /// proxy's, `{key_store}` the trusted authorities in a file as Java reads it.
    #[serde(default)]
    pub network: Vec<String>,
    /// Its runtime runs no prelude, so a program that needs one gets a new runtime.
    #[serde(default)]
    pub without_prelude: bool,
    /// Its runtime looks for packages only when a program asks for one: those that are found by links may be laid where it waits.
    #[serde(default)]
    pub links_later: bool,
    /// The word of `run` that has the runtime write at once what is printed. It is left out where our library gathers that: in CPython.
    pub unbuffered: Option<String>,
    /// How its pre-started runtime is started, if that is not how it runs a program: another way's `run`, whose runtimes it then shares.
    #[serde(default, deserialize_with = "step")]
    pub prestart: Vec<Word>,
    /// With an engine that prepares the program for `{runtime}`: the files of which it leaves one, in the workspace. The engine then runs in
    /// a cell of its own, and a runtime that was started by `prestart` waits for that file, which is `{prepared}` there.
    #[serde(default)]
    pub prepared: Vec<CellPath>,
    /// `[warm]` for this way alone.
    #[serde(default, deserialize_with = "warm")]
    pub warm: Option<Arc<Warm>>,
    /// What such a runtime runs before the program, after what the program asks for: `{wants}` is what it may show.
    #[serde(default)]
    pub prelude: String,
    /// What that needs, as a program would ask for it.
    #[serde(default)]
    pub imports: String,
    /// Arguments that make this runtime print its version, if the language's do not.
    pub version: Option<Vec<String>>,
    #[serde(default, deserialize_with = "variables")]
    pub env: BTreeMap<String, String>,
}

/// One element of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    Literal(String),
    Runtime,
    File,
    /// Becomes as many arguments as the request has.
    Args,
    /// Becomes the request's other files that are built along.
    Sources,
    /// Text with placeholders in it: `-o{out}`.
    Mixed(Vec<Piece>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    File,
    /// What is built, and the folder that it is in.
    Out,
    OutFolder,
    /// The program's own name for itself, by `[source] name`.
    Name,
    /// What an engine has made of the program.
    Prepared,
}

impl Way {
    /// Whether the way is for this program.
    pub fn fits(&self, code: &[u8]) -> bool {
        let Some(when) = &self.when else {
            return true;
        };
        let code = String::from_utf8_lossy(code);
        let has = |word: &String| code.contains(word.as_str());
        (self.mentions.is_empty() || self.mentions.iter().any(has)) && when.is_in(&code)
    }

    /// Whether the placeholders stand where they mean something.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_prepared =
            |word: &Word| matches!(word, Word::Mixed(pieces) if pieces.contains(&Piece::Prepared));
        let names_prepared = self.prestart.iter().any(is_prepared);
        if names_prepared == self.prepared.is_empty() || self.run.iter().any(is_prepared) {
            return Err("`prepared` and a `prestart` with `{prepared}` belong together".to_owned());
        }
        if !self.prepared.is_empty() && (self.embedded.is_none() || self.needs.is_empty()) {
            return Err(
                "`prepared` is for an engine that prepares programs for a runtime".to_owned(),
            );
        }
        if self.embedded.is_some() {
            return match (self.run.as_slice(), self.compile.as_slice()) {
                ([], []) => Ok(()),
                _ => Err(
                    "`embedded` must not have a `run`: all engines are started the same way"
                        .to_owned(),
                ),
            };
        }
        if self.run.is_empty() || self.compile.iter().any(Vec::is_empty) {
            return Err("a command has no program".to_owned());
        }
        let steps = || self.compile.iter().chain([&self.run]);
        for step in steps() {
            let known = match &step[0] {
                Word::Runtime => true,
                Word::Literal(name) => self.needs.contains(name),
                Word::Mixed(pieces) => matches!(pieces[0], Piece::Out | Piece::OutFolder),
                Word::File | Word::Args | Word::Sources => false,
            };
            if !known {
                return Err(
                    "a command starts with `{runtime}`, `{out}` or one of `needs`".to_owned(),
                );
            }
            if step.iter().filter(|word| **word == Word::Args).count() > 1 {
                return Err("a command has `{args...}` at most once".to_owned());
            }
        }
        if self
            .compile
            .iter()
            .flatten()
            .any(|word| *word == Word::Args)
        {
            return Err("a `compile` step must not contain `{args...}`".to_owned());
        }
        let builds = |word: &Word| matches!(word, Word::Mixed(pieces) if pieces.iter().any(|piece| matches!(piece, Piece::Out | Piece::OutFolder)));
        if self.compile.is_empty() && self.run.iter().any(builds) {
            return Err("`{out}` needs a `compile` step".to_owned());
        }
        let reads = |word: &Word| match word {
            Word::File => true,
            Word::Mixed(pieces) => pieces
                .iter()
                .any(|piece| matches!(piece, Piece::File | Piece::Name)),
            _ => false,
        };
        if steps().flatten().any(reads) {
            Ok(())
        } else {
            Err("no command has `{file}`".to_owned())
        }
    }
}

fn needs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = program_names(from)?;
    if names.is_empty() {
        Err(de::Error::custom("`needs` names no program"))
    } else {
        Ok(names)
    }
}

fn warm<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<Warm>>, D::Error> {
    Ok(Some(Arc::new(Warm::deserialize(from)?)))
}

fn engine<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(from)?;
    if engines::exists(&name) {
        return Ok(Some(name));
    }
    let all: Vec<_> = engines::names().collect();
    Err(de::Error::custom(format!(
        "no engine `{name}` is built in; there are {}",
        all.join(", ")
    )))
}

pub(super) fn step<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Word>, D::Error> {
    words(Vec::<String>::deserialize(from)?).map_err(de::Error::custom)
}

pub(super) fn steps<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<Word>>, D::Error> {
    let steps = Vec::<Vec<String>>::deserialize(from)?;
    let steps = steps.into_iter().map(words).collect::<Result<_, _>>();
    steps.map_err(de::Error::custom)
}

pub(super) fn words(texts: Vec<String>) -> Result<Vec<Word>, String> {
    texts.into_iter().map(word).collect()
}

pub(super) fn word(text: String) -> Result<Word, String> {
    if text.contains('\0') {
        return Err("a command's element has a NUL byte".to_owned());
    }
    match text.as_str() {
        "{runtime}" => return Ok(Word::Runtime),
        "{file}" => return Ok(Word::File),
        "{args...}" => return Ok(Word::Args),
        "{sources...}" => return Ok(Word::Sources),
        _ => {}
    }
    let mut pieces = Vec::new();
    let mut rest = text.as_str();
    while let Some((start, name)) = placeholder(rest) {
        if start > 0 {
            pieces.push(Piece::Text(rest[..start].to_owned()));
        }
        pieces.push(match name {
            "{file}" => Piece::File,
            "{out}" => Piece::Out,
            "{outdir}" => Piece::OutFolder,
            "{name}" => Piece::Name,
            "{prepared}" => Piece::Prepared,
            "{runtime}" | "{args...}" | "{sources...}" => {
                return Err(format!(
                    "`{name}` must be a whole element, not a part of `{text}`"
                ));
            }
            _ => {
                return Err(format!(
                    "unknown placeholder `{name}`; there are {{runtime}}, {{file}}, {{name}}, {{out}}, \
                     {{outdir}}, {{prepared}}, {{args...}} and {{sources...}}"
                ));
            }
        });
        rest = &rest[start + name.len()..];
    }
    if pieces.is_empty() {
        return Ok(Word::Literal(text));
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(Word::Mixed(pieces))
}

/// The first `{word}` in a text and where. Braces around anything else (awk, JSON) are just text.
fn placeholder(text: &str) -> Option<(usize, &str)> {
    let mut from = 0;
    while let Some(at) = text[from..].find('{') {
        let start = from + at;
        let rest = &text[start..];
        let inner = rest[1..]
            .bytes()
            .take_while(|byte| byte.is_ascii_lowercase() || *byte == b'.')
            .count();
        if inner > 0 && rest.as_bytes().get(1 + inner) == Some(&b'}') {
            return Some((start, &rest[..inner + 2]));
        }
        from = start + 1;
    }
    None
}
