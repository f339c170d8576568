//! `hotcell::serve`: an HTTP server on a thread of its own, for a program that has other things to do.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::{Listener, Settings};
use crate::mcp::Server;

/// A server at work. Dropping it ends the server and every run.
pub struct Serving {
    url: String,
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Serves over HTTP until the returned value is dropped.
///
/// The program's `main` must call [`hook`](crate::hook) first: sandboxes are made by this
/// same program, started again.
///
/// ```
/// use hotcell::http::{Names, Settings, Token};
/// use hotcell::mcp::{Catalog, Identity, Server};
///
/// let identity = Identity { name: "mine".into(), title: "Mine".into(), instructions: None };
/// let server = Server::new(identity, Catalog::default());
/// let settings = Settings { token: Some(Token::random()), names: Names::default(), sessions: true, page: false };
/// let serving = hotcell::serve("127.0.0.1:0".parse().unwrap(), settings, server)?;
/// assert_eq!(serving.url(), format!("http://127.0.0.1:{}/mcp", serving.port()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn serve(address: SocketAddr, settings: Settings, server: Arc<Server>) -> io::Result<Serving> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let listener = runtime.block_on(Listener::bind(address))?;
    let (url, port) = (listener.url(), listener.address().port());
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = thread::Builder::new()
        .name("hotcell".to_owned())
        .spawn(move || {
            let stopped = async { drop(stopped.await) };
            runtime.block_on(listener.serve(server, settings, stopped));
        })?;
    Ok(Serving {
        url,
        port,
        stop: Some(stop),
        thread: Some(thread),
    })
}

impl Serving {
    /// The endpoint, for a client.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
