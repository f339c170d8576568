//! The cell that takes the calls of one language, with what was granted to the first.

use std::sync::Arc;

use crate::cell::Limits;
use crate::egress::{self, EgressProxy};
use crate::engine::StartError;
use crate::engine::run::Furnished;
use crate::language::LanguageId;
use crate::packages::Wishes;
use crate::plan::RunPlan;
use crate::request::{InputFile, Network};
use crate::run::{Branch, BranchError};

pub struct Kept {
    pub branch: Branch,
    pub language: LanguageId,
    /// Whether its runtime can copy itself.
    pub forks: bool,
    pub limits: Limits,
    pub network: Option<Network>,
    pub servers: Vec<String>,
    pub proxy: Option<Arc<EgressProxy>>,
    /// What the answer before said of its network.
    pub reported: egress::Report,
    /// The trees of the packages that it has, and the call of the session that each came with.
    pub packages: Vec<(String, u64)>,
    /// What was wished for, if all of it is in one tree.
    pub wishes: Option<Wishes>,
}

impl Kept {
    /// Another one, which begins as this one is.
    pub async fn fork(&self) -> Result<Self, BranchError> {
        Ok(Self {
            branch: self.branch.fork().await?,
            language: self.language.clone(),
            forks: self.forks,
            limits: self.limits.clone(),
            network: self.network.clone(),
            servers: self.servers.clone(),
            proxy: self.proxy.clone(),
            reported: self.reported.clone(),
            packages: self.packages.clone(),
            wishes: self.wishes.clone(),
        })
    }

    /// What its calls asked of its network, if this one did.
    pub fn report(&mut self) -> Option<egress::Report> {
        let report = self.proxy.as_ref()?.report();
        let before = std::mem::replace(&mut self.reported, report.clone());
        (before != report).then_some(report)
    }

    /// A plan with the packages of earlier calls too, if the runtime finds them all in one place.
    pub fn with_earlier_packages(&self, plan: &RunPlan) -> Option<RunPlan> {
        let packages = plan.packages.as_ref()?;
        let earlier = self.wishes.as_ref()?;
        if !packages.how.prelude.is_empty() {
            return None;
        }
        let wishes = earlier.and(&packages.wishes)?;
        let mut plan = plan.clone();
        plan.packages.as_mut()?.wishes = wishes;
        Some(plan)
    }

    /// What a later call, the one of this count, needs to have its packages and files.
    pub fn add_packages(
        &mut self,
        plan: &RunPlan,
        furnished: &Furnished<'_>,
        call: u64,
    ) -> Result<(String, Vec<InputFile>), StartError> {
        let mut files = plan.call_files();
        let (Some(packages), Some(installed)) = (&plan.packages, &furnished.packages) else {
            return Ok((String::new(), files));
        };
        let has = |tree: &String| self.packages.iter().any(|(own, _)| own == tree);
        if has(&installed.set.tree) {
            return Ok((String::new(), files));
        }
        let (prelude, links) = plan.later_packages(packages, &installed.set);
        // A runtime that is told where to look may look in several places; a link leads to one, which must have all.
        let wishes = self.wishes.as_ref();
        let has_all = wishes.is_none_or(|it| it.is_in(&packages.wishes));
        if prelude.is_empty() && !has_all {
            return Err(StartError::SessionPackages);
        }
        self.wishes = Some(packages.wishes.clone());
        files.extend(links);
        self.packages.push((installed.set.tree.clone(), call));
        Ok((prelude, files))
    }
}
