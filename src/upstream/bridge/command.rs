//! The command `mcp`, which programs of any language start: what was typed is read here, and the program prints what it is sent.
//!
//! The answer is a line of numbers (exit status, bytes for stdout, bytes for stderr, files), a line `BYTES PATH` for each file, and all of
//! their bytes.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{Asked, Bridge, CallError, Refused};
use crate::upstream::nearest::find;
use crate::upstream::result_value::{self, ResultValue};
use crate::upstream::{Arguments, counted};

const USAGE: &str = "\
usage: mcp list [SERVER]                      the servers, or the tools of one
       mcp search WORDS                       tools that fit
       mcp help [SERVER[.TOOL]]               what they say of themselves
       mcp call [-r] SERVER.TOOL '{...}'      call a tool with JSON, `-` reads it from the standard input
       mcp call [-r] SERVER.TOOL NAME=VALUE   or with names and values
The value comes as JSON; -r prints a string as it is, --raw the whole result. Pictures and files are saved, and their paths printed.
Exit status: 0 a result, 1 the tool failed, 2 wrong usage or no such tool, 3 denied, 4 timed out or not available.
";

/// What the command comes to.
#[derive(Default)]
struct Printed {
    status: u8,
    out: String,
    err: String,
    files: Vec<(String, Vec<u8>)>,
}

impl Bridge {
    pub(super) async fn command(&self, asked: &Asked) -> Vec<u8> {
        let words: Vec<&str> = asked.words.iter().map(String::as_str).collect();
        let done = match words.as_slice() {
            ["list"] => self.listed().await,
            ["list", server] => self.lines(server).await,
            ["search", words @ ..] if !words.is_empty() => {
                let found = self.search(&words.join(" "), 0).await;
                let lines = found.as_array().into_iter().flatten();
                let lines = lines.filter_map(|it| it["signature"].as_str());
                Ok(printed(lines.map(|line| format!("{line}\n")).collect()))
            }
            ["help"] => self.help("").await.map(printed).map_err(self.named("")),
            ["help", about] => self
                .help(about)
                .await
                .map(printed)
                .map_err(self.named(about)),
            ["call", rest @ ..] => self.typed_call(rest, asked).await,
            ["-h" | "--help"] => Ok(printed(USAGE.to_owned())),
            _ => Err((2, USAGE.to_owned())),
        };
        done.unwrap_or_else(|(status, err)| Printed {
            status,
            err,
            ..Printed::default()
        })
        .into_bytes()
    }

    async fn listed(&self) -> Result<Printed, (u8, String)> {
        let mut text = String::new();
        for server in &self.servers {
            let _ = match server.tools().await {
                Ok(tools) => writeln!(text, "{} ({})", server.alias, counted(tools.len())),
                Err(error) => writeln!(text, "{} ({error})", server.alias),
            };
        }
        Ok(printed(text))
    }

    async fn lines(&self, name: &str) -> Result<Printed, (u8, String)> {
        let server = self.find(name).map_err(self.named(name))?;
        server.tools().await.map_err(self.named(name))?;
        let lines = server.signatures().into_iter();
        Ok(printed(lines.map(|line| line + "\n").collect()))
    }

    async fn typed_call(&self, rest: &[&str], asked: &Asked) -> Result<Printed, (u8, String)> {
        let is_flag = |word: &&&str| ["-r", "--raw"].contains(*word);
        let flags: Vec<&&str> = rest.iter().take_while(is_flag).collect();
        let rest = &rest[flags.len()..];
        let usage = || (2, USAGE.to_owned());
        let (name, given) = rest.split_first().ok_or_else(usage)?;
        let (server, tool) = name.split_once('.').ok_or_else(usage)?;
        let fail = self.named(name);
        let server = self.find(server).map_err(&fail)?;
        let arguments = match given {
            [] => "{}".to_owned(),
            ["-"] => asked.input.clone(),
            [json] if json.trim_start().starts_with('{') => (*json).to_owned(),
            pairs => {
                let tools = server.tools().await.map_err(&fail)?;
                let schema = &find(&tools, tool).map_err(&fail)?.input;
                let typed = pairs.iter().map(|pair| typed(pair, schema));
                let all: Option<Map<String, Value>> = typed.collect();
                Value::Object(all.ok_or_else(usage)?).to_string()
            }
        };
        let arguments: Arguments = serde_json::from_str(&arguments).map_err(|error| {
            (
                2,
                format!("{name}: the arguments are no JSON object: {error}\n"),
            )
        })?;
        let result = server.call_whole(tool, arguments).await.map_err(&fail)?;
        let failed = result_value::check(&result)
            .map_err(|refused| (1, self.message(&refused, name) + "\n"));
        if flags.contains(&&"--raw") {
            let (status, err) = failed.err().unwrap_or_default();
            let out = format!("{}\n", Value::from(result));
            let files = Vec::new();
            return Ok(Printed {
                status,
                out,
                err,
                files,
            });
        }
        failed?;
        Ok(value(result, flags.contains(&&"-r"), &asked.files))
    }

    /// What an error is to whoever typed the command.
    fn named(&self, name: &str) -> impl Fn(CallError) -> (u8, String) {
        move |error| {
            let status = match error.kind() {
                "tool" => 1,
                "denied" => 3,
                "timeout" | "unavailable" => 4,
                _ => 2,
            };
            (status, self.message(&Refused::from(error), name) + "\n")
        }
    }
}

fn printed(out: String) -> Printed {
    Printed {
        out,
        ..Printed::default()
    }
}

/// `NAME=VALUE`: what the tool takes as text is text, all else is JSON if it can be read as such.
fn typed(pair: &str, schema: &Value) -> Option<(String, Value)> {
    let (name, text) = pair.split_once('=').filter(|(name, _)| !name.is_empty())?;
    let is_text = schema["properties"][name]["type"] == "string";
    let json = serde_json::from_str(text).ok().filter(|_| !is_text);
    Some((name.to_owned(), json.unwrap_or_else(|| text.into())))
}

fn value(result: Map<String, Value>, is_plain: bool, files: &str) -> Printed {
    let mut saved = Vec::new();
    let value = match ResultValue::of(result) {
        ResultValue::Structure(value) => value,
        ResultValue::Text(text) => result_value::read(text),
        ResultValue::Parts(parts) => {
            let parts = parts.into_iter();
            parts
                .map(|part| saved_part(part, files, &mut saved))
                .collect()
        }
    };
    let out = match value {
        Value::String(text) if is_plain => text + "\n",
        value => format!("{value}\n"),
    };
    Printed {
        files: saved,
        ..printed(out)
    }
}

/// A part of a result: text as it is, data as the path of a file with it.
fn saved_part(mut part: Value, files: &str, saved: &mut Vec<(String, Vec<u8>)>) -> Value {
    if part["type"] == "text" {
        return part["text"].take();
    }
    let inner = match part["resource"].is_object() {
        true => part["resource"].take(),
        false => part,
    };
    let data = [&inner["data"], &inner["blob"]];
    let data = data.into_iter().find_map(Value::as_str);
    let bytes = match (data, inner["text"].as_str()) {
        (Some(data), _) => STANDARD.decode(data).unwrap_or_default(),
        (None, Some(text)) => text.as_bytes().to_vec(),
        (None, None) => return inner,
    };
    let mime = inner["mimeType"].as_str().unwrap_or_default();
    let path = format!("{files}{}.{}", saved.len() + 1, extension(mime));
    let about = json!({ "path": path, "mime": mime, "size": bytes.len(), "uri": inner["uri"] });
    saved.push((path, bytes));
    about
}

/// How the file of a media type ends: its second half, if that is plain.
fn extension(mime: &str) -> &str {
    let half = mime.split(['/', ';']).nth(1).unwrap_or_default();
    let half = half.split('+').next().unwrap_or_default();
    match half {
        "plain" => "txt",
        "jpeg" => "jpg",
        half if (1..=8).contains(&half.len())
            && half.bytes().all(|it| it.is_ascii_alphanumeric()) =>
        {
            half
        }
        _ => "bin",
    }
}

impl Printed {
    fn into_bytes(self) -> Vec<u8> {
        let (out, err) = (self.out.into_bytes(), self.err.into_bytes());
        let numbers = [out.len(), err.len(), self.files.len()].map(|it| it.to_string());
        let mut bytes = format!("{} {}\n", self.status, numbers.join(" "));
        for (path, data) in &self.files {
            let _ = writeln!(bytes, "{} {path}", data.len());
        }
        let files = self.files.into_iter().map(|(_, data)| data);
        [bytes.into_bytes(), out, err]
            .into_iter()
            .chain(files)
            .flatten()
            .collect()
    }
}
