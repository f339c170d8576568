//! What a session holds between its calls: a kept cell for each language, and its files.
//!
//! The files are in the workspace of the last call. A call in another language gets what has changed since its own last one; where there
//! is one language alone nothing is looked at.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cell::{CellError, Workspace};
use crate::egress::{self, EgressProxy};
use crate::engine::StartError;
use crate::engine::run::Furnished;
use crate::language::LanguageId;
use crate::packages::Wishes;
use crate::plan::RunPlan;
use crate::request::{AskedLimits, Ecosystem, InputFile, IsolationChoice, Network};
use crate::run::{Branch, Hold, Noted};
use crate::upstream::{Calls, Ledger};

/// What a session holds between its calls.
#[derive(Default)]
pub struct LiveSession {
    /// One for each language that was used and can be kept.
    pub(super) kept: Vec<Kept>,
    /// Of the last call.
    pub language: Option<LanguageId>,
    /// Who built the walls of its sandboxes, if not who usually does.
    pub isolation: Option<IsolationChoice>,
    pub(super) files: Option<Files>,
    pub(super) calls: u64,
    /// Of the newest call of it and of all sessions that were forked off it: their files are in one folder.
    numbers: Arc<AtomicU64>,
    /// Of the call that runs.
    pub(super) number: u64,
    /// Whether it is kept as it is after each call.
    pub keeps_undo: bool,
    /// Whose interpreters have ended, until they are started anew.
    ended: Vec<LanguageId>,
}

/// Where the files of a session are: in the workspace of its last call.
pub struct Files {
    pub workspace: Workspace,
    /// Whose cell that is, if it is one that is kept.
    pub of: Option<LanguageId>,
}

/// A program that takes the calls of one language, with what was granted to the first.
pub struct Kept {
    pub session: Branch,
    /// Whether its runtime can copy itself.
    pub forks: bool,
    pub language: LanguageId,
    pub network: Option<Network>,
    pub servers: Vec<String>,
    pub proxy: Option<Arc<EgressProxy>>,
    pub ledger: Option<Arc<Ledger>>,
    /// What the answer before said of its network.
    pub reported: egress::Report,
    /// The trees of the packages that it has.
    pub packages: Vec<String>,
    /// What was wished for, if all of it is in one tree.
    pub wishes: Option<Wishes>,
    /// The same of other languages' packages.
    pub lent: BTreeMap<Ecosystem, Wishes>,
}

/// What a plan wishes for of other languages' packages.
pub fn lent_wishes(plan: &RunPlan) -> BTreeMap<Ecosystem, Wishes> {
    let lent = plan.lent.iter();
    lent.map(|it| (it.how.from, it.wishes.clone())).collect()
}

impl LiveSession {
    /// How many calls it has had.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// The languages whose calls go to a program that was started before.
    pub fn started(&self) -> impl Iterator<Item = &LanguageId> {
        self.kept.iter().map(|kept| &kept.language)
    }

    /// The number of the next call. That of the first is 1.
    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn is_at(&mut self, number: u64) {
        self.numbers.fetch_max(number, Ordering::Relaxed);
        self.number = number;
    }

    /// Bytes that its sandboxes use now, of those in which nothing runs.
    pub fn memory(&self) -> u64 {
        let all = self.kept.iter().filter_map(|kept| kept.session.memory());
        all.sum()
    }

    /// Has it use no processor until the next call.
    pub fn freeze(&mut self) {
        for kept in &mut self.kept {
            kept.session.freeze();
        }
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
        let (limits, own) = (&plan.launch.limits, self.kept[at].session.limits());
        let network = plan.egress.as_ref().map(|egress| &egress.network);
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
            (
                "network",
                network.is_some() && network != self.kept[at].network.as_ref(),
            ),
        ];
        let other = other.into_iter().filter(|(_, is_other)| *is_other);
        other.map(|(name, _)| name).collect()
    }

    /// A plan with the packages of earlier calls too, where a runtime finds them all in one place.
    pub(super) fn with_earlier_packages(&self, plan: &RunPlan) -> Option<RunPlan> {
        let kept = &self.kept[self.position(&plan.language)?];
        let own = plan.packages.as_ref();
        let own = own.filter(|packages| packages.how.prelude.is_empty());
        let own = own.and_then(|packages| kept.wishes.as_ref()?.and(&packages.wishes));
        if own.is_none() && plan.lent.is_empty() {
            return None;
        }
        let mut plan = plan.clone();
        if let (Some(packages), Some(wishes)) = (&mut plan.packages, own) {
            packages.wishes = wishes;
        }
        for lent in &mut plan.lent {
            let earlier = kept.lent.get(&lent.how.from);
            if let Some(all) = earlier.and_then(|it| it.and(&lent.wishes)) {
                lent.wishes = all;
            }
        }
        Some(plan)
    }

    pub(super) fn position(&self, language: &LanguageId) -> Option<usize> {
        self.kept.iter().position(|kept| kept.language == *language)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.files.is_none()
    }

    /// Where its files are. Nothing is written there while somebody else has them.
    pub(super) async fn hold_files(&self) -> Option<(Workspace, Option<Hold>)> {
        let files = self.files.as_ref()?;
        let mut kept = self.kept.iter();
        let owner = kept.find(|kept| Some(&kept.language) == files.of.as_ref());
        let hold = match owner {
            Some(owner) => Some(owner.session.hold().await.ok()?),
            None => None,
        };
        Some((files.workspace.clone(), hold))
    }

    /// Lets a kept cell have the files, if another call had them last; how many could not be brought.
    pub(super) async fn bring_files(&mut self, at: usize) -> Result<usize, CellError> {
        let language = self.kept[at].language.clone();
        if self.files.as_ref().and_then(|files| files.of.as_ref()) == Some(&language) {
            return Ok(0);
        }
        let (from, _hold) = self.hold_files().await.unzip();
        let session = &self.kept[at].session;
        let (left_out, workspace) = session.bring(from.as_ref(), self.number).await?;
        let of = Some(language);
        self.files = workspace.map(|workspace| Files { workspace, of });
        Ok(left_out)
    }

    /// What a caller should know when the first interpreter of a language was not the last.
    pub(super) fn begun_again(&mut self, language: &LanguageId) -> Option<String> {
        let before = self.ended.len();
        self.ended.retain(|ended| ended != language);
        (self.ended.len() < before).then(|| {
            format!(
                "{language} was started anew, because its interpreter had ended: the variables that it held are lost"
            )
        })
    }

    /// The interpreter of a call has ended. Its files are still there.
    pub(super) fn lose(&mut self, at: usize) {
        let kept = self.kept.remove(at);
        if let Some(files) = &mut self.files {
            files.of.take_if(|of| *of == kept.language);
        }
        self.ended.push(kept.language);
    }
}

impl LiveSession {
    /// The interpreter of a call has ended, and others have its sandbox or nobody has.
    pub(super) fn lose_all(&mut self, at: usize) {
        let of = Some(self.kept[at].language.clone());
        self.lose(at);
        // It was theirs before.
        self.ended.retain(|ended| Some(ended) != of.as_ref());
        self.files = None;
    }

    /// The interpreter of a call has ended, and what was kept of it took its place.
    pub(super) fn restored(&mut self, at: usize, noted: Noted) {
        self.calls = noted.calls;
        self.kept[at].packages = noted.packages;
    }

    /// Another that has nothing but this copy of one of its interpreters.
    pub(super) fn with_copy(&self, copy: Kept, files: Option<Files>) -> Self {
        Self {
            language: Some(copy.language.clone()),
            kept: vec![copy],
            files,
            calls: self.calls,
            numbers: self.numbers.clone(),
            ..Self::default()
        }
    }
}

impl Kept {
    /// What its calls asked of its network, if this one did.
    pub fn report(&mut self) -> Option<egress::Report> {
        let report = self.proxy.as_ref()?.report();
        let before = std::mem::replace(&mut self.reported, report.clone());
        (before != report).then_some(report)
    }

    /// Which tools were called since the answer before.
    pub fn calls(&self) -> Calls {
        let ledger = self.ledger.as_ref();
        ledger.map(|ledger| ledger.take()).unwrap_or_default()
    }

    /// What a later call needs to have its packages and files.
    pub fn add_packages(
        &mut self,
        plan: &RunPlan,
        furnished: &Furnished<'_>,
    ) -> Result<(String, Vec<InputFile>), StartError> {
        let mut files = plan.call_files();
        for (lent, set) in plan.lent.iter().zip(&furnished.lent) {
            // What a sandbox was not started with it cannot be shown.
            let earlier = self.lent.get_mut(&lent.how.from);
            match earlier.filter(|it| it.is_in(&lent.wishes)) {
                Some(earlier) => earlier.clone_from(&lent.wishes),
                None => return Err(StartError::SessionPackages),
            }
            files.extend(plan.lent_link(lent, &set.installed.set));
        }
        let (Some(packages), Some(installed)) = (&plan.packages, &furnished.packages) else {
            return Ok((String::new(), files));
        };
        if self.packages.contains(&installed.set.tree) {
            return Ok((String::new(), files));
        }
        let (prelude, links) = plan.later_packages(packages, &installed.set);
        // A runtime that is told where to look may look in several places; a link leads to one, which must have all.
        let has_all = self
            .wishes
            .as_ref()
            .is_none_or(|it| it.is_in(&packages.wishes));
        if prelude.is_empty() && !has_all {
            return Err(StartError::SessionPackages);
        }
        self.wishes = Some(packages.wishes.clone());
        files.extend(links);
        self.packages.push(installed.set.tree.clone());
        Ok((prelude, files))
    }
}
