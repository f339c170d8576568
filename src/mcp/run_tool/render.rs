//! A run's result for a client: text for a reader, and the same facts as data.
//!
//! Clients show one or the other, so each is complete alone. What is too long is
//! kept whole in the store, and both say where.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{Ran, Runner};
use crate::hint::Surface;
use crate::mcp::outputs;
use crate::output::{RunOutput, Status};
use crate::secret::random_name;
use crate::store::{self, Spool, Store};

/// Characters of standard error that an answer may hold.
const STDERR_BUDGET: usize = 8_000;

/// The members of a `tools/call` result.
pub fn render(ran: Ran, runner: &Runner) -> Map<String, Value> {
    render_as(ran, runner, Surface::Mcp, text)
}

/// The same with another text for the reader.
pub fn render_as(
    ran: Ran,
    runner: &Runner,
    surface: Surface,
    text: impl FnOnce(&RunOutput, &[Link]) -> String,
) -> Map<String, Value> {
    let Ran { output, recorded } = ran;
    let mut output = output.words(surface);
    let budget = runner.settings().budget;
    let mut kept = Kept {
        run: random_name(),
        links: Vec::new(),
        runner,
    };
    kept.shorten(&mut output, "stdout", budget, recorded.stdout);
    kept.shorten(&mut output, "stderr", STDERR_BUDGET, recorded.stderr);

    let mut content = vec![json!({ "type": "text", "text": text(&output, &kept.links) })];
    content.extend(output.image.as_ref().map(|image| {
        json!({
            "type": "image",
            "mimeType": image.mime_type,
            "data": STANDARD.encode(&image.data),
        })
    }));
    content.extend(kept.links.iter().map(Link::to_value));
    let mut facts = serde_json::to_value(&output).unwrap_or_default();
    trim(&mut facts);
    if !kept.links.is_empty() {
        facts["run"] = kept.run.as_str().into();
    }
    Map::from_iter([
        ("content".to_owned(), content.into()),
        ("structuredContent".to_owned(), facts),
        ("isError".to_owned(), (output.status != Status::Ok).into()),
    ])
}

/// The text of a stream, and the bytes that the program wrote.
struct Kept<'a> {
    run: String,
    links: Vec<Link>,
    runner: &'a Runner,
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

impl Kept<'_> {
    /// Cuts a stream to its budget and keeps the whole of it.
    fn shorten(
        &mut self,
        output: &mut RunOutput,
        stream: &'static str,
        budget: usize,
        spool: Spool,
    ) {
        let text = match stream {
            "stdout" => &mut output.stdout,
            _ => &mut output.stderr,
        };
        let Some((head, tail)) = ends(text, budget) else {
            return;
        };
        let whole = spool.finish();
        let total = whole.as_ref().map_or(text.len() as u64, |kept| kept.len());
        let uri = outputs::uri(&self.run, stream);
        let store = self.runner.store();
        let kept = whole.is_ok_and(|whole| keep(store, &self.run, stream, whole));
        let shown = (head.len() + tail.len()) as u64;
        let rest = if kept {
            format!("all of it: {uri}")
        } else {
            "the rest could not be kept".to_owned()
        };
        let left_out = total.saturating_sub(shown);
        *text = format!("{head}\n[... {left_out} of {total} bytes left out; {rest} ...]\n{tail}");
        output.truncated.insert(stream, total);
        if kept {
            self.links.push(Link {
                uri,
                stream,
                bytes: total,
            });
        }
    }
}

/// Keeps a stream, and lets go of it when its time is over even if nobody ever asks
/// again; false if it is too large.
pub fn keep(store: &Arc<Store>, run: &str, stream: &'static str, whole: store::Kept) -> bool {
    if !store.keep(run, stream, whole) {
        return false;
    }
    let (store, time) = (Arc::downgrade(store), store.retention().time);
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        if let Some(store) = store.upgrade() {
            store.forget_old();
        }
    });
    true
}

/// The first three quarters of `budget` characters and the last quarter; none if all fits.
pub fn ends(text: &str, budget: usize) -> Option<(&str, &str)> {
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
    let mut notes: Vec<String> = Vec::new();
    match &output.error {
        Some(error) => {
            notes.push(match &error.hint {
                Some(hint) => format!("{}: {}. {hint}", output.status, error.message),
                None => format!("{}: {}", output.status, error.message),
            });
        }
        None if output.image.is_some() => {}
        None if output.stdout.is_empty() && output.stderr.is_empty() => {
            notes.push("The program ended well and printed nothing.".to_owned());
        }
        None => {}
    }
    if let Some(image) = &output.image {
        let (kind, bytes) = (image.mime_type, image.bytes);
        notes.push(format!(
            "The program printed a picture: {kind}, {bytes} bytes"
        ));
    }
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

/// Ends the text with a line break, if there is any text.
pub fn separate(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Leaves out what only costs a reader time: empty members, and walls that stand.
fn trim(facts: &mut Value) {
    let Some(members) = facts.as_object_mut() else {
        return;
    };
    if let Some(walls) = members
        .get_mut("isolation")
        .and_then(|isolation| isolation.get_mut("walls"))
        .and_then(Value::as_array_mut)
    {
        walls.retain(|wall| wall["stands"] == false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_left_alone_and_of_more_both_ends_stay() {
        assert_eq!(ends("12345678", 8), None);
        assert_eq!(ends("éééééééé", 8), None);
        assert_eq!(ends("123456789", 8), Some(("123456", "89")));
        assert_eq!(ends("ééééééééé", 8), Some(("éééééé", "éé")));
    }
}
