//! One branch of a session, for whoever holds it. Branches of one cell run in order, one at a time.

use std::future::Future;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::texts::Snapshot;
use super::{BranchError, Call, Called, Mark, Noted, Session};
use crate::cell::{CellError, Limits, Workspace};

/// A branch of a session. Dropping it ends it, and the last one ends the cell.
pub struct Branch {
    family: Arc<Mutex<Session>>,
    number: u32,
    limits: Limits,
}

/// A branch that stands still, and whose files are in the workspace, as long as this is held.
pub struct Hold {
    _session: OwnedMutexGuard<Session>,
}

impl Branch {
    /// The first branch of a session.
    pub fn of(session: Session) -> Self {
        let number = session.branch;
        let limits = session.limits().clone();
        let family = Arc::new(Mutex::new(session));
        Self {
            family,
            number,
            limits,
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
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
    pub async fn fork(&self, noted: Noted) -> Result<Self, BranchError> {
        let mut session = self.family.lock().await;
        session.select(self.number).await?;
        session.known.noted = noted;
        let number = session.fork().await?;
        Ok(Self {
            family: self.family.clone(),
            number,
            limits: self.limits.clone(),
        })
    }

    /// Has it stand still with its files in the workspace.
    pub async fn hold(&self) -> Result<Hold, BranchError> {
        let mut session = self.family.clone().lock_owned().await;
        session.select(self.number).await?;
        session.freeze();
        Ok(Hold { _session: session })
    }

    /// Gives it the files of another workspace, if there is one, before the call of this number; how many could not be brought, and where its
    /// own are.
    pub async fn bring(
        &self,
        from: Option<&Workspace>,
        number: u64,
    ) -> Result<(usize, Option<Workspace>), CellError> {
        let mut session = self.family.lock().await;
        let selected = session.select(self.number).await;
        selected.map_err(|_| CellError::Lost)?;
        let left_out = match from {
            Some(from) => session.bring(from, number).await?,
            None => 0,
        };
        Ok((left_out, session.workspace()))
    }

    /// Keeps it as it is now: under a name, or from now on before each call.
    pub async fn keep(&self, mark: Mark, noted: Noted) -> Result<(), BranchError> {
        let mut session = self.family.lock().await;
        session.select(self.number).await?;
        session.known.noted = noted;
        match mark {
            Mark::Checkpoint(name) => session.checkpoint(name).await,
            Mark::Undo => session.keep_undo().await,
        }
    }

    /// Goes back from `noted` to what was kept; what was noted then.
    pub async fn go_back(&self, mark: &Mark, noted: Noted) -> Result<Noted, BranchError> {
        let mut session = self.family.lock().await;
        session.select(self.number).await?;
        session.known.noted = noted;
        match mark {
            Mark::Checkpoint(name) => session.restore(name).await?,
            Mark::Undo => session.undo().await?,
        }
        Ok(session.known.noted.clone())
    }

    /// Keeps what it is after a call, if that was asked for.
    pub async fn after_call(&self, noted: Noted) -> Result<(), BranchError> {
        let mut session = self.family.lock().await;
        session.select(self.number).await?;
        session.known.noted = noted;
        session.keep_for_undo().await
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
