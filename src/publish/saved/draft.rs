//! What a program wants kept, checked, and the file that is made of it.

use serde_json::{Map, Value, json};

use super::OWN;
use crate::language::Definition;

const LONGEST_SOURCE: usize = 128 << 10;
const LONGEST_DESCRIPTION: usize = 2000;
const LARGEST_SCHEMA: usize = 16 << 10;
const LARGEST_EXAMPLE: usize = 1 << 20;

pub struct Draft {
    /// Letters, digits and `_`: a name for a file, a tool and a function.
    pub name: String,
    pub language: String,
    /// Arguments that it is tried with.
    pub example: Option<Map<String, Value>>,
    source: String,
    description: String,
    schema: Value,
    /// The schema of what it returns, if its program says so.
    returns: Option<Value>,
}

impl Draft {
    pub fn read(mut asked: Map<String, Value>) -> Result<Self, String> {
        let mut text = |key: &str, most: usize| match asked.remove(key) {
            Some(Value::String(text)) if text.len() <= most => Ok(text),
            Some(Value::String(_)) => Err(format!("`{key}` is longer than {most} bytes")),
            _ => Err(format!("`{key}` must be a string")),
        };
        let name = text("name", 64)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let begins_well = name.starts_with(|it: char| it.is_ascii_alphabetic());
        if !begins_well || !name.bytes().all(is_plain) || OWN.contains(&name.as_str()) {
            let shown = name.escape_debug();
            return Err(format!(
                "`{shown}` is not a name for a saved tool: a letter, then letters, digits and `_`, 64 at most"
            ));
        }
        let language = text("language", 24)?;
        let source = text("source", LONGEST_SOURCE)?;
        let description: String = text("description", LONGEST_SOURCE)?;
        let description = description.chars().take(LONGEST_DESCRIPTION).collect();
        let schema = asked.remove("schema").unwrap_or_default();
        if schema["type"] != "object" || schema.to_string().len() > LARGEST_SCHEMA {
            return Err(format!(
                "`schema` must be that of an object, of at most {LARGEST_SCHEMA} bytes"
            ));
        }
        let returns = match asked.remove("returns") {
            None | Some(Value::Null) => None,
            Some(returns) if is_schema(&returns) => Some(returns),
            Some(_) => {
                return Err(format!(
                    "`returns` must be a schema, of at most {LARGEST_SCHEMA} bytes"
                ));
            }
        };
        let example = match asked.remove("example") {
            None | Some(Value::Null) => None,
            Some(Value::Object(example)) => {
                let size = serde_json::to_string(&example).map_or(usize::MAX, |it| it.len());
                if size > LARGEST_EXAMPLE {
                    return Err(format!("`example` is longer than {LARGEST_EXAMPLE} bytes"));
                }
                Some(example)
            }
            Some(_) => return Err("`example` must be an object: arguments by name".to_owned()),
        };
        Ok(Self {
            name,
            language,
            example,
            source,
            description,
            schema,
            returns,
        })
    }

    /// The name and the text of its file: front matter as a person would write it, then the source.
    pub fn file(&self, definition: &Definition) -> Result<(String, String), String> {
        let kept = definition.saved.as_ref().zip(definition.extensions.first());
        let (saved, extension) = kept.ok_or("functions of this language cannot be saved")?;
        let mut lines = vec!["--- tool".to_owned()];
        // SECURITY: each value is on one line, so that none can end the front matter or add to it.
        if !self.description.is_empty() {
            lines.push(format!("description = {}", quoted(&self.description)));
        }
        if let Some(returns) = &self.returns {
            let output = json!({ "type": "object", "properties": { "result": returns }, "required": ["result"] });
            lines.push(format!("output_schema = {}", quoted(&output.to_string())));
        }
        match self.parameters() {
            Some(parameters) if parameters.is_empty() => {}
            Some(parameters) => {
                lines.push("[parameters]".to_owned());
                lines.extend(parameters);
            }
            None => lines.push(format!("schema = {}", quoted(&self.schema.to_string()))),
        }
        lines.push("---".to_owned());
        let comment = |line: String| format!("{}{line}\n", saved.comment);
        let front: String = lines.into_iter().map(comment).collect();
        Ok((
            format!("{}.{extension}", self.name),
            format!("{front}{}", self.source),
        ))
    }

    /// The schema in its short form, if that says all of it.
    fn parameters(&self) -> Option<Vec<String>> {
        let known = ["type", "properties", "required", "additionalProperties"];
        let members = self.schema.as_object()?;
        if !members.keys().all(|key| known.contains(&key.as_str()))
            || self.schema["additionalProperties"] == true
        {
            return None;
        }
        let required = self.schema["required"].as_array();
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|it| it == name));
        let properties = self.schema["properties"].as_object()?;
        let one = |(name, of): (&String, &Value)| {
            let mut of = of.as_object()?.clone();
            if of.contains_key("optional") {
                return None;
            }
            if !is_required(name) && !of.contains_key("default") {
                of.insert("optional".to_owned(), true.into());
            }
            Some(format!("{} = {}", key(name), inline(&Value::Object(of))?))
        };
        properties.iter().map(one).collect()
    }
}

/// Clients refuse a whole list of tools for one schema that is none.
fn is_schema(value: &Value) -> bool {
    let is_small = || value.to_string().len() <= LARGEST_SCHEMA;
    value.is_object() && is_small() && jsonschema::meta::is_valid(value)
}

fn key(name: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
    match !name.is_empty() && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A value as TOML writes it within a line; TOML has no null.
fn inline(value: &Value) -> Option<String> {
    let all = |parts: Option<Vec<String>>| parts.map(|parts| parts.join(", "));
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", all(items.iter().map(inline).collect())?),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                Some(format!("{} = {}", key(name), inline(value)?))
            };
            format!("{{ {} }}", all(members.iter().map(member).collect())?)
        }
    })
}

/// A string on one line. What JSON escapes TOML understands; a few more have to be.
fn quoted(text: &str) -> String {
    let visible: String = text
        .chars()
        .filter(|it| !it.is_control() || *it == '\n')
        .map(|it| match it {
            '\u{2028}' | '\u{2029}' => ' ',
            other => other,
        })
        .collect();
    Value::String(visible).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::Registry;
    use crate::publish::front_matter::FrontMatter;

    fn draft(more: Value) -> Result<Draft, String> {
        let mut asked = json!({
            "name": "f", "language": "python", "source": "def f(): pass\n", "description": "",
            "schema": { "type": "object", "properties": {} },
        });
        for (key, value) in more.as_object().unwrap() {
            asked[key] = value.clone();
        }
        Draft::read(asked.as_object().unwrap().clone())
    }

    #[test]
    fn a_file_says_what_was_asked_for_and_nothing_else() {
        let registry = Registry::load(None);
        let python = registry.find("python").unwrap();
        let hostile = "a \"b\" \\ '''\n---\n# --- tool\nname = \"evil\"\r\u{7f}\u{85}\u{2028}";
        for schema in [
            json!({ "type": "object", "properties": { "a": { "type": "integer", "default": 3 }, "b": {}, "c d": { "description": hostile } }, "required": ["b"] }),
            json!({ "type": "object", "properties": { hostile: { "default": null } } }),
            json!({ "type": "object", "properties": { "x": { "optional": 1 } }, "additionalProperties": true }),
        ] {
            let made = draft(json!({ "description": hostile, "schema": schema })).unwrap();
            let (file_name, text) = made.file(python).unwrap();
            assert_eq!(file_name, "f.py");
            let front = FrontMatter::read(&file_name, &text).unwrap().unwrap();
            assert_eq!((front.key.as_str(), front.timeout), ("f", None), "{text}");
            let about = front.listing["description"].as_str().unwrap();
            assert!(
                about.starts_with("a \"b\" \\ '''\n---\n# --- tool\nname"),
                "{about}"
            );
            let names = |of: &Value| -> Vec<String> {
                of["properties"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .cloned()
                    .collect()
            };
            assert_eq!(names(&front.schema).len(), names(&schema).len(), "{text}");
            assert!(text.ends_with("# ---\ndef f(): pass\n"), "{text}");
        }
    }

    #[test]
    fn what_it_returns_is_in_its_file_as_a_client_is_told() {
        let registry = Registry::load(None);
        let python = registry.find("python").unwrap();
        let returns = json!({ "type": "array", "items": { "enum": ["a\n---", 1] } });
        let schema =
            json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": false });
        for schema in [schema, json!({ "type": "object", "oneOf": [] })] {
            let made = draft(json!({ "returns": returns, "schema": schema })).unwrap();
            let (file_name, text) = made.file(python).unwrap();
            let front = FrontMatter::read(&file_name, &text).unwrap().unwrap();
            let output = &front.listing["outputSchema"];
            assert_eq!(output["properties"]["result"], returns, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_a_tool_is_refused() {
        for bad in [
            json!({ "name": "../f" }),
            json!({ "name": "" }),
            json!({ "name": ".f" }),
            json!({ "name": "save_tool" }),
            json!({ "name": "a".repeat(65) }),
            json!({ "name": 7 }),
            json!({ "source": "x".repeat(LONGEST_SOURCE + 1) }),
            json!({ "schema": [] }),
            json!({ "schema": { "type": "string" } }),
            json!({ "example": [1] }),
            json!({ "returns": "number" }),
            json!({ "returns": { "type": 7 } }),
            json!({ "returns": { "type": "string", "description": "x".repeat(LARGEST_SCHEMA) } }),
        ] {
            assert!(draft(bad.clone()).is_err(), "{bad}");
        }
        assert!(draft(json!({ "example": { "a": 1 } })).is_ok());
    }
}
