//! The resource template `run://{id}/{+name}`: what a run printed and the files that it left, whole or in ranges.

use std::io;
use std::sync::{Arc, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Boxed, Resource};
use crate::media_type;
use crate::service::Service;
use crate::spool::Spooled;
use crate::store::{CallerOutputs, parse_address};

/// What one read may bring. Two of them fit into what is held for all callers.
const MOST: u64 = 64 << 20;

/// Longer than any address of ours with a range: that of a file has its path, each byte of it as three at most.
const LONGEST: usize = 13_000;

/// The stored outputs of runs, to each caller their own.
pub struct Outputs(pub Arc<Service>);

impl Resource for Outputs {
    fn listing(&self) -> Value {
        json!({
            "uriTemplate": "run://{id}/{+name}{?offset,length,lines}",
            "name": "output",
            "title": "Output of a run",
            "description": "What a run printed and left: name is stdout, stderr, files/PATH, display/NUMBER, or lock for the packages it had. \
                Ranges: ?offset=BYTES&length=BYTES, or ?lines=FIRST-LAST counted from 1.",
        })
    }

    /// By the shape of the address: one that could never be ours is not kept by
    /// those who subscribe to it, however long it is.
    fn holds(&self, uri: &str) -> bool {
        let (address, _) = split(uri);
        let shape = |(run, name): (&str, String)| {
            run.bytes().all(|byte| byte.is_ascii_alphanumeric())
                && (["stdout", "stderr", "lock"].contains(&name.as_str())
                    || ["files/", "display/"].iter().any(|it| name.starts_with(it)))
        };
        uri.len() < LONGEST && parse_address(address).is_some_and(shape)
    }

    fn read<'a>(&'a self, uri: &'a str, context: &'a Context) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let (stored, range) = find(self.0.outputs(&context.caller), uri)?;
            let held = context.held();
            let work = move || {
                let room = |bytes: u64| {
                    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
                    held.grow(bytes as usize)
                };
                // As it is read, and as it is written down: at once, or many would hold a half of what they need.
                let piece = cut(&stored, range, |bytes| room(2 * bytes))?;
                Ok(piece.and_then(|piece| match room(escapes(&piece.bytes)) {
                    true => Ok(piece),
                    false => Err(Fault::busy()),
                }))
            };
            let piece = tokio::task::spawn_blocking(work).await;
            let piece = piece
                .map_err(io::Error::other)
                .and_then(|cut| cut)
                .map_err(|error| {
                    Fault::new(Fault::INTERNAL, format!("cannot read the output: {error}"))
                })?;
            Ok(Answer::Complete(contents(uri, piece?)))
        })
    }
}

/// The address without its range, and the range.
fn split(uri: &str) -> (&str, &str) {
    uri.split_once('?').unwrap_or((uri, ""))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    Bytes { offset: u64, length: Option<u64> },
    Lines { first: u64, last: u64 },
}

/// A part of a stream, and where it begins.
struct Piece {
    bytes: Vec<u8>,
    offset: u64,
    total: u64,
}

fn find(outputs: CallerOutputs<'_>, uri: &str) -> Result<(Arc<Spooled>, Range), Fault> {
    let (address, query) = split(uri);
    let found = parse_address(address).and_then(|(run, name)| outputs.find(run, &name));
    let stored = found.ok_or_else(|| {
        let shown: String = uri.chars().take(400).collect();
        let minutes = outputs.time().as_secs() / 60;
        let message =
            format!("resource not found: {shown} (output is kept for {minutes} min at most)");
        Fault::invalid_params(message).with(json!({ "uri": shown }))
    })?;
    let range = parse_range(query).ok_or_else(|| {
        Fault::invalid_params("a range is `?offset=BYTES&length=BYTES` or `?lines=FIRST-LAST`")
    })?;
    Ok((stored, range))
}

fn parse_range(query: &str) -> Option<Range> {
    let (mut offset, mut length, mut lines) = (None, None, None);
    for part in query.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=')?;
        match key {
            "offset" => offset = Some(value.parse().ok()?),
            "length" => length = Some(value.parse().ok()?),
            "lines" => {
                let (first, last) = value.split_once('-').unwrap_or((value, value));
                let last = if last.is_empty() {
                    "18446744073709551615"
                } else {
                    last
                };
                lines = Some((first.parse().ok()?, last.parse().ok()?));
            }
            _ => return None,
        }
    }
    match lines {
        Some(_) if offset.is_some() || length.is_some() => None,
        Some((first, last)) if first > 0 && first <= last => Some(Range::Lines { first, last }),
        Some(_) => None,
        None => Some(Range::Bytes {
            offset: offset.unwrap_or(0),
            length,
        }),
    }
}

/// Cuts a range out, if there is room for it; the inner error is the caller's fault, the outer the disk's.
fn cut(
    stored: &Spooled,
    range: Range,
    room: impl FnOnce(u64) -> bool,
) -> io::Result<Result<Piece, Fault>> {
    let total = stored.len();
    let (start, end) = match range {
        Range::Bytes { offset, length } => {
            let start = offset.min(total);
            let end = start.saturating_add(length.unwrap_or(total)).min(total);
            // At the start of a character, both of them, so that ranges that
            // meet make the whole.
            (align(stored, start)?, align(stored, end)?)
        }
        Range::Lines { first, last } => lines(stored, first, last)?,
    };
    if end - start > MOST {
        let message = format!(
            "{} bytes are too many for one read of at most {MOST}; read ranges",
            end - start
        );
        return Ok(Err(
            Fault::invalid_params(message).with(json!({ "total": total }))
        ));
    }
    if !room(end - start) {
        return Ok(Err(Fault::busy()));
    }
    Ok(Ok(Piece {
        bytes: stored.read(start, (end - start) as usize)?,
        offset: start,
        total,
    }))
}

/// How many bytes this has more in a message than by itself: most control characters take six.
fn escapes(bytes: &[u8]) -> u64 {
    let more = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        0..0x20 => 5,
        _ => 0,
    };
    bytes.iter().map(more).sum()
}

/// The start of the character that `offset` is in; itself if that is no UTF-8.
fn align(stored: &Spooled, offset: u64) -> io::Result<u64> {
    let before = offset.min(3);
    let bytes = stored.read(offset - before, before as usize + 1)?;
    let continues = |byte: u8| byte & 0xc0 == 0x80;
    if bytes.len() as u64 <= before {
        return Ok(offset);
    }
    let mut back = 0;
    while back < before && continues(bytes[(before - back) as usize]) {
        back += 1;
    }
    if continues(bytes[(before - back) as usize]) {
        return Ok(offset);
    }
    Ok(offset - back)
}

/// Where the lines from `first` to `last` are, both counted from 1.
fn lines(stored: &Spooled, first: u64, last: u64) -> io::Result<(u64, u64)> {
    let (mut line, mut at) = (1, 0);
    let mut start = if first == 1 { Some(0) } else { None };
    loop {
        let piece = stored.read(at, 1 << 20)?;
        if piece.is_empty() {
            return Ok((start.unwrap_or(at), at));
        }
        for (index, _) in piece.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            let next = at + index as u64 + 1;
            if line == last {
                return Ok((start.unwrap_or(next), next));
            }
            line += 1;
            if line == first {
                start = Some(next);
            }
        }
        at += piece.len() as u64;
    }
}

fn contents(uri: &str, piece: Piece) -> Map<String, Value> {
    let length = piece.bytes.len();
    let known = match media_type::of_name(split(uri).0) {
        media_type::UNKNOWN => None,
        known => Some(known),
    };
    let mut content = match String::from_utf8(piece.bytes) {
        Ok(text) => {
            json!({ "uri": uri, "mimeType": known.unwrap_or("text/plain"), "text": text })
        }
        Err(error) => json!({
            "uri": uri,
            "mimeType": known.unwrap_or(media_type::UNKNOWN),
            "blob": STANDARD.encode(error.as_bytes()),
        }),
    };
    content["_meta"] = json!({
        "dev.hotcell/range": { "offset": piece.offset, "length": length, "total": piece.total },
    });
    Map::from_iter([("contents".to_owned(), json!([content]))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::Spool;

    fn stored(text: &str) -> Spooled {
        let mut spool = Spool::default();
        spool.add(text.as_bytes());
        spool.finish().unwrap()
    }

    fn read(stored: &Spooled, query: &str) -> String {
        let piece = cut(stored, parse_range(query).unwrap(), |_| true);
        let piece = piece.unwrap().unwrap();
        String::from_utf8(piece.bytes).unwrap()
    }

    #[test]
    fn ranges_that_meet_make_the_whole_and_cut_no_character() {
        let text = "aé€😀z".repeat(5);
        let stored = stored(&text);
        for step in 1..9 {
            let mut all = String::new();
            for offset in (0..text.len()).step_by(step) {
                all += &read(&stored, &format!("offset={offset}&length={step}"));
            }
            assert_eq!(all, text, "in steps of {step}");
        }
    }

    #[test]
    fn lines_are_counted_from_one_and_both_ends_count() {
        let stored = stored("one\ntwo\nthree\nfour");
        assert_eq!(read(&stored, "lines=2-3"), "two\nthree\n");
        assert_eq!(read(&stored, "lines=1"), "one\n");
        assert_eq!(read(&stored, "lines=4-"), "four");
        assert_eq!(read(&stored, "lines=9-12"), "");
        assert_eq!(read(&stored, ""), "one\ntwo\nthree\nfour");
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for query in [
            "lines=0-3",
            "lines=3-2",
            "offset=-1",
            "offset=1&lines=2-3",
            "x=1",
            "offset",
            "lines=a-b",
        ] {
            assert_eq!(parse_range(query), None, "{query}");
        }
    }
}
