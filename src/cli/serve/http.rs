//! `hotcell serve --http`: the token, the address, and what to tell the user.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;

use super::Arguments;
use crate::cli::token::{self, Origin, VARIABLE};
use crate::cli::{BAD_INPUT, OUR_FAILURE, print_error, print_note};
use crate::http::{Listener, Names, Settings, Token};
use crate::mcp::Server;

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
    let found = match open {
        true => Ok(None),
        false => token::find(arguments.token_file.as_deref()).map(Some),
    };
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            print_error(&error.to_string(), error.hint().as_deref());
            return BAD_INPUT.into();
        }
    };
    let listener = match Listener::bind(address).await {
        Ok(listener) => listener,
        Err(error) => {
            print_error(&format!("cannot listen on {address}: {error}"), None);
            return OUR_FAILURE.into();
        }
    };
    let mut hosts = arguments.allow_host.clone();
    // SECURITY: a page can make a browser look its own name up as our address, but not call it by that address.
    let own = match address.ip() {
        ip if ip.is_unspecified() => own_address(ip),
        ip => Some(ip),
    };
    hosts.extend(own.map(|own| match own {
        IpAddr::V4(own) => own.to_string(),
        IpAddr::V6(own) => format!("[{own}]"),
    }));
    // A name that its owner gave is what clients are to use.
    let elsewhere = hosts.first().map(String::as_str);
    print_note(&format!("serving MCP at {}", listener.url()));
    if arguments.compat.is_empty() {
        print_page(&listener, elsewhere, found.as_ref());
    }
    print_address(&listener, elsewhere, found.as_ref());
    let names = Names {
        hosts,
        origins: arguments.allow_origin.clone(),
    };
    let settings = Settings {
        token: found.map(|(token, _)| token),
        names,
        sessions: arguments.compat.is_empty(),
        page: arguments.compat.is_empty(),
    };
    listener.serve(server.clone(), settings, stop).await;
    ExitCode::SUCCESS
}

fn names_token(arguments: &Arguments) -> bool {
    arguments.token_file.is_some() || std::env::var_os(VARIABLE).is_some()
}

/// Reads where to serve: `3917`, `localhost:3917` or an address and a port.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let text = text.trim();
    if let Ok(port) = text.parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let port = text.strip_prefix("localhost:");
    if let Some(port) = port.and_then(|port| port.parse::<u16>().ok()) {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    text.parse().map_err(|_| {
        "write a port (3917), or an address and a port (127.0.0.1:3917, [::1]:3917, or 0.0.0.0:3917 for all networks)"
            .to_owned()
    })
}

/// The address at which other machines find this one: the one that a packet to the world would come from. None is sent.
fn own_address(bound: IpAddr) -> Option<IpAddr> {
    let to = |from: IpAddr, to: IpAddr| {
        let socket = UdpSocket::bind((from, 0)).ok()?;
        socket.connect((to, 9)).ok()?;
        let own = socket.local_addr().ok()?.ip();
        (!own.is_loopback() && !own.is_unspecified()).then_some(own)
    };
    // Addresses for documentation, which are nobody's.
    let four = || {
        to(
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv4Addr::new(192, 0, 2, 1).into(),
        )
    };
    let six = || {
        let documentation = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        to(Ipv6Addr::UNSPECIFIED.into(), documentation.into())
    };
    match bound {
        IpAddr::V4(_) => four(),
        // One socket for both.
        IpAddr::V6(_) => four().or_else(six),
    }
}

/// Says where the page is. A token goes into the part of the address that no browser sends; it is shown when it is new, and only then.
fn print_page(listener: &Listener, elsewhere: Option<&str>, token: Option<&(Token, Origin)>) {
    let bound = listener.address();
    let url = match elsewhere {
        Some(host) => format!("http://{host}:{}/", bound.port()),
        None => format!("http://{bound}/"),
    };
    print_note(&match token {
        None => format!("the page is at {url}"),
        Some((token, Origin::File(_, true) | Origin::Memory)) => {
            format!("the page is at {url}#token={}", token.reveal())
        }
        Some(_) => format!("the page is at {url} and asks for the token"),
    });
}

/// Says on standard error how a client gets here. The token is shown when it is new, and only then: what is on a screen is in logs too.
fn print_address(listener: &Listener, elsewhere: Option<&str>, token: Option<&(Token, Origin)>) {
    let bound = listener.address();
    let url = match elsewhere {
        Some(host) => format!("http://{host}:{}/mcp", bound.port()),
        None => listener.url(),
    };
    let mut entry = json!({ "type": "http", "url": url });
    let mut shown = None;
    match token {
        None => print_note(
            "warning: without a token every program and user of this machine may run code here",
        ),
        Some((token, origin)) => {
            match origin {
                Origin::File(file, is_new) => {
                    let again = match is_new {
                        true => "it is shown this once; `hotcell token` prints it",
                        false => "`hotcell token` prints it",
                    };
                    print_note(&format!("the token is in {}; {again}", file.display()));
                    shown = is_new.then(|| token.reveal());
                }
                Origin::Variable => print_note(&format!("the token is in ${VARIABLE}")),
                Origin::Memory => {
                    print_note("the token is valid until this server ends");
                    shown = Some(token.reveal());
                }
            }
            let bearer = format!("Bearer {}", shown.unwrap_or("THE TOKEN"));
            entry["headers"] = json!({ "Authorization": bearer });
        }
    }
    if bound.ip().is_unspecified() {
        print_note(
            "clients on other machines must use the address below or a name given with `--allow-host NAME`: \
             requests for any other are refused, so that no web page can send them here",
        );
    }
    let configuration = json!({ "mcpServers": { "hotcell": entry } });
    if let Ok(text) = serde_json::to_string_pretty(&configuration) {
        print_note(&format!("for a client's configuration:\n{text}"));
    }
}
