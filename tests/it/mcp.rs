//! `hotcell serve` on the real binary, over stdio and HTTP.

mod client;
mod http;
mod stdio;
mod tool;
