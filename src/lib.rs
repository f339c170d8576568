//! hotcell runs code that nobody has read, in cells.
//!
//! The map, in the order of a request:
//!
//! - [`cli`] is the command line.
//! - [`mcp`] is the Model Context Protocol, and [`http`] its transport over the network.
//! - `publish` makes tools, prompts and resources of the scripts in a folder, and keeps functions of programs as such scripts.
//! - [`service`] is what every surface calls: queue, stored output, upstream servers, and the engine.
//! - [`caller`] is who asked.
//! - `clients` writes our entry into the configuration files of MCP clients.
//! - `engine` plans requests and runs them.
//! - `config` is what the machine's owner has decided for all runs.
//! - [`request`] is a request that has been checked.
//! - `language` knows the languages and finds their runtimes on this host.
//! - `runtimes` fetches runtimes that are not there, on request.
//! - `plan` resolves a request into all that a run needs. Pure.
//! - `cell` gets cells and holds them: what one is started with, who provides it, the warm pools.
//! - `egress` is a sandbox's egress proxy, to the hosts that were granted.
//! - `loopback` answers a program at ports of its own loopback: one bounded listener for all.
//! - `run` watches one program in a cell: deadline, output, outcome.
//! - `display` is what a program shows beside its output: pictures, and the value of its last expression.
//! - `compile` builds a program before it runs, in cells too, and keeps what it built.
//! - `packages` finds out which packages a program needs and installs them, in cells too.
//! - [`output`] is a result as the world sees it, `error_kind` the words for what went wrong, and `hint` what to do about it.
//! - [`upstream`] are other MCP servers, whose tools a program may call.
//! - `search` ranks descriptions of tools by a question in words.
//! - `store` has output that was too long for its answer, for a while.
//! - `resident` finds the servers of this user that run already, which lend sandboxes to `hotcell run`.
//! - `records` writes down what was run, in one SQLite file.
//! - `memory_budget` counts the memory that is held for callers.
//! - `inventory` is what a stored folder holds, to tell later whether it still does.
//! - `secret` is a value that a program may use and never see; `random` makes names that cannot be guessed.
//! - `doctor` tests the walls from inside a real cell.
//! - `fuzzing` is the list of fuzz targets, in no build that is used.
//! - [`log`] writes events to standard error if `HOTCELL_LOG` asks for them.
//!
//! A program of your own runs others like this, hears them while they print, and offers them functions. Sandboxes are made by
//! that same program, started again, so [`hook`] comes first:
//!
//! ```standalone_crate
//! use std::process::ExitCode;
//! use std::sync::Arc;
//!
//! use hotcell::caller::Caller;
//! use hotcell::request::RunRequest;
//! use hotcell::service::{Observer, Output, RunContext, Service, Settings};
//! use hotcell::upstream::{Called, Functions, Tool};
//! use serde_json::{Map, Value, json};
//!
//! struct Sums;
//!
//! impl Functions for Sums {
//!     fn tools(&self) -> Vec<Tool> {
//!         vec![Tool::new("double", "Doubles a number", json!({ "type": "object", "properties": { "n": { "type": "integer" } } }))]
//!     }
//!
//!     fn call<'a>(&'a self, _: &'a str, arguments: Map<String, Value>) -> Called<'a> {
//!         Box::pin(async move {
//!             let n = arguments["n"].as_i64().ok_or("n must be a number")?;
//!             Ok(json!(2 * n))
//!         })
//!     }
//! }
//!
//! struct Listener;
//!
//! impl Observer for Listener {
//!     type Heard = Vec<u8>;
//!
//!     async fn hear(self, mut output: Output) -> Vec<u8> {
//!         let mut heard = Vec::new();
//!         while let Some(event) = output.recv().await {
//!             heard.extend(event.bytes);
//!         }
//!         heard
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     if let Some(code) = hotcell::hook() {
//!         return code;
//!     }
//!     let runtime = tokio::runtime::Runtime::new().expect("threads");
//!     let service = Arc::new(Service::new(Settings {
//!         pool: None,
//!         functions: vec![("sums".to_owned(), Arc::new(Sums))],
//!         ..Settings::default()
//!     }));
//!     for (language, code) in [
//!         ("python", "print(6 * 7)"),
//!         ("javascript", "console.log(6 * 7)"),
//!         ("python", "print(sums.double(n=21))"),
//!         ("javascript", "sums.double({ n: 21 }).then(console.log)"),
//!     ] {
//!         let request = RunRequest::new(code).expect("a program").language(language);
//!         let context = RunContext::new(Caller::local(), Listener);
//!         let ran = runtime.block_on(service.run(request, context));
//!         assert_eq!(ran.heard, b"42\n", "{:?}", ran.output);
//!         assert_eq!(ran.output.stdout(), "42\n");
//!     }
//!     ExitCode::SUCCESS
//! }
//! ```

pub mod caller;
pub mod cli;
pub mod http;
pub mod log;
pub mod mcp;
pub mod output;
pub mod request;
pub mod service;
pub mod upstream;

// For our own tests and benchmarks.
#[doc(hidden)]
pub mod cell;
#[doc(hidden)]
pub mod engine;
#[doc(hidden)]
pub mod language;
#[doc(hidden)]
pub mod run;
#[doc(hidden)]
pub mod runtimes;

mod clients;
mod compile;
mod config;
mod display;
mod doctor;
mod egress;
mod error_kind;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod hint;
mod inventory;
mod loopback;
mod media_type;
mod memory_budget;
mod packages;
mod plan;
mod publish;
mod random;
mod records;
mod resident;
mod search;
mod secret;
mod spool;
mod store;

pub use http::serve;

/// For the first line of `main`: this process may have been started to make sandboxes, or to be
/// the program of one. Then it ends with the code that is returned.
///
/// Which of these it is, the name that it was started under says. Of the command line only the
/// first word is looked at: with `run` and `serve`, the first sandbox starts here, before anything is parsed, unless `run` finds a server that has one.
pub fn hook() -> Option<std::process::ExitCode> {
    jail::hook();
    match jail::sys::command_line_start()[1] {
        word if word == c"run" => engine::Engine::look_around(),
        word if word == c"serve" => cli::start_early(),
        _ => {}
    }
    let mut arguments = std::env::args_os();
    match arguments.next() {
        Some(name) if name == jail::ENGINE => {
            Some(engines::main(arguments, jail::sys::note_interrupts))
        }
        Some(name) if name == upstream::LAUNCHER => Some(upstream::launch(arguments)),
        _ => doctor::hook(),
    }
}
