//! Sessions that are kept as they are, gone back to, and copied.
//!
//! The language whose runtime can copy itself comes with its variables. Others come with the session's files alone.

use std::io;

use super::live::{Files, Kept, LiveSession};
use crate::language::LanguageId;
use crate::request::InputFile;
use crate::run::{BranchError, Mark, Noted, Snapshot};

/// The files of a session whose runtimes cannot copy themselves are held in memory, and are not more than this.
const MOST_BYTES: u64 = 64 << 20;

/// The languages whose variables did not come along.
pub type Left = Vec<LanguageId>;

impl LiveSession {
    /// Whether some of its variables can be copied, or its files alone.
    pub async fn can_fork(&self) -> bool {
        match self.copyable() {
            Some(at) => self.kept[at].session.can_be_copied().await,
            None => false,
        }
    }

    /// All languages that have variables in it.
    pub fn languages(&self) -> Left {
        let kept = self.kept.iter().map(|kept| kept.language.clone());
        let kept: Left = kept.collect();
        match kept.is_empty() {
            true => self.language.iter().cloned().collect(),
            false => kept,
        }
    }

    /// Another session, which begins as this one is.
    pub async fn fork(&mut self) -> Result<(Self, Left), BranchError> {
        let at = self.gather().await?;
        let noted = self.noted(at);
        let kept = &self.kept[at];
        let files = self.files.as_ref().map(|files| Files {
            workspace: files.workspace.clone(),
            of: files.of.clone(),
        });
        let copy = Kept {
            session: kept.session.fork(noted).await?,
            forks: true,
            language: kept.language.clone(),
            network: kept.network.clone(),
            servers: kept.servers.clone(),
            proxy: kept.proxy.clone(),
            ledger: kept.ledger.clone(),
            reported: kept.reported.clone(),
            packages: kept.packages.clone(),
            wishes: kept.wishes.clone(),
            lent: kept.lent.clone(),
        };
        let left = self.others(at);
        Ok((self.with_copy(copy, files), left))
    }

    /// Keeps it as it is now: under a name, or from now on before each call.
    pub async fn keep(&mut self, mark: Mark) -> Result<Left, BranchError> {
        let at = self.gather().await?;
        let is_undo = mark == Mark::Undo;
        self.kept[at].session.keep(mark, self.noted(at)).await?;
        self.keeps_undo |= is_undo;
        Ok(self.others(at))
    }

    /// Goes back to what was kept. Runtimes that cannot are started anew by their next calls.
    pub async fn go_back(&mut self, mark: &Mark) -> Result<Left, BranchError> {
        let at = self.gather().await?;
        let noted = self.noted(at);
        let noted = self.kept[at].session.go_back(mark, noted).await?;
        self.restored(at, noted);
        let left = self.others(at);
        let own = self.kept.swap_remove(at);
        self.kept = vec![own];
        Ok(left)
    }

    /// Keeps what it is after a call, if that was asked for.
    pub async fn after_call(&mut self) -> Result<(), BranchError> {
        let at = self.gather().await?;
        let noted = self.noted(at);
        self.kept[at].session.after_call(noted).await
    }

    /// Lets go of interpreters that have ended with the sandbox that they shared; whether nothing is left then.
    pub fn notice_end(&mut self) -> bool {
        while let Some(at) = self.kept.iter().position(|kept| kept.session.is_over()) {
            self.lose_all(at);
        }
        self.is_empty()
    }

    /// What is known of its files now.
    pub async fn snapshot(&self) -> Result<Snapshot, BranchError> {
        let of = self.files.as_ref().and_then(|files| files.of.as_ref());
        let kept = self.kept.iter().find(|kept| Some(&kept.language) == of);
        match kept.or(self.kept.first()) {
            Some(kept) => kept.session.snapshot().await,
            None => Ok(Snapshot::default()),
        }
    }

    /// What was known of its files at a checkpoint.
    pub async fn snapshot_at(&self, checkpoint: &str) -> Result<Snapshot, BranchError> {
        let missing = || BranchError::NoCheckpoint(checkpoint.to_owned());
        let at = self.copyable().ok_or_else(missing)?;
        self.kept[at].session.snapshot_at(checkpoint).await
    }

    /// Its files.
    pub async fn files(&self) -> Result<Vec<InputFile>, BranchError> {
        let Some((workspace, _hold)) = self.hold_files().await else {
            return Ok(Vec::new());
        };
        let files = tokio::task::spawn_blocking(move || workspace.files(MOST_BYTES)).await;
        let files = files.map_err(io::Error::other).flatten();
        files.map_err(BranchError::Files)
    }

    fn copyable(&self) -> Option<usize> {
        self.kept.iter().position(|kept| kept.forks)
    }

    /// Has the files where they can be copied.
    async fn gather(&mut self) -> Result<usize, BranchError> {
        let at = self.copyable().ok_or(BranchError::Over)?;
        let brought = self.bring_files(at).await;
        brought.map_err(|error| BranchError::Refused(error.to_string()))?;
        Ok(at)
    }

    fn noted(&self, at: usize) -> Noted {
        Noted {
            calls: self.calls,
            packages: self.kept[at].packages.clone(),
        }
    }

    fn others(&self, at: usize) -> Left {
        let all = self.kept.iter().enumerate();
        let others = all.filter(|(other, _)| *other != at);
        others.map(|(_, kept)| kept.language.clone()).collect()
    }
}
