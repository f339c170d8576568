//! `hotcell servers call`: one call of a tool, as a program would make it.

use std::io::{Read, Write};
use std::process::ExitCode;

use serde_json::{Map, Value};

use super::super::{BAD_INPUT, print_error};
use super::{Unusable, find, unusable};
use crate::upstream::{Arguments as ToolArguments, CallError, UpstreamServers};

/// Standard input is read up to here.
const LONGEST: u64 = 32 << 20;

#[derive(clap::Args)]
pub struct Arguments {
    /// The tool, as in github.get_issue
    #[arg(value_name = "SERVER.TOOL")]
    tool: String,
    /// Its arguments: one JSON object, or any number of name=value, or - for JSON from standard input
    #[arg(value_name = "ARGUMENT")]
    arguments: Vec<String>,
    /// Print a text as it is, and not as JSON
    #[arg(short, long)]
    raw: bool,
}

impl Arguments {
    /// The exit status: 0 with a result, 1 if the tool failed, 2 for a mistake of the caller, 3 if it is not allowed, 4 if the server cannot be had.
    pub async fn carry_out(&self, servers: &UpstreamServers) -> ExitCode {
        match self.call(servers).await {
            Ok(Value::String(text)) if self.raw => print(&text),
            Ok(value) => print(&format!("{value:#}")),
            Err(Unusable { why, hint, code }) => {
                print_error(&why, hint.as_deref());
                return code.into();
            }
        }
        ExitCode::SUCCESS
    }

    async fn call(&self, servers: &UpstreamServers) -> Result<Value, Unusable> {
        let bad = |why: &str| Unusable {
            why: why.to_owned(),
            hint: Some("Run `hotcell servers call --help`.".to_owned()),
            code: BAD_INPUT,
        };
        let (name, tool) = split(&self.tool, servers)
            .ok_or_else(|| bad("the tool must be named as in `server.tool`"))?;
        let server = find(servers, name)?;
        let text = self.read().map_err(|why| bad(&why))?;
        let arguments: ToolArguments =
            serde_json::from_str(&text).map_err(|error| bad(&format!("arguments: {error}")))?;
        let called = server.call(tool, arguments).await;
        called.map_err(|error| match &error {
            CallError::Unavailable(_) => unusable(server, &error),
            _ => Unusable {
                why: format!("{}: {error}", self.tool),
                hint: None,
                code: exit_code(&error),
            },
        })
    }

    /// The arguments as JSON text.
    fn read(&self) -> Result<String, String> {
        match self.arguments.as_slice() {
            [] => Ok("{}".to_owned()),
            [one] if one == "-" => {
                let mut text = String::new();
                let read = std::io::stdin().take(LONGEST).read_to_string(&mut text);
                read.map_err(|error| format!("standard input: {error}"))?;
                Ok(text.trim().to_owned())
            }
            [one] if one.trim_start().starts_with('{') => Ok(one.trim().to_owned()),
            pairs => {
                let mut map = Map::new();
                for pair in pairs {
                    let (name, value) = pair
                        .split_once('=')
                        .ok_or_else(|| format!("`{}` is not name=value", pair.escape_debug()))?;
                    // `n=5` is a number, `s=text` a text; `s="5"` is a text for sure.
                    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
                    map.insert(name.to_owned(), value);
                }
                Ok(Value::Object(map).to_string())
            }
        }
    }
}

/// The server and its tool. A server's name may have dots in it.
fn split<'a>(text: &'a str, servers: &UpstreamServers) -> Option<(&'a str, &'a str)> {
    let known = |name: &str| {
        servers
            .all()
            .iter()
            .any(|it| it.name == name || it.alias == name)
    };
    let mut ways = text
        .match_indices('.')
        .map(|(at, _)| (&text[..at], &text[at + 1..]));
    ways.clone()
        .find(|(name, _)| known(name))
        .or_else(|| ways.next())
}

/// What to exit with for an error.
pub fn exit_code(error: &CallError) -> u8 {
    match error {
        CallError::Tool(_) => 1,
        CallError::Arguments(_) | CallError::UnknownTool(_) | CallError::UnknownServer(_) => {
            BAD_INPUT
        }
        CallError::Denied(_) => 3,
        CallError::Unavailable(_) | CallError::Timeout(_) => 4,
    }
}

fn print(text: &str) {
    // Nobody left to read is no failure of ours.
    let _ = writeln!(std::io::stdout(), "{text}");
}
