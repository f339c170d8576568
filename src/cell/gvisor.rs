//! Cells in gVisor: `runsc` runs each program on a kernel of its own, with our own init inside ([`jail::gvisor`]).
//!
//! No engine, no image, no cgroup: an OCI bundle of ours, in memory. A program has no terminal there, since no file descriptor comes from
//! inside. That is refused before anything runs.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, OnceLock};

use jail::container::{ContainerSpec, Uids, host_folders};
use jail::gvisor::{FOLDER, PROGRAM, ROOT, SHOWN, Sandbox, WORKSPACE};
use jail::{Access, Missing, Policy, View, Zygote};
use serde_json::{Value, json};

use super::container::on_path;
use super::isolation::Around;
use super::jail::{ByThreads, Maker, Runtime, Source, Sources};
use super::{CellError, ContainerError, Isolation, Launch};
use crate::config::ContainerSettings;

const RUNSC: &str = "runsc";
const PLACES: [&str; 3] = ["/mnt", "/media", "/srv"];

/// Where sandboxes of gVisor come from.
pub struct Gvisor(Arc<Found>);

struct Found {
    /// Where it may be beside the PATH.
    fetched: Option<PathBuf>,
    uids: OnceLock<Option<Uids>>,
}

impl Gvisor {
    pub const NAME: &'static str = "gvisor";

    pub fn new(settings: &ContainerSettings) -> Self {
        Self(Arc::new(Found {
            fetched: settings.fetched.clone(),
            uids: OnceLock::new(),
        }))
    }

    pub fn is_there(&self) -> bool {
        self.0.runsc().is_some()
    }
}

impl Found {
    fn runsc(&self) -> Option<PathBuf> {
        let fetched = self.fetched.as_ref().map(|it| it.join(RUNSC));
        on_path(RUNSC).or(fetched.filter(|it| it.exists()))
    }
}

impl Sources for Gvisor {
    fn source(&self, view: &View, runtime: Option<Runtime>) -> Result<Arc<dyn Source>, CellError> {
        let engine = RUNSC;
        let runsc = self.0.runsc().ok_or(ContainerError::NotFound { engine })?;
        let own = std::env::current_exe().map_err(ContainerError::Prepare)?;
        Ok(ByThreads::of(Kind {
            found: self.0.clone(),
            runsc,
            own,
            view: view.clone(),
            runtime,
        }))
    }

    fn copies(&self) -> bool {
        false
    }

    fn weight(&self) -> u32 {
        // Its kernel and the process that opens files for that; the measured size of both.
        40
    }

    fn refuses(&self, launch: &Launch) -> Result<(), CellError> {
        match launch.terminal {
            Some(_) => Err(ContainerError::Cannot {
                engine: Gvisor::NAME,
                what: "have a terminal (use --no-tty)",
            }
            .into()),
            None => Ok(()),
        }
    }

    fn settle(&self) {}
}

struct Kind {
    found: Arc<Found>,
    runsc: PathBuf,
    own: PathBuf,
    view: View,
    runtime: Option<Runtime>,
}

impl Maker for Kind {
    fn make(&self, policy: Policy, stdio: &[OwnedFd; 3]) -> Result<jail::Cell, ContainerError> {
        let uid = self.uid()?;
        let writable = self.writable(uid)?;
        let folder = free_folder(&self.view, &[self.runsc.as_path(), self.own.as_path()])?;
        let listen = policy.listen;
        let (zygote, library) = self.runtime.clone().unzip();
        // To make another process takes that kernel longer than to take the memory of one apart.
        let zygote = zygote.map(|zygote| Zygote {
            lingers: false,
            ..zygote
        });
        let sandbox = Sandbox {
            runsc: self.runsc.clone(),
            config: self.config(folder, &policy, uid).to_string(),
            spec: ContainerSpec {
                policy: Policy {
                    listen: None,
                    ..policy
                },
                writable,
                zygote,
            },
            folder: folder.to_owned(),
            links: self.view.links.clone(),
            uid,
            listen,
        };
        let started = sandbox.start(stdio, library.as_deref());
        let (cell, child) = started.map_err(ContainerError::Prepare)?;
        wait_for(child)?;
        Ok(cell)
    }

    fn isolation(&self, missing: &[Missing], landlock: u8, seccomp: bool) -> Isolation {
        Isolation::new(missing, landlock, seccomp, Around::Gvisor)
    }
}

/// A folder of the host that nothing in a sandbox comes from: in the mount namespace of its own, the bundle is mounted there.
pub fn free_folder(view: &View, others: &[&Path]) -> Result<&'static Path, ContainerError> {
    let trees = view.trees.iter().map(|it| &*it.host);
    let mounts = view.mounts.iter().map(|it| &*it.host);
    let needed: Vec<&Path> = trees.chain(mounts).chain(others.iter().copied()).collect();
    let is_free = |it: &&Path| it.is_dir() && !needed.iter().any(|path| path.starts_with(it));
    let places = PLACES.iter().map(Path::new).find(is_free);
    places.ok_or(ContainerError::Cannot {
        engine: Gvisor::NAME,
        what: "be made where all of /mnt, /media and /srv are missing or in use",
    })
}

/// Reaps a process of ours when it has ended.
pub fn wait_for(mut child: Child) -> Result<(), ContainerError> {
    let waiter = std::thread::Builder::new().name("reaper".to_owned());
    let waiter = waiter.stack_size(64 << 10);
    let started = waiter.spawn(move || drop(child.wait()));
    started.map(drop).map_err(ContainerError::Prepare)
}

impl Kind {
    /// A host uid for its files and processes that nobody else has. An ordinary user has none to give.
    fn uid(&self) -> Result<Option<u32>, ContainerError> {
        let uids = &self.found.uids;
        if uids.get().is_none() {
            let _ = uids.set(Uids::claim().map_err(ContainerError::Prepare)?);
        }
        Ok(uids.get().and_then(Option::as_ref).map(Uids::next))
    }

    /// The granted folders that the program may write to.
    fn writable(&self, uid: Option<u32>) -> Result<Vec<PathBuf>, ContainerError> {
        let mounts = self.view.mounts.iter();
        let writable = mounts.filter(|mount| mount.access == Access::Write);
        let writable: Vec<PathBuf> = writable.map(|mount| mount.cell.clone()).collect();
        match uid {
            // What it makes there would be another user's.
            Some(_) if !writable.is_empty() => Err(ContainerError::Cannot {
                engine: Gvisor::NAME,
                what: "write to folders of the host for a server of root's",
            }),
            _ => Ok(writable),
        }
    }

    /// SECURITY: the OCI configuration of every sandbox.
    fn config(&self, bundle: &Path, policy: &Policy, uid: Option<u32>) -> Value {
        let limits = &policy.limits;
        let bind = |inside: &Path, source: &Path, access: &str| json!({ "destination": inside, "type": "bind", "source": source, "options": ["rbind", access] });
        let memory = |inside: &str, size: u64, mode: &str| {
            let options = [
                "nosuid",
                "nodev",
                &format!("mode={mode}"),
                &format!("size={size}"),
            ];
            json!({ "destination": inside, "type": "tmpfs", "source": "tmpfs", "options": options })
        };
        let mut mounts = vec![
            json!({ "destination": "/proc", "type": "proc", "source": "proc" }),
            memory("/tmp", limits.tmp, "1777"),
            memory("/dev/shm", limits.shm, "1777"),
            bind(Path::new("/workspace"), &bundle.join(WORKSPACE), "rw"),
            bind(Path::new(FOLDER), &bundle.join(SHOWN), "ro"),
            bind(Path::new(PROGRAM), &self.own, "ro"),
        ];
        mounts.extend(host_folders().iter().map(|it| bind(it, it, "ro")));
        mounts.extend(
            self.view
                .trees
                .iter()
                .map(|it| bind(&it.cell, &it.host, "ro")),
        );
        mounts.extend(self.view.mounts.iter().map(|it| {
            let access = match it.access {
                Access::ReadOnly => "ro",
                Access::Write => "rw",
            };
            bind(&it.cell, &it.host, access)
        }));
        let none: [&str; 0] = [];
        // The root of a user namespace of our own is our user: our init makes itself nobody in there, and has no capability after that.
        let capabilities: &[&str] = match uid {
            Some(_) => &[],
            None => &["CAP_SETFCAP"],
        };
        let uid = uid.unwrap_or(0);
        // With a listener, `runsc` finds itself in the one that this is in.
        let network = policy.listen.is_none().then_some("network");
        let namespaces = ["pid", "ipc", "uts", "mount"].into_iter().chain(network);
        let namespaces: Vec<Value> = namespaces.map(|kind| json!({ "type": kind })).collect();
        json!({
            "ociVersion": "1.0.0",
            "root": { "path": ROOT, "readonly": true },
            "hostname": "sandbox",
            "mounts": mounts,
            "process": {
                "args": [PROGRAM],
                "cwd": "/workspace",
                "env": none,
                "user": { "uid": uid, "gid": uid },
                "noNewPrivileges": true,
                "capabilities": {
                    "bounding": capabilities, "effective": capabilities, "permitted": capabilities, "inheritable": none, "ambient": none,
                },
                "rlimits": [{ "type": "RLIMIT_NOFILE", "hard": limits.open_files, "soft": limits.open_files }],
            },
            "linux": { "namespaces": namespaces },
        })
    }
}
