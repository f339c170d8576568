//! The arguments of `run`, checked.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::hint::Surface;
use crate::mcp::objects::{Arguments, UnknownParameter};
use crate::request::{
    AskedLimits, AskedPackages, CellPath, FileSource, InputFile, IsolationChoice, Network,
    RequestError, RunRequest, SessionName, parse_count, parse_cpus, parse_duration, parse_size,
};
use crate::run::Stdin;
use crate::spool::Spooled;
use crate::store::{CallerOutputs, parse_address};

pub struct Params {
    pub request: RunRequest,
    pub stdin: Stdin,
    /// Whether its caller does not wait for it.
    pub background: bool,
}

/// Why the arguments cannot be used, for a model to read and fix.
#[derive(Debug, PartialEq, Eq)]
pub struct BadArguments {
    pub message: String,
    pub hint: Option<String>,
}

const KNOWN: [&str; 15] = [
    "code",
    "language",
    "args",
    "stdin",
    "files",
    "packages",
    "network",
    "servers",
    "timeout",
    "memory",
    "cpus",
    "processes",
    "background",
    "session",
    "isolation",
];

impl Params {
    /// Reads them; `outputs` are those that the caller may use as files.
    pub fn read(
        mut arguments: Arguments,
        outputs: CallerOutputs<'_>,
    ) -> Result<Self, BadArguments> {
        UnknownParameter::check(&arguments, &KNOWN)?;
        // A null is what some clients send for a parameter that was left out.
        let mut take = |key| arguments.remove(key).filter(|value| !value.is_null());
        let code = text("code", take("code"))?.unwrap_or_default();
        let mut request = RunRequest::new(code).map_err(bad)?.wants_files(true);
        if let Some(language) = text("language", take("language"))? {
            request = request.language(language);
        }
        request = request.args(words("args", take("args"))?).map_err(bad)?;
        request = request.files(files(take("files"), outputs)?).map_err(bad)?;
        request = request.packages(packages(take("packages"))?).map_err(bad)?;
        let limits = AskedLimits {
            timeout: timeout(take("timeout"))?,
            memory: amount("memory", "a size, as in \"2g\"", take("memory"), parse_size)?,
            cpus: amount("cpus", "a number above zero", take("cpus"), parse_cpus)?,
            tasks: amount(
                "processes",
                "a whole number above zero",
                take("processes"),
                parse_count,
            )?,
            output: None,
        };
        request = request.limits(limits).map_err(bad)?;
        request = request.network(network(take("network"))?);
        if let Some(servers) = take("servers") {
            request = request.servers(words("servers", Some(servers))?);
        }
        if let Some(word) = text("isolation", take("isolation"))? {
            let choice = IsolationChoice::parse(&word);
            let one_of = || format!("one of {}", IsolationChoice::WORDS.join(", "));
            request =
                request.isolation(Some(choice.ok_or_else(|| must_be("isolation", &one_of()))?));
        }
        if let Some(name) = text("session", take("session"))? {
            request = request.in_session(SessionName::parse(&name).map_err(bad)?);
        }
        let stdin = match text("stdin", take("stdin"))? {
            Some(text) if !text.is_empty() => Stdin::Bytes(text.into_bytes()),
            _ => Stdin::Empty,
        };
        let background = match take("background") {
            None => false,
            Some(Value::Bool(background)) => background,
            Some(_) => return Err(must_be("background", "true or false")),
        };
        Ok(Self {
            request,
            stdin,
            background,
        })
    }
}

impl From<UnknownParameter> for BadArguments {
    fn from(unknown: UnknownParameter) -> Self {
        Self {
            message: unknown.message,
            hint: Some(unknown.hint),
        }
    }
}

fn bad(error: RequestError) -> BadArguments {
    BadArguments {
        message: error.to_string(),
        hint: error.hint().map(|hint| hint.words(Surface::Mcp)),
    }
}

fn must_be(name: &str, expected: &str) -> BadArguments {
    BadArguments {
        message: format!("`{name}` must be {expected}"),
        hint: None,
    }
}

fn text(name: &str, value: Option<Value>) -> Result<Option<String>, BadArguments> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(must_be(name, "a string")),
    }
}

fn words(name: &str, value: Option<Value>) -> Result<Vec<String>, BadArguments> {
    let wrong = || must_be(name, "a list of strings");
    match value {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                // What a model writes when it means "3".
                Value::Number(number) => Ok(number.to_string()),
                _ => Err(wrong()),
            })
            .collect(),
        Some(_) => Err(wrong()),
    }
}

/// A list, lists for registries, a map from imports, or the lock of an earlier result.
pub fn packages(value: Option<Value>) -> Result<AskedPackages, BadArguments> {
    let expected = "a list of packages, {\"npm\": [...], \"pypi\": [...]}, an object from import to package, or a lock";
    match value {
        None => Ok(AskedPackages::Detect),
        Some(value) => {
            let read = AskedPackages::from_json(value);
            read.ok_or_else(|| must_be("packages", expected))
        }
    }
}

fn network(value: Option<Value>) -> Result<Network, BadArguments> {
    let wrong = || must_be("network", "a list of hosts");
    let words = match value {
        None => return Ok(Network::None),
        // What a model writes when it means a list of one.
        Some(Value::String(text)) => vec![Value::String(text)],
        Some(Value::Array(words)) => words,
        Some(_) => return Err(wrong()),
    };
    let words = words.iter().map(|word| word.as_str().ok_or_else(wrong));
    let words = words.collect::<Result<Vec<_>, _>>()?;
    let words = words.iter().flat_map(|word| word.split(',')).map(str::trim);
    Network::from_words(words).map_err(|error| bad(error.into()))
}

fn timeout(value: Option<Value>) -> Result<Option<Duration>, BadArguments> {
    let wrong = || must_be("timeout", "a number of seconds above zero");
    match value {
        None => Ok(None),
        Some(Value::Number(number)) => {
            let seconds = number.as_f64().filter(|seconds| *seconds > 0.0);
            let seconds = seconds.ok_or_else(wrong)?;
            // Too long for a Duration is also longer than any maximum.
            let asked = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            Ok(Some(asked.max(Duration::from_millis(1))))
        }
        Some(Value::String(text)) => parse_duration(&text).map(Some).map_err(|_| wrong()),
        Some(_) => Err(wrong()),
    }
}

/// A limit: a number, or a text as the command line takes it.
fn amount<T>(
    name: &str,
    expected: &str,
    value: Option<Value>,
    parse: impl Fn(&str) -> Result<T, RequestError>,
) -> Result<Option<T>, BadArguments> {
    let text = match value {
        None => return Ok(None),
        // Never with an exponent, which the command line does not take.
        Some(Value::Number(number)) => number.as_f64().map(|number| number.to_string()),
        Some(Value::String(text)) => Some(text),
        Some(_) => None,
    };
    let parsed = text.and_then(|text| parse(&text).ok());
    parsed.map(Some).ok_or_else(|| must_be(name, expected))
}

fn files(value: Option<Value>, outputs: CallerOutputs<'_>) -> Result<Vec<InputFile>, BadArguments> {
    let entries = match value {
        None => return Ok(Vec::new()),
        Some(Value::Object(entries)) => entries,
        Some(_) => return Err(must_be("files", "an object from path to content")),
    };
    let mut files = Vec::new();
    // However often one is mentioned, it is looked up once.
    let mut known: HashMap<String, Arc<Spooled>> = HashMap::new();
    let mut find = |uri: &str| {
        if let Some(kept) = known.get(uri) {
            return Some(kept.clone());
        }
        let kept = parse_address(uri).and_then(|(run, name)| outputs.find(run, &name))?;
        Some(known.entry(uri.to_owned()).or_insert(kept).clone())
    };
    for (path, content) in entries {
        let cell_path = CellPath::parse(&path).map_err(|error| bad(error.into()))?;
        let source = content_of(&path, content, &mut find)?;
        files.push(InputFile::new(cell_path, source));
    }
    Ok(files)
}

fn content_of(
    path: &str,
    content: Value,
    find: &mut dyn FnMut(&str) -> Option<Arc<Spooled>>,
) -> Result<FileSource, BadArguments> {
    let name = format!("files[{path:?}]");
    let member = |key: &str| content.get(key).and_then(Value::as_str);
    if let Value::String(text) = content {
        return Ok(FileSource::Bytes(text.into_bytes()));
    }
    if let Some(encoded) = member("base64") {
        let decoded = STANDARD.decode(encoded.trim()).map(FileSource::Bytes);
        return decoded.map_err(|_| must_be(&name, "base64 text under `base64`"));
    }
    let Some(uri) = member("uri") else {
        return Err(must_be(
            &name,
            "text, or an object with `base64`, or one with the `uri` of an earlier output",
        ));
    };
    match find(uri) {
        Some(kept) => Ok(FileSource::Kept(kept)),
        None => Err(BadArguments {
            message: format!("there is no output `{}`", uri.escape_debug()),
            hint: Some("Run the program again: its output is no longer kept.".to_owned()),
        }),
    }
}

#[cfg(test)]
mod tests;
