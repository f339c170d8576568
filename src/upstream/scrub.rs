//! Takes the secrets of a server out of what it said. SECURITY: that may be a page that it was shown, or a complaint with
//! its own settings in it.

use serde_json::Value;

use super::{CallError, Tool};
use crate::secret::Hidden;

/// Characters of a complaint of a server's.
const LONGEST: usize = 2000;
/// Characters of why a server cannot be had.
const LONGEST_LINE: usize = 300;

pub fn scrub(value: &mut Value, secrets: &[Hidden]) {
    if !secrets.is_empty() {
        let secrets: Vec<&str> = secrets.iter().map(Hidden::reveal).collect();
        replace(value, &secrets);
    }
}

pub fn scrub_tools(tools: &mut [Tool], secrets: &[Hidden]) {
    for tool in tools.iter_mut().filter(|_| !secrets.is_empty()) {
        tool.description = text(&tool.description, secrets);
        scrub(&mut tool.input, secrets);
        scrub(&mut tool.output, secrets);
    }
}

/// What a server said, without its secrets.
pub fn scrubbed(
    said: Result<Value, CallError>,
    secrets: &[Hidden],
    own: &[Hidden],
) -> Result<Value, CallError> {
    let said = said.map(|mut said| {
        scrub(&mut said, secrets);
        scrub(&mut said, own);
        said
    });
    said.map_err(|error| scrub_error(scrub_error(error, secrets), own))
}

/// An error without secrets, and of bounded length.
pub fn scrub_error(error: CallError, secrets: &[Hidden]) -> CallError {
    match error {
        CallError::Tool(why) => {
            let why = text(&why, secrets);
            CallError::Tool(why.chars().take(LONGEST).collect())
        }
        CallError::Unavailable(why) => CallError::Unavailable(line(&why, secrets)),
        other => other,
    }
}

/// The same in one line.
pub fn line(why: &str, secrets: &[Hidden]) -> String {
    let why = text(why, secrets);
    let visible = why.chars().map(|it| if it.is_control() { ' ' } else { it });
    visible.take(LONGEST_LINE).collect()
}

fn text(text: &str, secrets: &[Hidden]) -> String {
    let mut text = Value::String(text.to_owned());
    scrub(&mut text, secrets);
    text.as_str().unwrap_or_default().to_owned()
}

fn replace(value: &mut Value, secrets: &[&str]) {
    match value {
        Value::String(text) => {
            for secret in secrets
                .iter()
                .filter(|secret| text.contains(**secret))
                .copied()
                .collect::<Vec<_>>()
            {
                *text = text.replace(secret, "(hidden)");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, secrets)),
        Value::Object(members) => {
            let named = |name: &String| secrets.iter().any(|secret| name.contains(secret));
            if members.keys().any(named) {
                let all = std::mem::take(members).into_iter();
                *members = all
                    .map(|(name, value)| {
                        let mut name = Value::String(name);
                        replace(&mut name, secrets);
                        (name.as_str().unwrap_or_default().to_owned(), value)
                    })
                    .collect();
            }
            members
                .values_mut()
                .for_each(|member| replace(member, secrets));
        }
        _ => {}
    }
}
