//! A run's result for a client: text for a reader, and the same facts as data.
//!
//! Clients show a model one or the other, so each is complete alone and has nothing in it that a caller does not act on. What is too long is
//! stored whole, and both say where. The rest is in `_meta`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::facts;
use crate::display::{self, Displayed, Kind};
use crate::hint::Surface;
use crate::output::{FileOutput, RunOutput, Status};
use crate::request::bytes;
use crate::service::{Budget, LongStream, Ran};

/// The members of a `tools/call` result.
pub fn render(ran: Ran, budget: Budget) -> Map<String, Value> {
    render_as(ran, budget, Surface::Mcp, text)
}

/// The same with another text for the reader.
pub fn render_as(
    ran: Ran,
    budget: Budget,
    surface: Surface,
    text: impl FnOnce(&RunOutput, &[Link]) -> String,
) -> Map<String, Value> {
    let mut output = ran.output.words(surface);
    let long = ran.long.iter();
    let links: Vec<Link> = long
        .filter_map(|long| shorten(&mut output, long, budget))
        .collect();

    let mut content = vec![json!({ "type": "text", "text": text(&output, &links) })];
    content.extend(output.image.as_ref().map(|image| {
        json!({
            "type": "image",
            "mimeType": image.mime_type,
            "data": STANDARD.encode(&image.data),
        })
    }));
    content.extend(pictures(&output));
    content.extend(links.iter().map(Link::to_value));
    content.extend(output.files.iter().filter_map(file_link));
    let is_error = output.status != Status::Ok;
    let (facts, mut rest) = facts::split(&mut output);
    if !ran.id.is_empty() {
        rest.insert("id".to_owned(), ran.id.into());
    }
    Map::from_iter([
        ("content".to_owned(), content.into()),
        ("structuredContent".to_owned(), facts.into()),
        ("isError".to_owned(), is_error.into()),
        ("_meta".to_owned(), json!({ facts::REST: rest })),
    ])
}

/// Where the content of a file can be read, if it is stored.
fn file_link(file: &FileOutput) -> Option<Value> {
    Some(json!({
        "type": "resource_link",
        "uri": file.uri.as_ref()?,
        "name": file.name,
        "mimeType": file.media_type,
        "size": file.size,
    }))
}

/// What the pictures of one answer may have together, in bytes.
const MOST_PICTURES: usize = 4 << 20;

/// The pictures that were shown, in order, as many as an answer holds.
fn pictures(output: &RunOutput) -> Vec<Value> {
    let mut room = MOST_PICTURES;
    let block = |(kind, data): (Kind, &[u8])| {
        room = room.checked_sub(data.len())?;
        Some(json!({ "type": "image", "mimeType": kind.mime(), "data": STANDARD.encode(data) }))
    };
    let all = output.displays.iter().chain(&output.saved);
    let all = all.filter_map(Displayed::picture);
    all.map_while(block).collect()
}

/// Where the whole of a stream can be read.
pub struct Link {
    uri: String,
    stream: &'static str,
    bytes: u64,
}

impl Link {
    fn to_value(&self) -> Value {
        json!({
            "type": "resource_link",
            "uri": self.uri,
            "name": self.stream,
            "description": format!("the whole {}, {} bytes", self.stream, self.bytes),
            "mimeType": "text/plain",
            "size": self.bytes,
        })
    }
}

/// Cuts a stream to its budget; the link to the whole of it, if that is stored.
fn shorten(output: &mut RunOutput, long: &LongStream, budget: Budget) -> Option<Link> {
    let (text, budget) = match long.name {
        "stdout" => (&mut output.stdout, budget.stdout),
        _ => (&mut output.stderr, budget.stderr),
    };
    let (head, tail) = head_and_tail(text, budget)?;
    let link = long.stored.as_ref().map(|uri| Link {
        uri: uri.clone(),
        stream: long.name,
        bytes: long.bytes,
    });
    let rest = match &link {
        Some(link) => format!("all of it: {}", link.uri),
        None => "the whole output could not be kept".to_owned(),
    };
    let total = long.bytes;
    let left_out = total.saturating_sub((head.len() + tail.len()) as u64);
    *text = format!("{head}\n[... {left_out} of {total} bytes left out; {rest} ...]\n{tail}");
    output.truncated = true;
    output.total_bytes.insert(long.name, total);
    link
}

/// The first three quarters of `budget` characters and the last quarter; none if all fits.
pub fn head_and_tail(text: &str, budget: usize) -> Option<(&str, &str)> {
    // A text has at most as many characters as bytes.
    if text.len() <= budget || text.chars().count() <= budget {
        return None;
    }
    let last = budget / 4;
    let head = text.char_indices().nth(budget - last)?.0;
    let tail = text.char_indices().rev().nth(last.saturating_sub(1))?.0;
    Some((&text[..head], &text[tail..]))
}

fn text(output: &RunOutput, links: &[Link]) -> String {
    let mut text = output.stdout.clone();
    if !output.stderr.is_empty() {
        separate(&mut text);
        text += "[stderr]\n";
        text += &output.stderr;
    }
    if let Some(value) = &output.value {
        separate(&mut text);
        text += "[value]\n";
        match value {
            Value::String(value) => text += value,
            value => text += &value.to_string(),
        }
    }
    for (number, said) in texts(&output.displays) {
        separate(&mut text);
        text += &format!("[display {number}]\n{said}");
    }
    let mut notes: Vec<String> = Vec::new();
    match &output.error {
        Some(error) => {
            notes.push(match &error.hint {
                Some(hint) => format!("{}: {}. {hint}", output.status, error.message),
                None => format!("{}: {}", output.status, error.message),
            });
        }
        None if output.image.is_some() || output.value.is_some() || !output.displays.is_empty() => {
        }
        None if output.stdout.is_empty() && output.stderr.is_empty() && output.files.is_empty() => {
            notes.push("The program succeeded and printed nothing.".to_owned());
        }
        None => {}
    }
    if let Some(image) = &output.image {
        let (kind, bytes) = (image.mime_type, image.bytes);
        notes.push(format!(
            "The program printed a picture: {kind}, {bytes} bytes"
        ));
    }
    notes.extend(output.files.iter().map(|file| {
        let (name, bytes) = (&file.name, bytes(file.size));
        let left = match &file.uri {
            Some(uri) => format!("left {name}, {bytes}: {uri}"),
            None => format!("left {name}, {bytes}: more than is kept"),
        };
        match &file.diff {
            Some(diff) => format!("{left}\n{diff}"),
            None => left,
        }
    }));
    notes.extend(output.deleted.iter().map(|name| format!("deleted {name}")));
    notes.extend(display::summary(&output.displays, Displayed::is_whole_text));
    notes.extend(output.refusals(Surface::Mcp));
    notes.extend(output.notes.iter().cloned());
    if let Some(link) = links.first() {
        notes.push(format!(
            "Read ranges of the resource with `?lines=FIRST-LAST`, or process it: files {{\"out.txt\": {{\"uri\": \"{}\"}}}}",
            link.uri
        ));
    }
    if !notes.is_empty() {
        separate(&mut text);
        text += &format!("[{}]", notes.join("]\n["));
    }
    text
}

/// What was shown that is text, with its number.
fn texts(displays: &[Displayed]) -> impl Iterator<Item = (usize, &str)> {
    let numbered = displays.iter().enumerate();
    numbered.filter_map(|(at, it)| Some((at + 1, it.text.as_deref()?)))
}

/// Ends the text with a line break, if there is any text.
pub fn separate(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_left_alone_and_of_more_both_ends_stay() {
        assert_eq!(head_and_tail("12345678", 8), None);
        assert_eq!(head_and_tail("éééééééé", 8), None);
        assert_eq!(head_and_tail("123456789", 8), Some(("123456", "89")));
        assert_eq!(head_and_tail("ééééééééé", 8), Some(("éééééé", "éé")));
    }
}
