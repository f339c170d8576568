//! The command of a container engine: what every container is started with.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

use jail::container::{FOLDER, PROGRAM, hidden_in_proc};
use jail::{Access, Limits, View};
use rustix::process::{Resource, getgid, getrlimit, getuid};

use super::error::ContainerError;
use super::{image, leftovers};
use crate::config::ContainerSettings;

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    Podman,
    Docker,
}

impl EngineKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    /// The one that is used where none is named, if there is one.
    pub fn first() -> Option<Self> {
        let kinds = [Self::Podman, Self::Docker];
        kinds.into_iter().find(|kind| kind.is_there())
    }

    /// Whether its command is on the PATH.
    pub fn is_there(self) -> bool {
        on_path(self.name()).is_some()
    }
}

/// An engine that is there.
#[derive(Debug, Clone)]
pub struct ContainerEngine {
    pub kind: EngineKind,
    program: PathBuf,
    /// This binary, as containers are shown it.
    own: PathBuf,
    image: Option<String>,
    runtime: Option<String>,
}

/// Bytes of what an engine says that are kept.
const LONGEST: usize = 600;
/// Threads of an OCI runtime that count before it is our init.
const FEWEST_TASKS: u64 = 32;

impl ContainerEngine {
    pub fn find(kind: EngineKind, settings: &ContainerSettings) -> Result<Self, ContainerError> {
        let engine = kind.name();
        let program = on_path(engine).ok_or(ContainerError::NotFound { engine })?;
        let own = std::env::current_exe().map_err(ContainerError::Prepare)?;
        let runtime = settings.runtime.clone();
        Ok(Self {
            kind,
            program,
            own,
            image: settings.image.clone(),
            runtime: runtime.or_else(|| usual_runtime(kind)),
        })
    }

    /// Whether a container's user is one that nobody else has, or has in it alone.
    pub fn has_own_ids(&self) -> bool {
        self.kind == EngineKind::Podman
    }

    /// Starts a container, and returns when it runs. An image that is ours and missing is made.
    pub fn run(
        &self,
        view: &View,
        limits: &Limits,
        uid: Option<u32>,
        folder: &Path,
    ) -> Result<(), ContainerError> {
        let own_image = match &self.image {
            Some(_) => None,
            None => Some(image::Skeleton::new(&view.links).map_err(ContainerError::Prepare)?),
        };
        let image = match (&self.image, &own_image) {
            (Some(image), _) => image.clone(),
            (None, Some(skeleton)) => skeleton.name(),
            (None, None) => return Err(ContainerError::Prepare(io::ErrorKind::NotFound.into())),
        };
        let arguments = self.arguments(view, limits, uid, folder, &image)?;
        // Podman's monitor of a container leaves a file where it was started from if that runs out of memory; this folder is gone by then.
        let at = folder.parent().unwrap_or(folder);
        let start = || self.call(&arguments, at, None::<fn(ChildStdin)>);
        let refused = match start() {
            Ok(_) => return Ok(()),
            Err(said) => said,
        };
        let is_missing = is_about_image(&refused);
        if let Some(skeleton) = own_image.filter(|_| is_missing) {
            self.import(&skeleton.name(), |mut pipe| pipe.write_all(&skeleton.tar))?;
            return start().map(drop).map_err(|said| self.refused(said));
        }
        Err(self.refused(refused))
    }

    /// Makes an image of a root file system.
    pub fn import(
        &self,
        image: &str,
        write: impl FnOnce(ChildStdin) -> io::Result<()>,
    ) -> Result<(), ContainerError> {
        let arguments = ["import", "-", image].map(OsString::from);
        let mut written = Ok(());
        let made = self.call(
            &arguments,
            Path::new("/"),
            Some(|pipe| written = write(pipe)),
        );
        let made = written.map_err(|error| error.to_string()).and(made);
        made.map(drop).map_err(|said| ContainerError::Image {
            engine: self.kind.name(),
            image: image.to_owned(),
            said,
        })
    }

    fn refused(&self, said: String) -> ContainerError {
        ContainerError::Refused {
            engine: self.kind.name(),
            said,
        }
    }

    /// SECURITY: every container is started with these. Our init looks from inside whether they hold.
    fn arguments(
        &self,
        view: &View,
        limits: &Limits,
        uid: Option<u32>,
        folder: &Path,
        image: &str,
    ) -> Result<Vec<OsString>, ContainerError> {
        let mut words: Vec<OsString> = [
            "run",
            "--detach",
            "--rm",
            "--pull=never",
            "--log-driver=none",
            "--network=none",
            "--ipc=private",
            "--cgroupns=private",
            "--hostname=sandbox",
            "--workdir=/workspace",
            "--read-only",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
        ]
        .map(OsString::from)
        .into();
        let mut word = |text: String| words.push(text.into());
        if self.kind == EngineKind::Podman {
            word("--read-only-tmpfs=false".to_owned());
            word("--http-proxy=false".to_owned());
            // Docker knows no such option, and masks what it does.
            let hidden = hidden_in_proc();
            let hidden: Vec<_> = hidden.iter().map(|it| it.to_string_lossy()).collect();
            word(format!("--security-opt=mask={}", hidden.join(":")));
        }
        if let Some(runtime) = &self.runtime {
            word(format!("--runtime={runtime}"));
        }
        word(format!("--label={}", leftovers::label()));
        match (uid, self.kind) {
            (Some(uid), _) => word(format!("--user={uid}:{uid}")),
            // Nobody inside, and the owner of our files outside.
            (None, EngineKind::Podman) => {
                word("--userns=keep-id:uid=65534,gid=65534".to_owned());
                word("--user=65534:65534".to_owned());
            }
            (None, EngineKind::Docker) => {
                word(format!(
                    "--user={}:{}",
                    getuid().as_raw(),
                    getgid().as_raw()
                ));
            }
        }
        word(format!("--memory={}", limits.memory));
        word(format!("--memory-swap={}", limits.memory));
        let tasks = u64::from(limits.tasks).saturating_add(1).max(FEWEST_TASKS);
        word(format!("--pids-limit={tasks}"));
        word(format!("--cpus={:.2}", limits.cpus));
        word(format!("--shm-size={}", limits.shm));
        for (name, resource) in [("nofile", Resource::Nofile), ("nproc", Resource::Nproc)] {
            let wanted = match resource {
                Resource::Nofile => limits.open_files,
                _ => u64::from(limits.tasks) + FEWEST_TASKS,
            };
            // Higher than our own is not ours to give.
            let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
            let limit = wanted.min(most);
            word(format!("--ulimit={name}={limit}:{limit}"));
        }
        let memory = "rw,exec,nosuid,nodev";
        let inodes = match self.kind {
            EngineKind::Docker => format!(",nr_inodes={}", limits.workspace_inodes),
            // It does not know this option.
            EngineKind::Podman => String::new(),
        };
        word(format!(
            "--tmpfs=/workspace:{memory},mode=0777,size={}{inodes}",
            limits.workspace
        ));
        word(format!(
            "--tmpfs=/tmp:{memory},mode=1777,size={}",
            limits.tmp
        ));
        if self.image.is_none() {
            for path in image::host_folders() {
                words.push(self.volume(&path, &path, Access::ReadOnly)?);
            }
        }
        words.push(self.volume(&self.own, Path::new(PROGRAM), Access::ReadOnly)?);
        words.push(self.volume(folder, Path::new(FOLDER), Access::ReadOnly)?);
        for tree in &view.trees {
            words.push(self.volume(&tree.host, &tree.cell, Access::ReadOnly)?);
        }
        for mount in &view.mounts {
            words.push(self.volume(&mount.host, &mount.cell, mount.access)?);
        }
        words.extend([image, PROGRAM].map(OsString::from));
        Ok(words)
    }

    fn volume(
        &self,
        host: &Path,
        inside: &Path,
        access: Access,
    ) -> Result<OsString, ContainerError> {
        // Engines take what is mounted as one word with parts.
        let is_odd = |path: &Path| {
            let bytes = path.as_os_str().as_encoded_bytes();
            bytes.iter().any(|it| b":,\"\n".contains(it))
        };
        if is_odd(host) || is_odd(inside) {
            return Err(ContainerError::Cannot {
                engine: self.kind.name(),
                what: "be shown a folder with `:`, `,` or a quotation mark in its name",
            });
        }
        let mut word = OsString::from("--mount=type=bind,source=");
        word.push(host);
        word.push(",destination=");
        word.push(inside);
        if access == Access::ReadOnly {
            // SECURITY: the engine makes the first mount read-only, and not those below it; so these are left out.
            word.push(",readonly,bind-nonrecursive=true");
        }
        Ok(word)
    }

    /// What the engine printed; or what it complained about.
    pub fn ask(&self, arguments: &[OsString]) -> Result<String, String> {
        self.call(arguments, Path::new("/"), None::<fn(ChildStdin)>)
    }

    /// The same of one whose standard input `write` has.
    fn call(
        &self,
        arguments: &[OsString],
        at: &Path,
        write: Option<impl FnOnce(ChildStdin)>,
    ) -> Result<String, String> {
        let said = |error: io::Error| error.to_string();
        let mut child = Command::new(&self.program)
            .args(arguments)
            .current_dir(at)
            .stdin(match write {
                Some(_) => Stdio::piped(),
                None => Stdio::null(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C at the terminal is ours to handle.
            .process_group(0)
            .spawn()
            .map_err(said)?;
        if let (Some(write), Some(pipe)) = (write, child.stdin.take()) {
            write(pipe);
        }
        let output = child.wait_with_output().map_err(said)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(complaint(&output.stderr)),
        }
    }
}

/// The last of what an engine complained about, in one line.
fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect();
    let errors = lines
        .iter()
        .find(|line| line.contains("rror") || line.starts_with("docker: "));
    let line = errors
        .or(lines.last())
        .copied()
        .unwrap_or("it says nothing");
    let clean = line.chars().filter(|it| !it.is_control());
    clean.take(LONGEST).collect()
}

fn is_about_image(said: &str) -> bool {
    let said = said.to_lowercase();
    ["image not known", "no such image", "unable to find image"]
        .iter()
        .any(|it| said.contains(it))
}

/// Podman's usual runtime wants cgroups of one kind; where there are two, another does.
fn usual_runtime(kind: EngineKind) -> Option<String> {
    let is_hybrid = Path::new("/sys/fs/cgroup/unified").is_dir()
        || !Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let runc = on_path("runc").filter(|_| is_hybrid && kind == EngineKind::Podman)?;
    Some(runc.to_string_lossy().into_owned())
}

/// A program of the PATH, or of where administrators' programs are.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let is_program = |file: &PathBuf| {
        let found = fs::metadata(file);
        found.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let mut files = folders
        .filter(|it| it.is_absolute())
        .map(|it| it.join(OsStr::new(name)));
    files.find(is_program)
}
