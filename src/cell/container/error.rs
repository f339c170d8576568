//! Why there is no container for a program.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    #[error("`{engine}` was not found on the PATH")]
    NotFound { engine: &'static str },

    #[error("no container engine was found: neither `podman` nor `docker` is on the PATH")]
    NoEngine,

    #[error("{engine} could not start a container: {said}")]
    Refused { engine: &'static str, said: String },

    #[error("{engine} could not make the image `{image}`: {said}")]
    Image {
        engine: &'static str,
        image: String,
        said: String,
    },

    #[error("a container of {engine} was started, and its first process has not come up")]
    Silent { engine: &'static str },

    #[error("a sandbox of {engine} cannot {what}")]
    Cannot {
        engine: &'static str,
        what: &'static str,
    },

    #[error("could not prepare a container: {0}")]
    Prepare(io::Error),
}

impl ContainerError {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotFound { engine: "runsc" } => {
                "Put gVisor's `runsc` on the PATH, or leave out `isolation`.".to_owned()
            }
            Self::NotFound { engine } => format!(
                "Install it (`apt-get install {}`), or leave out `isolation`: hotcell's own sandbox needs no engine.",
                if *engine == "docker" { "docker.io" } else { engine }
            ),
            Self::NoEngine => "Install one (`apt-get install podman`), or leave out `isolation`: hotcell's own sandbox needs no engine.".to_owned(),
            Self::Refused { engine, said } | Self::Image { engine, said, .. } => {
                return by_message(engine, said);
            }
            Self::Silent { engine } => format!(
                "Try again if the machine is busy; else look at `{engine} events`, and whether `{engine} run` works by hand."
            ),
            Self::Cannot { .. } => {
                "Use hotcell's own sandbox for it (`isolation = \"jail\"`).".to_owned()
            }
            Self::Prepare(_) => "Look at the free space of the folder for temporary files, and the limit on open files (`ulimit -n`).".to_owned(),
        })
    }
}

/// What mends the things that engines complain about most.
fn by_message(engine: &str, said: &str) -> Option<String> {
    let known = [
        (
            "daemon",
            "Start the engine's daemon (`systemctl start docker`), and let this user talk to it (group `docker`).",
        ),
        (
            "subuid",
            "Give this user ids of its own: `sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`.",
        ),
        (
            "newuidmap",
            "Install the programs that map ids: `apt-get install uidmap`.",
        ),
        (
            "image",
            "Name an image that is there with `[container] image` in config.toml, or leave that out: hotcell then makes one of this system.",
        ),
        (
            "cgroup",
            "Name another runtime with `[container] runtime = \"runc\"` in config.toml (`apt-get install runc`).",
        ),
        (
            "no space left",
            "Free some space: `podman system prune` removes what no container uses.",
        ),
    ];
    let said = said.to_lowercase();
    let found = known.iter().find(|(word, _)| said.contains(word));
    Some(match found {
        Some((_, mends)) => (*mends).to_owned(),
        None => format!("Try `{engine} run` by hand: it has to work before hotcell can use it."),
    })
}
