//! An entry as one of many programs writes it. They differ in the names of a few members.

use serde_json::Value;

use super::super::rules::{Pattern, Rules};
use super::super::server::{Entry, Transport};
use super::members;

/// What an entry says; none if it is switched off.
pub fn read(value: &Value, url_is_sse: bool) -> Result<Option<Entry>, String> {
    if members(value).is_none() {
        return Err("it is no object".to_owned());
    }
    let is = |name: &str, so: bool| value[name].as_bool() == Some(so);
    if is("disabled", true) || is("enabled", false) {
        return Ok(None);
    }
    let first = |names: &[&str]| {
        let mut found = names.iter().filter_map(|name| value[*name].as_str());
        found.next().filter(|text| !text.is_empty())
    };
    let kind = first(&["type", "transport"]);
    // Parts of Goose itself.
    if matches!(
        kind,
        Some("builtin" | "platform" | "frontend" | "inline_python")
    ) {
        return Ok(None);
    }
    let is_remote =
        matches!(kind, Some("remote")) || kind.is_some_and(|it| Transport::parse(it).is_some());
    let mut entry = Entry {
        command: command(value)?,
        folder: first(&["cwd"]).map(str::to_owned),
        env: pairs(value, &["env", "environment", "envs"]),
        env_file: first(&["envFile"]).map(str::to_owned),
        pass: [names(&value["env_vars"]), names(&value["env_keys"])].concat(),
        url: first(&["url", "serverUrl", "httpUrl", "uri"]).map(str::to_owned),
        headers: pairs(value, &["headers", "http_headers"]),
        bearer: first(&["bearer_token_env_var"]).map(str::to_owned),
        transport: kind.and_then(Transport::parse),
        description: first(&["description"]).map(str::to_owned),
        idle: None,
        rules: Rules {
            allow: patterns(value, &["enabled_tools", "includeTools", "available_tools"]),
            deny: patterns(value, &["disabled_tools", "excludeTools"]),
            ..Rules::default()
        },
        expose: Vec::new(),
    };
    // The value of a header in a variable.
    for (header, variable) in pairs(value, &["env_http_headers"]) {
        entry.headers.push((header, format!("${{{variable}}}")));
    }
    match is_remote {
        // What belongs to the other kind is left over from an edit.
        true => entry.command.clear(),
        false if !entry.command.is_empty() => entry.url = None,
        false => {}
    }
    if url_is_sse && kind.is_none() && first(&["httpUrl"]).is_none() {
        entry.transport = Some(Transport::Sse);
    }
    Ok(Some(entry))
}

/// A text with `args` beside it, all words in one list, or an object with both.
fn command(value: &Value) -> Result<Vec<String>, String> {
    let (first, args) = match &value["command"] {
        Value::Object(both) => (both.get("path"), both.get("args")),
        Value::Null => (value.get("cmd"), value.get("args")),
        _ => (value.get("command"), value.get("args")),
    };
    let mut words = Vec::new();
    for part in [first, args].into_iter().flatten() {
        match part {
            Value::String(word) => words.push(word.clone()),
            Value::Array(list) => {
                for word in list {
                    words.push(text(word).ok_or("`command` and `args` are no texts")?);
                }
            }
            Value::Null => {}
            _ => return Err("`command` and `args` are no texts".to_owned()),
        }
    }
    Ok(words)
}

fn pairs(value: &Value, names: &[&str]) -> Vec<(String, String)> {
    let own = names.iter().filter_map(|name| value[*name].as_object());
    let inner = value["command"]["env"].as_object();
    let inner = inner.filter(|_| names.contains(&"env"));
    let all = own.chain(inner).flatten();
    all.filter_map(|(name, value)| Some((name.clone(), text(value)?)))
        .collect()
}

/// Tools that the other program may use, or not.
fn patterns(value: &Value, names: &[&str]) -> Vec<Pattern> {
    let listed = names.iter().flat_map(|name| self::names(&value[*name]));
    listed.map(|name| Pattern::new(&name)).collect()
}

fn names(value: &Value) -> Vec<String> {
    let listed = value.as_array().into_iter().flatten();
    let name = |it: &Value| {
        it.as_str()
            .or_else(|| it["name"].as_str())
            .map(str::to_owned)
    };
    listed.filter_map(name).collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}
