//! Why there is no container for a program.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    #[error("`{engine}` was not found on the PATH")]
    NotFound { engine: &'static str },

    #[error("failed to initialize Podman machine: {said}")]
    MachineInit { said: String },

    #[error("failed to start Podman machine: {said}")]
    MachineStart { said: String },

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
    /// Whether something has to be installed first.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::NotFound { .. } | Self::NoEngine => true,
            Self::Refused { said, .. } => is_about_image(said),
            _ => false,
        }
    }

    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotFound { engine: "runsc" } => {
                "Fetch gVisor (`hotcell languages add gvisor`), put its `runsc` on the PATH, or leave out `isolation`.".to_owned()
            }
            Self::NotFound { engine } => format!(
                "Install it (`apt-get install {}`), or leave out `isolation`: hotcell's own sandbox needs no engine.",
                if *engine == "docker" { "docker.io" } else { engine }
            ),
            Self::NoEngine => "Install one (`apt-get install podman`), or leave out `isolation`: hotcell's own sandbox needs no engine.".to_owned(),
            Self::MachineInit { .. } => "Make one by hand (`podman machine init`), or leave out `isolation`: hotcell's own sandbox needs no engine.".to_owned(),
            Self::MachineStart { .. } => "Start it by hand (`podman machine start`), or leave out `isolation`: hotcell's own sandbox needs no engine.".to_owned(),
            Self::Refused { engine, said } | Self::Image { engine, said, .. } => {
                by_message(engine, said)
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

/// Whether an engine complains that an image is not there.
pub fn is_about_image(said: &str) -> bool {
    let said = said.to_lowercase();
    let words = ["image not known", "no such image", "unable to find image"];
    words.iter().any(|it| said.contains(it))
}

/// The folder of the host that an engine in a virtual machine does not see.
fn unshared(said: &str) -> Option<&str> {
    let between = |from: &str, to: &str| {
        let (_, rest) = said.split_once(from)?;
        Some(rest.split_once(to)?.0.trim())
    };
    // Docker Desktop's words, and Podman's.
    let path = between("The path ", " is not shared").or_else(|| between("statfs ", ": "));
    path.filter(|path| path.starts_with('/'))
}

const NOT_PULLED: &str = "Look whether the engine's own `pull` gets that image, and log in if it has to; without `--from`, `hotcell image build` makes one of this system and needs no registry.";

/// What mends the things that engines complain about most.
fn by_message(engine: &str, said: &str) -> String {
    if let Some(folder) = unshared(said) {
        return format!(
            "Share {folder} with the machine that the engine is in (Docker Desktop: Settings, Resources, File sharing; Podman: `podman machine init --volume {folder}`), or leave out `isolation`: hotcell's own sandbox needs no sharing."
        );
    }
    let known = [
        // Not "daemon" alone, which is in everything that Docker says.
        (
            "docker daemon",
            "Start the engine's daemon (`systemctl start docker`), and let this user talk to it (group `docker`).",
        ),
        (
            "has not answered",
            "Look what the engine is busy with (`podman ps`, `systemctl status docker`), and start it anew if it is stuck.",
        ),
        (
            "subuid",
            "Give this user ids of its own: `sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`.",
        ),
        (
            "newuidmap",
            "Install the programs that map ids: `apt-get install uidmap`.",
        ),
        ("registry", NOT_PULLED),
        ("pull access denied", NOT_PULLED),
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
    match found {
        Some((_, mends)) => (*mends).to_owned(),
        None => format!("Try `{engine} run` by hand: it has to work before hotcell can use it."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_an_engine_in_a_machine_does_not_see_is_named() {
        for said in [
            "docker: Error response from daemon: Mounts denied: The path /home/a b/c is not shared from the host and is not known to Docker.",
            "Error: statfs /home/a b/c: no such file or directory",
        ] {
            let hint = by_message("docker", said);
            assert!(
                hint.starts_with("Share /home/a b/c with the machine"),
                "{hint}"
            );
        }
        assert!(!by_message("podman", "statfs: no").contains("Share"));
    }

    #[test]
    fn every_complaint_of_an_engine_has_the_command_that_mends_it() {
        let complaints = [
            (
                "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
                "systemctl start docker",
            ),
            (
                "permission denied while trying to connect to the Docker daemon socket",
                "group `docker`",
            ),
            (
                "docker: Error response from daemon: No such image: localhost/none:1",
                "`[container] image`",
            ),
            (
                "Error: localhost/none:1: image not known",
                "`[container] image`",
            ),
            (
                "Error: initializing source docker://registry.invalid/x:1: pinging container registry registry.invalid: no such host",
                "`hotcell image build`",
            ),
            (
                "Error response from daemon: pull access denied for x, repository does not exist",
                "`hotcell image build`",
            ),
            (
                "docker: Error response from daemon: OCI runtime create failed: cgroup: no such file",
                "apt-get install runc",
            ),
            ("Error response from daemon: something else", "by hand"),
        ];
        for (said, mends) in complaints {
            let hint = by_message("docker", said);
            assert!(hint.contains(mends), "{said}: {hint}");
        }
    }
}
