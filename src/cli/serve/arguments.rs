//! The arguments of `hotcell serve`, and the settings that they make.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::compat::Compat;
use super::limits::LimitArguments;
use crate::cli::RequirementArguments;
use crate::config::Config;
use crate::engine::Trust;
use crate::language::Tiers;
use crate::request::{
    Network, RequestError, parse_count, parse_duration, parse_size, parse_workspace,
};
use crate::service::Settings;

const HTTP: &str = "HTTP";
const TOOLS: &str = "Tools";
const OTHER: &str = "Compatibility with other servers";
const ACCESS: &str = "Access of programs";
const LOAD: &str = "How many, how long";
const KEPT: &str = "What is kept";

#[derive(clap::Args)]
pub struct Arguments {
    /// Serve over HTTP at this port of this machine, or address and port, instead of standard
    /// input and output
    #[arg(
        long,
        value_name = "[ADDRESS:]PORT",
        group = "network",
        value_parser = super::http::parse_address,
        help_heading = HTTP
    )]
    pub http: Option<SocketAddr>,
    /// Read the token that HTTP clients must send from this file; a missing file is created
    #[arg(long, value_name = "FILE", requires = "network", help_heading = HTTP)]
    pub token_file: Option<PathBuf>,
    /// Serve HTTP clients without a token; only on a loopback address
    #[arg(long, requires = "network", conflicts_with = "token_file", help_heading = HTTP)]
    pub no_auth: bool,
    /// Let HTTP clients call this server by this name (repeatable) [default: its address and
    /// localhost]
    #[arg(long, value_name = "NAME", requires = "network", help_heading = HTTP)]
    pub allow_host: Vec<String>,
    /// Accept HTTP requests from web pages of this origin (repeatable) [default: our own]
    #[arg(long, value_name = "ORIGIN", requires = "network", help_heading = HTTP)]
    pub allow_origin: Vec<String>,
    /// Also offer the tools of the MCP servers that other programs on this machine have configured
    #[arg(long, help_heading = TOOLS)]
    discover: bool,
    /// Publish the scripts in this folder as tools, prompts and resources
    #[arg(long, value_name = "DIR", help_heading = TOOLS)]
    pub publish: Option<PathBuf>,
    /// Offer saved tools, and published ones, as skills too (the Skills extension of MCP)
    #[arg(long, help_heading = TOOLS)]
    pub skills: bool,
    /// Be compatible with another server: offer its tools, take its flags, answer as it does
    /// (repeatable)
    #[arg(long = "as", value_name = "SERVER", help_heading = OTHER)]
    pub compat: Vec<Compat>,
    /// With --as code-runner: serve over `stdio` or `http` [default: stdio]
    #[arg(
        short,
        long,
        requires = "compat",
        group = "network",
        value_name = "TRANSPORT",
        help_heading = OTHER
    )]
    pub transport: Option<String>,
    /// With --as code-runner: the port for http [default: $PORT or 3088]
    #[arg(short, long, requires = "compat", value_name = "PORT", help_heading = OTHER)]
    pub port: Option<String>,
    /// Run at most this many programs at a time [default: four for each processor]
    #[arg(long, value_name = "COUNT", help_heading = LOAD)]
    max_runs: Option<String>,
    /// Let at most this many programs wait for their turn, and refuse the next [default: 256]
    #[arg(long, value_name = "COUNT", help_heading = LOAD)]
    max_queue: Option<String>,
    /// Pre-started sandboxes kept ready for each runtime [default: 4]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(0..=64), help_heading = LOAD)]
    pool: Option<u8>,
    /// `shared`: pre-started runtimes are copies of one process, so that programs of different
    /// callers see the same addresses and hash seeds; `separate`: each is started on its own
    /// [default: shared, or separate with --no-auth]
    #[arg(long, value_name = "TRUST", value_parser = ["shared", "separate"], help_heading = LOAD)]
    trust: Option<String>,
    /// Let programs reach at most these hosts, whatever a call asks for; or `none`, or `all`
    /// [default: the configuration's, or all]
    #[arg(long = "network", value_name = "HOSTS", help_heading = ACCESS)]
    allow_network: Option<String>,
    /// Store output that is too long for an answer for this time [default: 30m]
    #[arg(long, value_name = "TIME", help_heading = KEPT)]
    keep_output: Option<String>,
    /// Store at most this much of such output, and drop the oldest first [default: 512m]
    #[arg(long, value_name = "SIZE", help_heading = KEPT)]
    keep_output_size: Option<String>,
    /// Answer a call after this time even if its program still runs, which then goes on as a job
    /// [default: 50s]
    #[arg(long, value_name = "TIME", help_heading = LOAD)]
    answer_within: Option<String>,
    /// Show this folder to every program at /work, to be read; with :rw also to be written
    #[arg(long, value_name = "DIR[:rw]", help_heading = ACCESS)]
    workspace: Option<String>,
    /// Record nothing of what is run (`hotcell help records`)
    #[arg(long, help_heading = KEPT)]
    pub no_record: bool,
    /// End a session that has had no call for this time [default: 30m]
    #[arg(long, value_name = "TIME", help_heading = LOAD)]
    session_idle: Option<String>,
    /// Let each caller have at most this many sessions [default: 16]
    #[arg(long, value_name = "COUNT", help_heading = LOAD)]
    max_sessions: Option<String>,
    #[command(flatten)]
    requirement: RequirementArguments,
    #[command(flatten)]
    limits: LimitArguments,
}

impl Arguments {
    pub fn settings(&self, tiers: Tiers) -> Result<Settings, RequestError> {
        let mut settings = Settings {
            requirement: self.requirement.read(),
            isolation: self
                .requirement
                .isolation()
                .or_else(|| self.compat.iter().find_map(|it| it.container())),
            trust: self.trust(),
            packages: self.compat.iter().find_map(|it| it.packages()),
            tiers,
            ..Settings::default()
        };
        if let Some(count) = &self.max_runs {
            settings.queue.running = parse_count(count)? as usize;
        }
        if let Some(count) = &self.max_queue {
            settings.queue.waiting = parse_count(count)? as usize;
        }
        if let Some(size) = self.pool {
            settings.pool = Some(size.into());
        }
        if let Some(hosts) = &self.allow_network {
            settings.network = Some(Network::parse(hosts)?.as_ceiling()?);
        }
        if let Some(time) = &self.keep_output {
            settings.retention.time = parse_duration(time)?;
        }
        if let Some(bytes) = &self.keep_output_size {
            settings.retention.bytes = parse_size(bytes)?;
        }
        if let Some(time) = &self.answer_within {
            settings.answer_within = parse_duration(time)?;
        }
        if let Some(time) = &self.session_idle {
            settings.sessions.idle = parse_duration(time)?;
        }
        if let Some(count) = &self.max_sessions {
            settings.sessions.for_each_caller = parse_count(count)? as usize;
        }
        Ok(settings)
    }

    /// The configuration with what these arguments decide for this server.
    pub fn apply(&self, mut config: Config) -> Result<Config, RequestError> {
        if self.discover {
            config.discover = Some(true);
        }
        for compat in &self.compat {
            compat.configure(&mut config.container);
        }
        config.replaces_bridge = self.compat.contains(&Compat::CodeExecutionMode);
        let workspace = self.workspace.as_deref().map(parse_workspace);
        config.for_server(self.limits.read()?, workspace.transpose()?)
    }

    fn trust(&self) -> Trust {
        // Without a token nobody knows who calls.
        let is_open = self.no_auth || self.transport.as_deref() == Some("http");
        match self.trust.as_deref() {
            Some("separate") => Trust::Separate,
            None if is_open => Trust::Separate,
            _ => Trust::Shared,
        }
    }
}
