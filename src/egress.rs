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
mod grant;
mod hello;
mod proxy;
mod report;
mod secure;
mod tunnel;
mod wanted;

use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub use authority::{Authority, Error as CertificateError};
pub use grant::Egress;
pub use proxy::Proxy;
pub use report::{Denied, Reached, Reason, Report};
pub use wanted::wanted;

/// Connections of one run at a time; more wait for one of them to end.
const AT_A_TIME: usize = 64;
/// And in all; then nothing listens any more.
const IN_ALL: usize = 10_000;

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
