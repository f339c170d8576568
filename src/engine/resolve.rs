//! From a request to its plan: the language, its runtime, the packages, what it may reach.

use super::{Engine, Rejected};
use crate::language::{By, Definition, Runtime, UnsupportedPlatform, unfence};
use crate::packages::Importer;
use crate::plan::{Inputs, PackageInputs, RunPlan, UpstreamInputs, plan};
use crate::request::RunRequest;

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

impl Engine {
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
        let lender = self.lender(definition, &request);
        let wishes = match lender.as_ref().and_then(|it| it.0.packages.as_ref()) {
            Some(how) => self.packages.named(&request, how)?,
            None => self.packages.wishes(
                &request,
                definition,
                &Importer {
                    runtime: &runtime,
                    around: &self.around,
                    may_ask: effort >= Effort::Ask,
                    ours: [servers.modules(), request.asked_modules().to_vec()].concat(),
                },
            )?,
        };
        // Pre-started sandboxes see the packages too, whether they will need some or not; and so
        // do others, which are to look the same.
        let shows = wishes.is_some() || (self.warming.is_some() && definition.packages.is_some());
        let (egress, narrowed) = config.egress(request.asked_network())?;
        notes.extend(narrowed);
        let inputs = Inputs {
            definition,
            chosen: (chosen.by, chosen.certainty),
            runtime: &runtime,
            defaults: &self.defaults,
            packages: PackageInputs {
                // What is wrong with the folder is said to those who need it.
                tree: shows.then(|| self.packages.tree().ok()).flatten(),
                wishes,
                lender,
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

    /// The language whose packages a program may name that has none of its own, and the runtime that they need. Not in a session,
    /// whose runtime runs already and cannot be shown another.
    fn lender(
        &self,
        definition: &Definition,
        request: &RunRequest,
    ) -> Option<(Definition, Runtime)> {
        let is_asked = request.asked_packages().is_asked() && request.session().is_none();
        if definition.packages.is_some() || !is_asked {
            return None;
        }
        let lends = |it: &&Definition| it.packages.as_ref().is_some_and(|it| it.commands.is_some());
        let all = self.registry.list().into_iter();
        let mut lenders = all.filter_map(|it| it.definition.ok()).filter(lends);
        lenders.find_map(|it| Some((it.clone(), Runtime::find(it, &self.around).ok()?)))
    }
}
