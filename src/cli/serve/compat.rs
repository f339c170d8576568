//! `hotcell serve --as`: compatibility with another server, with its tools, flags and variables.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::ValueEnum;

use super::Arguments;
use crate::cli::print_note;
use crate::config::{ContainerSettings, container_user, is_image_name};
use crate::mcp::{
    CODE_RUNNER_PORT, CodeExecutionModeSettings, CodeRunnerMcpSettings, Identity, container_engine,
};
use crate::request::{IsolationChoice, RequestError, parse_duration};

/// A server that ours can replace without a change to its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
#[expect(clippy::enum_variant_names, reason = "the servers' own names")]
pub enum Compat {
    /// mcp-server-code-runner: the tool `run-code`
    CodeRunner,
    /// code-runner-mcp: the tools `python-code-runner` and `javascript-code-runner`
    CodeRunnerMcp,
    /// mcp-server-code-execution-mode: the tool `run_python`
    CodeExecutionMode,
}

impl Compat {
    /// As `--as` takes it.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub fn identity(self) -> Identity {
        match self {
            Self::CodeRunner => Identity {
                name: crate::mcp::CODE_RUNNER.to_owned(),
                title: crate::mcp::CODE_RUNNER.to_owned(),
                instructions: None,
            },
            Self::CodeExecutionMode => Identity {
                name: crate::mcp::CODE_EXECUTION_MODE.to_owned(),
                title: crate::mcp::CODE_EXECUTION_MODE.to_owned(),
                instructions: None,
            },
            Self::CodeRunnerMcp => Identity {
                name: crate::mcp::CODE_RUNNER_MCP.to_owned(),
                title: crate::mcp::CODE_RUNNER_MCP.to_owned(),
                instructions: None,
            },
        }
    }

    /// Where that server was configured to store packages.
    pub fn packages(self) -> Option<PathBuf> {
        match self {
            Self::CodeRunner | Self::CodeExecutionMode => None,
            Self::CodeRunnerMcp => {
                let folder = std::env::var_os("PYODIDE_PACKAGE_CACHE_DIR").map(PathBuf::from);
                folder.filter(|folder| folder.is_absolute())
            }
        }
    }

    /// The container engine that server was configured to use.
    pub fn container(self) -> Option<IsolationChoice> {
        match self {
            Self::CodeRunner | Self::CodeRunnerMcp => None,
            Self::CodeExecutionMode => container_engine(&std::env::var("MCP_BRIDGE_RUNTIME").ok()?),
        }
    }

    /// What that server was told of its containers. What cannot be read is as if it were not set.
    pub fn configure(self, containers: &mut ContainerSettings) {
        let variable = |name| std::env::var(name).ok();
        if self.container().is_none() {
            return;
        }
        if let Some(image) = variable("MCP_BRIDGE_IMAGE").filter(|it| is_image_name(it)) {
            containers.image = Some(image);
        }
        if let Some(user) = variable("MCP_BRIDGE_CONTAINER_USER") {
            containers.user = container_user(&user).or(containers.user);
        }
        let idle = variable("MCP_BRIDGE_RUNTIME_IDLE_TIMEOUT");
        if let Some(Ok(idle)) = idle.map(|it| parse_duration(&it)) {
            containers.machine_idle = idle;
        }
    }
}

/// The variables of code-runner-mcp; prints what of them cannot be done.
pub fn settings() -> Result<CodeRunnerMcpSettings, RequestError> {
    let variable = |name: &str| std::env::var(name).ok();
    let is_set = |name: &str| variable(name).is_some_and(|it| !it.is_empty() && it != "false");
    let settings = CodeRunnerMcpSettings::read(variable)?;
    if !is_set("SILENT") {
        for note in &settings.notes {
            print_note(note);
        }
        if is_set("DEBUG") {
            print_note(&format!(
                "tools: {:?}; network: {}",
                settings.tools, settings.network
            ));
        }
    }
    Ok(settings)
}

/// The variables of mcp-server-code-execution-mode; prints what of them cannot be done.
pub fn code_execution_mode() -> CodeExecutionModeSettings {
    if let Ok(level) = std::env::var("MCP_BRIDGE_LOG_LEVEL") {
        crate::log::start_like(&level);
    }
    let text = |value: OsString| value.into_string().ok();
    let variables =
        std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
    let variables = variables.collect();
    let settings = CodeExecutionModeSettings::read(&variables);
    for note in &settings.notes {
        print_note(note);
    }
    settings
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
