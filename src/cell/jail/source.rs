//! Where cells with our own init come from: the jail builds all their walls itself, or a container engine the outer ones.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, OnceLock};

use jail::cgroup::Cgroups;
use jail::{Host, Jail, JailError, Missing, Policy, View, Zygote};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::lock;
use super::running::Guard;
use crate::cell::isolation::{Around, Isolation};
use crate::cell::{Boxed, CellError, ContainerError, Launch};

/// A runtime to pre-start, and the library to start it with.
pub type Runtime = (Zygote, Arc<OwnedFd>);

/// Makes cells that all see the same of the host.
pub trait Source: Send + Sync + 'static {
    /// Whether it makes one at once.
    fn is_started(&self) -> bool;

    /// Gets it to where it does. Blocks.
    fn start(&self) -> Result<(), CellError>;

    /// Lets go of what that took.
    fn stop(&self);

    /// Asks for a cell. `stdio` are the program's ends of the standard streams.
    fn spawn<'a>(
        &'a self,
        policy: &'a Policy,
        stdio: [OwnedFd; 3],
    ) -> Boxed<'a, Result<jail::Cell, CellError>>;

    /// Which walls stand around a cell of it that has said this of itself.
    fn isolation(&self, missing: &[Missing], landlock: u8, seccomp: bool) -> Isolation;
}

/// Makes cells each from nothing, as another program does that takes its time.
pub trait Maker: Send + Sync + 'static {
    /// Makes one. Blocks.
    fn make(&self, policy: Policy, stdio: &[OwnedFd; 3]) -> Result<jail::Cell, ContainerError>;

    /// As a source's.
    fn isolation(&self, missing: &[Missing], landlock: u8, seccomp: bool) -> Isolation;
}

/// A source whose cells are made by threads.
pub struct ByThreads<M>(Arc<M>);

impl<M: Maker> ByThreads<M> {
    pub fn of(maker: M) -> Arc<dyn Source> {
        Arc::new(Self(Arc::new(maker)))
    }
}

impl<M: Maker> Source for ByThreads<M> {
    fn is_started(&self) -> bool {
        true
    }

    fn start(&self) -> Result<(), CellError> {
        Ok(())
    }

    fn stop(&self) {}

    fn spawn<'a>(
        &'a self,
        policy: &'a Policy,
        stdio: [OwnedFd; 3],
    ) -> Boxed<'a, Result<jail::Cell, CellError>> {
        let (maker, policy) = (self.0.clone(), policy.clone());
        Box::pin(async move {
            // Whoever waits may leave: the thread goes on, finds that nobody wants its cell, and ends that.
            let made = tokio::task::spawn_blocking(move || maker.make(policy, &stdio)).await;
            Ok(made.map_err(|_| CellError::Lost)??)
        })
    }

    fn isolation(&self, missing: &[Missing], landlock: u8, seccomp: bool) -> Isolation {
        self.0.isolation(missing, landlock, seccomp)
    }
}

/// Who knows how sources are made.
pub trait Sources: Send + Sync {
    /// A source of cells that see `view`, with a runtime that they pre-start if there is one.
    fn source(&self, view: &View, runtime: Option<Runtime>) -> Result<Arc<dyn Source>, CellError>;

    /// Whether a pre-started cell can be a copy of another, or each has to start its runtime for itself.
    fn copies(&self) -> bool;

    /// MiB that one takes up beside what runs in it, if that is worth counting.
    fn weight(&self) -> u32 {
        0
    }

    /// The command that makes a cell for a launch, where a program of the host's does. For reading; nothing is started.
    fn command(&self, launch: &Launch) -> Result<Option<Vec<String>>, CellError> {
        let _ = launch;
        Ok(None)
    }

    /// What a program holds for as long as it runs.
    fn in_use(&self) -> Option<Guard> {
        None
    }

    /// Refuses a launch that asks for something that no cell of these has.
    fn refuses(&self, launch: &Launch) -> Result<(), CellError> {
        let _ = launch;
        Ok(())
    }

    /// Waits until nothing runs any more in cells that were dropped. Blocks.
    fn settle(&self);
}

/// The jail on this host, opened when the first cell is needed.
#[derive(Default)]
pub struct OwnHost(pub Mutex<Option<Arc<Host>>>);

impl OwnHost {
    fn open(&self) -> Result<Arc<Host>, JailError> {
        let mut host = lock(&self.0);
        if let Some(host) = &*host {
            return Ok(host.clone());
        }
        Ok(host.insert(Arc::new(Host::open()?)).clone())
    }
}

impl Sources for OwnHost {
    fn source(&self, view: &View, runtime: Option<Runtime>) -> Result<Arc<dyn Source>, CellError> {
        let host = self.open()?;
        let view = view.clone();
        let jail = match runtime {
            None => Jail::new(host.clone(), view),
            Some((zygote, library)) => Jail::of_zygote(host.clone(), view, zygote, library),
        };
        Ok(Arc::new(JailSource { host, jail }))
    }

    fn copies(&self) -> bool {
        true
    }

    fn settle(&self) {
        if let Some(host) = &*lock(&self.0) {
            host.settle();
        }
    }
}

/// The library in front of a runtime's libc as a file without a name, if it could be made.
pub fn library() -> Option<&'static Arc<OwnedFd>> {
    const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/zygote.so"));
    static LIBRARY: OnceLock<Option<Arc<OwnedFd>>> = OnceLock::new();
    let make = || {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let mut file = File::from(memfd_create("zygote", flags).ok()?);
        file.write_all(BYTES).ok()?;
        // SECURITY: cells map it, and are not to change it for each other.
        let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).ok()?;
        Some(Arc::new(file.into()))
    };
    LIBRARY.get_or_init(make).as_ref()
}

pub struct JailSource {
    pub host: Arc<Host>,
    pub jail: Jail,
}

impl Source for JailSource {
    fn is_started(&self) -> bool {
        self.jail.is_started()
    }

    fn start(&self) -> Result<(), CellError> {
        Ok(self.jail.start()?)
    }

    fn stop(&self) {
        self.jail.stop();
    }

    fn spawn<'a>(
        &'a self,
        policy: &'a Policy,
        stdio: [OwnedFd; 3],
    ) -> Boxed<'a, Result<jail::Cell, CellError>> {
        // A cell that is sent none starts its program without.
        let library = policy.loaded.as_ref().and_then(|_| library());
        Box::pin(async move { Ok(self.jail.spawn(policy, stdio, library.map(|it| &**it))?) })
    }

    fn isolation(&self, missing: &[Missing], landlock: u8, seccomp: bool) -> Isolation {
        let around = Around::Jail(self.host.cgroups());
        Isolation::new(missing, landlock, seccomp, around)
    }
}

/// Where a cell comes from that another process has lent: that one makes them, and these are its cgroups.
pub struct BorrowedFrom(pub Cgroups);

impl Source for BorrowedFrom {
    fn is_started(&self) -> bool {
        false
    }

    fn start(&self) -> Result<(), CellError> {
        Err(CellError::Lost)
    }

    fn stop(&self) {}

    fn spawn<'a>(
        &'a self,
        _: &'a Policy,
        _: [OwnedFd; 3],
    ) -> Boxed<'a, Result<jail::Cell, CellError>> {
        Box::pin(std::future::ready(Err(CellError::Lost)))
    }

    fn isolation(&self, missing: &[Missing], landlock: u8, seccomp: bool) -> Isolation {
        Isolation::new(missing, landlock, seccomp, Around::Jail(&self.0))
    }
}
