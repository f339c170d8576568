//! From a request to its plan: the language, its runtime, the packages, what it may reach.

use std::sync::Arc;

use super::{Engine, Rejected};
use crate::language::{By, Definition, Runtime, UnsupportedPlatform, unfence};
use crate::packages::{BadWish, Importer};
use crate::plan::{Inputs, Lent, PackageInputs, RunPlan, UpstreamInputs, plan};
use crate::request::{Ecosystem, RunRequest};

/// What planning may do to find out what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Look at files, and ask a version manager's shim which program it stands for.
    Look,
    /// Start the runtime, to ask where it imports from.
    Ask,
    /// Fetch a runtime that is missing, if the configuration allows that.
    Fetch,
}

/// A call of a session that was planned: what another one is compared with.
pub struct Planned {
    /// Its request without its program.
    frame: RunRequest,
    plan: Arc<RunPlan>,
}

impl Planned {
    pub fn new(frame: RunRequest, plan: Arc<RunPlan>) -> Self {
        Self { frame, plan }
    }
}

impl Engine {
    /// The plan of a call of which another in the same session was planned, with nothing but another program. Else its request, to be
    /// planned by itself.
    pub fn plan_again(
        &self,
        before: &Planned,
        mut request: RunRequest,
    ) -> Result<RunPlan, Box<RunRequest>> {
        let plan = &before.plan;
        let fits = request.fits(&before.frame);
        let definition = match self.registry.find(plan.language.as_str()) {
            Ok(definition) if fits => self.kept(definition, request.asked_engine()),
            _ => return Err(Box::new(request)),
        };
        let needs_more = || {
            let servers = self.servers().ok()?;
            let importer = Importer {
                runtime: &plan.runtime,
                around: &self.around,
                may_ask: true,
                ours: [servers.modules(), request.asked_modules().to_vec()].concat(),
            };
            let wishes = self
                .packages
                .wishes(&request, &definition, &importer)
                .ok()?;
            Some(wishes.is_some())
        };
        match plan.can_be_had_again(&definition) && needs_more() == Some(false) {
            true => Ok(plan.again(&definition, request)),
            false => Err(Box::new(request)),
        }
    }

    pub(super) fn resolve(
        &self,
        mut request: RunRequest,
        effort: Effort,
    ) -> Result<RunPlan, Rejected> {
        let config = self.config()?;
        let mut fence = None;
        if request.asked_language().is_none()
            && let Some((tag, inside)) = unfence(request.code())
        {
            let inside = inside.to_owned();
            fence = Some(tag.to_owned());
            request = request.with_code(inside)?;
        }
        let can_run = |definition: &Definition| {
            UnsupportedPlatform::check(definition).is_ok()
                && Runtime::find(definition, &self.around).is_ok()
        };
        let chosen = self.registry.recognize(
            request.asked_language(),
            fence.as_deref(),
            request.file_name().map(|name| name.as_str()),
            request.code(),
            can_run,
        )?;
        let definition = chosen.definition;
        UnsupportedPlatform::check(definition)?;
        let asked = request.asked_engine();
        let narrowed = asked.map(|engine| definition.run_by(engine)).transpose()?;
        let definition = narrowed.as_ref().unwrap_or(definition);
        let kept = request.session().map(|_| self.kept(definition, asked));
        let definition = kept.as_deref().unwrap_or(definition);
        let mut notes = Vec::new();
        let runtime = match self.find(definition, &request, effort) {
            Ok(runtime) => runtime,
            Err(missing)
                if effort == Effort::Fetch
                    && config.auto_install.unwrap_or(request.may_fetch_runtime()) =>
            {
                notes.push(self.fetch(definition, asked, missing)?);
                Runtime::find_for(definition, request.code(), &self.around)?
            }
            Err(missing) => return Err(missing.into()),
        };
        if chosen.by == By::Content {
            let percent = (100.0 * chosen.certainty).floor();
            let how = match chosen.is_sure() {
                true => format!("{percent} % sure"),
                false => format!("a guess, {percent} %; name the language if it is another"),
            };
            notes.push(format!(
                "no language was named; detected {} from its content ({how})",
                definition.id
            ));
        }
        let servers = self.servers()?;
        let lent = self.lent(definition, &request)?;
        let wishes = self.packages.wishes(
            &request,
            definition,
            &Importer {
                runtime: &runtime,
                around: &self.around,
                may_ask: effort >= Effort::Ask,
                ours: [servers.modules(), request.asked_modules().to_vec()].concat(),
            },
        )?;
        // Pre-started sandboxes see the packages too, whether they will need some or not; and so
        // do others, which are to look the same.
        let shows = wishes.is_some()
            || !lent.is_empty()
            || (self.warming.is_some() && definition.packages.is_some());
        let (egress, narrowed) = config.egress(request.asked_network())?;
        notes.extend(narrowed);
        let inputs = Inputs {
            definition,
            chosen: (chosen.by, chosen.certainty),
            runtime: &runtime,
            version: self.version_of(&runtime).flatten(),
            defaults: &self.defaults,
            packages: PackageInputs {
                // What is wrong with the folder is said to those who need it.
                tree: shows.then(|| self.packages.tree().ok()).flatten(),
                wishes,
                lent,
                offline: request.is_offline(),
            },
            egress,
            upstream: UpstreamInputs {
                names: servers.for_request(&request, definition.binding.as_ref())?,
                has_any: servers.has_lasting(),
                configured: servers.names(),
            },
            notes,
        };
        Ok(plan(config.extend(request)?, inputs)?)
    }

    /// The packages that a request names of other languages, and the runtimes that their commands need.
    fn lent(&self, definition: &Definition, request: &RunRequest) -> Result<Vec<Lent>, Rejected> {
        let own = definition.packages.as_ref().map(|how| how.from);
        let plain = own.unwrap_or(Ecosystem::USUAL);
        let named = request.asked_packages().ecosystems(plain).into_iter();
        let mut lent = Vec::new();
        for from in named.filter(|from| Some(*from) != own) {
            let all = self.registry.list().into_iter();
            let mut all = all.filter_map(|it| it.definition.ok());
            let lender = all.find_map(|it| {
                let how = it.packages.as_ref()?;
                (how.from == from && !how.lends.is_empty()).then_some((it, how))
            });
            let (lender, how) = lender.ok_or(BadWish::NotLent(from))?;
            let lender = match &how.lends_with {
                Some(runtime) => lender.run_by(runtime)?,
                None => lender.clone(),
            };
            let runtime = Runtime::find(&lender, &self.around)?;
            let wishes = self.packages.named(request, how, plain)?;
            lent.extend(wishes.map(|wishes| Lent {
                definition: lender,
                runtime,
                wishes,
            }));
        }
        Ok(lent)
    }
}
