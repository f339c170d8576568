//! Who answers a program at a port of its own loopback.

use std::sync::Arc;

use crate::loopback::{self, Service};
use crate::upstream::Bridge;

/// A port of a cell that the server answers at.
pub enum Door {
    Own {
        port: u16,
        service: Arc<dyn Service>,
    },
    /// The tools of other servers, where the egress proxy is too.
    Servers(Arc<Bridge>),
}

impl Door {
    pub(super) fn port(&self) -> u16 {
        match self {
            Self::Own { port, .. } => *port,
            Self::Servers(_) => loopback::PORT,
        }
    }

    pub(super) fn bridge(&self) -> Option<&Arc<Bridge>> {
        match self {
            Self::Own { .. } => None,
            Self::Servers(bridge) => Some(bridge),
        }
    }

    pub(super) fn service(self) -> Arc<dyn Service> {
        match self {
            Self::Own { service, .. } => service,
            Self::Servers(bridge) => bridge,
        }
    }
}
