//! Which walls stand around a cell, said plainly.

use std::io;
use std::sync::Arc;

use jail::cgroup::{Cgroups, Mode};
use jail::{Missing, Wall, WorkerWalls};
use serde::{Serialize, Serializer};

/// The newest landlock rules we use came with this ABI (Linux 6.12).
pub const LANDLOCK_WHOLE: u8 = 6;

/// The walls that a server of an ordinary user may lack: only root can give them, or give that user ids of its own.
pub const OF_ROOT: [&str; 2] = ["private devices", "private quotas"];

/// What a cell's walls are, as its init reported them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Isolation {
    /// Who built the walls: `jail`, a container engine, `gvisor`, or hotcell `inside gvisor`.
    pub provider: &'static str,
    pub level: Level,
    /// Shared: every result has them.
    #[serde(serialize_with = "each")]
    pub walls: Arc<[WallReport]>,
}

fn each<S: Serializer>(walls: &Arc<[WallReport]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(walls.iter())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Every wall stands.
    Full,
    /// Some are missing; each says so.
    Reduced,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WallReport {
    pub name: &'static str,
    pub stands: bool,
    /// How it stands, or why it does not and what would fix it.
    pub detail: String,
    /// Whether a run must not start without it, unless that was allowed.
    #[serde(skip)]
    pub confines: bool,
}

/// How much a caller insists on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requirement {
    /// Every wall, or no run.
    Strict,
    /// A kernel of its own, and every wall that confines.
    Kernel,
    /// Every wall that confines; others have something standing in for them.
    #[default]
    Confined,
    /// Whatever this host can build.
    Reduced,
}

impl Requirement {
    /// What a program has to wait for before it starts.
    pub fn worker_walls(self) -> WorkerWalls {
        let strict = self == Self::Strict;
        WorkerWalls {
            landlock: if strict { LANDLOCK_WHOLE } else { 0 },
            seccomp: self != Self::Reduced,
        }
    }
}

impl Isolation {
    pub fn new(missing: &[Missing], landlock: u8, seccomp: bool, around: Around<'_>) -> Self {
        let mut walls = vec![WallReport {
            name: "private root",
            // It has one, by namespaces of a kernel that hotcell itself is a program of.
            stands: !matches!(around, Around::InGvisor),
            detail: around.root(),
            confines: true,
        }];
        walls.extend(KERNEL_WALLS.map(|(wall, name, holds, fix, confines)| {
            let refused = missing.iter().find(|missing| missing.wall == wall);
            WallReport {
                name,
                stands: refused.is_none(),
                detail: match refused {
                    None if around.is_container() && wall == Wall::Proc => {
                        "only its own processes; some facts about the host are hidden".to_owned()
                    }
                    None => holds.to_owned(),
                    Some(_) if matches!(around, Around::InGvisor) => {
                        "gVisor's kernel has no such wall".to_owned()
                    }
                    Some(_) if around.is_container() => {
                        "the container engine builds no such wall".to_owned()
                    }
                    Some(refused) => {
                        format!("{}. {fix}", io::Error::from_raw_os_error(refused.errno))
                    }
                },
                confines,
            }
        }));
        walls.push(WallReport {
            name: "seccomp",
            stands: seccomp,
            detail: if seccomp {
                "only system calls on an allowlist".to_owned()
            } else {
                "this kernel has no seccomp filters. Use a kernel built with CONFIG_SECCOMP_FILTER."
                    .to_owned()
            },
            confines: true,
        });
        walls.push(WallReport {
            name: "landlock",
            stands: landlock >= LANDLOCK_WHOLE,
            detail: match landlock {
                0 if matches!(around, Around::Gvisor | Around::InGvisor) => {
                    "gVisor's kernel has none; its own mounts stand alone".to_owned()
                }
                0 => "this kernel has no landlock; the mounts stand alone. Boot with `lsm=landlock,...`.".to_owned(),
                abi if abi >= LANDLOCK_WHOLE => format!("ABI {abi}"),
                abi => format!(
                    "ABI {abi}: files are restricted, signals and abstract sockets only by their namespaces. A kernel from 6.12 on has the rest."
                ),
            },
            confines: false,
        });
        walls.push(around.cgroups(missing));
        walls.extend(around.sockets(missing));
        let level = if walls.iter().all(|wall| wall.stands) {
            Level::Full
        } else {
            Level::Reduced
        };
        Self {
            provider: around.provider(),
            level,
            walls: walls.into(),
        }
    }

    /// Whether programs reach another kernel than the host's.
    pub fn has_own_kernel(&self) -> bool {
        self.provider == "gvisor"
    }

    /// The first wall whose absence `required` does not forgive.
    pub fn lacks(&self, required: Requirement) -> Option<&WallReport> {
        self.walls.iter().find(|wall| {
            !wall.stands
                && match required {
                    Requirement::Strict => true,
                    Requirement::Confined | Requirement::Kernel => wall.confines,
                    Requirement::Reduced => false,
                }
        })
    }
}

/// Who built the outer walls of a cell.
#[derive(Clone, Copy)]
pub enum Around<'a> {
    /// We did, with these cgroups.
    Jail(&'a Cgroups),
    /// The container engine of this name.
    Container(&'static str),
    /// gVisor, which is a kernel.
    Gvisor,
    /// We did, by the namespaces of the gVisor that we are in.
    InGvisor,
}

impl Around<'_> {
    fn is_container(self) -> bool {
        !matches!(self, Self::Jail(_))
    }

    fn provider(self) -> &'static str {
        match self {
            Self::Jail(_) => "jail",
            Self::Container(engine) => engine,
            Self::Gvisor => "gvisor",
            Self::InGvisor => "inside gvisor",
        }
    }

    fn root(self) -> String {
        match self {
            Self::Jail(_) => {
                "own user, pid and mount namespaces; the root has only the folders it may see"
                    .to_owned()
            }
            Self::Gvisor => {
                "a kernel of its own (gVisor), with a read-only root and no capabilities".to_owned()
            }
            Self::InGvisor => "hotcell runs inside gVisor, whose kernel lacks some of what sandboxes are made of; gVisor itself keeps programs from the host, and its namespaces keep them from each other".to_owned(),
            Self::Container(engine) => format!(
                "a container of {engine} with a read-only root, no capabilities and no privileges to gain"
            ),
        }
    }

    /// Whose sockets programs have, where they have a kernel of their own.
    fn sockets(self, missing: &[Missing]) -> Option<WallReport> {
        let Self::Gvisor = self else { return None };
        let stands = missing.iter().all(|it| it.wall != Wall::Sockets);
        let detail = match stands {
            true => "sockets are those of its own kernel",
            false => {
                "sockets are the host kernel's, in a network namespace with nothing but a loopback: what the program is granted is reached there. All else stays with its own kernel."
            }
        };
        Some(WallReport {
            name: "own sockets",
            stands,
            detail: detail.to_owned(),
            confines: false,
        })
    }

    fn cgroups(self, missing: &[Missing]) -> WallReport {
        let (stands, how) = match self {
            Self::Jail(cgroups) => (cgroups.mode() != Mode::None, cgroups.reason().to_owned()),
            Self::Gvisor => (false, "gVisor is started without cgroups.".to_owned()),
            Self::InGvisor => (false, "gVisor's bound nothing.".to_owned()),
            Self::Container(engine) => match missing.iter().any(|it| it.wall == Wall::Cgroups) {
                false => (true, format!("made by {engine}")),
                true => (false, format!("{engine} has no right to make any here.")),
            },
        };
        WallReport {
            name: "control groups",
            stands,
            detail: match stands {
                true => how,
                false => format!(
                    "resource limits and a watcher that adds up the sandbox's memory are used instead. {how}"
                ),
            },
            confines: false,
        }
    }
}

/// The wall, its name, how it holds, how to fix it, and whether it confines.
const KERNEL_WALLS: [(Wall, &str, &str, &str, bool); 9] = [
    (
        Wall::Network,
        "network namespace",
        "only a loopback of its own",
        "Raise the sysctl user.max_net_namespaces.",
        true,
    ),
    (
        Wall::Ipc,
        "ipc namespace",
        "no shared memory or queues of others",
        "Raise the sysctl user.max_ipc_namespaces.",
        true,
    ),
    (
        Wall::Hostname,
        "uts namespace",
        "a neutral host name",
        "Raise the sysctl user.max_uts_namespaces.",
        true,
    ),
    (
        Wall::CgroupNamespace,
        "cgroup namespace",
        "cgroup paths of the host are hidden",
        "Raise the sysctl user.max_cgroup_namespaces.",
        true,
    ),
    (
        Wall::Proc,
        "private /proc",
        "only its own processes; facts about the host are hidden",
        "Programs run without /proc. A container must not mask its own: start it with `--security-opt systempaths=unconfined` (Podman: `--security-opt unmask=ALL`).",
        true,
    ),
    (
        Wall::Overlay,
        "private inodes",
        "its own overlay over every visible folder",
        "Sandboxes share inodes and could signal by file locks. Load the kernel's `overlay` module; pre-started sandboxes need a kernel from 6.5 on.",
        false,
    ),
    (
        Wall::NestedNamespaces,
        "no new namespaces",
        "none can be made inside, even without the system call filter",
        "Only the filter refuses them. Allow writing /proc/sys/user in the container.",
        false,
    ),
    (
        Wall::Devices,
        OF_ROOT[0],
        "devices that nobody else has",
        "Sandboxes share /dev/null and its like with the host, and could signal by file locks and watches on them. Run hotcell as root, in a container with CAP_MKNOD.",
        false,
    ),
    (
        Wall::Quotas,
        OF_ROOT[1],
        "a uid of its own, by which the kernel counts",
        "Sandboxes share what the kernel counts for a user: epoll watches, pipe pages, pending signals, descriptors on their way. Run hotcell as root, or give its user subordinate ids (/etc/subuid, /etc/subgid, newuidmap), and each has a uid of its own; not with folders of the host in it.",
        false,
    ),
];
