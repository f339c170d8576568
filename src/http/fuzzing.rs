//! The fuzz target `http`: what a client sends over one connection.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::connections::Connections;
use super::endpoint::Endpoint;
use super::{Names, Settings, serve_connection};
use crate::loopback::fuzzing::exchange;
use crate::mcp::fuzzing::server;

pub fn http(bytes: &[u8]) {
    let settings = Settings {
        token: None,
        names: Names::default(),
        sessions: true,
        page: true,
    };
    let endpoint = Arc::new(Endpoint::new(server(), settings, 80));
    let connection = Connections::default().enter().expect("the first");
    let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let answer = exchange(bytes, |stream| async {
        let serving = serve_connection(endpoint, stream, from, connection);
        // A stream of events lives as long as its client listens.
        let _ = tokio::time::timeout(std::time::Duration::from_millis(100), serving).await;
    });
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1."),
        "{}",
        answer.escape_ascii()
    );
}
