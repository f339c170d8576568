//! The accept loop: as many connections as a program may have, and patience when file descriptors run out.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::idle::Idle;
use super::{Bounds, Service};

/// How long the loop pauses after a first failure to accept, and at most; each failure in a row doubles it.
pub const FIRST_PAUSE: Duration = Duration::from_millis(10);
pub const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Where connections come from.
pub trait Accept: Send + Sync {
    fn accept(&self) -> impl Future<Output = io::Result<TcpStream>> + Send;

    /// Lets nobody connect any more.
    fn close(&self);
}

impl Accept for TcpListener {
    async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = TcpListener::accept(self).await?;
        // Requests and answers are small, and each waits for the other.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    fn close(&self) {
        // Not by dropping it: its owner holds the socket too.
        let _ = shutdown(self, Shutdown::Both);
    }
}

/// Hands each connection to `service`, until a program has had all that it may have and the last one has ended.
pub async fn accept_each(listener: impl Accept, service: Arc<dyn Service>, bounds: Bounds) {
    let mut open = JoinSet::new();
    let mut accepted = 0;
    let mut pause = FIRST_PAUSE;
    while accepted < bounds.in_all {
        if open.len() >= bounds.at_a_time {
            open.join_next().await;
            continue;
        }
        tokio::select! {
            stream = listener.accept() => match stream {
                Ok(stream) => {
                    accepted += 1;
                    pause = FIRST_PAUSE;
                    open.spawn(service.clone().attend(Idle::new(stream, bounds.idle)));
                }
                // EMFILE or ENFILE, mostly, which stay until somebody closes something; the connection stays
                // in the queue meanwhile, so that trying again at once would only burn a processor.
                Err(_) => {
                    sleep(pause).await;
                    pause = LONGEST_PAUSE.min(2 * pause);
                }
            },
            Some(_) = open.join_next(), if !open.is_empty() => {}
        }
    }
    listener.close();
    service.exhausted();
    while open.join_next().await.is_some() {}
}
