//! `hotcell serve --http`: the token, the address, and what to tell the user.

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use super::Arguments;
use crate::cli::{BAD_INPUT, OUR_FAILURE, print_error, print_note, state_folder};
use crate::http::{Listener, Names, Settings, Token, TokenError};
use crate::mcp::Server;

/// Where a token may come from beside a file.
const VARIABLE: &str = "HOTCELL_TOKEN";

pub async fn serve(
    server: &Arc<Server>,
    address: SocketAddr,
    arguments: &Arguments,
    stop: impl Future<Output = ()>,
) -> ExitCode {
    // The server that `--as` names has no token, and its clients send none.
    let open = arguments.no_auth || (arguments.transport.is_some() && !names_token(arguments));
    if open && !address.ip().is_loopback() {
        print_error(
            &format!("`--no-auth` on {address} would let anybody on the network run code"),
            Some("Leave `--no-auth` out, or serve on 127.0.0.1."),
        );
        return BAD_INPUT.into();
    }
    let (token, origin) = if open {
        (None, Origin::None)
    } else {
        match find_token(arguments) {
            Ok((token, origin)) => (Some(token), origin),
            Err(error) => {
                print_error(&error.to_string(), error.hint().as_deref());
                return BAD_INPUT.into();
            }
        }
    };
    let listener = match Listener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => {
            print_error(&format!("cannot listen on {address}: {error}"), None);
            return OUR_FAILURE.into();
        }
    };
    print_address(&listener, token.as_ref(), &origin);
    let mut hosts = arguments.allow_host.clone();
    if !address.ip().is_unspecified() {
        hosts.push(match address {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        });
    }
    let names = Names {
        hosts,
        origins: arguments.allow_origin.clone(),
    };
    let settings = Settings {
        token,
        names,
        sessions: arguments.compat.is_none(),
    };
    listener.serve(server.clone(), settings, stop).await;
    ExitCode::SUCCESS
}

enum Origin {
    None,
    Variable,
    File(PathBuf),
    /// There is no folder to store it in: it ends with this process.
    Memory,
}

fn names_token(arguments: &Arguments) -> bool {
    arguments.token_file.is_some() || std::env::var_os(VARIABLE).is_some()
}

fn find_token(arguments: &Arguments) -> Result<(Token, Origin), TokenError> {
    if let Some(file) = &arguments.token_file {
        return Ok((Token::at(file)?, Origin::File(file.clone())));
    }
    if let Ok(token) = std::env::var(VARIABLE) {
        return Ok((Token::parse(&token)?, Origin::Variable));
    }
    match state_folder() {
        Some(folder) => {
            let file = folder.join("token");
            Ok((Token::at(&file)?, Origin::File(file)))
        }
        None => Ok((Token::random(), Origin::Memory)),
    }
}

/// Says on standard error how a client gets here.
fn print_address(listener: &Listener, token: Option<&Token>, origin: &Origin) {
    let url = listener.url();
    print_note(&format!("serving MCP at {url}"));
    let mut entry = json!({ "type": "http", "url": url });
    match token {
        None => print_note(
            "warning: without a token every program and user of this machine may run code here",
        ),
        Some(token) => {
            match origin {
                Origin::File(file) => {
                    print_note(&format!("the token is in {}", file.display()));
                }
                Origin::Variable => print_note(&format!("the token is in ${VARIABLE}")),
                Origin::Memory | Origin::None => {
                    print_note("the token is valid until this server ends");
                }
            }
            let bearer = format!("Bearer {}", token.reveal());
            entry["headers"] = json!({ "Authorization": bearer });
        }
    }
    let configuration = json!({ "mcpServers": { "hotcell": entry } });
    if let Ok(text) = serde_json::to_string_pretty(&configuration) {
        print_note(&format!("for a client's configuration:\n{text}"));
    }
}
