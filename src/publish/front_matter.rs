//! The front matter of a script: what it is, in its leading comment.
//!
//! ```text
//! # --- tool
//! # description = "The weather of a city"
//! # [parameters]
//! # city = "Name of the city"
//! # ---
//! ```
//!
//! Between the two marks is TOML. Whatever stands before the first mark stands
//! before each line, so it can be the comment of any language.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::template::Template;
use crate::request::{parse_duration, parse_size};

/// Lines before the front matter: a `#!`, an encoding, the start of a comment.
const LATEST_START: usize = 10;
const LONGEST: usize = 64 << 10;

/// What a script is.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontMatter {
    pub kind: Kind,
    /// A name, or the address of a resource.
    pub key: String,
    /// The entry of the list.
    pub listing: Value,
    /// What arguments must fit.
    pub schema: Value,
    pub mime: Option<String>,
    pub language: Option<String>,
    pub timeout: Option<Duration>,
    pub memory: Option<u64>,
    /// What the client must be able to do, like `sampling` or `elicitation.url`.
    pub needs: Vec<String>,
    /// Values to offer for an argument.
    pub complete: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Tool,
    Prompt,
    Resource(Template),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    name: Option<String>,
    uri: Option<String>,
    title: Option<String>,
    description: Option<String>,
    mime: Option<String>,
    language: Option<String>,
    timeout: Option<Value>,
    memory: Option<String>,
    needs: Vec<String>,
    parameters: Map<String, Value>,
    /// JSON, as it is to be listed.
    schema: Option<String>,
    output_schema: Option<String>,
    annotations: Map<String, Value>,
    complete: BTreeMap<String, Vec<String>>,
}

impl FrontMatter {
    /// Reads the front matter of a script; none if it has none.
    pub fn read(file_name: &str, code: &str) -> Result<Option<Self>, String> {
        let Some((kind, matter)) = cut_out(code)? else {
            return Ok(None);
        };
        let written: Written =
            toml::from_str(&matter).map_err(|error| error.message().to_owned())?;
        build(kind, file_name, written).map(Some)
    }
}

/// The kind and the TOML of the front matter.
fn cut_out(code: &str) -> Result<Option<(&str, String)>, String> {
    let mut lines = code.lines();
    let start = lines.by_ref().take(LATEST_START).find_map(|line| {
        let (before, kind) = line.split_once("--- ")?;
        // Only what can begin a comment: never a line of code.
        let comment = !before.chars().any(char::is_alphanumeric);
        let kind = kind.trim();
        let known = matches!(kind, "tool" | "prompt" | "resource");
        (comment && known).then_some((before, kind))
    });
    let Some((before, kind)) = start else {
        return Ok(None);
    };
    let mut matter = String::new();
    for line in lines {
        let stripped = line.strip_prefix(before);
        // An editor may have taken the space at the end of an empty line.
        let empty = line.trim_end() == before.trim_end();
        let Some(content) = stripped.or(empty.then_some("")) else {
            break;
        };
        if content.trim_end() == "---" {
            return Ok(Some((kind, matter)));
        }
        matter.push_str(content);
        matter.push('\n');
        if matter.len() > LONGEST {
            return Err(format!("it is longer than {LONGEST} bytes"));
        }
    }
    Err(format!("it has no end: a line `{before}---`"))
}

fn build(kind: &str, file_name: &str, written: Written) -> Result<FrontMatter, String> {
    let stem = Path::new(file_name).file_stem();
    let stem = stem.and_then(|stem| stem.to_str()).unwrap_or_default();
    let name = written.name.unwrap_or_else(|| stem.to_owned());
    let schema = match &written.schema {
        Some(_) if !written.parameters.is_empty() => {
            return Err("`schema` and `parameters` exclude each other".to_owned());
        }
        Some(text) => object("schema", text)?,
        None => short_form(written.parameters)?,
    };
    let mut listing = json!({ "name": name });
    let mut add = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            listing[key] = value;
        }
    };
    let given = |map: Map<String, Value>| (!map.is_empty()).then_some(Value::Object(map));
    add("title", written.title.map(Into::into));
    add("description", written.description.map(Into::into));
    let (kind, key) = match kind {
        "tool" | "prompt" if written.uri.is_some() => {
            return Err("only a resource has a `uri`".to_owned());
        }
        "tool" => {
            check_tool_name(&name)?;
            add("inputSchema", Some(schema.clone()));
            let output = written.output_schema.as_deref();
            let output = output.map(|text| object("output_schema", text));
            add("outputSchema", output.transpose()?);
            add("annotations", given(written.annotations));
            (Kind::Tool, name)
        }
        "prompt" => {
            add("arguments", Some(prompt_arguments(&schema)));
            (Kind::Prompt, name)
        }
        _ => {
            let uri = written.uri.ok_or("a resource needs a `uri`")?;
            if !uri.contains(':') || uri.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err(format!("`{}` is not an address", uri.escape_debug()));
            }
            let template = Template::parse(&uri)?;
            let member = if template.is_template() {
                "uriTemplate"
            } else {
                "uri"
            };
            add(member, Some(uri.as_str().into()));
            add("mimeType", written.mime.as_deref().map(Into::into));
            add("annotations", given(written.annotations));
            (Kind::Resource(template), uri)
        }
    };
    let say = |error: crate::request::RequestError| error.to_string();
    Ok(FrontMatter {
        kind,
        key,
        listing,
        schema,
        mime: written.mime,
        language: written.language,
        timeout: match written.timeout {
            None => None,
            Some(Value::String(text)) => Some(parse_duration(&text).map_err(say)?),
            Some(number) => Some(parse_duration(&number.to_string()).map_err(say)?),
        },
        memory: match written.memory {
            None => None,
            Some(text) => Some(parse_size(&text).map_err(say)?),
        },
        needs: written.needs,
        complete: written.complete,
    })
}

/// A schema from `[parameters]`: a text describes a required string, a table is
/// the parameter's own schema, required unless `optional` or given a `default`.
fn short_form(parameters: Map<String, Value>) -> Result<Value, String> {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, parameter) in parameters {
        let (schema, optional) = match parameter {
            Value::String(description) => (
                json!({ "type": "string", "description": description }),
                false,
            ),
            Value::Object(mut schema) => {
                let optional = match schema.remove("optional") {
                    None => schema.contains_key("default"),
                    Some(Value::Bool(optional)) => optional,
                    Some(_) => return Err(format!("`optional` of `{name}` is true or false")),
                };
                (Value::Object(schema), optional)
            }
            _ => return Err(format!("parameter `{name}` is a text or a table")),
        };
        if !optional {
            required.push(Value::from(name.as_str()));
        }
        properties.insert(name, schema);
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    Ok(schema)
}

fn prompt_arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array();
    let argument = |(name, schema): (&String, &Value)| {
        let needed = required.is_some_and(|all| all.iter().any(|one| one == name));
        let mut argument = json!({ "name": name, "required": needed });
        if let Some(description) = schema.get("description") {
            argument["description"] = description.clone();
        }
        argument
    };
    let properties = schema["properties"].as_object();
    properties.into_iter().flatten().map(argument).collect()
}

fn object(what: &str, text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(format!("`{what}` is not a JSON object")),
        Err(error) => Err(format!("`{what}` is not JSON: {error}")),
    }
}

/// The rule of the protocol, which models' providers share.
fn check_tool_name(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if (1..=128).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    Err(format!(
        "`{}` is not a name for a tool: 1 to 128 of `A-Z a-z 0-9 _ . -`",
        name.escape_debug()
    ))
}

#[cfg(test)]
mod tests;
