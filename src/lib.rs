//! hotcell runs code that nobody has read, in cells.
//!
//! The map, in the order of a request:
//!
//! - [`cli`] is the surface of the shell: it translates and nothing more.
//! - [`mcp`] is the surface of the Model Context Protocol, and [`http`] its way over the network.
//! - [`publish`] makes tools, prompts and resources of the scripts in a folder.
//! - [`engine`] is the one door: every surface runs programs through it.
//! - [`config`] is what the machine's owner has decided for all runs.
//! - [`request`] is a request that has been checked.
//! - [`language`] knows the languages and finds their runtimes on this host.
//! - [`fetch`] brings runtimes that are not there, on request.
//! - [`plan`] resolves a request into all that a run needs. Pure.
//! - [`pool`] keeps cells waiting for their program.
//! - [`cell`] is a sandbox of the kernel's, seen from async code.
//! - [`egress`] is a cell's way out: a proxy to the hosts that were granted.
//! - [`run`] carries a plan out: deadline, output, outcome.
//! - [`compile`] builds a program before it runs, in cells too, and keeps what it built.
//! - [`packages`] finds out which packages a program needs and installs them, in cells too.
//! - [`output`] is a result as the world sees it.
//! - [`servers`] are other MCP servers, whose tools a program may call.
//! - [`store`] keeps what outlives a run.
//! - [`secret`] makes names that cannot be guessed.
//! - [`doctor`] tests the walls from inside a real cell.
//! - [`log`] writes events to standard error if `HOTCELL_LOG` asks for them.
//!
//! A program of your own streams runs like this, and offers them functions. Cells are made by that same program, started again, so [`hook`] comes first:
//!
//! ```standalone_crate
//! use std::process::ExitCode;
//!
//! use hotcell::cell::Requirement;
//! use hotcell::engine::Engine;
//! use hotcell::language::Surroundings;
//! use hotcell::request::RunRequest;
//! use hotcell::run::{Stdin, Surface};
//! use hotcell::servers::{Called, Functions, Tool};
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
//! fn main() -> ExitCode {
//!     if let Some(code) = hotcell::hook() {
//!         return code;
//!     }
//!     let runtime = tokio::runtime::Runtime::new().expect("threads");
//!     let engine = Engine::new(Surroundings::from_env()).with_functions("sums", Sums);
//!     for (language, code) in [
//!         ("python", "print(6 * 7)"),
//!         ("javascript", "console.log(6 * 7)"),
//!         ("python", "print(sums.double(n=21))"),
//!         ("javascript", "sums.double({ n: 21 }).then(console.log)"),
//!     ] {
//!         let request = RunRequest::new(code).expect("a program").language(language);
//!         let plan = engine.plan(request).expect("a runtime");
//!         let (events, mut output) = tokio::sync::mpsc::channel(16);
//!         let surface = Surface { stdin: Stdin::Empty, events, requirement: Requirement::default(), door: None };
//!         let listen = async {
//!             let mut heard = Vec::new();
//!             while let Some(event) = output.recv().await {
//!                 heard.extend(event.bytes);
//!             }
//!             heard
//!         };
//!         let run = engine.run(&plan, surface, std::future::pending());
//!         let (result, heard) = runtime.block_on(async { tokio::join!(run, listen) });
//!         assert_eq!(heard, b"42\n");
//!         assert_eq!(result.expect("a cell").stdout.to_text(), "42\n");
//!     }
//!     ExitCode::SUCCESS
//! }
//! ```

pub mod cell;
pub mod cli;
pub mod compile;
pub mod config;
pub mod doctor;
pub mod egress;
pub mod engine;
pub mod fetch;
pub mod http;
pub mod language;
pub mod log;
pub mod mcp;
pub mod output;
pub mod packages;
pub mod plan;
pub mod pool;
pub mod publish;
pub mod request;
pub mod run;
pub mod secret;
pub mod servers;
pub mod store;

pub use http::serve;

/// For the first line of `main`: this process may have been started to make cells, or to be
/// the program of one. Then it ends with the code that is returned.
pub fn hook() -> Option<std::process::ExitCode> {
    jail::hook_early(c"run");
    let mut arguments = std::env::args_os();
    match arguments.next() {
        Some(name) if name == jail::ENGINE => Some(engines::main(arguments)),
        Some(name) if name == servers::LAUNCHER => Some(servers::launch(arguments)),
        _ => doctor::hook(),
    }
}
