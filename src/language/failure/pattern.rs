//! The start of a line, with holes: `  File "{path}", line {line}`.

use serde::{Deserialize, Deserializer, de};

/// Text that a line starts with. Between its fixed parts are holes: `{any}`, and
/// `{path}`, `{line}`, `{column}`, `{module}`, `{message}`, whose content is kept.
/// `{file}` stands for the program's own file and is no hole.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern(Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    File,
    Hole(Hole),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Hole {
    Any,
    Path,
    Line,
    Column,
    Module,
    Message,
}

/// What was in the holes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    pub path: Option<String>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    pub module: Option<String>,
    /// May be empty: some tools go on in the next line.
    pub message: Option<String>,
}

/// The longest content of a hole that is kept: it goes into answers.
const LONGEST: usize = 200;

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, name, after)) = next_placeholder(rest) {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let part = match name {
                "file" => Part::File,
                "any" => Part::Hole(Hole::Any),
                "path" => Part::Hole(Hole::Path),
                "line" => Part::Hole(Hole::Line),
                "column" => Part::Hole(Hole::Column),
                "module" => Part::Hole(Hole::Module),
                "message" => Part::Hole(Hole::Message),
                _ => {
                    return Err(format!(
                        "unknown placeholder `{{{name}}}`; there are {{file}}, {{path}}, {{line}}, \
                         {{column}}, {{module}}, {{message}} and {{any}}"
                    ));
                }
            };
            if matches!((parts.last(), &part), (Some(Part::Hole(_)), Part::Hole(_))) {
                return Err(format!("two placeholders side by side in `{text}`"));
            }
            parts.push(part);
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        if !parts.iter().any(|part| !matches!(part, Part::Hole(_))) || text.contains('\n') {
            return Err(format!("{text:?} is not the start of a line"));
        }
        Ok(Self(parts))
    }

    /// The same with `{file}` replaced.
    pub fn for_file(&self, file: &str) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        for part in &self.0 {
            let part = match part {
                Part::File => Part::Text(file.to_owned()),
                other => other.clone(),
            };
            // Joined, so that a hole ends only where all that follows it fits.
            match (parts.last_mut(), part) {
                (Some(Part::Text(before)), Part::Text(text)) => before.push_str(&text),
                (_, part) => parts.push(part),
            }
        }
        Self(parts)
    }

    /// What the holes hold, if `line` starts like this.
    pub fn read(&self, line: &str) -> Option<Found> {
        let mut found = Found::default();
        let mut rest = line;
        let mut parts = self.0.iter().peekable();
        while let Some(part) = parts.next() {
            let hole = match part {
                Part::Text(text) => {
                    rest = rest.strip_prefix(text.as_str())?;
                    continue;
                }
                // Still a placeholder: it was never told of a file.
                Part::File => return None,
                Part::Hole(hole) => hole,
            };
            let length = match (hole, parts.peek()) {
                (Hole::Line | Hole::Column, _) => {
                    rest.bytes().take_while(u8::is_ascii_digit).count()
                }
                (_, Some(Part::Text(next))) => rest.find(next.as_str())?,
                _ => rest.len(),
            };
            let (content, after) = rest.split_at(length);
            hole.fill(&mut found, content)?;
            rest = after;
        }
        Some(found)
    }
}

impl Hole {
    /// Keeps what a hole holds; none if that cannot be what it is for.
    fn fill(self, found: &mut Found, content: &str) -> Option<()> {
        let text = || {
            let short: String = content.chars().take(LONGEST).collect();
            (!short.is_empty()).then_some(short)
        };
        match self {
            Self::Any => {}
            Self::Path => found.path = Some(text()?),
            Self::Module => found.module = Some(text()?),
            Self::Message => found.message = Some(text().unwrap_or_default()),
            Self::Column => found.column = Some(content.parse().ok()?),
            Self::Line => found.line = Some(content.parse().ok()?),
        }
        Some(())
    }
}

/// The text before the first `{word}`, the word, and the text after it.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(at) = text[from..].find('{') {
        let start = from + at;
        let name = &text[start + 1..];
        let length = name.bytes().take_while(u8::is_ascii_lowercase).count();
        if length > 0 && name.as_bytes().get(length) == Some(&b'}') {
            return Some((&text[..start], &name[..length], &name[length + 1..]));
        }
        from = start + 1;
    }
    None
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}
