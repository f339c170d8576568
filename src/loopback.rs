//! Ports of a sandbox's own loopback at which this process answers, all with the same bounds.
//!
//! The listening socket is opened inside the sandbox's network namespace and sent here. Who answers is a [`Service`]; this
//! module knows connections and the heads of HTTP requests, and nothing of what is asked. SECURITY: whoever connects runs
//! code of a stranger, so everything has a bound: connections at a time and in all, the time and size of a request's head,
//! and how long a connection may lie idle.

mod accept;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod http;
mod idle;

use std::future::Future;
use std::io;
use std::net::TcpListener as StdListener;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub use self::http::{Body, HEAD_BYTES, HEAD_LINES, Http, full, http1};
use self::idle::Idle;

/// Where a program finds the egress proxy and the tools of other servers.
pub const PORT: u16 = 3128;

/// Who answers a program's connections to one port of its own loopback.
pub trait Service: Send + Sync + 'static {
    /// Serves one connection to its end.
    fn attend(self: Arc<Self>, connection: Connection) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Called once, when a program has used up its connections.
    fn exhausted(&self) {}
}

/// A connection of a program. Reading and writing fail once nothing has moved over it for long.
pub type Connection = Idle<TcpStream>;

/// What a program may have of one port.
#[derive(Clone, Copy)]
struct Bounds {
    /// Connections at a time; more wait for one of them to end.
    at_a_time: usize,
    /// Connections in all; then nothing listens any more.
    in_all: usize,
    /// How long nothing may move over a connection.
    idle: Duration,
}

const BOUNDS: Bounds = Bounds {
    at_a_time: 64,
    in_all: 10_000,
    // A connection is silent too while its program waits for a slow host or a slow tool, so this is longer than anybody
    // waits for an answer. What is left at the end of a run is closed then.
    idle: Duration::from_secs(30 * 60),
};

/// A port that is being answered at. Dropping it ends every connection, and nothing listens any more.
pub struct Serving {
    /// The listening socket once more: a task that was told to end may take a moment.
    socket: OwnedFd,
    task: JoinHandle<()>,
}

impl Serving {
    /// Has `service` answer at `listener`, a listening socket that does not block.
    pub fn start(listener: OwnedFd, service: Arc<dyn Service>) -> io::Result<Self> {
        Self::within(BOUNDS, listener, service)
    }

    fn within(bounds: Bounds, listener: OwnedFd, service: Arc<dyn Service>) -> io::Result<Self> {
        let socket = listener.try_clone()?;
        let listener = TcpListener::from_std(StdListener::from(listener))?;
        let task = tokio::spawn(accept::accept_each(listener, service, bounds));
        Ok(Self { socket, task })
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // At once: the next cell of this network namespace listens at the same port.
        let _ = shutdown(&self.socket, Shutdown::Both);
        self.task.abort();
    }
}

#[cfg(test)]
mod tests;
