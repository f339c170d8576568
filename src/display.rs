//! What a program shows beside its output: pictures, documents, and the value of its last expression.
//!
//! It comes as files of one folder in the workspace: `001.png`, `002.html`, …, `value.json`. SECURITY: the program may have put anything
//! there. A name gives a place in the order and a hint of the type; the bytes decide. Nothing is decoded in this process: what must be
//! drawn or made smaller is sent into a cell of its own ([`draw`]).

mod draw;
mod page;
mod picture;

use serde::Serialize;
use serde_json::Value;

use crate::cell::{ChangedFile, Changes};
use crate::media_type;
use crate::request::{FileSource, InputFile};

pub use draw::{draw, sixels};
pub use picture::Kind;

/// How many things a program may show.
const MOST: usize = 20;
/// How many of the pictures among its files an answer shows.
const MOST_SAVED: usize = 6;
/// Bytes of one of them.
const LARGEST: usize = 8 << 20;
/// Characters of a text, which goes into the answer.
const LONGEST: usize = 20_000;
/// Bytes of a page that is read as text too.
const SHORT_PAGE: usize = 2000;
/// Bytes of a value that are looked at.
const LARGEST_VALUE: usize = 256 << 10;

/// All that a program showed.
#[derive(Debug, Default)]
pub struct Shown {
    /// JSON, or text.
    pub value: Option<Value>,
    /// The same as a page, if it has one.
    pub page: Option<String>,
    pub displays: Vec<Displayed>,
    /// Pictures that it saved in its workspace, if it showed none.
    pub saved: Vec<Displayed>,
    /// How many are not among them: too many, too large, or not what their name says.
    pub left_out: usize,
}

/// One thing that a program showed.
#[derive(Debug, Serialize)]
pub struct Displayed {
    #[serde(rename = "type")]
    pub kind: Kind,
    pub bytes: usize,
    /// What it says, if it is text or a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where it can be read, if it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    #[serde(skip)]
    pub data: Vec<u8>,
    /// The picture that stands for it in an answer, if that is not itself.
    #[serde(skip)]
    pub drawn: Option<Vec<u8>>,
}

impl Displayed {
    /// What is said of it, without itself.
    pub fn without_data(&self) -> Self {
        Self {
            kind: self.kind,
            bytes: self.bytes,
            text: self.text.clone(),
            uri: self.uri.clone(),
            data: Vec::new(),
            drawn: None,
        }
    }
}

impl Shown {
    /// Reads the files of a program, or nothing if they could not be fetched.
    pub fn read(files: Option<Vec<InputFile>>) -> Self {
        let mut shown = Self::default();
        let Some(files) = files else {
            shown.left_out = 1;
            return shown;
        };
        let mut numbered = Vec::new();
        for file in files {
            let (path, FileSource::Bytes(bytes)) = (file.path, file.source) else {
                continue;
            };
            let name = path.as_str().rsplit('/').next().unwrap_or_default();
            match name.split_once('.') {
                Some(("value", "json" | "txt")) => shown.value = value(name, &bytes),
                Some(("value", "html")) => shown.page = page(&bytes),
                Some((number, extension)) if is_number(number) => {
                    numbered.push((number.to_owned(), extension.to_owned(), bytes));
                }
                _ => shown.left_out += 1,
            }
        }
        numbered.sort();
        for (_, extension, bytes) in numbered {
            match Displayed::read(&extension, bytes) {
                Some(displayed) if shown.displays.len() < MOST => shown.displays.push(displayed),
                _ => shown.left_out += 1,
            }
        }
        shown
    }

    /// Adds the pictures among the files that it left, unless it showed some: then those are among its files too.
    pub fn add_saved(&mut self, changes: &Changes) {
        if self.displays.iter().any(|it| it.kind.is_picture()) {
            return;
        }
        let is_picture = |file: &&ChangedFile| file.media_type.starts_with("image/");
        let read = |file: &ChangedFile| {
            let content = file.content.as_ref()?;
            let extension = media_type::extension(file.path.as_str());
            let bytes = content.bytes.read(0, LARGEST + 1).ok()?;
            Displayed::read(&extension, bytes)
        };
        let pictures = changes.files.iter().filter(is_picture).filter_map(read);
        self.saved = pictures.take(MOST_SAVED).collect();
    }
}

impl Displayed {
    fn read(extension: &str, data: Vec<u8>) -> Option<Self> {
        if data.len() > LARGEST {
            return None;
        }
        let kind = Kind::of(extension, &data)?;
        let is_short = kind == Kind::Html && data.len() <= SHORT_PAGE;
        let text = match kind {
            Kind::Html if !is_short => page::words(&String::from_utf8_lossy(&data)),
            _ => (kind.is_text() || is_short).then(|| shortened(&data)),
        };
        Some(Self {
            kind,
            bytes: data.len(),
            text,
            uri: None,
            data,
            drawn: None,
        })
    }

    /// Whether all of it is in its text.
    pub fn is_whole_text(&self) -> bool {
        self.text
            .as_ref()
            .is_some_and(|text| text.len() == self.bytes)
    }

    /// A picture that was printed among text.
    pub fn printed((mime, data): (&'static str, Vec<u8>)) -> Option<Self> {
        Self::read(Kind::of_picture(mime)?.extension(), data)
    }

    /// The picture for an answer, if it is one or was drawn as one.
    pub fn picture(&self) -> Option<(Kind, &[u8])> {
        match &self.drawn {
            Some(drawn) => Some((Kind::Png, drawn)),
            None => {
                let fits = self.bytes <= draw::LARGEST_PICTURE && !draw::must_be_drawn(self);
                (self.kind.is_raster() && fits).then_some((self.kind, &self.data[..]))
            }
        }
    }
}

/// A line about what was shown that its reader does not see anyway.
pub fn summary(displays: &[Displayed], is_seen: fn(&Displayed) -> bool) -> Option<String> {
    let numbered = displays.iter().enumerate();
    let others = numbered.filter(|(_, it)| !is_seen(it));
    let word = |(at, it): (usize, &Displayed)| {
        let (number, kind) = (at + 1, it.kind.mime());
        match &it.uri {
            Some(uri) => format!("{number} {kind} {uri}"),
            None => format!("{number} {kind}, {} bytes", it.bytes),
        }
    };
    let words: Vec<String> = others.map(word).collect();
    (!words.is_empty()).then(|| format!("shown: {}", words.join("; ")))
}

fn is_number(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// JSON if it is that and is said to be, else text.
fn value(name: &str, bytes: &[u8]) -> Option<Value> {
    let bytes = &bytes[..bytes.len().min(LARGEST_VALUE)];
    let json = || serde_json::from_slice::<Value>(bytes).ok();
    let is_json = name.ends_with(".json") && bytes.len() <= LONGEST * 4;
    let found = is_json.then(json).flatten();
    found.or_else(|| Some(Value::String(shortened(bytes))))
}

/// A value as a page, if it is not too long for one.
fn page(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    (text.len() <= LARGEST_VALUE).then(|| text.to_owned())
}

/// The text of some bytes, as much of it as an answer holds.
fn shortened(bytes: &[u8]) -> String {
    // A character has four bytes at most.
    let kept = &bytes[..bytes.len().min(LONGEST * 4)];
    let text = String::from_utf8_lossy(kept);
    match text.char_indices().nth(LONGEST) {
        None if kept.len() == bytes.len() => text.into_owned(),
        cut => {
            let end = cut.map_or(text.len(), |(at, _)| at);
            format!("{}\n[... of {} bytes]", &text[..end], bytes.len())
        }
    }
}

#[cfg(test)]
mod tests;
