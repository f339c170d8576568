//! A regular expression in a definition, compiled when the file is read.

use serde::{Deserialize, Deserializer, de};

/// A pattern over a program's or a tool's text. `^` and `$` are ends of lines.
#[derive(Debug, Clone)]
pub struct Rule(regex_lite::Regex);

impl Rule {
    pub fn parse(text: &str) -> Result<Self, String> {
        let built = regex_lite::RegexBuilder::new(text)
            .multi_line(true)
            // A user's file may hold anything; this is room for any sane pattern.
            .size_limit(1 << 18)
            .build();
        built
            .map(Self)
            .map_err(|error| format!("{text:?} is not a pattern: {error}"))
    }

    pub fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// What the first group holds where the pattern first fits.
    pub fn first<'a>(&self, text: &'a str) -> Option<&'a str> {
        Some(self.0.captures(text)?.get(1)?.as_str())
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Rule {}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(from)?).map_err(de::Error::custom)
    }
}
