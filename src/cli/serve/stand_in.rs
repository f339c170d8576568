//! `hotcell serve --as`: standing in for another server, with its flags.

use std::net::{Ipv4Addr, SocketAddr};

use super::Arguments;
use crate::mcp::{CODE_RUNNER_PORT, Identity};

/// A server that ours can be put in the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StandIn {
    /// mcp-server-code-runner: the tool `run-code`
    CodeRunner,
}

impl StandIn {
    pub fn identity(self) -> Identity {
        match self {
            Self::CodeRunner => Identity {
                name: crate::mcp::CODE_RUNNER.to_owned(),
                title: crate::mcp::CODE_RUNNER.to_owned(),
                instructions: None,
            },
        }
    }
}

/// Flags that the other server would not have taken either. Its exit code is 1.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFlag {
    #[error("Invalid transport. Must be either \"stdio\" or \"http\"")]
    Transport,
    #[error("Invalid port. Must be a number between 0 and 65535")]
    Port,
}

/// Where to serve over HTTP; none for standard input and output.
///
/// `port` is the variable `PORT`. The flag comes before it, the usual port after.
pub fn address(arguments: &Arguments, port: Option<&str>) -> Result<Option<SocketAddr>, BadFlag> {
    match arguments.transport.as_deref() {
        None | Some("stdio") => Ok(arguments.http),
        Some("http") => {
            let named = arguments
                .port
                .as_deref()
                .or(port.filter(|port| !port.is_empty()));
            let port = match named {
                Some(text) => text.trim().parse().map_err(|_| BadFlag::Port)?,
                None => CODE_RUNNER_PORT,
            };
            Ok(Some((Ipv4Addr::LOCALHOST, port).into()))
        }
        Some(_) => Err(BadFlag::Transport),
    }
}
