//! What a run with a network needs: its grants, and the variables by which programs
//! find the way out.

use std::collections::BTreeMap;

use super::{RunPlan, Secret};
use crate::request::{CellPath, InputFile, Network, Pattern};

pub use crate::loopback::PORT;
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
}

/// A script that makes older versions of Node use the variables below; newer ones do by
/// themselves, and then it does nothing.
const NODE: &str = include_str!("../../languages/proxy/node.cjs");
const NODE_FILE: &str = ".home/.hotcell/proxy.cjs";

impl RunPlan {
    /// Grants a network to the program, in place of what it had.
    ///
    /// Variables that it has already are its caller's wish, and stay.
    pub fn grant(&mut self, egress: Option<Egress>) {
        self.egress = egress;
        let Some(egress) = &self.egress else { return };
        for secret in &egress.secrets {
            let (name, value) = (secret.name.clone(), secret.placeholder.clone());
            self.env.entry(name).or_insert(value);
        }
        // A cell that waits has no way out.
        self.zygote = None;
        for (name, value) in variables() {
            self.env.entry(name).or_insert(value);
        }
        let path = CellPath::parse(NODE_FILE).expect("a plain path");
        if self.files.iter().all(|file| file.path != path) {
            self.files.push(InputFile::from_bytes(path, NODE));
        }
    }
}

fn variables() -> BTreeMap<String, String> {
    let proxy = format!("http://127.0.0.1:{PORT}");
    let mut variables = BTreeMap::new();
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        // Half of the programs know one spelling, half the other.
        variables.insert(name.to_owned(), proxy.clone());
        variables.insert(name.to_lowercase(), proxy.clone());
    }
    for name in ["NO_PROXY", "no_proxy"] {
        variables.insert(name.to_owned(), "localhost,127.0.0.1,::1".to_owned());
    }
    variables.insert("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned());
    let require = format!("--require=/workspace/{NODE_FILE}");
    variables.insert("NODE_OPTIONS".to_owned(), require);
    variables
}
