//! Content blocks that a script returns, checked.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Reads a content block of any kind; none if the type is not one.
///
/// What is not part of such a block is left out, so a script cannot say
/// anything to a client that we have not looked at.
pub fn read(said: &Map<String, Value>) -> Option<Result<Value, String>> {
    let kind = said.get("type")?.as_str()?;
    let known: &[&str] = match kind {
        "text" => &["text"],
        "image" | "audio" => &["data", "mimeType"],
        "resource" => &["resource"],
        "resource_link" => &["uri", "name", "title", "description", "mimeType", "size"],
        _ => return None,
    };
    let block = pick(said, &[&["type", "annotations", "_meta"], known].concat());
    Some(
        check(kind, &block)
            .map(|()| Value::Object(block))
            .map_err(|what| format!("`{kind}` {what}")),
    )
}

fn check(kind: &str, block: &Map<String, Value>) -> Result<(), String> {
    let text = |of: &Map<String, Value>, name: &str| match of.get(name) {
        Some(Value::String(_)) => Ok(()),
        _ => Err(format!("needs a text `{name}`")),
    };
    let optional = |name: &str, fits: fn(&Value) -> bool| match block.get(name) {
        Some(value) if !fits(value) => Err(format!("has an odd `{name}`")),
        _ => Ok(()),
    };
    optional("annotations", Value::is_object)?;
    optional("_meta", Value::is_object)?;
    match kind {
        "text" => text(block, "text"),
        "image" | "audio" => {
            text(block, "mimeType")?;
            is_base64(block, "data")
        }
        "resource_link" => {
            for name in ["title", "description", "mimeType"] {
                optional(name, Value::is_string)?;
            }
            optional("size", Value::is_number)?;
            text(block, "uri").and(text(block, "name"))
        }
        _ => {
            let inner = block.get("resource").and_then(Value::as_object);
            check_contents(inner.ok_or("needs an object `resource`")?)
        }
    }
}

/// The contents of a resource: `uri`, and `text` or `blob`.
pub fn check_contents(contents: &Map<String, Value>) -> Result<(), String> {
    let is_text = |name: &str| contents.get(name).is_some_and(Value::is_string);
    if !is_text("uri") {
        return Err("needs a text `uri`".to_owned());
    }
    if contents.contains_key("mimeType") && !is_text("mimeType") {
        return Err("has an odd `mimeType`".to_owned());
    }
    match (is_text("text"), contents.contains_key("blob")) {
        (true, false) => Ok(()),
        (false, true) => is_base64(contents, "blob"),
        _ => Err("needs either a `text` or a `blob`".to_owned()),
    }
}

fn is_base64(block: &Map<String, Value>, name: &str) -> Result<(), String> {
    let data = block.get(name).and_then(Value::as_str);
    match data.map(|data| STANDARD.decode(data)) {
        Some(Ok(_)) => Ok(()),
        _ => Err(format!("needs `{name}` in base64")),
    }
}

fn pick(from: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let known = from
        .iter()
        .filter(|(name, _)| names.contains(&name.as_str()));
    known
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn block(value: Value) -> Option<Result<Value, String>> {
        read(value.as_object().unwrap())
    }

    #[test]
    fn blocks_of_every_kind_pass_without_what_does_not_belong() {
        for good in [
            json!({"type": "text", "text": "a", "annotations": {"priority": 1}}),
            json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
            json!({"type": "audio", "data": "", "mimeType": "audio/wav"}),
            json!({"type": "resource", "resource": {"uri": "a:b", "text": "x"}}),
            json!({"type": "resource", "resource": {"uri": "a:b", "blob": "AA==", "mimeType": "x/y"}}),
            json!({"type": "resource_link", "uri": "a:b", "name": "n", "size": 3}),
        ] {
            assert_eq!(block(good.clone()), Some(Ok(good)));
        }
        let odd = json!({"type": "text", "text": "a", "role": "user", "isError": true});
        assert_eq!(block(odd), Some(Ok(json!({"type": "text", "text": "a"}))));
    }

    #[test]
    fn what_is_half_a_block_is_refused() {
        for bad in [
            json!({"type": "text"}),
            json!({"type": "text", "text": 1}),
            json!({"type": "text", "text": "a", "annotations": 1}),
            json!({"type": "image", "data": "not base64", "mimeType": "image/png"}),
            json!({"type": "image", "data": "AAAA"}),
            json!({"type": "resource", "resource": 1}),
            json!({"type": "resource", "resource": {"uri": "a:b"}}),
            json!({"type": "resource", "resource": {"uri": "a:b", "text": "x", "blob": ""}}),
            json!({"type": "resource_link", "uri": "a:b"}),
            json!({"type": "resource_link", "uri": "a:b", "name": "n", "size": "3"}),
        ] {
            assert!(matches!(block(bad.clone()), Some(Err(_))), "{bad}");
        }
        assert_eq!(block(json!({"type": "progress"})), None);
        assert_eq!(block(json!({"type": 1})), None);
    }
}
