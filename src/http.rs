//! MCP over HTTP: one endpoint, `/mcp`, a health check, and a page for people that is a client of that endpoint.
//!
//! Everything that arrives is a stranger's until its `Host`, its `Origin` and its
//! token have been checked, in that order and before anything else is read of it. The token
//! also says who the caller is. HTTP itself is hyper's; what a message means is [`crate::mcp`]'s.

mod body;
mod client;
mod connections;
mod endpoint;
mod events;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod headers;
mod host_check;
mod page;
mod pieces;
mod responses;
mod serving;
mod sessions;
mod token;

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::mcp::Server;
use connections::{Connection, Connections};
use endpoint::Endpoint;

pub use host_check::Names;
pub use serving::{Serving, serve};
pub use token::{Token, TokenError};

/// How long a client may take to send a request's head, or be silent between two requests.
const HEAD_TIME: Duration = Duration::from_secs(10);
const HEAD_BYTES: usize = 16 << 10;
const HEAD_LINES: usize = 100;
/// How long sent bytes may stay unacknowledged before a client counts as gone.
const ACK_TIME: Duration = Duration::from_secs(20);

/// What the server's owner has decided about HTTP.
pub struct Settings {
    /// None: whoever reaches the port may use it.
    pub token: Option<Token>,
    /// The names we may be called by.
    pub names: Names,
    /// Whether a legacy client gets a session at `initialize`.
    pub sessions: bool,
    /// Whether there is a page for people at `/`.
    pub page: bool,
}

/// A bound port.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The endpoint, for a client.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Serves until `stop` ends; then every connection is closed, which ends every run.
    pub async fn serve(
        self,
        server: Arc<Server>,
        settings: Settings,
        stop: impl Future<Output = ()>,
    ) {
        let endpoint = Arc::new(Endpoint::new(server.clone(), settings, self.address.port()));
        let connections = Connections::default();
        let mut tasks = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        tracing::info!(address = %self.address, "listens");
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(_) = tasks.join_next(), if !tasks.is_empty() => continue,
                () = &mut stop => break,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                // Out of file descriptors, mostly: some are closed in a moment.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let Some(connection) = connections.enter() else {
                continue;
            };
            prepare(&stream);
            let endpoint = endpoint.clone();
            tasks.spawn(async move {
                let evicted = connection.clone();
                tokio::select! {
                    () = serve_connection(endpoint, stream, address.ip(), connection) => {}
                    () = evicted.evicted() => {}
                }
            });
        }
        // Those that only wait for news get their answers.
        server.end();
        let rest = async { while tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(Duration::from_millis(100), rest).await;
        tasks.shutdown().await;
    }
}

/// Serves one connection to its end.
async fn serve_connection(
    endpoint: Arc<Endpoint>,
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    from: IpAddr,
    connection: Connection,
) {
    let handle = |request| {
        let (endpoint, connection) = (endpoint.clone(), connection.clone());
        async move { endpoint.handle(request, from, &connection).await }
    };
    // A connection that breaks has been answered as far as it could be.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .serve_connection(TokioIo::new(stream), service_fn(handle))
        .await;
}

fn prepare(stream: &TcpStream) {
    // Each is a comfort; a stream that refuses one still works.
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, ACK_TIME);
    let _ = sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5));
    let _ = sockopt::set_tcp_keepcnt(stream, 3);
    let _ = sockopt::set_tcp_user_timeout(stream, ACK_TIME.as_millis() as u32);
}
