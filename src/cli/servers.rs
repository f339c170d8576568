//! `hotcell servers`: the upstream MCP servers and their tools.

use std::io::Write;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::{BAD_INPUT, cannot_start, explain};
use crate::engine::Engine;
use crate::hint::Surface;
use crate::language::Surroundings;
use crate::service::{Service, Settings};
use crate::upstream::{ServerStderr, UpstreamServers};

#[derive(clap::Args)]
pub struct Arguments {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// What to exit with when a server does not work.
const MISSING: u8 = 1;

pub fn main(arguments: &Arguments) -> ExitCode {
    let engine = Engine::new(Surroundings::from_env()).with_complaints(ServerStderr::Shown);
    let service = Service::with_engine(engine, Settings::for_one_run());
    let servers = match service.engine().servers() {
        Ok(servers) => servers,
        Err(error) => {
            explain(&error.to_string(), error.hint(), Surface::CommandLine);
            return BAD_INPUT.into();
        }
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return cannot_start(&error),
    };
    if servers.all().is_empty() && !arguments.json {
        println!("No servers are configured (see docs/servers.md).");
        return ExitCode::SUCCESS;
    }
    let (listed, all_work) = runtime.block_on(list(servers));
    let text = match arguments.json {
        true => format!("{:#}\n", Value::from(listed)),
        false => listed.iter().map(table).collect(),
    };
    // Nobody left to read is no failure of ours.
    let _ = std::io::stdout().write_all(text.as_bytes());
    match all_work {
        true => ExitCode::SUCCESS,
        false => MISSING.into(),
    }
}

/// What each of them says of itself, and whether all of them work.
async fn list(servers: &UpstreamServers) -> (Vec<Value>, bool) {
    let mut listed = Vec::new();
    let mut all_work = true;
    // All start at once; below each is waited for.
    servers.discover().await;
    for server in servers.all() {
        let mut entry = json!({ "name": server.name, "alias": server.alias });
        if !server.unset().is_empty() {
            entry["unset"] = json!(server.unset());
        }
        match server.tools().await {
            Ok(_) => entry["tools"] = json!(server.signatures()),
            Err(error) => {
                entry["error"] = error.to_string().into();
                all_work = false;
            }
        }
        listed.push(entry);
    }
    (listed, all_work)
}

fn table(server: &Value) -> String {
    let name = server["name"].as_str().unwrap_or_default();
    let mut text = match (server["tools"].as_array(), server["error"].as_str()) {
        (Some(tools), _) => format!("{name}: {} tools\n", tools.len()),
        (None, error) => format!("{name}: {}\n", error.unwrap_or_default()),
    };
    for name in server["unset"].as_array().into_iter().flatten() {
        text += &format!("  {} is not set\n", name.as_str().unwrap_or_default());
    }
    for tool in server["tools"].as_array().into_iter().flatten() {
        text += &format!("  {}\n", tool.as_str().unwrap_or_default());
    }
    text
}
