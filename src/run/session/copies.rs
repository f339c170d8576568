//! The states of a session's program that do not run: branches, and checkpoints to come back to.
//!
//! The worker copies itself by a fork, so memory is shared until somebody writes to it. All copies live in the cell of the first, one runs
//! at a time, and the cell's limits are for all of them together. SECURITY: the process that a copy calls itself is looked for among the
//! cell's own, and whatever the worker says, no more comes of it than the end of its own cell.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;

use super::answer::Answer;
use super::texts::{Snapshot, Texts};
use super::{Life, Session};
use crate::cell::{self, WantedChanges};
use crate::run::outcome::Outcome;

/// Of one cell, beside what runs.
const MOST_COPIES: usize = 8;
/// Of them, those that `undo` goes back to in one branch.
const MOST_UNDONE: usize = 4;
/// A fork takes milliseconds for each gigabyte.
const COPIES_WITHIN: Duration = Duration::from_secs(20);

/// What a copy is kept for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// To be restored by this name.
    Checkpoint(String),
    /// To go back by one call.
    Undo,
}

/// A state that does not run.
pub(super) struct Copy {
    of: u32,
    /// None: it is the branch itself.
    mark: Option<Mark>,
    state: cell::Branch,
    known: Known,
}

/// What is known of a state, and goes with it.
#[derive(Clone)]
pub(super) struct Known {
    pub noted: Noted,
    /// What is wanted of the files that its calls leave, with those that are known.
    pub wanted: Option<WantedChanges>,
    pub texts: Texts,
    /// What of the files of another cell could not be brought here.
    pub left_out: Vec<PathBuf>,
    keeps_undo: bool,
}

/// What whoever holds a session wants to know again when it goes back.
#[derive(Debug, Clone, Default)]
pub struct Noted {
    /// How many calls it had had.
    pub calls: u64,
    /// The packages that it had.
    pub packages: Vec<String>,
}

/// Why there is no copy, or none is gone back to.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    #[error("the interpreter could not be copied: {0}")]
    Refused(String),
    #[error("the files could not be copied: {0}")]
    Files(std::io::Error),
    #[error(
        "there are {MOST_COPIES} copies of it already: checkpoints and sessions that were forked"
    )]
    TooMany,
    #[error("there is no checkpoint `{0}`")]
    NoCheckpoint(String),
    #[error("nothing was kept to go back to")]
    NothingToUndo,
    #[error("the session has ended")]
    Over,
}

impl Known {
    pub fn new(wanted: Option<WantedChanges>) -> Self {
        Self {
            noted: Noted::default(),
            wanted,
            texts: Texts::default(),
            left_out: Vec::new(),
            keeps_undo: false,
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        let known = self.wanted.as_ref().map(|wanted| wanted.known.clone());
        Snapshot::new(known.unwrap_or_default(), self.texts.clone())
    }
}

impl Session {
    /// Has this branch run.
    pub(super) async fn select(&mut self, branch: u32) -> Result<(), BranchError> {
        if self.branch != branch {
            let at = self.newest(|copy| copy.of == branch && copy.mark.is_none());
            let before = self.run_copy(at.ok_or(BranchError::Over)?).await?;
            self.copies.push(before);
        }
        Ok(())
    }

    /// Makes a branch that begins as what runs is; its number.
    pub(super) async fn fork(&mut self) -> Result<u32, BranchError> {
        let branch = self.next_branch;
        self.copy(branch, None).await?;
        self.next_branch += 1;
        if let Some(copy) = self.copies.last_mut() {
            copy.known.keeps_undo = false;
        }
        Ok(branch)
    }

    /// Keeps what runs as it is now, in place of what had the same name.
    pub(super) async fn checkpoint(&mut self, name: String) -> Result<(), BranchError> {
        let mark = Some(Mark::Checkpoint(name));
        self.copy(self.branch, mark.clone()).await?;
        let newest = self.copies.len() - 1;
        let branch = self.branch;
        let same = |copy: &Copy| copy.of == branch && copy.mark == mark;
        if let Some(at) = self.copies[..newest].iter().position(same) {
            self.discard(at).await;
        }
        Ok(())
    }

    /// Keeps what runs from now on, before each call.
    pub(super) async fn keep_undo(&mut self) -> Result<(), BranchError> {
        self.known.keeps_undo = true;
        self.keep_for_undo().await
    }

    /// Keeps what runs as it is now, if that is wanted, in place of the oldest.
    pub(super) async fn keep_for_undo(&mut self) -> Result<(), BranchError> {
        if !self.known.keeps_undo {
            return Ok(());
        }
        self.copy(self.branch, Some(Mark::Undo)).await?;
        let branch = self.branch;
        let is_undo = |copy: &Copy| copy.of == branch && copy.mark == Some(Mark::Undo);
        if self.copies.iter().filter(|copy| is_undo(copy)).count() > MOST_UNDONE
            && let Some(oldest) = self.copies.iter().position(is_undo)
        {
            self.discard(oldest).await;
        }
        Ok(())
    }

    /// Has a checkpoint take the place of what runs. It can be restored again.
    pub(super) async fn restore(&mut self, name: &str) -> Result<(), BranchError> {
        let at = self.find_checkpoint(name)?;
        self.go_back(at).await?;
        self.forget_undone().await;
        self.keep_for_undo().await
    }

    /// Has what was before the last call take the place of what runs.
    pub(super) async fn undo(&mut self) -> Result<(), BranchError> {
        let (branch, calls) = (self.branch, self.known.noted.calls);
        let at = self.newest(|copy| {
            let is_before = copy.known.noted.calls < calls;
            copy.of == branch && copy.mark == Some(Mark::Undo) && is_before
        });
        self.go_back(at.ok_or(BranchError::NothingToUndo)?).await?;
        self.forget_undone().await;
        Ok(())
    }

    /// Ends a branch with its checkpoints. The last one ends with its cell.
    pub(super) async fn close(&mut self, branch: u32) {
        if self.branch == branch
            && let Some(other) = self.newest(|copy| copy.of != branch && copy.mark.is_none())
            && let Ok(closed) = self.run_copy(other).await
        {
            self.copies.push(closed);
        }
        while let Some(at) = self.newest(|copy| copy.of == branch) {
            self.discard(at).await;
        }
    }

    /// The worker of what runs has ended or must end. Its newest checkpoint takes its place, or else another branch does.
    pub(super) async fn survive(&mut self, outcome: &Outcome) -> Life {
        // The kernel counts for the cell as a whole, so too much memory of one is too much of all.
        let is_alone = self.copies.is_empty();
        if is_alone
            || matches!(
                outcome,
                Outcome::OutOfMemory | Outcome::HostOutOfMemory | Outcome::Lost
            )
        {
            self.end();
            return if is_alone { Life::Over } else { Life::Gone };
        }
        let branch = self.branch;
        if let Some(at) = self.newest(|copy| copy.of == branch && copy.mark.is_some()) {
            let mark = self.copies[at].mark.clone();
            let restored = self.go_back(at).await;
            if let (Ok(()), Some(mark)) = (restored, mark) {
                self.forget_undone().await;
                return Life::Restored(mark);
            }
        }
        self.close(branch).await;
        Life::Gone
    }

    /// What is known of a checkpoint.
    pub(super) fn known_at(&self, name: &str) -> Result<&Known, BranchError> {
        Ok(&self.copies[self.find_checkpoint(name)?].known)
    }

    fn find_checkpoint(&self, name: &str) -> Result<usize, BranchError> {
        let mark = Some(Mark::Checkpoint(name.to_owned()));
        let found = self.newest(|copy| copy.of == self.branch && copy.mark == mark);
        found.ok_or_else(|| BranchError::NoCheckpoint(name.to_owned()))
    }

    fn newest(&self, fits: impl Fn(&Copy) -> bool) -> Option<usize> {
        self.copies.iter().rposition(fits)
    }

    /// Has a copy run, and ends what ran; another copy is kept under the same mark.
    async fn go_back(&mut self, at: usize) -> Result<(), BranchError> {
        let mark = self.copies[at].mark.clone();
        let ended = self.run_copy(at).await?;
        self.known.keeps_undo |= ended.known.keeps_undo;
        self.cell.discard(ended.state).await;
        self.copy(self.branch, mark).await
    }

    /// Lets go of what calls left that were undone.
    async fn forget_undone(&mut self) {
        let (branch, calls) = (self.branch, self.known.noted.calls);
        let is_later =
            |copy: &Copy| copy.mark == Some(Mark::Undo) && copy.known.noted.calls > calls;
        while let Some(at) = self.newest(|copy| copy.of == branch && is_later(copy)) {
            self.discard(at).await;
        }
    }

    /// Has a copy run; what ran before.
    async fn run_copy(&mut self, at: usize) -> Result<Copy, BranchError> {
        let next = self.copies.remove(at);
        let Ok(state) = self.cell.switch(next.state).await else {
            self.end();
            return Err(BranchError::Over);
        };
        self.is_frozen = false;
        Ok(Copy {
            of: std::mem::replace(&mut self.branch, next.of),
            mark: None,
            state,
            known: std::mem::replace(&mut self.known, next.known),
        })
    }

    /// Has the worker copy itself, with its files, and keeps the copy.
    async fn copy(&mut self, of: u32, mark: Option<Mark>) -> Result<(), BranchError> {
        if self.copies.len() >= MOST_COPIES {
            let undo = |copy: &Copy| copy.mark == Some(Mark::Undo);
            let oldest = self.copies.iter().position(undo);
            self.discard(oldest.ok_or(BranchError::TooMany)?).await;
        }
        self.thaw();
        let wish = self.line.copy_wish();
        let answer = tokio::select! {
            answer = timeout(COPIES_WITHIN, self.line.exchange(&wish)) => answer.ok(),
            _ = self.cell.next_event() => None,
        };
        let number = match answer {
            Some(Ok(Answer { code: 0, value, .. })) => value.parse().ok(),
            Some(Ok(Answer { value, .. })) => return Err(BranchError::Refused(value)),
            _ => None,
        };
        // Whoever says nothing, or something else, is not the worker.
        let Some(number) = number else {
            self.end();
            return Err(BranchError::Over);
        };
        let state = self.cell.keep(number).await.map_err(BranchError::Files)?;
        let known = self.known.clone();
        self.copies.push(Copy {
            of,
            mark,
            state,
            known,
        });
        Ok(())
    }

    async fn discard(&mut self, at: usize) {
        let copy = self.copies.remove(at);
        self.cell.discard(copy.state).await;
    }

    /// Whether nothing is left of a branch.
    pub(super) fn has_lost(&self, branch: u32) -> bool {
        let is_copy = || self.copies.iter().any(|copy| copy.of == branch);
        self.is_over || self.branch != branch && !is_copy()
    }

    /// Ends the cell with all branches.
    fn end(&mut self) {
        self.cell.kill();
        self.copies.clear();
        self.is_over = true;
    }
}
