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
//! - [`store`] keeps what outlives a run.
//! - [`secret`] makes names that cannot be guessed.
//! - [`doctor`] tests the walls from inside a real cell.

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
pub mod mcp;
pub mod output;
pub mod packages;
pub mod plan;
pub mod pool;
pub mod publish;
pub mod request;
pub mod run;
pub mod secret;
pub mod store;

pub use http::serve;
