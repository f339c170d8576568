//! Cells in containers of Podman or Docker, with our own init as their first process.
//!
//! The engine builds the outer walls: namespaces, a read-only root, no network, no capability, cgroups. Our init then lays the rest of
//! our own on itself and on the program ([`jail::container`]); from there on such a cell is like any other. The engine is looked for when the
//! first cell is needed. A container ends with the server: its first process does when its socket closes, and the engine removes it then.

mod arguments;
mod command;
mod error;
mod image;
mod leftovers;
mod machine;

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jail::container::{Awaited, Connected, ContainerSpec, SOCKET, Uids};
use jail::{Access, Missing, Policy, View, Wall};

use super::isolation::Around;
use super::jail::{ByThreads, Guard, Maker, Runtime, Source, Sources};
use super::{CellError, Isolation, Launch};
use crate::config::ContainerSettings;
use crate::random::random_name;
pub use command::{ContainerEngine, EngineKind, on_path};
pub use error::ContainerError;
use machine::Machine;

/// How long a container may take from its start until its init is there. Far above what it takes.
const STARTS: Duration = Duration::from_secs(30);

/// Where containers come from.
pub struct Containers(Arc<Found>);

struct Found {
    /// The first that is there, if none is named.
    kind: Option<EngineKind>,
    settings: ContainerSettings,
    /// Whether this process lives long enough to look for what others have left.
    cleans: bool,
    engine: OnceLock<ContainerEngine>,
    /// Of a server of root's. What could not be claimed is asked for again.
    uids: OnceLock<Option<Uids>>,
    machine: Arc<Machine>,
}

impl Containers {
    /// `cleans` has what servers that are gone have left looked for, once.
    pub fn new(kind: Option<EngineKind>, settings: ContainerSettings, cleans: bool) -> Self {
        Self(Arc::new(Found {
            kind,
            machine: Machine::new(settings.machine_idle, cleans),
            settings,
            cleans,
            engine: OnceLock::new(),
            uids: OnceLock::new(),
        }))
    }
}

/// What an image is made of.
#[derive(Clone, Copy)]
pub enum ImageOf<'a> {
    /// This system, with all that is in `/usr`.
    System,
    /// The root file system in a folder.
    Folder(&'a Path),
    /// Another image, which is downloaded if it is not here. Nothing else is.
    Image(&'a str),
}

/// Makes the image `name`.
pub fn build_image(
    kind: EngineKind,
    settings: &ContainerSettings,
    name: &str,
    content: ImageOf<'_>,
) -> Result<(), ContainerError> {
    let engine = ContainerEngine::find(kind, settings)?;
    let root = match content {
        ImageOf::System => None,
        ImageOf::Folder(root) => Some(root),
        ImageOf::Image(from) => return engine.take_image(from, name),
    };
    engine.import(name, |pipe| {
        image::write_system(root, io::BufWriter::new(pipe))
    })
}

impl Sources for Containers {
    fn source(&self, view: &View, runtime: Option<Runtime>) -> Result<Arc<dyn Source>, CellError> {
        let found = self.0.clone();
        found.engine()?;
        Ok(ByThreads::of(Kind {
            found,
            view: view.clone(),
            runtime,
        }))
    }

    fn copies(&self) -> bool {
        false
    }

    fn weight(&self) -> u32 {
        // The monitor that the engine keeps beside each.
        4
    }

    fn command(&self, launch: &Launch) -> Result<Option<Vec<String>>, CellError> {
        let engine = self.0.engine()?;
        let named = self.0.settings.user;
        let user = named.map(|(uid, gid)| format!("{uid}:{gid}"));
        // Each has another.
        let user = user.unwrap_or_else(|| "UID:UID".to_owned());
        let user = rustix::process::getuid().is_root().then_some(user);
        let shown = engine.shown(&launch.view, &launch.limits, user.as_deref())?;
        Ok(Some(shown))
    }

    fn in_use(&self) -> Option<Guard> {
        Some(Box::new(self.0.machine.in_use()))
    }

    fn settle(&self) {}
}

impl Found {
    fn engine(&self) -> Result<&ContainerEngine, ContainerError> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine);
        }
        let kind = self.kind.or_else(EngineKind::first);
        let kind = kind.ok_or(ContainerError::NoEngine)?;
        let found = ContainerEngine::find(kind, &self.settings)?;
        let mut is_first = false;
        let engine = self.engine.get_or_init(|| {
            is_first = true;
            found
        });
        if is_first && self.cleans {
            leftovers::remove_behind(engine.clone());
        }
        Ok(engine)
    }

    fn uids(&self) -> io::Result<Option<&Uids>> {
        if self.uids.get().is_none() {
            let claimed = Uids::claim()?;
            // Another thread's may be there now, and ours is given back.
            let _ = self.uids.set(claimed);
        }
        Ok(self.uids.get().and_then(Option::as_ref))
    }
}

/// Containers that see the same of the host.
struct Kind {
    found: Arc<Found>,
    view: View,
    runtime: Option<Runtime>,
}

impl Maker for Kind {
    fn make(&self, mut policy: Policy, stdio: &[OwnedFd; 3]) -> Result<jail::Cell, ContainerError> {
        let engine = self.found.engine()?;
        let uids = self.found.uids().map_err(ContainerError::Prepare)?;
        let named = self.found.settings.user;
        let uid = uids.map(|uids| named.map_or_else(|| uids.next(), |(uid, _)| uid));
        let writable = self.writable(engine, uid)?;
        let connected = self.start(engine, &policy, uid)?;
        if uid.is_none() && !engine.has_own_ids() {
            // What the kernel counts for a user is then that of all programs of this one. The engine bounds processes as well.
            policy.limits.tasks = u32::MAX - 1;
        }
        let (zygote, library) = self.runtime.clone().unzip();
        let spec = ContainerSpec {
            policy,
            writable,
            zygote,
        };
        let told = connected.tell(&spec, stdio, library.as_deref(), uid);
        told.map_err(ContainerError::Prepare)
    }

    fn isolation(&self, missing: &[Missing], landlock: u8, seccomp: bool) -> Isolation {
        let mut missing = missing.to_vec();
        if self.found.settings.user.is_some() || !matches!(self.found.uids(), Ok(Some(_))) {
            missing.push(Missing {
                wall: Wall::Quotas,
                errno: 0,
            });
        }
        let engine = self.found.engine.get().map(|it| it.kind);
        let around = Around::Container(engine.map_or("container", EngineKind::name));
        Isolation::new(&missing, landlock, seccomp, around)
    }
}

impl Kind {
    /// The folders of the host that the program may write to.
    fn writable(
        &self,
        engine: &ContainerEngine,
        uid: Option<u32>,
    ) -> Result<Vec<PathBuf>, ContainerError> {
        let mounts = self.view.mounts.iter();
        let writable = mounts.filter(|mount| mount.access == Access::Write);
        let writable: Vec<PathBuf> = writable.map(|mount| mount.cell.clone()).collect();
        match uid {
            // They would be another user's in there. The jail has mounts that map ids.
            Some(_) if !writable.is_empty() => Err(ContainerError::Cannot {
                engine: engine.kind.name(),
                what: "write to folders of the host for a server of root's",
            }),
            _ => Ok(writable),
        }
    }

    /// Has the engine start a container, and waits for its init.
    fn start(
        &self,
        engine: &ContainerEngine,
        policy: &Policy,
        uid: Option<u32>,
    ) -> Result<Connected, ContainerError> {
        let folder = SocketFolder::make().map_err(ContainerError::Prepare)?;
        let awaited = Awaited::listen(&folder.shown()).map_err(ContainerError::Prepare)?;
        let gid = self.found.settings.user.map(|(_, gid)| gid);
        let user = uid.map(|uid| format!("{uid}:{}", gid.unwrap_or(uid)));
        let shown = folder.shown();
        let start = || engine.run(&self.view, &policy.limits, user.as_deref(), &shown);
        match start() {
            Err(error) if Machine::is_missing(engine, &error) => {
                self.found.machine.start(engine)?;
                start()?;
            }
            started => started?,
        }
        let begun = Instant::now();
        while let Some(left) = STARTS.checked_sub(begun.elapsed()) {
            let accepted = awaited.accept(left);
            if let Some(connected) = accepted.map_err(ContainerError::Prepare)? {
                return Ok(connected);
            }
        }
        Err(ContainerError::Silent {
            engine: engine.kind.name(),
        })
    }
}

/// A folder that nobody else can enter, with one in it that a container is shown. Gone when the container's init is there.
struct SocketFolder(PathBuf);

impl SocketFolder {
    fn make() -> io::Result<Self> {
        let name = format!("{}{}", leftovers::own_folders(), random_name());
        let folder = Self(runtime_folder().join(name));
        fs::DirBuilder::new().mode(0o700).create(&folder.0)?;
        fs::DirBuilder::new().mode(0o755).create(folder.shown())?;
        Ok(folder)
    }

    fn shown(&self) -> PathBuf {
        self.0.join("shown")
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        // SECURITY: the program finds no socket there, and nobody listens any more.
        let _ = fs::remove_file(self.shown().join(SOCKET));
        let _ = fs::remove_dir(self.shown());
        let _ = fs::remove_dir(&self.0);
    }
}

/// Where short-lived sockets of this user lie.
fn runtime_folder() -> PathBuf {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = own.filter(|it| it.is_absolute() && Path::is_dir(it));
    own.unwrap_or_else(std::env::temp_dir)
}
