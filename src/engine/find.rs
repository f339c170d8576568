//! Finding the runtime that a request needs, and fetching it where the configuration allows that.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::{Effort, Engine, Rejected};
use crate::language::{Definition, HOST_FIRST, LanguageId, MissingRuntime, Runtime, Versions, Way};
use crate::plan::RunPlan;
use crate::request::RunRequest;
use crate::runtimes::{Bar, FetchError, Order, RuntimesFolder, Wanted, add};

/// For how long a runtime that was found is taken to be there.
const LATELY: Duration = Duration::from_secs(2);

/// What a runtime is found for: a language, the engine that was asked for, and which of
/// its ways fit the program.
pub type Asked = (LanguageId, Option<String>, Vec<bool>);

/// A language, and the engine that was asked for.
pub type Narrowed = (LanguageId, Option<String>);

impl Engine {
    /// Whether [`prepare`](Self::prepare) will not wait for a runtime to say something.
    pub fn has_at_hand(&self, request: &RunRequest) -> bool {
        let asked = request.asked_language();
        let named = asked.and_then(|asked| self.registry.find(asked).ok());
        named.is_some_and(|it| self.found_lately(&Self::asked(it, request)).is_some())
    }

    fn asked(definition: &Definition, request: &RunRequest) -> Asked {
        let fits = |way: &Way| way.fits(request.code());
        let keeps = |way: &&Way| definition.keeps(way);
        let ways = definition.commands().iter();
        let is_kept = request.session().is_some() && ways.clone().any(|way| keeps(&way));
        let ways = ways.filter(|way| !is_kept || keeps(way)).map(fits);
        let ways = ways.collect();
        let engine = request.asked_engine().map(str::to_owned);
        (definition.id.clone(), engine, ways)
    }

    /// A definition, of which an engine may have been asked for, as sessions use it.
    pub(super) fn kept(&self, definition: &Definition, engine: Option<&str>) -> Arc<Definition> {
        let key = (definition.id.clone(), engine.map(str::to_owned));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let made = kept.entry(key);
        made.or_insert_with(|| Arc::new(definition.for_session()))
            .clone()
    }

    fn found_lately(&self, asked: &Asked) -> Option<Runtime> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let (when, runtime) = found.get(asked)?;
        (when.elapsed() < LATELY).then(|| runtime.clone())
    }

    pub(super) fn find(
        &self,
        definition: &Definition,
        request: &RunRequest,
        effort: Effort,
    ) -> Result<Runtime, MissingRuntime> {
        if self.warming.is_none() || effort < Effort::Ask {
            return Runtime::find_for(definition, request.code(), &self.around);
        }
        let asked = Self::asked(definition, request);
        if let Some(runtime) = self.found_lately(&asked) {
            return Ok(runtime);
        }
        let runtime = Runtime::find_for(definition, request.code(), &self.around)?;
        // So that no program waits for it later.
        self.packages.look(definition, &runtime, &self.around);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.retain(|_, (when, _)| when.elapsed() < LATELY);
        found.insert(asked, (Instant::now(), runtime.clone()));
        Ok(runtime)
    }

    /// Fetches a runtime because the configuration allows it: told on standard error
    /// while it happens, and in the result. One that was asked for by its name is fetched by the recipe of that name.
    pub(super) fn fetch(
        &self,
        definition: &Definition,
        asked: Option<&str>,
        missing: MissingRuntime,
    ) -> Result<String, Rejected> {
        let mut bar = Bar::new();
        let has = |command: &str| Runtime::is_in_path(command, &self.around);
        let wanted = Wanted {
            language: definition.id.as_str(),
            recipe: asked.filter(|it| *it != HOST_FIRST),
            order: Order::AfterPath,
            has: &has,
        };
        let config = self.around.config.as_deref();
        let data = self.around.data.as_deref().ok_or(FetchError::NoFolder);
        let added = data.and_then(|data| {
            add(
                &wanted,
                &RuntimesFolder::in_data(data),
                config,
                &mut |event| bar.tell(event),
            )
        });
        match added {
            Ok(added) => Ok(format!(
                "fetched {} {} for this run",
                added.recipe, added.version
            )),
            Err(FetchError::NoRecipe(_) | FetchError::NotItsRecipe { .. }) => Err(missing.into()),
            Err(why) => Err(Rejected::Fetch(Box::new((missing, why)))),
        }
    }

    /// The version of a plan's runtime, if it has been asked before.
    pub fn known_version(&self, plan: &RunPlan) -> Option<Option<String>> {
        self.version_of(&plan.runtime)
    }

    pub(super) fn version_of(&self, runtime: &Runtime) -> Option<Option<String>> {
        if runtime.is_embedded() {
            return Some(engines::version(&runtime.command).map(str::to_owned));
        }
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.get(&runtime.path).cloned()
    }

    /// The version of a plan's runtime. Blocks: one that is new to us is asked.
    pub fn version(&self, plan: &RunPlan) -> Option<String> {
        if let Some(known) = self.known_version(plan) {
            return known;
        }
        let definition = self.registry.find(plan.language.as_str()).ok()?;
        let mut remembered = Versions::load(&self.around);
        let answered = remembered.ask(definition, &plan.runtime, &self.around);
        let version = answered.version().map(str::to_owned);
        if remembered.known(&plan.runtime).is_none() {
            remembered.add(answered);
            remembered.save(&self.around);
        }
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.insert(plan.runtime.path.clone(), version.clone());
        version
    }
}
