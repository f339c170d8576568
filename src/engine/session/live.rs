//! What a session holds between its calls: a kept cell for each language, and its files.
//!
//! The files are in the workspace of the last call. A call in another language gets what has changed since its own last one; where there
//! is one language alone nothing is looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::kept::Kept;
use crate::cell::{CellError, Workspace};
use crate::language::LanguageId;
use crate::plan::RunPlan;
use crate::request::AskedLimits;

/// What a session holds between its calls.
pub struct LiveSession {
    /// One for each language that was used and can be kept.
    pub(super) kept: Vec<Kept>,
    pub(super) files: Option<Files>,
    /// Of the last call.
    pub language: LanguageId,
    /// How many calls it has had.
    pub calls: u64,
    /// Of the newest call of it and of all sessions that were forked off it: their files are in one folder.
    pub(super) numbers: Arc<AtomicU64>,
    /// Whether it is kept as it is after each call.
    pub keeps_undo: bool,
    /// Whose interpreters have ended, until they are started anew.
    pub(super) ended: Vec<LanguageId>,
}

/// Where the files of a session are.
#[derive(Clone)]
pub enum Files {
    /// In the kept cell of this language.
    Of(LanguageId),
    /// In what is left of a cell that has ended.
    Left(Workspace),
}

impl LiveSession {
    /// One that begins with a call in this language.
    pub(super) fn new(language: LanguageId) -> Self {
        Self {
            kept: Vec::new(),
            files: None,
            language,
            calls: 0,
            numbers: Arc::new(AtomicU64::new(1)),
            keeps_undo: false,
            ended: Vec::new(),
        }
    }

    /// The number of the next call. That of the first is 1.
    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn newest_number(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Bytes that its sandboxes use now, if nothing runs there.
    pub fn memory(&self) -> Option<u64> {
        self.kept.iter().map(|kept| kept.branch.memory()).sum()
    }

    /// Has it use no processor until the next call.
    pub fn freeze(&mut self) {
        self.kept.iter().for_each(|kept| kept.branch.freeze());
    }

    /// Whether nothing is left of it: it may share a sandbox with others, whose end is its own.
    pub fn is_over(&mut self) -> bool {
        while let Some(at) = self.kept.iter().position(|kept| kept.branch.is_over()) {
            self.lose(at);
        }
        self.is_empty()
    }

    /// Whether a later call asks for servers that only the first in its language could have.
    pub fn lacks(&self, plan: &RunPlan, servers: Option<&[String]>) -> bool {
        let kept = self.position(&plan.language).map(|at| &self.kept[at]);
        kept.is_some_and(|kept| servers.is_some_and(|servers| servers != kept.servers))
    }

    /// What a later call asks for and does not get, because that of the first in its language holds.
    pub fn keeps(&self, plan: &RunPlan, asked: &AskedLimits) -> Vec<&'static str> {
        let Some(at) = self.position(&plan.language) else {
            return Vec::new();
        };
        let (limits, kept) = (&plan.launch.limits, &self.kept[at]);
        let own = &kept.limits;
        let network = plan.egress.as_ref().map(|egress| &egress.network);
        let has_other_network = network.is_some() && network != kept.network.as_ref();
        let other = [
            (
                "memory",
                asked.memory.is_some() && limits.memory != own.memory,
            ),
            ("cpus", asked.cpus.is_some() && limits.cpus != own.cpus),
            (
                "processes",
                asked.tasks.is_some() && limits.tasks != own.tasks,
            ),
            ("network", has_other_network),
        ];
        let other = other.into_iter().filter(|(_, is_other)| *is_other);
        other.map(|(name, _)| name).collect()
    }

    pub(super) fn position(&self, language: &LanguageId) -> Option<usize> {
        self.kept.iter().position(|kept| kept.language == *language)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.files.is_none()
    }

    /// Where its files are, and what keeps anybody from writing there as long as it is held.
    pub(super) async fn lend_files(
        &self,
    ) -> Result<Option<(impl Sized + use<>, Workspace)>, CellError> {
        Ok(match &self.files {
            None => None,
            Some(Files::Left(files)) => Some((None, files.clone())),
            Some(Files::Of(language)) => {
                let at = self.position(language).ok_or(CellError::Lost)?;
                let (held, files) = self.kept[at].branch.lend().await?;
                Some((Some(held), files))
            }
        })
    }

    /// Lets a kept cell have the files before the call of this number, if another had them last; how many could not be brought.
    pub(super) async fn bring_files(&mut self, at: usize, number: u64) -> Result<usize, CellError> {
        let language = &self.kept[at].language;
        if matches!(&self.files, Some(Files::Of(of)) if of == language) {
            return Ok(0);
        }
        let left_out = match self.lend_files().await? {
            Some((_held, files)) => self.kept[at].branch.bring(&files, number).await?,
            None => 0,
        };
        self.files = Some(Files::Of(language.clone()));
        Ok(left_out)
    }

    /// What a caller should know when an interpreter is not the first of its language.
    pub(super) fn begun_again(&mut self, language: &LanguageId) -> Option<String> {
        let before = self.ended.len();
        self.ended.retain(|ended| ended != language);
        (self.ended.len() < before).then(|| {
            format!(
                "{language} was started anew, because its interpreter had ended: the variables that it held are lost"
            )
        })
    }

    /// The interpreter of a language has ended. The files may still be there; whether they are.
    pub(super) fn lose(&mut self, at: usize) -> bool {
        let kept = self.kept.remove(at);
        if matches!(&self.files, Some(Files::Of(of)) if *of == kept.language) {
            self.files = kept.branch.left().map(Files::Left);
        }
        self.ended.push(kept.language.clone());
        self.files.is_some()
    }
}
