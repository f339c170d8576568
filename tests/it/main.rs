//! One test binary on the real program: what users are promised, checked from outside.

mod attacks;
mod bad_input;
mod code_runner;
mod code_runner_mcp;
mod compiled;
mod doctor;
mod error_kinds;
mod faults;
mod fetch;
mod fuzz;
mod hostile_server;
mod languages;
mod limits;
mod mcp;
mod packages;
mod proof;
mod raw;
mod readme;
mod report;
mod run;
mod runtimes;
mod same;
mod seccomp;
mod streams;
mod support;
mod warm;
