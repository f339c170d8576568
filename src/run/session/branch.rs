//! One branch of a session, for whoever holds it. Branches of one cell run in order, one at a time.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::texts::Snapshot;
use super::{BranchError, Call, Called, Mark, Session};
use crate::cell::{CellError, Workspace};
use crate::request::InputFile;

/// A branch of a session. Dropping it ends it, and the last one ends the cell.
pub struct Branch {
    family: Arc<Mutex<Session>>,
    number: u32,
}

impl Branch {
    /// The first branch of a session.
    pub fn of(session: Session) -> Self {
        let number = session.branch;
        let family = Arc::new(Mutex::new(session));
        Self { family, number }
    }

    /// Bytes that its cell uses now, if none of its branches is busy.
    pub fn memory(&self) -> Option<u64> {
        Some(self.family.try_lock().ok()?.memory())
    }

    /// Has its cell use no processor until the next call, unless one runs.
    pub fn freeze(&self) {
        if let Ok(mut session) = self.family.try_lock() {
            session.freeze();
        }
    }

    /// Whether nothing is left of it, because the cell of all branches has ended.
    pub fn is_over(&self) -> bool {
        let session = self.family.try_lock();
        session.is_ok_and(|session| session.has_lost(self.number))
    }

    /// Whether it can be copied with all that its memory holds.
    pub async fn can_be_copied(&self) -> bool {
        self.family.lock().await.cell.has_branches()
    }

    /// Runs one call, once those of other branches have ended, until it is done, its time is over or `cancelled` ends.
    pub async fn call(
        &self,
        call: Call<'_>,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Called, CellError> {
        let mut session = self.family.lock().await;
        let selected = session.select(self.number).await;
        selected.map_err(|_| CellError::Lost)?;
        session.call(call, cancelled).await
    }

    /// Another branch, which begins as this one is.
    pub async fn fork(&self) -> Result<Self, BranchError> {
        let mut session = self.family.lock().await;
        session.select(self.number).await?;
        let number = session.fork().await?;
        let family = self.family.clone();
        Ok(Self { family, number })
    }

    /// Keeps it as it is now: under a name, or from now on before each call.
    pub async fn keep(&self, mark: Mark) -> Result<(), BranchError> {
        let mut session = self.family.lock().await;
        session.select(self.number).await?;
        match mark {
            Mark::Checkpoint(name) => session.checkpoint(name).await,
            Mark::Undo => session.keep_undo().await,
        }
    }

    /// Goes back to what was kept; how many calls it had had then.
    pub async fn go_back(&self, mark: &Mark) -> Result<u64, BranchError> {
        let mut session = self.family.lock().await;
        session.select(self.number).await?;
        match mark {
            Mark::Checkpoint(name) => session.restore(name).await?,
            Mark::Undo => session.undo().await?,
        }
        Ok(session.known.calls)
    }

    /// Keeps what it is after so many calls, if that was asked for.
    pub async fn after_call(&self, calls: u64) -> Result<(), BranchError> {
        let mut session = self.family.lock().await;
        session.select(self.number).await?;
        session.known.calls = calls;
        session.keep_for_undo().await
    }

    /// Its files for somebody else. It stands still, and no other branch runs, as long as both are held.
    pub async fn lend(&self) -> Result<(OwnedMutexGuard<Session>, Workspace), CellError> {
        let mut session = self.family.clone().lock_owned().await;
        let selected = session.select(self.number).await;
        selected.map_err(|_| CellError::Lost)?;
        session.freeze();
        let workspace = session.workspace().ok_or(CellError::Lost)?;
        Ok((session, workspace))
    }

    /// Gives it the files of another workspace in place of its own, before the call of this number; how many could not be brought.
    pub async fn bring(&self, from: &Workspace, number: u64) -> Result<usize, CellError> {
        let mut session = self.family.lock().await;
        let selected = session.select(self.number).await;
        selected.map_err(|_| CellError::Lost)?;
        session.bring(from, number).await
    }

    /// The files that it leaves if it was the one that ran when its cell ended. Those of others are out of sight.
    pub fn left(&self) -> Option<Workspace> {
        let session = self.family.try_lock().ok()?;
        let is_last = session.has_lost(self.number) && session.branch == self.number;
        is_last.then(|| session.workspace()).flatten()
    }

    /// What is known of its files now.
    pub async fn snapshot(&self) -> Result<Snapshot, BranchError> {
        let mut session = self.family.lock().await;
        session.select(self.number).await?;
        Ok(session.known.snapshot())
    }

    /// What was known of its files at a checkpoint.
    pub async fn snapshot_at(&self, checkpoint: &str) -> Result<Snapshot, BranchError> {
        let mut session = self.family.lock().await;
        session.select(self.number).await?;
        session.known_at(checkpoint).map(super::Known::snapshot)
    }

    /// Its files, of `most` bytes together.
    pub async fn files(&self, most: u64) -> Result<Vec<InputFile>, BranchError> {
        let mut session = self.family.lock().await;
        session.select(self.number).await?;
        let except = session.known.wanted.iter().flat_map(|it| it.except.clone());
        let except: Vec<_> = except.collect();
        let files = session.cell.collect_all(&except, most).await;
        files.map_err(BranchError::Files)
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        if Arc::strong_count(&self.family) == 1 {
            return;
        }
        let (family, number) = (self.family.clone(), self.number);
        // Outside of a runtime this process is about to end.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { family.lock().await.close(number).await });
        }
    }
}
