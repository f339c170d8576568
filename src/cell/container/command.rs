//! The command of a container engine.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use jail::{Limits, View};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::{ContainerError, is_about_image};
use super::image::Skeleton;
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
    pub(super) own: PathBuf,
    pub(super) image: Option<String>,
    pub(super) runtime: Option<String>,
    /// Who programs are in every container, if the owner has said so.
    pub(super) user: Option<(u32, u32)>,
}

/// Bytes of what an engine says that are kept.
const LONGEST: usize = 600;
/// How long an engine may take to start a container, its image being there. Far above what it takes: this ends a wait for one that is stuck.
const ANSWERS: Duration = Duration::from_secs(60);

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
            user: settings.user,
            runtime: runtime.or_else(|| usual_runtime(kind)),
        })
    }

    /// Whether a container's user is one that nobody else has, or has in it alone.
    pub fn has_own_ids(&self) -> bool {
        self.kind == EngineKind::Podman
    }

    /// What containers with this view are started from: an image that is named, or one of ours.
    fn start_from(&self, view: &View) -> Result<(String, Option<Skeleton>), ContainerError> {
        if let Some(image) = &self.image {
            return Ok((image.clone(), None));
        }
        let skeleton = Skeleton::new(&view.links).map_err(ContainerError::Prepare)?;
        Ok((skeleton.name(), Some(skeleton)))
    }

    /// The command that starts a container, for reading.
    pub fn shown(
        &self,
        view: &View,
        limits: &Limits,
        user: Option<&str>,
    ) -> Result<Vec<String>, ContainerError> {
        let (image, _) = self.start_from(view)?;
        let words = self.arguments(view, limits, user, Path::new("SOCKET"), &image)?;
        let program = self.program.as_os_str();
        let words = words.iter().map(OsString::as_os_str);
        let words = std::iter::once(program).chain(words);
        Ok(words.map(|it| it.to_string_lossy().into_owned()).collect())
    }

    /// Starts a container, and returns when it runs. An image that is ours and missing is made.
    pub fn run(
        &self,
        view: &View,
        limits: &Limits,
        user: Option<&str>,
        folder: &Path,
    ) -> Result<(), ContainerError> {
        let (image, own_image) = self.start_from(view)?;
        let arguments = self.arguments(view, limits, user, folder, &image)?;
        // Podman's monitor of a container leaves a file where it was started from if that runs out of memory; this folder is gone by then.
        let at = folder.parent().unwrap_or(folder);
        let start = || self.call(&arguments, at, Some(ANSWERS), None::<fn(ChildStdin)>);
        let refused = match start() {
            Ok(_) => return Ok(()),
            Err(said) => said,
        };
        if let Some(skeleton) = own_image.filter(|_| is_about_image(&refused)) {
            self.import(&image, |mut pipe| pipe.write_all(&skeleton.tar))?;
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
            None,
            Some(|pipe| written = write(pipe)),
        );
        let made = written.map_err(|error| error.to_string()).and(made);
        made.map(drop).map_err(|said| ContainerError::Image {
            engine: self.kind.name(),
            image: image.to_owned(),
            said,
        })
    }

    /// Gives an image another name, and pulls it before if it is not here.
    pub fn take_image(&self, from: &str, name: &str) -> Result<(), ContainerError> {
        let ask = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            self.ask(&words).map(drop)
        };
        let found = ask(&["image", "inspect", from]).or_else(|_| ask(&["pull", from]));
        let named = found.and_then(|()| ask(&["tag", from, name]));
        named.map_err(|said| ContainerError::Image {
            engine: self.kind.name(),
            image: name.to_owned(),
            said,
        })
    }

    fn refused(&self, said: String) -> ContainerError {
        ContainerError::Refused {
            engine: self.kind.name(),
            said,
        }
    }

    /// What the engine printed; or what it complained about.
    pub fn ask(&self, arguments: &[OsString]) -> Result<String, String> {
        self.call(arguments, Path::new("/"), None, None::<fn(ChildStdin)>)
    }

    /// The same of one whose standard input `write` has, and that is ended when it takes longer than `within`.
    fn call(
        &self,
        arguments: &[OsString],
        at: &Path,
        within: Option<Duration>,
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
        let watch = within.map(|within| Watch::start(&child, within));
        let watch = watch.transpose().map_err(said)?;
        if let (Some(write), Some(pipe)) = (write, child.stdin.take()) {
            write(pipe);
        }
        let output = child.wait_with_output().map_err(said)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false if watch.is_some_and(|it| it.has_ended_it()) => Err(format!(
                "it has not answered within {} s",
                within.unwrap_or_default().as_secs()
            )),
            false => Err(complaint(&output.stderr)),
        }
    }
}

/// Ends a command that takes too long.
struct Watch {
    _ends: Sender<()>,
    has_ended: Arc<AtomicBool>,
}

impl Watch {
    /// With this dropped, nothing more happens to it.
    fn start(child: &Child, within: Duration) -> io::Result<Self> {
        let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
        let (_ends, ended) = channel::<()>();
        let has_ended = Arc::new(AtomicBool::new(false));
        let noted = has_ended.clone();
        let thread = thread::Builder::new().name("engine-watch".to_owned());
        thread.stack_size(64 << 10).spawn(move || {
            if ended.recv_timeout(within) == Err(RecvTimeoutError::Timeout) {
                noted.store(true, Ordering::Relaxed);
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            }
        })?;
        Ok(Self { _ends, has_ended })
    }

    fn has_ended_it(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

/// What an engine complained about, in one line: from the first line that says so on, or the last.
fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|it| !it.is_empty() && !it.starts_with("See '"))
        .collect();
    let is_error = |line: &&str| line.contains("rror") || line.starts_with("docker: ");
    let begin = lines.iter().position(is_error);
    let begin = begin.unwrap_or(lines.len().saturating_sub(1));
    let said = match lines.get(begin..) {
        None | Some([]) => "it says nothing".to_owned(),
        Some(said) => said.join(" "),
    };
    let clean = said.chars().filter(|it| !it.is_control());
    clean.take(LONGEST).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_is_stuck_is_ended_and_that_is_said() {
        let engine = |program: &str| ContainerEngine {
            kind: EngineKind::Podman,
            program: program.into(),
            own: PathBuf::new(),
            image: None,
            runtime: None,
            user: None,
        };
        let call = |program: &str, within| {
            let words = ["600".into()];
            let none = None::<fn(ChildStdin)>;
            engine(program).call(&words, Path::new("/"), Some(within), none)
        };
        let stuck = call("/bin/sleep", Duration::from_millis(100));
        assert_eq!(stuck, Err("it has not answered within 0 s".to_owned()));
        // The control.
        let answers = call("/bin/true", Duration::from_secs(600));
        assert_eq!(answers, Ok(String::new()));
    }
}
