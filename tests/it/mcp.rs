//! `hotcell serve` on the real binary, over stdio and HTTP.

pub mod client;
mod http;
mod publish;
mod stdio;
mod tasks;
mod tool;
