//! Who builds the walls of sandboxes: `isolation` and `[container]`.

use super::error::Mistake;
use super::file::ContainerTable;
use toml::Spanned;

/// Who builds them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IsolationChoice {
    /// hotcell itself.
    #[default]
    Jail,
    /// hotcell itself where it can, else a container engine.
    Auto,
    Podman,
    Docker,
    Gvisor,
}

impl IsolationChoice {
    pub const WORDS: [&'static str; 5] = ["auto", "jail", "podman", "docker", "gvisor"];

    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "auto" => Self::Auto,
            "jail" => Self::Jail,
            "podman" => Self::Podman,
            "docker" => Self::Docker,
            "gvisor" => Self::Gvisor,
            _ => return None,
        })
    }

    pub(super) fn check(word: &Spanned<String>) -> Result<Self, Mistake> {
        let one_of = || format!("it is not one of: {}", Self::WORDS.join(", "));
        Self::parse(word.get_ref()).ok_or_else(|| Mistake::at(word, one_of()))
    }
}

/// `[container]`: how containers are started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerSettings {
    /// An image that is used as it is, in place of one with the host's `/usr`.
    pub image: Option<String>,
    /// The OCI runtime that the engine is to use.
    pub runtime: Option<String>,
}

impl ContainerTable {
    pub fn check(self) -> Result<ContainerSettings, Mistake> {
        let word = |word: Option<Spanned<String>>| {
            let checked = word.map(|word| match is_image_name(word.get_ref()) {
                true => Ok(word.into_inner()),
                false => Err(Mistake::at(&word, "it is no name that an engine takes")),
            });
            checked.transpose()
        };
        Ok(ContainerSettings {
            image: word(self.image)?,
            runtime: word(self.runtime)?,
        })
    }
}

/// Whether it can be an argument of its own, and is no option.
pub fn is_image_name(text: &str) -> bool {
    let is_part = |it: u8| it.is_ascii_alphanumeric() || b"./:_-@".contains(&it);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_part)
}
