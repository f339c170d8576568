//! What a script returned, as the result of a method.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::collector::{Collected, Item, Role};
use super::content_block::check_contents;
use super::front_matter::FrontMatter;
use crate::caller::Caller;
use crate::mcp::{Fault, head_and_tail};
use crate::output::RunOutput;
use crate::random::random_name;
use crate::service::Service;
use crate::store::address;

/// Characters of standard error in an answer.
const STDERR_BUDGET: usize = 8_000;

/// The result of `tools/call`.
pub fn tool(
    (output, mut collected): (RunOutput, Collected),
    service: &Service,
    caller: &Caller,
) -> Map<String, Value> {
    let failed = failed(&output, Some(&collected));
    let whole = std::mem::take(&mut collected.whole);
    let mut left = service.settings().budget.stdout;
    let mut cut = 0;
    let mut content: Vec<Value> = Vec::new();
    for item in collected.items {
        let block = match item {
            Item::Block { block, .. } => block,
            Item::Text(bytes) => {
                let Some(text) = words(&bytes) else { continue };
                let text = match head_and_tail(&text, left) {
                    None => text,
                    Some((head, tail)) => {
                        cut += 1;
                        format!("{head}\n[... left out ...]\n{tail}")
                    }
                };
                left = left.saturating_sub(text.chars().count());
                json!({ "type": "text", "text": text })
            }
        };
        content.push(block);
    }
    if cut > 0 {
        let run = random_name();
        let kept = whole.finish();
        if kept.is_ok_and(|kept| service.store_output(caller, &run, "stdout", kept)) {
            content.push(json!({
                "type": "resource_link",
                "uri": address(&run, "stdout"),
                "name": "stdout",
                "description": format!("all text of the script, {} bytes", collected.text),
                "mimeType": "text/plain",
                "size": collected.text,
            }));
        }
    }
    if let Some(why) = &failed {
        content.push(json!({ "type": "text", "text": why }));
    } else if content.is_empty() {
        let text = "The script succeeded and returned nothing.";
        content.push(json!({ "type": "text", "text": text }));
    }
    let mut result = Map::from_iter([("content".to_owned(), content.into())]);
    if let Some(structured) = collected.structured {
        result.insert("structuredContent".to_owned(), structured);
    }
    if failed.is_some() {
        result.insert("isError".to_owned(), true.into());
    }
    result
}

/// The result of a `tools/call` that did not come to an end.
pub fn failure(why: &str) -> Map<String, Value> {
    let content = json!([{ "type": "text", "text": why }]);
    Map::from_iter([
        ("content".to_owned(), content),
        ("isError".to_owned(), true.into()),
    ])
}

/// The result of `prompts/get`: each text and each block is a message.
pub fn prompt(
    (output, collected): (RunOutput, Collected),
    front: &FrontMatter,
) -> Result<Map<String, Value>, Fault> {
    if let Some(why) = failed(&output, Some(&collected)) {
        return Err(Fault::new(Fault::INTERNAL, why));
    }
    let message = |item| match item {
        Item::Text(bytes) => words(&bytes)
            .map(|text| json!({ "role": "user", "content": { "type": "text", "text": text } })),
        Item::Block { block, role } => {
            let role = match role {
                Role::User => "user",
                Role::Assistant => "assistant",
            };
            Some(json!({ "role": role, "content": block }))
        }
    };
    let messages: Vec<Value> = collected.items.into_iter().filter_map(message).collect();
    let mut result = Map::from_iter([("messages".to_owned(), messages.into())]);
    if let Some(description) = front.listing.get("description") {
        result.insert("description".to_owned(), description.clone());
    }
    Ok(result)
}

/// The result of `resources/read`: the bytes that were printed, as they are, or
/// the resources that were returned.
pub fn resource(
    (output, collected): (RunOutput, Collected),
    uri: &str,
    mime: Option<&str>,
) -> Result<Map<String, Value>, Fault> {
    let fail = |why: String| Fault::new(Fault::INTERNAL, why).with(json!({ "uri": uri }));
    if let Some(why) = failed(&output, Some(&collected)) {
        return Err(fail(why));
    }
    let mut returned = Vec::new();
    let mut printed = Vec::new();
    let mut kept = 0;
    for item in collected.items {
        match item {
            Item::Text(bytes) => {
                kept += bytes.len();
                printed.extend(bytes);
            }
            Item::Block { mut block, .. } => {
                let inner = block["resource"].take();
                match inner.as_object().map(check_contents) {
                    Some(Ok(())) => returned.push(inner),
                    _ => return Err(fail("a resource returns resources only".to_owned())),
                }
            }
        }
    }
    if kept < collected.text {
        return Err(fail(format!("{} bytes are too many", collected.text)));
    }
    if returned.is_empty() {
        let mut contents = json!({ "uri": uri });
        if let Some(mime) = mime {
            contents["mimeType"] = mime.into();
        }
        match String::from_utf8(printed) {
            Ok(text) => contents["text"] = text.into(),
            Err(error) => contents["blob"] = STANDARD.encode(error.as_bytes()).into(),
        }
        returned.push(contents);
    }
    Ok(Map::from_iter([("contents".to_owned(), returned.into())]))
}

/// What went wrong, for whoever called: the script's own words first.
pub fn failed(output: &RunOutput, collected: Option<&Collected>) -> Option<String> {
    let Some(error) = &output.error else {
        let complaint = collected?.complaint.as_ref()?;
        return Some(format!(
            "the script sent a message that is not valid: {complaint}"
        ));
    };
    let own = output.stderr.trim();
    let own = match head_and_tail(own, STDERR_BUDGET) {
        None => own.to_owned(),
        Some((head, tail)) => format!("{head}\n[... left out ...]\n{tail}"),
    };
    let exited = output.exit_code.is_some();
    Some(match (own.is_empty(), exited) {
        // An exit code says nothing that the script has not said better.
        (false, true) => own,
        (false, false) => format!("{own}\n{}", error.message),
        (true, _) => error.message.clone(),
    })
}

/// What was printed, without the last line break; none if that is nothing.
fn words(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_suffix('\n').unwrap_or(&text);
    (!text.trim().is_empty()).then(|| text.to_owned())
}
