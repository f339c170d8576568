//! `hotcell serve` on the real binary, over stdio and HTTP.

pub mod client;
mod http;
mod page;
mod publish;
mod skills;
mod stdio;
mod tasks;
mod tool;
