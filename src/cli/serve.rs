//! `hotcell serve`: puts the service, its MCP objects and a transport together.

mod arguments;
mod compat;
mod http;
mod limits;
mod socket;

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::oneshot;

use super::signals::asked_to_end;
use super::{BAD_INPUT, OUR_FAILURE, cannot_start, explain, print_error, saved};
use crate::config::{Config, ConfigError};
use crate::hint::Surface;
use crate::language::{Surroundings, Tiers};
use crate::mcp::{
    Capabilities, Catalog, Change, CodeExecutionMode, CodeRunner, CodeRunnerMcp, Identity,
    Languages, Outputs, RunTool, Server, SessionTool, SkillFiles, State, Tasks, UpstreamTools,
    Waiting, folders, job_size, stdio,
};
use crate::publish::{Folder, SAVED, SavedFolder, ToolSkills};
use crate::request::RequestError;
use crate::service::{self, Jobs, Service};

pub use arguments::Arguments;
pub use compat::Compat;
pub use http::parse_address;

const INSTRUCTIONS: &str = "Use `run` to execute code: each call is a fresh sandbox without \
    files of the host, and without network unless `network` names hosts, so give it all it needs and print what you want to see; \
    calls with the same `session` share variables and files. \
    `save_tool(f)` in Python and `saveTool(f)` in JavaScript keep a function for later programs, as `saved.NAME`. \
    Failures say what went wrong in error.kind and what to do in error.hint.";

pub fn main(arguments: &Arguments) -> ExitCode {
    let given = socket::given();
    // First of all: nothing but the protocol may ever reach it.
    let (input, output) = match stdio::stdin().and_then(|input| Ok((input, stdio::take_stdout()?)))
    {
        Ok(output) => output,
        Err(error) => {
            print_error(&format!("could not take standard output: {error}"), None);
            return OUR_FAILURE.into();
        }
    };
    // Unless it was started by another word.
    raise_open_files();
    jail::sys::keep_freed_memory();
    let port = std::env::var("PORT").ok();
    let http = match compat::address(arguments, port.as_deref()) {
        Ok(address) => address,
        Err(bad) => {
            print_error(&bad.to_string(), None);
            return ExitCode::FAILURE;
        }
    };
    let folder = Surroundings::from_env().config;
    let config = Config::load(folder.as_deref()).map_err(Arc::new);
    if let Err(error) = &config {
        // Every run will be answered with it; whoever starts the server sees it first.
        print_error(&error.to_string(), Some(&error.hint()));
    }
    let tiers = match Tiers::load(folder.as_deref()) {
        Ok(tiers) => tiers,
        Err(error) => {
            print_error(&error.to_string(), Some("Correct or remove the file."));
            return BAD_INPUT.into();
        }
    };
    let assembled = match assemble(arguments, config, tiers, http.is_some()) {
        Ok(assembled) => assembled,
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
        Err(error) => return cannot_start(&error),
    };
    let server = assembled.server.clone();
    let records = assembled.service.records().cloned();
    let service = assembled.service.clone();
    let code = runtime.block_on(async {
        let (ended, end) = oneshot::channel::<Infallible>();
        let is_given = given.is_some();
        let lend = socket::lend(&service, given, async { drop(end.await) }, asked_to_end());
        let serve = async {
            let code = match http {
                Some(address) => http::serve(&server, address, arguments, asked_to_end()).await,
                // Whoever started it for its socket has no more to say to it.
                None if is_given => {
                    asked_to_end().await;
                    ExitCode::SUCCESS
                }
                None => {
                    // By a task: what the runtime itself waits for takes two system calls to be woken.
                    let server = server.clone();
                    let serve =
                        async move { stdio::serve(&server, input, output, asked_to_end()).await };
                    match tokio::spawn(serve).await {
                        Ok(()) => ExitCode::SUCCESS,
                        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
                    }
                }
            };
            drop(ended);
            code
        };
        tokio::select! {
            (code, ()) = async { tokio::join!(serve, lend) } => code,
            () = assembled.follow_changes() => OUR_FAILURE.into(),
        }
    });
    drop(service);
    // Ends what is left of the sandboxes before we do.
    drop(server);
    runtime.shutdown_timeout(Duration::from_millis(500));
    // With the jobs that ended just now.
    if let Some(records) = records {
        records.close();
    }
    code
}

/// A server of many callers needs more file descriptors than the usual 1024: as many as its owner allows.
pub fn raise_open_files() {
    let limits = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limits.maximum,
        ..limits
    };
    // Then it has what it has.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// What is served, and what changes it meanwhile.
struct Assembled {
    service: Arc<Service>,
    server: Arc<Server>,
    folder: Option<Folder>,
    upstream: Option<UpstreamTools>,
}

impl Assembled {
    /// Tells clients when published scripts or upstream tools change. Never ends.
    async fn follow_changes(self) {
        let Self {
            service,
            server,
            folder,
            upstream,
        } = self;
        let scripts = async {
            if let Some(folder) = folder {
                folder.watch(&server).await;
            }
        };
        let mut upstream = upstream;
        let upstream = service.follow_upstream(|| match &mut upstream {
            Some(tools) => tools.update(&server),
            None => server.announce(Change::Tools),
        });
        tokio::join!(scripts, upstream);
        std::future::pending().await
    }
}

/// With the folders that are not the sandbox's own.
fn instructions(service: &Service) -> String {
    match folders(service) {
        None => INSTRUCTIONS.to_owned(),
        Some(folders) => format!("{INSTRUCTIONS} {folders}"),
    }
}

fn assemble(
    arguments: &Arguments,
    config: Result<Config, Arc<ConfigError>>,
    tiers: Tiers,
    has_page: bool,
) -> Result<Assembled, RequestError> {
    let config = match config {
        Ok(config) => Ok(arguments.apply(config)?),
        Err(error) => Err(error),
    };
    let state = Surroundings::from_env().state;
    let records = service::keeping(config.as_ref().ok(), state.as_deref());
    let settings = service::Settings {
        config: Some(config),
        records: records.filter(|_| !arguments.no_record),
        ..arguments.settings(tiers)?
    };
    // Not for whoever comes without a token: what one saves, others run.
    let is_bridge = |it: &Compat| *it == Compat::CodeExecutionMode;
    let is_own = arguments.compat.iter().all(is_bridge);
    let may_save = is_own && !arguments.no_auth;
    let config = settings.config.as_ref().and_then(|it| it.as_ref().ok());
    let saved = saved::tools(config, &Surroundings::from_env()).filter(|_| may_save);
    let functions = saved
        .iter()
        .map(|saved| (SAVED.to_owned(), saved.clone() as _));
    let settings = service::Settings {
        functions: functions.collect(),
        ..settings
    };
    let service = Arc::new(Service::new(settings));
    if let Some(saved) = &saved {
        saved.run_by(&service);
    }
    let mut catalog = Catalog::default();
    if arguments.skills {
        let saved = saved.as_ref().map(|saved| saved.folder().clone());
        let published = arguments.publish.as_deref().map(SavedFolder::new);
        let skills = Arc::new(ToolSkills { saved, published });
        catalog.add_resource(SkillFiles(skills.clone()));
        catalog.skills = Some(skills);
    }
    catalog.add_resource(Outputs(service.clone()));
    let mut others = arguments.compat.clone();
    others.sort();
    others.dedup();
    for other in &others {
        match other {
            Compat::CodeRunner => catalog.add_tool(CodeRunner(service.clone())),
            Compat::CodeRunnerMcp => {
                let settings = Arc::new(compat::settings()?);
                for kind in settings.tools.clone() {
                    let tool = CodeRunnerMcp::new(service.clone(), settings.clone(), kind);
                    catalog.add_tool(tool);
                }
            }
            Compat::CodeExecutionMode => {
                catalog.add_tool(CodeExecutionMode {
                    service: service.clone(),
                    settings: compat::code_execution_mode(),
                });
                catalog.add_resource(Capabilities);
            }
        }
    }
    let identity = match arguments.compat.first() {
        // Of several the one that was named first.
        Some(other) => other.identity(),
        None => {
            catalog.add_resource(Languages(service.clone()));
            if has_page {
                catalog.add_resource(State::new(service.clone()));
            }
            let tasks = Arc::new(Tasks {
                jobs: Arc::new(Jobs::new(service.settings().retention.time, job_size)),
                service: service.clone(),
                waiting: Waiting::default(),
            });
            catalog.add_tool(RunTool(tasks.clone()));
            catalog.add_tool(SessionTool(tasks.clone()));
            catalog.tasks = Some(tasks);
            Identity {
                name: "hotcell".to_owned(),
                title: "hotcell".to_owned(),
                instructions: Some(instructions(&service)),
            }
        }
    };
    let upstream = match arguments.compat.is_empty() {
        true => Some(UpstreamTools::fill(&service, &mut catalog)),
        false => None,
    };
    let folder = match &arguments.publish {
        None => None,
        Some(path) => {
            let folder = Folder::open(path, service.clone());
            let mut folder = folder.map_err(|source| RequestError::HostFile {
                path: path.clone(),
                source,
            })?;
            folder.fill(&mut catalog);
            Some(folder)
        }
    };
    Ok(Assembled {
        server: Server::new(identity, catalog),
        service,
        folder,
        upstream,
    })
}
