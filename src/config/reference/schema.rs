//! The table as a JSON Schema, for editors that complete and check TOML by one.

use serde_json::{Map, Value, json};

use super::{Kind, REQUIRED, SETTINGS, Setting};

/// The schema of `config.toml`.
pub fn schema() -> Value {
    let mut root = table();
    for setting in SETTINGS {
        place(&mut root, setting.key, setting);
    }
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("config.toml of hotcell");
    root
}

fn table() -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": {} })
}

/// Puts a setting where its key says, with the tables on the way there.
fn place(at: &mut Value, key: &str, setting: &Setting) {
    let Some((first, rest)) = key.split_once('.') else {
        if setting.default == REQUIRED {
            match at["required"].as_array_mut() {
                Some(required) => required.push(json!(key)),
                None => at["required"] = json!([key]),
            }
        }
        at["properties"][key] = of(setting);
        return;
    };
    if first == "NAME" {
        if !at["additionalProperties"].is_object() {
            at["additionalProperties"] = table();
        }
        return place(&mut at["additionalProperties"], rest, setting);
    }
    let list = first.strip_suffix("[]");
    let known = at["properties"].as_object_mut();
    let Some(next) = known.map(|it| it.entry(list.unwrap_or(first))) else {
        return;
    };
    let next = next.or_insert_with(|| match list {
        Some(_) => json!({ "type": "array", "items": table() }),
        None => table(),
    });
    let next = match list {
        Some(_) => &mut next["items"],
        None => next,
    };
    place(next, rest, setting);
}

fn of(setting: &Setting) -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let mut schema = match setting.kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Whole => json!({ "type": "integer", "minimum": 0 }),
        Kind::Text | Kind::Path | Kind::Size => json!({ "type": "string" }),
        Kind::Amount => json!({ "type": ["number", "string"] }),
        Kind::List => texts,
        Kind::Words => json!({ "anyOf": [{ "type": "string" }, texts] }),
        Kind::Map => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        Kind::Redact => json!({ "anyOf": [
            { "type": "boolean" },
            { "type": "array", "items": { "enum": ["email", "phone", "card"] } },
        ] }),
    };
    schema["description"] = json!(setting.says);
    if let Some(default) = as_json(setting.default) {
        schema["default"] = default;
    }
    if let Some(example) = as_json(setting.example) {
        schema["examples"] = json!([example]);
    }
    schema
}

/// A value of TOML as one of JSON, if it is one.
pub fn as_json(text: &str) -> Option<Value> {
    let mut table: Map<String, Value> = toml::from_str(&format!("value = {text}")).ok()?;
    table.remove("value")
}
