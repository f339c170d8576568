//! A cell of the jail whose program runs.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use jail::cgroup::Usage;
use jail::{JailError, Watcher};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};
use tokio::sync::oneshot;

use super::branches::Leader;
use super::lock;
use super::setup::{AsyncCell, Started};
use crate::cell::changes::{Changes, WantedChanges, changes, is_untouched};
use crate::cell::workspace::{Settled, collect, collect_few, export, open_folder};
use crate::cell::{Boxed, Branch, Cell, CellError, Channel, Event, Isolation, Streams, Workspace};
use crate::request::{CellPath, InputFile};

/// How long counting what a cell uses may take. It takes so long only where its page tables are gigabytes, or nothing moves on this host.
const LOOK: Duration = Duration::from_secs(5);
/// By how much the priority of counting is lower than that of answering.
const LOWER: i32 = 5;
/// How long killed processes may take to go.
const GONE: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};
/// About what the first call of a session takes.
const FIRST_CALL: Duration = Duration::from_millis(20);

pub struct JailCell {
    pub(super) cell: AsyncCell,
    /// The process that is the program now, if it is not the one that the cell was started with.
    pub(super) leader: Option<Leader>,
    streams: Option<Streams>,
    isolation: Isolation,
    was_waiting: bool,
    /// Folders in which nothing was found that is wanted, for who looks again and again.
    empty: Mutex<Empty>,
    /// Dropped last: pools are filled when the run needs the processors no more.
    refills: Vec<Guard>,
    _in_use: Option<Guard>,
}

#[derive(Default)]
struct Empty {
    workspace: Option<Settled>,
    /// The last one that was collected from.
    collected: Option<(CellPath, Settled)>,
}

/// Something that happens when it is dropped.
pub type Guard = Box<dyn Send + Sync>;

impl JailCell {
    pub fn new(started: Started, refills: Vec<Guard>, was_waiting: bool) -> Self {
        Self {
            cell: started.cell,
            leader: None,
            streams: Some(started.streams),
            isolation: started.isolation,
            refills,
            was_waiting,
            empty: Mutex::default(),
            _in_use: None,
        }
    }

    /// The same with something that is dropped when the program has ended.
    pub fn holding(self, in_use: Option<Guard>) -> Self {
        Self {
            _in_use: in_use,
            ..self
        }
    }

    /// What is in a folder, if that is little.
    fn collect_few(&self, folder: &CellPath) -> Option<Vec<InputFile>> {
        let workspace = self.cell.inner.workspace()?;
        let mut empty = lock(&self.empty);
        let known = empty.collected.as_ref().filter(|(of, _)| of == folder);
        if known.is_some_and(|(_, settled)| settled.is_still()) {
            return Some(Vec::new());
        }
        let settled = open_folder(workspace, folder.as_str());
        let settled = settled.ok().and_then(Settled::new);
        let few = collect_few(workspace, folder)?;
        let settled = settled.filter(|_| few.is_empty());
        empty.collected = settled.map(|settled| (folder.clone(), settled));
        Some(few)
    }

    /// Whether nothing is in the workspace that is not as it was `placed`, as far as that can be seen at once.
    fn is_untouched(&self, placed: &[InputFile], wanted: &WantedChanges) -> bool {
        let Some(workspace) = self.cell.inner.workspace() else {
            return false;
        };
        if !placed.is_empty() || !wanted.known.is_empty() {
            return is_untouched(workspace, placed, wanted);
        }
        let mut empty = lock(&self.empty);
        if empty.workspace.as_ref().is_some_and(Settled::is_still) {
            return true;
        }
        let settled = workspace.try_clone_to_owned().ok().and_then(Settled::new);
        let is_nothing = wanted.is_nothing(workspace);
        empty.workspace = settled.filter(|_| is_nothing);
        is_nothing
    }

    async fn wait(&mut self) -> Result<Event, CellError> {
        loop {
            let event = match &self.leader {
                None => self.cell.next_event().await,
                Some(leader) => tokio::select! {
                    exit = leader.end() => return Ok(Event::Exited(exit)),
                    event = self.cell.next_event() => event,
                },
            };
            match event {
                // Of one that is not the program any more.
                Ok(jail::Event::Exited(_)) if self.leader.is_some() => {}
                Ok(jail::Event::Exited(exit)) => return Ok(Event::Exited(exit)),
                // It got no further than exec: no byte of it ran.
                Ok(jail::Event::Failed(failed)) => return Err(JailError::from(failed).into()),
                Ok(jail::Event::Gone) | Err(_) => return Ok(Event::Gone),
                Ok(jail::Event::Ready { .. } | jail::Event::Locked { .. }) => {}
            }
        }
    }

    /// Does something with the workspace, in a thread that may block. It outlives the program as long as it is held.
    pub(super) async fn with_workspace<T: Send + 'static>(
        &self,
        work: impl FnOnce(OwnedFd) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let workspace = self.cell.inner.workspace();
        let workspace = workspace.ok_or(io::ErrorKind::NotFound)?;
        let workspace = workspace.try_clone_to_owned()?;
        let done = tokio::task::spawn_blocking(move || work(workspace)).await;
        done.map_err(io::Error::other)?
    }
}

/// Counts in a thread that lets those go first which answer requests. One that is stuck in it is free when the cell is gone.
async fn watch(watcher: Watcher, memory: u64) -> Option<Usage> {
    let (watcher, (send, looked)) = (Arc::new(watcher), oneshot::channel());
    let another = watcher.clone();
    let thread = thread::Builder::new().name("watcher".to_owned());
    let started = thread.spawn(move || {
        let _ = rustix::process::nice(LOWER);
        let _ = send.send(another.read(memory));
    });
    match started {
        Ok(_) => looked.await.ok(),
        // There are no threads to be had: then by one that is there.
        Err(_) => tokio::task::spawn_blocking(move || watcher.read(memory))
            .await
            .ok(),
    }
}

impl Cell for JailCell {
    fn take_streams(&mut self) -> Option<Streams> {
        self.streams.take()
    }

    fn next_event(&mut self) -> Boxed<'_, Result<Event, CellError>> {
        Box::pin(self.wait())
    }

    fn place<'a>(&'a self, files: &'a [InputFile]) -> Boxed<'a, Result<(), CellError>> {
        Box::pin(self.cell.place(files))
    }

    fn collect<'a>(
        &'a self,
        folder: &'a CellPath,
        most: u64,
    ) -> Boxed<'a, io::Result<Vec<InputFile>>> {
        Box::pin(async move {
            if let Some(few) = self.collect_few(folder) {
                return Ok(few);
            }
            let folder = folder.clone();
            let look = move |it: OwnedFd| collect(it.as_fd(), &folder, most);
            self.with_workspace(look).await
        })
    }

    fn export<'a>(
        &'a self,
        folder: &'a CellPath,
        to: &'a Path,
        most: u64,
    ) -> Boxed<'a, io::Result<u64>> {
        let (folder, to) = (folder.clone(), to.to_owned());
        Box::pin(self.with_workspace(move |it| export(it.as_fd(), &folder, &to, most)))
    }

    fn changes<'a>(
        &'a self,
        placed: &'a [InputFile],
        wanted: &'a WantedChanges,
    ) -> Boxed<'a, io::Result<Changes>> {
        Box::pin(async move {
            // Most programs leave nothing: that is seen sooner than a thread is found.
            if self.is_untouched(placed, wanted) {
                return Ok(Changes::default());
            }
            let (placed, wanted) = (placed.to_vec(), wanted.clone());
            let look = move |it: OwnedFd| Ok(changes(it.as_fd(), &placed, &wanted));
            self.with_workspace(look).await
        })
    }

    fn workspace(&self) -> Option<Workspace> {
        self.cell.workspace()
    }

    fn take_listener(&mut self) -> Option<OwnedFd> {
        self.cell.inner.take_listener()
    }

    fn take_channel(&mut self) -> Option<Channel> {
        // It may live for long: its pool is filled once the first call has had time to end.
        let refills = std::mem::take(&mut self.refills);
        if !refills.is_empty() {
            tokio::spawn(async move {
                tokio::time::sleep(FIRST_CALL).await;
                drop(refills);
            });
        }
        self.cell.channel.take()
    }

    fn usage(&self) -> Usage {
        self.cell.inner.usage()
    }

    fn spent(&self) -> Usage {
        self.cell.inner.spent()
    }

    fn look(&self, memory: u64) -> Boxed<'static, Usage> {
        let Some(watcher) = self.cell.inner.watcher() else {
            return Box::pin(std::future::ready(self.usage()));
        };
        let looked = watch(watcher, memory);
        Box::pin(async {
            let looked = tokio::time::timeout(LOOK, looked).await;
            looked.ok().flatten().unwrap_or_else(|| Usage {
                memory_now: u64::MAX,
                ..Usage::default()
            })
        })
    }

    fn cpu_time(&self) -> Option<Duration> {
        self.cell.inner.cpu_time()
    }

    fn freeze(&self) -> io::Result<()> {
        self.cell.inner.freeze()
    }

    fn thaw(&self) -> io::Result<()> {
        self.cell.inner.thaw()
    }

    fn interrupt(&self) -> io::Result<()> {
        self.cell.inner.interrupt()
    }

    fn kill(&self) {
        self.cell.inner.kill();
    }

    fn gone(&self) -> Boxed<'_, io::Result<()>> {
        Box::pin(async {
            // A pid 1 ends after all others of its namespace.
            let init = self.cell.inner.init()?.try_clone_to_owned()?;
            // Where only our init was left on another kernel, it was not killed yet.
            let _ = pidfd_send_signal(&init, Signal::KILL);
            let wait = move || poll(&mut [PollFd::new(&init, PollFlags::IN)], Some(&GONE));
            match tokio::task::spawn_blocking(wait).await?? {
                0 => Err(io::ErrorKind::TimedOut.into()),
                _ => Ok(()),
            }
        })
    }

    fn flush(&self) -> Boxed<'_, ()> {
        let flusher = self.cell.inner.flusher();
        Box::pin(async move {
            if let Some(flusher) = flusher {
                // Without it, what comes late is the next call's.
                let _ = tokio::task::spawn_blocking(flusher).await;
            }
        })
    }

    fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    fn was_waiting(&self) -> bool {
        self.was_waiting
    }

    fn has_branches(&self) -> bool {
        !self.cell.inner.is_guest()
    }

    fn keep(&mut self, number: i32) -> Boxed<'_, io::Result<Branch>> {
        Box::pin(self.keep_copy(number))
    }

    fn switch(&mut self, branch: Branch) -> Boxed<'_, io::Result<Branch>> {
        Box::pin(self.switch_to(branch))
    }

    fn discard(&mut self, branch: Branch) -> Boxed<'_, ()> {
        Box::pin(self.end_branch(branch))
    }
}
