//! The Model Context Protocol: one server, every era of it.
//!
//! The parts, from the wire inwards:
//!
//! - `message` reads and writes JSON-RPC, and nothing of MCP.
//! - `stdio` is the transport over standard input and output. Other transports, such as HTTP, are modules of their own
//!   that use this one.
//! - `era` decides for each request by which revision it is served.
//! - `session` is what a legacy client has said about itself.
//! - `server` answers requests out of a catalogue.
//! - `objects` is that catalogue: tools, prompts, resources and templates. What a user publishes and the tools of
//!   compatibility modes are just more objects.
//! - `subscriptions` and `questions` are the two things that outlast an exchange: what a client wants to be told,
//!   and what it was asked.
//! - `context` is what an object may do while it answers: report, log, ask.
//! - `skills` is the extension by which an agent finds folders with a `SKILL.md`.
//! - `tasks` are jobs in the words of the protocol, for clients that know tasks.
//! - `run_tool`, `session_tool`, `outputs`, `languages` and `state` are our own objects; `upstream_tools` are those that come and go with upstream servers
//!   (`search_tool`, `passed_tool`); `code_runner`, `code_runner_mcp` and `code_execution_mode` are other servers'
//!   tools. All of them run programs through [`crate::service`], which knows nothing of MCP.

mod approval;
mod change;
mod code_execution_mode;
mod code_runner;
mod code_runner_mcp;
mod context;
mod era;
mod era_members;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod jobs;
mod languages;
mod message;
mod objects;
mod outputs;
mod passed_tool;
mod questions;
mod recorded;
mod run_tool;
mod search_tool;
mod server;
mod session;
mod session_tool;
mod skills;
mod state;
pub mod stdio;
mod subscriptions;
mod tasks;
mod upstream_tools;

pub use approval::Waiting;
pub use change::Change;
pub use code_execution_mode::{
    Capabilities, CodeExecutionMode, NAME as CODE_EXECUTION_MODE,
    Settings as CodeExecutionModeSettings, container_engine,
};
pub use code_runner::{CodeRunner, NAME as CODE_RUNNER, PORT as CODE_RUNNER_PORT};
pub use code_runner_mcp::{
    CodeRunnerMcp, NAME as CODE_RUNNER_MCP, Settings as CodeRunnerMcpSettings,
};
pub use context::{Context, LogLevel, Outbox};
pub use era::{Era, LEGACY, MODERN, Revision, SUPPORTED, Transport, VERSION_KEY};
pub use jobs::size as job_size;
pub use languages::Languages;
pub use message::{Fault, Garbled, Id, Message, Request, is_batch, parse, parse_batch, read};
pub use objects::{Answer, Arguments, Boxed, Catalog, Prompt, Resource, Tool};
pub use outputs::Outputs;
pub use run_tool::{RunTool, folders, head_and_tail};
pub use server::{Identity, Peer, Reply, Server};
pub use session::Session;
pub use session_tool::SessionTool;
pub use skills::{Skill, SkillFiles, Skills};
pub use state::State;
pub use tasks::Tasks;
pub use upstream_tools::UpstreamTools;
