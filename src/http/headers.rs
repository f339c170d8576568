//! The headers in which a modern request repeats what its body says.
//!
//! Proxies route by them without reading the body, so both must agree.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use serde_json::Value;

use crate::mcp::{Catalog, Fault, Request};

pub const VERSION: &str = "mcp-protocol-version";
pub const SESSION: &str = "mcp-session-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAM: &str = "mcp-param-";

/// The only value of a header, or none. Two of them are an error.
pub fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Fault> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(mismatch(format!("there are two `{name}` headers")));
    }
    let text = value.to_str();
    let text = text.map_err(|_| mismatch(format!("the `{name}` header is not visible ASCII")))?;
    Ok(Some(text.trim()))
}

/// Checks the headers of a request whose `_meta` names `version`.
pub fn check(
    headers: &HeaderMap,
    version: &str,
    request: &Request,
    catalog: &Catalog,
) -> Result<(), Fault> {
    agree(headers, VERSION, version)?;
    agree(headers, METHOD, &request.method)?;
    let named_by = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    if let Some(name) = request.params.get(named_by).and_then(Value::as_str) {
        agree(headers, NAME, name)?;
        let tool = catalog.tools.get(name);
        if let Some(tool) = tool.filter(|_| request.method == "tools/call") {
            let arguments = request.params.get("arguments").unwrap_or(&Value::Null);
            check_params(headers, &tool.listing()["inputSchema"], arguments)?;
        }
    }
    Ok(())
}

/// Checks the arguments that a tool's schema wants mirrored with `x-mcp-header`.
fn check_params(headers: &HeaderMap, schema: &Value, arguments: &Value) -> Result<(), Fault> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Ok(());
    };
    for (name, property) in properties {
        let argument = arguments.get(name).unwrap_or(&Value::Null);
        if let Some(suffix) = property.get("x-mcp-header").and_then(Value::as_str) {
            let header = format!("{PARAM}{}", suffix.to_ascii_lowercase());
            let shown = single(headers, &header)?;
            match (argument, shown) {
                (Value::Null, None) => {}
                (Value::Null, Some(_)) => {
                    return Err(mismatch(format!("`{header}` has no argument in the body")));
                }
                (_, None) => return Err(mismatch(format!("the `{header}` header is missing"))),
                (argument, Some(shown)) => {
                    if !means(&decode(&header, shown)?, argument) {
                        return Err(mismatch(format!("`{header}` differs from the body")));
                    }
                }
            }
        }
        check_params(headers, property, argument)?;
    }
    Ok(())
}

/// Whether a header's text stands for this value.
fn means(shown: &str, argument: &Value) -> bool {
    match argument {
        Value::String(text) => text == shown,
        Value::Bool(on) => shown == if *on { "true" } else { "false" },
        // 42 and 42.0 are one number in JSON.
        Value::Number(number) => {
            number.to_string() == shown
                || shown
                    .parse::<f64>()
                    .is_ok_and(|shown| number.as_f64() == Some(shown))
        }
        _ => false,
    }
}

fn agree(headers: &HeaderMap, name: &str, body: &str) -> Result<(), Fault> {
    match single(headers, name)? {
        None => Err(mismatch(format!("the `{name}` header is missing"))),
        Some(shown) if decode(name, shown)? == body => Ok(()),
        Some(_) => Err(mismatch(format!(
            "the `{name}` header differs from the body"
        ))),
    }
}

/// Undoes `=?base64?…?=`, which is how text that is no ASCII travels.
fn decode(name: &str, shown: &str) -> Result<String, Fault> {
    let encoded = shown
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    let Some(encoded) = encoded else {
        return Ok(shown.to_owned());
    };
    let decoded = STANDARD.decode(encoded).ok();
    decoded
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| mismatch(format!("the `{name}` header is not base64 of UTF-8")))
}

fn mismatch(message: String) -> Fault {
    Fault::new(Fault::HEADER_MISMATCH, message)
}
