//! The signals that ask this process to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for Ctrl-C, `SIGTERM` or `SIGHUP`. They are caught from this call on.
pub fn asked_to_end() -> impl Future<Output = ()> {
    let (interrupted, told) = (interrupted(), told_to_end());
    async move {
        tokio::select! {
            () = interrupted => {}
            () = told => {}
        }
    }
}

/// Each Ctrl-C, caught from when this is made.
pub struct Interrupts(Option<Signal>);

impl Interrupts {
    pub fn catch() -> Self {
        Self(signal(SignalKind::interrupt()).ok())
    }

    pub async fn next(&mut self) {
        received(&mut self.0).await;
    }
}

/// Waits for `SIGTERM` or `SIGHUP`. They are caught from this call on.
pub fn told_to_end() -> impl Future<Output = ()> {
    let kinds = [SignalKind::terminate(), SignalKind::hangup()];
    let mut signals = kinds.map(|kind| signal(kind).ok());
    async move {
        let [terminate, hangup] = &mut signals;
        tokio::select! {
            () = received(terminate) => {}
            () = received(hangup) => {}
        }
    }
}

/// Waits for Ctrl-C alone, which is caught from this call on.
pub fn interrupted() -> impl Future<Output = ()> {
    let mut interrupt = signal(SignalKind::interrupt()).ok();
    async move { received(&mut interrupt).await }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
