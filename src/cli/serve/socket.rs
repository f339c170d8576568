//! The socket in the user's runtime folder at which `hotcell run` finds this server, and borrows sandboxes that wait.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{SocketFlags, accept_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinSet;

use crate::caller::Caller;
use crate::resident::{Listener, is_same_user};
use crate::service::Service;

/// How many sandboxes are lent at a time. Who finds no more makes its own.
const MOST: usize = 64;
const PAUSE: Duration = Duration::from_millis(100);

/// The socket that systemd has opened for us, if it has: the first of those that it passes on.
pub fn given() -> Option<Listener> {
    const FIRST: i32 = 3;
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    if number("LISTEN_PID")? != std::process::id() || number("LISTEN_FDS")? != 1 {
        return None;
    }
    let socket = jail::sys::take_descriptor(FIRST).ok()?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC).ok()?;
    Some(Listener::given(socket))
}

/// Lends sandboxes at a socket that was given, or at one in the runtime folder, until `stop` ends; then until those that were lent are given
/// back or `end` does. Without such a folder none is lent.
pub async fn lend(
    service: &Arc<Service>,
    given: Option<Listener>,
    stop: impl Future<Output = ()>,
    end: impl Future<Output = ()>,
) {
    let opened = given.map_or_else(Listener::open, |given| Ok(Some(given)));
    let listener = opened.unwrap_or_else(|error| {
        tracing::warn!(%error, "`hotcell run` will not find this server");
        None
    });
    let mut lent = JoinSet::new();
    tokio::select! {
        () = stop => {}
        error = accept_all(service, listener.as_ref(), &mut lent) => {
            tracing::warn!(%error, "no more sandboxes are lent");
        }
    }
    drop(listener);
    tokio::select! {
        () = end => {}
        () = async { while lent.join_next().await.is_some() {} } => {}
    }
}

async fn accept_all(
    service: &Arc<Service>,
    listener: Option<&Listener>,
    lent: &mut JoinSet<()>,
) -> io::Error {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    // Who has gone again is not waited for.
    if let Err(error) = rustix::io::ioctl_fionbio(&listener.socket, true) {
        return error.into();
    }
    #[expect(deprecated, reason = "sound: the socket stays open as what it is")]
    let listening = AsyncFd::with_interest(listener.socket.as_fd(), Interest::READABLE);
    let listening = match listening {
        Ok(listening) => listening,
        Err(error) => return error,
    };
    loop {
        let accept = |fd: &_| Ok(accept_with(fd, SocketFlags::CLOEXEC)?);
        let accepted = tokio::select! {
            accepted = listening.async_io(Interest::READABLE, accept) => accepted,
            Some(_) = lent.join_next(), if !lent.is_empty() => continue,
        };
        let Ok(line) = accepted else {
            // It has gone, or there are no descriptors left for it.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // SECURITY: no other user gets as far as this folder; this does not rely on that.
        if !is_same_user(&line) || lent.len() >= MOST {
            continue;
        }
        let service = service.clone();
        lent.spawn(async move {
            let caller = Caller::local();
            service.welcome(&caller);
            service.engine().provider().lend(line, &caller).await;
        });
    }
}
