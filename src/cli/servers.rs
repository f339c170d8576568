//! `hotcell servers`: the upstream MCP servers and their tools.

mod call;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{BAD_INPUT, cannot_start, explain, print_error, print_line, print_note};
use crate::config::Reach;
use crate::engine::Engine;
use crate::hint::Surface;
use crate::language::Surroundings;
use crate::upstream::{CallError, ServerStderr, UpstreamServer, UpstreamServers, counted};

#[derive(clap::Args)]
pub struct Arguments {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// With the servers that other programs on this machine have configured
    #[arg(long, global = true)]
    discover: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the servers without starting any
    List,
    /// Start servers and say which of them work
    Check {
        /// Only these [default: all]
        names: Vec<String>,
    },
    /// Show everything that a server says about its tools
    Tools {
        name: String,
        /// Only this tool
        tool: Option<String>,
    },
    /// Call a tool and print what it returns
    Call(call::Arguments),
    /// Log in to a server at an address, with a browser
    Login { name: String },
}

/// What to exit with when a server does not work.
const MISSING: u8 = 1;

pub fn main(arguments: &Arguments) -> ExitCode {
    let engine = Engine::new(Surroundings::from_env())
        .with_complaints(ServerStderr::Shown)
        .with_discovery(arguments.discover);
    if let Ok(config) = engine.config() {
        for complaint in config.discovered().complaints {
            print_note(&complaint);
        }
    }
    let servers = match engine.servers() {
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
    let none = servers.all().is_empty() && !arguments.json;
    let done = match &arguments.action {
        None | Some(Action::List | Action::Check { .. }) if none => {
            print_line("No servers are configured (see `hotcell help servers`).");
            return ExitCode::SUCCESS;
        }
        None => runtime.block_on(check(&servers, &[], Shown::Tools)),
        Some(Action::Check { names }) => runtime.block_on(check(&servers, names, Shown::Counts)),
        Some(Action::List) => Ok((list(&servers), true)),
        Some(Action::Tools { name, tool }) => {
            runtime.block_on(tools(&servers, name, tool.as_deref()))
        }
        Some(Action::Login { name }) => {
            let done = runtime.block_on(login(&servers, name));
            done.map(|()| (Vec::new(), true))
        }
        Some(Action::Call(call)) => return runtime.block_on(call.carry_out(&servers)),
    };
    let (listed, all_work) = match done {
        Ok(done) => done,
        Err(Unusable { why, hint, code }) => {
            print_error(&why, hint.as_deref());
            return code.into();
        }
    };
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

/// Why nothing could be asked of a server.
struct Unusable {
    why: String,
    hint: Option<String>,
    code: u8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Counts,
    Tools,
}

fn find<'a>(servers: &'a UpstreamServers, name: &str) -> Result<&'a Arc<UpstreamServer>, Unusable> {
    let named = |it: &&Arc<UpstreamServer>| it.name == name || it.alias == name;
    let found = servers.all().iter().find(named);
    found.ok_or_else(|| {
        let names: Vec<&str> = servers.all().iter().map(|it| it.name.as_str()).collect();
        Unusable {
            why: format!("unknown server `{}`", name.escape_debug()),
            hint: Some(match names.is_empty() {
                true => {
                    "Configure it under `[servers]` in config.toml (see `hotcell help servers`)."
                        .to_owned()
                }
                false => format!("Choose one of: {}.", names.join(", ")),
            }),
            code: BAD_INPUT,
        }
    })
}

/// What is known of a server before it is asked.
fn entry(server: &UpstreamServer) -> Value {
    let mut entry = json!({ "name": server.name, "alias": server.alias });
    let Some(settings) = server.settings() else {
        return entry;
    };
    // No argument and no path: they may hold a secret.
    let (kind, reached) = match &settings.reach {
        Reach::Program(program) => ("stdio", program.command.first().cloned()),
        Reach::Remote(remote) => ("http", remote.url.host_str().map(str::to_owned)),
        Reach::Mistake(_) => ("mistake", None),
    };
    entry["transport"] = kind.into();
    if let Some(reached) = reached {
        entry["reached"] = reached.into();
    }
    if let Some(about) = &settings.description {
        entry["description"] = about.as_str().into();
    }
    entry["source"] = settings.source.display().to_string().into();
    if !server.unset().is_empty() {
        entry["unset"] = json!(server.unset());
    }
    if let Some(why) = server.mistake() {
        entry["error"] = why.into();
    }
    entry
}

fn list(servers: &UpstreamServers) -> Vec<Value> {
    let known = |server: &Arc<UpstreamServer>| {
        let mut entry = entry(server);
        entry["known"] = server.known().len().into();
        entry
    };
    servers.all().iter().map(known).collect()
}

/// What each of them says of itself, and whether all of them work. All start at once.
async fn check(
    servers: &UpstreamServers,
    names: &[String],
    shown: Shown,
) -> Result<(Vec<Value>, bool), Unusable> {
    let chosen: Vec<Arc<UpstreamServer>> = match names.is_empty() {
        true => servers.all().to_vec(),
        false => {
            let found = names.iter().map(|name| find(servers, name).cloned());
            found.collect::<Result<_, _>>()?
        }
    };
    let mut asking = JoinSet::new();
    for (at, server) in chosen.into_iter().enumerate() {
        asking.spawn(async move {
            let mut entry = entry(&server);
            match server.ask().await {
                Ok(()) if shown == Shown::Tools => entry["tools"] = json!(server.signatures()),
                Ok(()) => entry["known"] = server.known().len().into(),
                Err(error) if entry["error"].is_null() => entry["error"] = error.to_string().into(),
                Err(_) => {}
            }
            (at, entry)
        });
    }
    let mut listed = asking.join_all().await;
    listed.sort_by_key(|(at, _)| *at);
    let listed: Vec<Value> = listed.into_iter().map(|(_, entry)| entry).collect();
    let all_work = listed.iter().all(|entry| entry["error"].is_null());
    Ok((listed, all_work))
}

/// Everything about the tools of one server, or about one of them.
async fn tools(
    servers: &UpstreamServers,
    name: &str,
    tool: Option<&str>,
) -> Result<(Vec<Value>, bool), Unusable> {
    let server = find(servers, name)?;
    server
        .ask()
        .await
        .map_err(|error| unusable(server, &error))?;
    let known = server.known();
    let chosen = known.iter();
    let chosen: Vec<Value> = chosen
        .filter(|it| tool.is_none_or(|tool| it.name == tool))
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.input,
                "outputSchema": tool.output,
                "signature": server.documentation(tool),
            })
        })
        .collect();
    match (tool, chosen.is_empty()) {
        (Some(tool), true) => Err(Unusable {
            why: format!("unknown tool `{}`", tool.escape_debug()),
            hint: Some(format!("Run `hotcell servers tools {name}` for the list.")),
            code: BAD_INPUT,
        }),
        _ => Ok((chosen, true)),
    }
}

async fn login(servers: &UpstreamServers, name: &str) -> Result<(), Unusable> {
    let server = find(servers, name)?;
    let show = |address: &str| {
        print_note(&format!("open this address in a browser:\n{address}"));
        print_note("waiting for the browser to come back");
    };
    let done = server.log_in(show).await;
    done.map_err(|why| Unusable {
        why: format!("{}: {why}", server.name),
        hint: None,
        code: MISSING,
    })?;
    print_note(&format!("logged in to {}", server.name));
    Ok(())
}

fn unusable(server: &UpstreamServer, error: &CallError) -> Unusable {
    let why = match server.mistake() {
        Some(mistake) => mistake.to_owned(),
        None => format!("{}: {error}", server.name),
    };
    let hint = matches!(error, CallError::Unavailable(_) if server.mistake().is_none());
    Unusable {
        why,
        hint: hint.then(|| "What it wrote to its standard error is above.".to_owned()),
        code: call::exit_code(error),
    }
}

fn table(server: &Value) -> String {
    if let Some(signature) = server["signature"].as_str() {
        return format!("{signature}\n");
    }
    let name = server["name"].as_str().unwrap_or_default();
    let mut text = match (server["tools"].as_array(), server["error"].as_str()) {
        (Some(tools), _) => format!("{name}: {}\n", counted(tools.len())),
        (None, Some(error)) => format!("{name}: {error}\n"),
        (None, None) if server["known"] == 0 => {
            format!("{name}: no tools known yet; `hotcell servers check` asks for them\n")
        }
        (None, None) => {
            let known = server["known"].as_u64().unwrap_or_default();
            format!("{name}: {}\n", counted(known as usize))
        }
    };
    for name in server["unset"].as_array().into_iter().flatten() {
        text += &format!("  {} is not set\n", name.as_str().unwrap_or_default());
    }
    for tool in server["tools"].as_array().into_iter().flatten() {
        text += &format!("  {}\n", tool.as_str().unwrap_or_default());
    }
    text
}
