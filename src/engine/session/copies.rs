//! Keeping a session as it is, going back, and making another of it. One of its cells stands for all: one that can copy itself, if there is
//! one. It gets the files before.

use super::live::{Files, LiveSession};
use crate::cell::Workspace;
use crate::request::InputFile;
use crate::run::{BranchError, Mark, Snapshot};

/// The files of a session whose runtime cannot copy itself are held in memory, and are not more than this.
const MOST_FILES_KEPT: u64 = 64 << 20;

impl LiveSession {
    /// Whether it can be copied with its variables, or with its files alone.
    pub async fn can_fork(&self) -> bool {
        match self.kept.iter().find(|kept| kept.forks) {
            Some(kept) => kept.branch.can_be_copied().await,
            None => false,
        }
    }

    /// Another session, which begins as this one is, but for the variables of languages that cannot be copied.
    pub async fn fork(&mut self) -> Result<Self, BranchError> {
        let at = self.stand_in().await?.ok_or(BranchError::Over)?;
        let kept = self.kept[at].fork().await?;
        Ok(Self {
            files: Some(Files::Of(kept.language.clone())),
            kept: vec![kept],
            language: self.language.clone(),
            calls: self.calls,
            numbers: self.numbers.clone(),
            keeps_undo: false,
            ended: Vec::new(),
        })
    }

    /// Keeps it as it is now: under a name, or from now on before each call.
    pub async fn keep(&mut self, mark: Mark) -> Result<(), BranchError> {
        self.keeps_undo |= mark == Mark::Undo;
        let at = self.stand_in().await?.ok_or(BranchError::Over)?;
        self.kept[at].branch.keep(mark).await
    }

    /// Goes back to what was kept.
    pub async fn go_back(&mut self, mark: &Mark) -> Result<(), BranchError> {
        let at = self.stand_in().await?.ok_or(BranchError::Over)?;
        let calls = self.kept[at].branch.go_back(mark).await?;
        self.have_gone_back(at, calls);
        Ok(())
    }

    /// A cell has what it had after so many calls.
    pub(super) fn have_gone_back(&mut self, at: usize, calls: u64) {
        self.calls = calls;
        let kept = &mut self.kept[at];
        kept.packages.retain(|(_, call)| *call <= calls);
        self.files = Some(Files::Of(kept.language.clone()));
    }

    /// Keeps what it is after a call, if that was asked for.
    pub async fn after_call(&mut self) -> Result<(), BranchError> {
        let at = self.stand_in().await?.ok_or(BranchError::Over)?;
        self.kept[at].branch.after_call(self.calls).await
    }

    /// What is known of its files now.
    pub async fn snapshot(&mut self) -> Result<Snapshot, BranchError> {
        match self.stand_in().await? {
            Some(at) => self.kept[at].branch.snapshot().await,
            None => {
                let look = |files: Workspace| Ok(files.versions());
                let known = self.look_at_files(look).await?;
                Ok(Snapshot::new(known, Default::default()))
            }
        }
    }

    /// What was known of its files at a checkpoint.
    pub async fn snapshot_at(&self, checkpoint: &str) -> Result<Snapshot, BranchError> {
        let none = || BranchError::NoCheckpoint(checkpoint.to_owned());
        let kept = self.kept.iter().find(|kept| kept.forks).ok_or_else(none)?;
        kept.branch.snapshot_at(checkpoint).await
    }

    /// Its files.
    pub async fn files(&mut self) -> Result<Vec<InputFile>, BranchError> {
        match self.stand_in().await? {
            Some(at) => self.kept[at].branch.files(MOST_FILES_KEPT).await,
            None => {
                let look = |files: Workspace| files.collect(MOST_FILES_KEPT);
                self.look_at_files(look).await
            }
        }
    }

    /// The cell that stands for the session, with its files; none if no language of it is kept.
    async fn stand_in(&mut self) -> Result<Option<usize>, BranchError> {
        let forks = self.kept.iter().position(|kept| kept.forks);
        let Some(at) = forks.or_else(|| (!self.kept.is_empty()).then_some(0)) else {
            return Ok(None);
        };
        // No call has this number, and no cell was started since the last.
        let brought = self.bring_files(at, self.newest_number()).await;
        brought.map_err(|_| BranchError::Over)?;
        Ok(Some(at))
    }

    async fn look_at_files<T: Send + 'static>(
        &self,
        look: impl FnOnce(Workspace) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, BranchError> {
        let Some(Files::Left(files)) = self.files.clone() else {
            return Err(BranchError::Over);
        };
        let looked = tokio::task::spawn_blocking(move || look(files)).await;
        let looked = looked.map_err(|_| BranchError::Over)?;
        looked.map_err(BranchError::Files)
    }
}
