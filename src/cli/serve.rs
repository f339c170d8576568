//! `hotcell serve`.

mod http;
mod stand_in;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use self::stand_in::StandIn;
use super::{BAD_INPUT, OUR_FAILURE, complain, explain};
use crate::cell::Requirement;
use crate::config::{Config, ConfigError};
use crate::engine::{QueueSize, Trust};
use crate::hint::Surface;
use crate::language::{Surroundings, Tiers};
use crate::mcp::{
    Catalog, CodeRunner, CodeRunnerMcp, Identity, Languages, Outputs, RunSettings, RunTool, Runner,
    Server, stdio,
};
use crate::publish::Folder;
use crate::request::{Network, RequestError, parse_count, parse_duration, parse_size};
use crate::store::{Retention, Store};

#[derive(clap::Args)]
pub struct Arguments {
    /// Serve over HTTP at this address instead of standard input and output
    #[arg(long, value_name = "ADDRESS:PORT", group = "network")]
    http: Option<SocketAddr>,
    /// The file with the token that HTTP clients must show; made if it is not there
    #[arg(long, value_name = "FILE", requires = "network")]
    token_file: Option<PathBuf>,
    /// Let anybody who reaches the port use it; only on loopback
    #[arg(long, requires = "network", conflicts_with = "token_file")]
    no_auth: bool,
    /// Another name that HTTP clients may call this server by (repeat for more)
    #[arg(long, value_name = "NAME", requires = "network")]
    allow_host: Vec<String>,
    /// An origin whose pages may use this server (repeat for more)
    #[arg(long, value_name = "ORIGIN", requires = "network")]
    allow_origin: Vec<String>,
    /// Publish the scripts of this folder as tools, prompts and resources
    #[arg(long, value_name = "DIR")]
    publish: Option<PathBuf>,
    /// Stand in for another server: its tools, its flags, its way to answer
    #[arg(long = "as", value_name = "SERVER")]
    stand_in: Option<StandIn>,
    /// With `--as code-runner`: stdio or http [default: stdio]
    #[arg(
        short,
        long,
        requires = "stand_in",
        group = "network",
        value_name = "TRANSPORT"
    )]
    transport: Option<String>,
    /// With `--as code-runner`: the port for http [default: $PORT or 3088]
    #[arg(short, long, requires = "stand_in", value_name = "PORT")]
    port: Option<String>,
    /// Programs that may run side by side [default: four for each processor]
    #[arg(long, value_name = "COUNT")]
    max_runs: Option<String>,
    /// Programs that may wait for their turn [default: 256]
    #[arg(long, value_name = "COUNT")]
    max_queue: Option<String>,
    /// Cells that wait for a program, for each kind that does [default: 4]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u8).range(0..=64))]
    pool: Option<u8>,
    /// Whether callers may share started runtimes: then their programs have the same addresses and
    /// hash secrets [default: shared, and separate with --no-auth]
    #[arg(long, value_name = "TRUST", value_parser = ["shared", "separate"])]
    trust: Option<String>,
    /// Hosts that a call may ask to reach, or none, or all [default: the configuration's, or all]
    #[arg(long = "network", value_name = "HOSTS")]
    allow_network: Option<String>,
    /// How long output that is too long for an answer is kept [default: 30m]
    #[arg(long, value_name = "TIME")]
    keep_output: Option<String>,
    /// How much of it is kept in all [default: 512m]
    #[arg(long, value_name = "SIZE")]
    keep_output_size: Option<String>,
    /// Refuse to run unless every wall of the sandbox stands
    #[arg(long, value_name = "LEVEL", value_parser = ["strict"], conflicts_with = "allow_reduced")]
    require: Option<String>,
    /// Run even if this host cannot build a wall that confines the program
    #[arg(long)]
    allow_reduced: bool,
}

const INSTRUCTIONS: &str = "Use `run` to execute code: each call is a fresh sandbox without \
    files of the host, and without network unless `network` names hosts, so give it all it needs and print what you want to see. \
    Failures say what went wrong in error.kind and what to do in error.hint.";

pub fn main(arguments: Arguments) -> ExitCode {
    // First of all: nothing but the protocol may ever reach it.
    let (input, output) = match stdio::stdin().and_then(|input| Ok((input, stdio::take_stdout()?)))
    {
        Ok(output) => output,
        Err(error) => {
            complain(&format!("could not take standard output: {error}"), None);
            return OUR_FAILURE.into();
        }
    };
    let port = std::env::var("PORT").ok();
    let http = match stand_in::address(&arguments, port.as_deref()) {
        Ok(address) => address,
        Err(bad) => {
            complain(&bad.to_string(), None);
            return ExitCode::FAILURE;
        }
    };
    let folder = Surroundings::from_env().config;
    let config = Config::load(folder.as_deref()).map_err(Arc::new);
    if let Err(error) = &config {
        // Every run will be answered with it; whoever starts the server sees it first.
        complain(&error.to_string(), Some(&error.hint()));
    }
    let tiers = match Tiers::load(folder.as_deref()) {
        Ok(tiers) => tiers,
        Err(error) => {
            complain(&error.to_string(), Some("Mend or remove it."));
            return BAD_INPUT.into();
        }
    };
    let Built {
        server,
        folder,
        runner,
    } = match build(&arguments, config, tiers) {
        Ok(built) => built,
        Err(error) => {
            explain(&error.to_string(), error.hint(), Surface::CommandLine);
            return BAD_INPUT.into();
        }
    };
    // One client is served by one thread: to wake another takes longer than most of its calls.
    let mut runtime = match http {
        None => tokio::runtime::Builder::new_current_thread(),
        Some(_) => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = match runtime.worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("could not start: {error}"), None);
            return OUR_FAILURE.into();
        }
    };
    let code = runtime.block_on(async {
        let follow = async {
            let folder = async {
                if let Some(folder) = folder {
                    folder.watch(&server).await;
                }
            };
            tokio::join!(folder, runner.follow_servers(&server));
            std::future::pending().await
        };
        let serve = async {
            match http {
                Some(address) => http::serve(&server, address, &arguments, stopped()).await,
                None => {
                    stdio::serve(&server, input, output, stopped()).await;
                    ExitCode::SUCCESS
                }
            }
        };
        tokio::select! {
            code = serve => code,
            code = follow => code,
        }
    });
    // Ends what is left of the cells before we do.
    drop(server);
    runtime.shutdown_timeout(std::time::Duration::from_millis(500));
    code
}

/// What is served, and what changes it meanwhile.
struct Built {
    server: Arc<Server>,
    folder: Option<Folder>,
    runner: Arc<Runner>,
}

fn build(
    arguments: &Arguments,
    config: Result<Config, Arc<ConfigError>>,
    tiers: Tiers,
) -> Result<Built, RequestError> {
    let usual = QueueSize::default();
    let count = |text: &Option<String>, usual| match text {
        Some(text) => parse_count(text).map(|count| count as usize),
        None => Ok(usual),
    };
    let settings = RunSettings {
        config,
        requirement: match (&arguments.require, arguments.allow_reduced) {
            (Some(_), _) => Requirement::Strict,
            (None, true) => Requirement::Reduced,
            (None, false) => Requirement::Confined,
        },
        queue: QueueSize {
            running: count(&arguments.max_runs, usual.running)?,
            waiting: count(&arguments.max_queue, usual.waiting)?,
        },
        packages: arguments.stand_in.and_then(StandIn::packages),
        pool: arguments
            .pool
            .map_or(RunSettings::default().pool, Into::into),
        tiers,
        // Without a token nobody knows who calls.
        trust: match arguments.trust.as_deref() {
            Some("separate") => Trust::Separate,
            None if arguments.no_auth || arguments.transport.as_deref() == Some("http") => {
                Trust::Separate
            }
            _ => Trust::Shared,
        },
        network: match &arguments.allow_network {
            Some(hosts) => Some(Network::parse(hosts)?),
            None => None,
        },
        ..RunSettings::default()
    };
    let mut retention = Retention::default();
    if let Some(time) = &arguments.keep_output {
        retention.time = parse_duration(time)?;
    }
    if let Some(bytes) = &arguments.keep_output_size {
        retention.bytes = parse_size(bytes)?;
    }
    let store = Arc::new(Store::new(retention));
    let runner = Arc::new(Runner::new(settings, store.clone()));
    let mut catalog = Catalog::default();
    catalog.add_resource(Outputs(store));
    let publisher = runner.clone();
    let identity = match arguments.stand_in {
        Some(other @ StandIn::CodeRunner) => {
            catalog.add_tool(CodeRunner(runner));
            other.identity()
        }
        Some(other @ StandIn::CodeRunnerMcp) => {
            let settings = Arc::new(stand_in::settings()?);
            for kind in settings.tools.clone() {
                catalog.add_tool(CodeRunnerMcp::new(runner.clone(), settings.clone(), kind));
            }
            other.identity()
        }
        None => {
            catalog.add_resource(Languages(runner.clone()));
            catalog.add_tool(RunTool(runner));
            Identity {
                name: "hotcell".to_owned(),
                title: "hotcell".to_owned(),
                instructions: Some(INSTRUCTIONS.to_owned()),
            }
        }
    };
    let folder = match &arguments.publish {
        None => None,
        Some(path) => {
            let folder = Folder::open(path, publisher.clone());
            let mut folder = folder.map_err(|source| RequestError::HostFile {
                path: path.clone(),
                source,
            })?;
            folder.fill(&mut catalog);
            Some(folder)
        }
    };
    Ok(Built {
        server: Server::new(identity, catalog),
        folder,
        runner: publisher,
    })
}

/// Ends on Ctrl-C or a polite request to end.
async fn stopped() {
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let mut signals = kinds.map(|kind| signal(kind).ok());
    let [interrupt, terminate, hangup] = &mut signals;
    tokio::select! {
        () = super::run::received(interrupt) => {}
        () = super::run::received(terminate) => {}
        () = super::run::received(hangup) => {}
    }
}
