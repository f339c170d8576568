//! Personal data in what a server says: a program, and a model with it, gets a token in its place, and the value again goes to servers alone.
//!
//! SECURITY: values are replaced before they enter a sandbox, so nothing that a program does with them can show one. A token is restored only
//! in arguments for a server whose own answers are redacted in the same way, or one that repeats what it is told would undo it; and nobody
//! guesses a token, so one caller's are of no use to another.

mod find;

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Mutex;

use hmac::{Hmac, KeyInit, Mac};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use sha2::Sha256;

use super::lifecycle::lock;
use super::{Arguments, CallError};
use crate::config::Redaction;
use crate::random::random;
use find::{Kind, find, overlaps};

/// Values that can be restored. The oldest are forgotten first: their tokens stay what they are.
const MOST: usize = 100_000;
/// Hexadecimal digits of a token.
const DIGITS: usize = 16;

/// The tokens that were given out, for as long as the process lives.
pub struct Pseudonyms {
    key: [u8; 64],
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    values: HashMap<String, String>,
    oldest: VecDeque<String>,
}

impl Default for Pseudonyms {
    fn default() -> Self {
        Self {
            key: random(),
            known: Mutex::default(),
        }
    }
}

impl Pseudonyms {
    /// What a server said, with tokens.
    pub fn redact(&self, said: &mut Value, redaction: Redaction) {
        match said {
            Value::String(text) => {
                if let Some(changed) = self.text(text, redaction) {
                    *text = changed;
                }
            }
            Value::Number(number) if redaction.card => {
                let text = number.to_string();
                let only = Redaction {
                    email: false,
                    phone: false,
                    card: true,
                };
                if let Some(token) = self.text(&text, only) {
                    *said = token.into();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|it| self.redact(it, redaction)),
            Value::Object(members) => {
                rename(members, |name| self.text(name, redaction));
                // Pictures and files are bytes, not text.
                let is_file = members.contains_key("mimeType");
                for (name, member) in members {
                    if !(is_file && matches!(name.as_str(), "data" | "blob")) {
                        self.redact(member, redaction);
                    }
                }
            }
            _ => {}
        }
    }

    pub fn redact_error(&self, error: CallError, redaction: Redaction) -> CallError {
        let changed = |text: String| self.text(&text, redaction).unwrap_or(text);
        match error {
            CallError::Tool(why) => CallError::Tool(changed(why)),
            CallError::Arguments(why) => CallError::Arguments(changed(why)),
            CallError::Unavailable(why) => CallError::Unavailable(changed(why)),
            other => other,
        }
    }

    /// What is to be said to a server, with the values of tokens that it would not give back itself.
    pub fn restore(&self, asked: &mut Value, redaction: Redaction) {
        match asked {
            Value::String(text) => {
                if let Some(changed) = self.restored(text, redaction) {
                    *text = changed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|it| self.restore(it, redaction)),
            Value::Object(members) => {
                rename(members, |name| self.restored(name, redaction));
                members
                    .values_mut()
                    .for_each(|it| self.restore(it, redaction));
            }
            _ => {}
        }
    }

    /// The same of the arguments of a call.
    pub fn restore_arguments(
        &self,
        arguments: &Arguments,
        redaction: Redaction,
    ) -> Result<Arguments, CallError> {
        if !Kind::ALL
            .iter()
            .any(|kind| arguments.text().contains(&opening(*kind)))
        {
            return Ok(arguments.clone());
        }
        let mut asked = Value::Object(arguments.to_map()?);
        self.restore(&mut asked, redaction);
        match asked {
            Value::Object(asked) => Arguments::try_from(asked),
            _ => Ok(arguments.clone()),
        }
    }

    /// A text with tokens; none if there is nothing to hide in it. One that is JSON stays JSON.
    fn text(&self, text: &str, redaction: Redaction) -> Option<String> {
        let is_json = || serde_json::from_str::<IgnoredAny>(text).is_ok();
        match text.trim_start().starts_with(['{', '[']) && is_json() {
            true => self.json(text, redaction),
            false => self.plain(text, redaction, |token| token),
        }
    }

    /// The texts in it are looked at as they are read, and a number becomes a text.
    fn json(&self, text: &str, redaction: Redaction) -> Option<String> {
        let cards = Redaction {
            card: redaction.card,
            ..Redaction::default()
        };
        let quote = |token| format!("\"{token}\"");
        let mut changed = String::new();
        let (mut rest, mut is_other) = (text, false);
        while !rest.is_empty() {
            let (outside, after) = rest.split_at(rest.find('"').unwrap_or(rest.len()));
            let (inside, after) = after.split_at(literal(after));
            let numbers = self.plain(outside, cards, quote);
            let read = serde_json::from_str::<String>(inside).ok();
            let said = read.and_then(|it| self.text(&it, redaction));
            let said = said.map(|it| Value::String(it).to_string());
            is_other |= numbers.is_some() || said.is_some();
            changed += numbers.as_deref().unwrap_or(outside);
            changed += said.as_deref().unwrap_or(inside);
            rest = after;
        }
        is_other.then_some(changed)
    }

    fn plain(
        &self,
        text: &str,
        redaction: Redaction,
        written: impl Fn(String) -> String,
    ) -> Option<String> {
        let found = find(text, redaction);
        if found.is_empty() {
            return None;
        }
        // A token that comes back is no value.
        let tokens: Vec<_> = tokens(text).collect();
        let is_token = |at: &Range<usize>| overlaps(&tokens, at);
        let mut changed = String::new();
        let mut done = 0;
        for (kind, at) in found.into_iter().filter(|(_, at)| !is_token(at)) {
            changed += &text[done..at.start];
            changed += &written(self.token(kind, &text[at.clone()]));
            done = at.end;
        }
        (done > 0).then(|| changed + &text[done..])
    }

    fn token(&self, kind: Kind, value: &str) -> String {
        let mut mac = <Hmac<Sha256> as KeyInit>::new(&self.key.into());
        mac.update(kind.name().as_bytes());
        mac.update(value.as_bytes());
        let mut token = opening(kind);
        for byte in mac.finalize().into_bytes().iter().take(DIGITS / 2) {
            let _ = write!(token, "{byte:02x}");
        }
        token.push(']');
        let mut known = lock(&self.known);
        if !known.values.contains_key(&token) {
            if known.values.len() >= MOST
                && let Some(oldest) = known.oldest.pop_front()
            {
                known.values.remove(&oldest);
            }
            known.oldest.push_back(token.clone());
            known.values.insert(token.clone(), value.to_owned());
        }
        token
    }

    fn restored(&self, text: &str, redaction: Redaction) -> Option<String> {
        let mut changed = String::new();
        let mut done = 0;
        for (kind, at) in tokens(text) {
            let value = lock(&self.known).values.get(&text[at.clone()]).cloned();
            if let Some(value) = value.filter(|_| kind.is_in(redaction)) {
                changed += &text[done..at.start];
                changed += &value;
                done = at.end;
            }
        }
        (done > 0).then(|| changed + &text[done..])
    }
}

/// How long the text in quotes is that JSON goes on with.
fn literal(json: &str) -> usize {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(json.len(), |end| end + 2)
}

fn opening(kind: Kind) -> String {
    format!("[{}:", kind.name())
}

/// What looks like a token.
fn tokens(text: &str) -> impl Iterator<Item = (Kind, Range<usize>)> {
    text.match_indices('[').filter_map(|(at, _)| {
        let is_kind = |kind: &Kind| text[at..].starts_with(&opening(*kind));
        let kind = Kind::ALL.into_iter().find(is_kind)?;
        let start = at + opening(kind).len();
        let digits = text.get(start..start + DIGITS)?;
        let is_hex = digits
            .bytes()
            .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        let end = start + DIGITS + 1;
        (is_hex && text[start + DIGITS..].starts_with(']')).then_some((kind, at..end))
    })
}

/// Changes the names of members, where there is something to change.
fn rename(members: &mut Map<String, Value>, change: impl Fn(&str) -> Option<String>) {
    if members.keys().any(|name| change(name).is_some()) {
        let all = std::mem::take(members).into_iter();
        *members = all
            .map(|(name, value)| (change(&name).unwrap_or(name), value))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ALL: Redaction = Redaction::ALL;

    #[test]
    fn a_value_has_one_token_and_comes_back_where_its_kind_is_redacted() {
        let pseudonyms = Pseudonyms::default();
        let original = json!({
            "to": ["ada@example.com", "Ada <ada@example.com>, +49 30 1234567"],
            "ada@example.com": { "card": 4111111111111111_u64, "n": 7 },
            "file": { "mimeType": "image/png", "data": "/+4912345678/" },
        });
        let mut said = original.clone();
        pseudonyms.redact(&mut said, ALL);
        let text = said.to_string();
        assert!(
            !text.contains("ada@") && !text.contains("1234567,"),
            "{text}"
        );
        assert_eq!(said["file"], original["file"]);
        let token = &said["to"][0].as_str().unwrap().to_owned();
        assert_eq!(text.matches(token).count(), 3, "{text}");
        // What has no value in it stays, also a second time.
        let again = said.clone();
        pseudonyms.redact(&mut said, ALL);
        assert_eq!(said, again);
        pseudonyms.restore(&mut said, ALL);
        let mut expected = original;
        expected["ada@example.com"]["card"] = "4111111111111111".into();
        assert_eq!(said, expected);

        let only_cards = Redaction {
            email: false,
            phone: false,
            card: true,
        };
        let mut kept = json!(token.clone());
        pseudonyms.restore(&mut kept, only_cards);
        assert_eq!(kept, json!(token));
        let mut guessed = json!([
            "[email:0123456789abcdef]",
            "[email:é",
            "[card:0123456789abcdef"
        ]);
        let before = guessed.clone();
        pseudonyms.restore(&mut guessed, ALL);
        assert_eq!(guessed, before);
        // Another process has other tokens.
        let mut other = json!("ada@example.com");
        Pseudonyms::default().redact(&mut other, ALL);
        assert_ne!(other, json!(token));
    }

    #[test]
    fn a_text_that_is_json_stays_json() {
        let pseudonyms = Pseudonyms::default();
        let text = r#"{"a": [4111111111111111, "x\nada@example.com\"", 1e400], "b\\": "{\"c\": \"+49 30 1234567\"}", "d": 12345678901234567890123}"#;
        let changed = pseudonyms.text(text, ALL).unwrap();
        assert!(
            !changed.contains("ada@") && !changed.contains("1234567\\"),
            "{changed}"
        );
        assert!(changed.contains("1e400") && changed.contains("12345678901234567890123"));
        serde_json::from_str::<IgnoredAny>(&changed).unwrap();
        let expected = text.replace("4111111111111111", "\"4111111111111111\"");
        assert_eq!(pseudonyms.restored(&changed, ALL), Some(expected));
        assert_eq!(pseudonyms.text("[1, \"é\"]", ALL), None);
    }

    #[test]
    fn the_oldest_values_are_forgotten() {
        let pseudonyms = Pseudonyms::default();
        let first = pseudonyms.text("first@example.com", ALL).unwrap();
        for number in 0..MOST {
            pseudonyms.text(&format!("{number}@example.com"), ALL);
        }
        assert_eq!(lock(&pseudonyms.known).values.len(), MOST);
        assert_eq!(pseudonyms.restored(&first, ALL), None);
        assert_eq!(pseudonyms.text("first@example.com", ALL), Some(first));
    }
}
