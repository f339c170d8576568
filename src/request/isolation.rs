//! Who builds the walls of a sandbox.

use serde::{Deserialize, Serialize};

/// Who builds them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IsolationChoice {
    /// hotcell itself.
    #[default]
    Jail,
    /// hotcell itself where it can, else a container engine.
    Auto,
    /// The first container engine that is there.
    Container,
    Podman,
    Docker,
    Gvisor,
}

impl IsolationChoice {
    pub const WORDS: [&'static str; 6] =
        ["auto", "jail", "container", "podman", "docker", "gvisor"];

    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "auto" => Self::Auto,
            "jail" => Self::Jail,
            "container" => Self::Container,
            "podman" => Self::Podman,
            "docker" => Self::Docker,
            "gvisor" => Self::Gvisor,
            _ => return None,
        })
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Jail => "jail",
            Self::Container => "container",
            Self::Podman => "podman",
            Self::Docker => "docker",
            Self::Gvisor => "gvisor",
        }
    }
}
