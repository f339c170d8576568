//! What a cell came to, as nbformat 4 has it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex_lite::Regex;
use serde_json::{Value, json};

use crate::cli::call_output::Heard;
use crate::display::{Displayed, Kind};
use crate::language::Magic;
use crate::output::{RunOutput, Status};
use crate::run::Stream;

/// The outputs of a cell: what it printed in the order that it came, what it showed, its value, and why it failed.
pub fn outputs(heard: Heard, output: &RunOutput, number: u64, magic: Option<&Magic>) -> Vec<Value> {
    let mut streams = heard.texts();
    let failure = output
        .error
        .as_ref()
        .map(|error| error_output(&mut streams, output, &error.message, magic));
    let mut all: Vec<Value> = streams.iter().map(stream).collect();
    if let Some(image) = &output.image {
        let data = json!({ image.mime_type: STANDARD.encode(&image.data) });
        all.push(display(data));
    }
    all.extend(output.displays.iter().map(displayed));
    if let Some(value) = &output.value {
        let text = match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let mut data = json!({ "text/plain": lines(&text) });
        if let Some(page) = &output.page {
            data = json!({ "text/html": lines(page), "text/plain": lines(&text) });
        }
        all.push(json!({
            "data": data,
            "execution_count": number,
            "metadata": {},
            "output_type": "execute_result",
        }));
    }
    all.extend(failure);
    all
}

fn stream((stream, text): &(Stream, String)) -> Value {
    let name = match stream {
        Stream::Stderr => "stderr",
        _ => "stdout",
    };
    json!({ "name": name, "output_type": "stream", "text": lines(text) })
}

fn display(data: Value) -> Value {
    json!({ "data": data, "metadata": {}, "output_type": "display_data" })
}

fn displayed(it: &Displayed) -> Value {
    let text = || lines(&String::from_utf8_lossy(&it.data));
    let data = match it.kind {
        Kind::Png | Kind::Jpeg | Kind::Gif | Kind::Webp => STANDARD.encode(&it.data).into(),
        Kind::Json => serde_json::from_slice(&it.data).unwrap_or_else(|_| text()),
        Kind::Svg | Kind::Html | Kind::Text => text(),
    };
    display(json!({ it.kind.mime(): data }))
}

/// Why a cell failed. What its runtime said of that is taken from what it printed.
fn error_output(
    streams: &mut Vec<(Stream, String)>,
    output: &RunOutput,
    message: &str,
    magic: Option<&Magic>,
) -> Value {
    let report = match output.status {
        Status::Failed => take_report(streams, magic),
        _ => String::new(),
    };
    let (name, text) = named(&report).unwrap_or_else(|| {
        let name = format!("{:?}", output.status);
        (name, message.to_owned())
    });
    let mut trace: Vec<String> = report.lines().map(str::to_owned).collect();
    if trace.is_empty() {
        trace.push(message.to_owned());
    }
    let hint = output.error.as_ref().and_then(|error| error.hint.clone());
    trace.extend(hint.map(|hint| format!("hint: {hint}")));
    json!({ "ename": name, "evalue": text, "output_type": "error", "traceback": trace })
}

/// The end of what it printed to stderr, from where the report of a failure begins.
fn take_report(streams: &mut Vec<(Stream, String)>, magic: Option<&Magic>) -> String {
    let Some((Stream::Stderr, text)) = streams.last_mut() else {
        return String::new();
    };
    let mut at = 0;
    if let Some(magic) = magic {
        let begins = |line: &&str| magic.report.is_in(line);
        let mut pieces = text.split_inclusive('\n');
        at = match pieces.position(|line| begins(&line)) {
            Some(before) => text.split_inclusive('\n').take(before).map(str::len).sum(),
            None => text.len(),
        };
    }
    let report = text.split_off(at);
    if text.is_empty() {
        streams.pop();
    }
    report
}

/// The name of an exception and what it says, as far as a report has them: `Name: text` on a line of its own, or `text (Name)`.
fn named(report: &str) -> Option<(String, String)> {
    let ours = |pattern| Regex::new(pattern).expect("a pattern of ours");
    let first =
        ours(r"^(?:Uncaught )?((?:\w+\.)*[A-Z][\w$]*|\w+(?:\.\w+)+)(?: \[\w+\])?(?:: (.*))?$");
    let last = ours(r"^\S+?:\d+:.*?: (.*) \(([A-Z][\w:]*)\)$");
    let mut found = None;
    for line in report.lines() {
        if let Some(groups) = last.captures(line) {
            return Some((groups[2].to_owned(), groups[1].to_owned()));
        }
        if let Some(groups) = first.captures(line) {
            let text = groups.get(2).map_or("", |it| it.as_str());
            found = Some((groups[1].to_owned(), text.to_owned()));
        }
    }
    found
}

/// A text as nbformat writes it: its lines, each with its end.
fn lines(text: &str) -> Value {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_exception_is_found_in_what_runtimes_say() {
        for (report, name, text) in [
            (
                "Traceback (most recent call last):\n  File \"/tmp/call-1.py\", line 1, in <module>\n    1 / 0\nZeroDivisionError: division by zero\n",
                "ZeroDivisionError",
                "division by zero",
            ),
            (
                "Traceback (most recent call last):\nKeyboardInterrupt\n",
                "KeyboardInterrupt",
                "",
            ),
            (
                "ReferenceError: x is not defined\n    at /tmp/call-1.js:1:1\n",
                "ReferenceError",
                "x is not defined",
            ),
            (
                "/workspace/call-1.rb:1:in '/': divided by 0 (ZeroDivisionError)\n\tfrom x\n",
                "ZeroDivisionError",
                "divided by 0",
            ),
        ] {
            assert_eq!(named(report), Some((name.to_owned(), text.to_owned())));
        }
        assert_eq!(named(""), None);
        assert_eq!(named("sh: 1: nothing here\n"), None);
    }

    #[test]
    fn what_was_printed_before_a_failure_stays_what_it_was() {
        let magic = Magic {
            report: crate::language::Rule::new("^Trace"),
            skip: crate::language::Rule::new("^%"),
            all: crate::language::Rule::new("^%"),
            instead: String::new(),
        };
        let mut streams = vec![(Stream::Stderr, "warned\nTrace\nE: x\n".to_owned())];
        assert_eq!(take_report(&mut streams, Some(&magic)), "Trace\nE: x\n");
        assert_eq!(streams, [(Stream::Stderr, "warned\n".to_owned())]);
        assert_eq!(take_report(&mut streams, Some(&magic)), "");
        assert_eq!(take_report(&mut streams, None), "warned\n");
        assert!(streams.is_empty());
    }
}
