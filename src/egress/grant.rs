//! What a run was granted of the network.

use crate::request::{Network, Pattern};
use crate::secret::Secret;

/// Bytes that a run may send and receive, each, unless the configuration says otherwise.
const TRANSFER: u64 = 1 << 30;

/// The hosts that a run may reach, and how much it may move.
#[derive(Debug, Clone, PartialEq)]
pub struct Egress {
    /// Never none.
    pub network: Network,
    /// Granted hosts that may be at a private address.
    pub private: Vec<Pattern>,
    pub transfer: u64,
    /// Those bound to hosts that it may reach.
    pub secrets: Vec<Secret>,
}

impl Egress {
    /// `None` for a run without a network: nothing is started for it.
    pub fn new(network: Network) -> Option<Self> {
        (network != Network::None).then_some(Self {
            network,
            private: Vec::new(),
            transfer: TRANSFER,
            secrets: Vec::new(),
        })
    }

    /// The same for one run: its secrets have placeholders that no other run has.
    pub fn for_run(&self) -> Self {
        Self {
            secrets: self.secrets.iter().map(Secret::for_run).collect(),
            ..self.clone()
        }
    }
}
