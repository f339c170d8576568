//! A regular expression in a definition, compiled when it is first used: a run reads
//! a definition and needs few of its patterns, often none.

use std::sync::OnceLock;

use regex_lite::Regex;
use serde::{Deserialize, Deserializer, de};

/// A pattern over a program's or a tool's text. `^` and `$` are ends of lines.
///
/// One that is no pattern fits nothing; [`Rule::check`] tells.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Rule {
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            compiled: OnceLock::new(),
        }
    }

    /// Whether it is a pattern.
    pub fn check(&self) -> Result<(), String> {
        compile(&self.text)
            .map(drop)
            .map_err(|error| format!("{:?} is not a pattern: {error}", self.text))
    }

    pub fn is_in(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    /// What the first group holds where the pattern first fits.
    pub fn first<'a>(&self, text: &'a str) -> Option<&'a str> {
        Some(self.regex()?.captures(text)?.get(1)?.as_str())
    }

    /// What the first group holds wherever the pattern fits.
    pub fn all<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let fits = self.regex().into_iter();
        let fits = fits.flat_map(|regex| regex.captures_iter(text));
        let groups = fits.filter_map(|fit| fit.get(1).map(|group| group.as_str()));
        groups.collect()
    }

    fn regex(&self) -> Option<&Regex> {
        let compiled = self.compiled.get_or_init(|| compile(&self.text).ok());
        compiled.as_ref()
    }
}

fn compile(text: &str) -> Result<Regex, regex_lite::Error> {
    regex_lite::RegexBuilder::new(text)
        .multi_line(true)
        // A user's file may hold anything; this is room for any sane pattern.
        .size_limit(1 << 18)
        .build()
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Rule {}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        if text.is_empty() {
            return Err(de::Error::custom("a pattern is empty"));
        }
        Ok(Self::new(&text))
    }
}
