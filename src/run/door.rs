//! Who answers a program at a port of its own loopback.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::servers::Bridge;
use crate::{egress, plan};

/// A port of a cell that the server answers at.
pub enum Door {
    Own {
        port: u16,
        /// Ends when it is dropped, and then nobody answers any more.
        answer: Answer,
    },
    /// The tools of other servers, where the way out is too.
    Servers(Arc<Bridge>),
}

impl Door {
    pub(super) fn port(&self) -> u16 {
        match self {
            Self::Own { port, .. } => *port,
            Self::Servers(_) => plan::PORT,
        }
    }

    pub(super) fn bridge(&self) -> Option<&Arc<Bridge>> {
        match self {
            Self::Own { .. } => None,
            Self::Servers(bridge) => Some(bridge),
        }
    }

    pub(super) fn answer(self, listener: TcpListener) -> Answering {
        match self {
            Self::Own { answer, .. } => answer(listener),
            Self::Servers(bridge) => {
                let attend = move |stream| bridge.clone().attend(stream);
                Box::pin(async move {
                    egress::attend_each(&listener, attend).await;
                    // A program that has called too often goes on without.
                    std::future::pending().await
                })
            }
        }
    }
}

type Answering = Pin<Box<dyn Future<Output = ()> + Send>>;
type Answer = Box<dyn FnOnce(TcpListener) -> Answering + Send>;
