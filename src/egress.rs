//! The way out of a cell: a proxy that reaches the hosts a run was granted, and no others.
//!
//! A cell has a network namespace with nothing but its own loopback in it. A run that
//! was granted hosts gets a socket that listens there and belongs to us; programs find
//! it by the usual variables. One that ignores them has no other way.
//!
//! A host is read once ([`Target`](crate::request::Target)), compared with the grant,
//! resolved here, and refused if any of its addresses is not public; what is dialled is
//! the address that was checked. TLS is passed on unread, unless a secret is bound to
//! its host ([`Authority`]). Only this module and `http` name hyper.

mod address;
mod authority;
mod dial;
mod hello;
mod proxy;
mod report;
mod scrub;
mod secure;
mod tunnel;
mod wanted;

use std::io;
use std::net::TcpListener as StdListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::plan::Egress;
use crate::servers::Bridge;
use proxy::Proxy;

pub use authority::Authority;
pub use report::{Denied, Reached, Reason, Report};
pub use scrub::Scrubber;
pub use wanted::wanted;

/// Connections of one run at a time; more wait for one of them to end.
const AT_A_TIME: usize = 64;
/// And in all; then nothing listens any more.
const IN_ALL: usize = 10_000;

/// The proxy of one run. Nothing listens any more once it is dropped.
pub struct WayOut {
    proxy: Arc<Proxy>,
    /// The listener once more: a task that was told to end may take a moment.
    socket: OwnedFd,
    task: JoinHandle<()>,
}

impl WayOut {
    /// Serves the program behind `door`, which does not block.
    pub fn open(
        door: OwnedFd,
        egress: &Egress,
        authority: Option<Arc<Authority>>,
        bridge: Option<Arc<Bridge>>,
    ) -> io::Result<Self> {
        let socket = door.try_clone()?;
        let listener = TcpListener::from_std(StdListener::from(door))?;
        let proxy = Arc::new(Proxy::new(egress.clone(), authority, bridge));
        let task = tokio::spawn(serve(listener, proxy.clone()));
        Ok(Self {
            proxy,
            socket,
            task,
        })
    }

    /// Ends every connection; what was asked for until now.
    pub fn close(self) -> Report {
        self.proxy.report()
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        // The next cell of this network namespace listens at the same port.
        let _ = shutdown(&self.socket, Shutdown::Both);
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, proxy: Arc<Proxy>) {
    attend_each(&listener, |stream| proxy.clone().attend(stream)).await;
    proxy.exhausted();
}

/// Serves the connections of one run, each by `attend`, as many as it may have.
pub async fn attend_each<F>(listener: &TcpListener, attend: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut open = JoinSet::new();
    let mut accepted_in_all = 0;
    while accepted_in_all < IN_ALL {
        if open.len() >= AT_A_TIME {
            open.join_next().await;
            continue;
        }
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    accepted_in_all += 1;
                    open.spawn(attend(stream));
                }
                // Out of descriptors, mostly: give those that we have a moment.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = open.join_next(), if !open.is_empty() => {}
        }
    }
    // Not by dropping it: its owner holds it too.
    let _ = shutdown(listener, Shutdown::Both);
    while open.join_next().await.is_some() {}
}
