//! The program that installs: found, or fetched by its recipe.

use std::path::Path;

use jail::Tree;

use super::Job;
use crate::language::{Installer, Runtime, Surroundings};
use crate::packages::{PackageError, tell};
use crate::runtimes::{Event, RuntimesFolder, add_recipe, megabytes};

/// An installer that is there.
pub struct Tool<'a> {
    pub installer: &'a Installer,
    pub program: String,
    pub trees: Vec<Tree>,
}

impl Job<'_> {
    /// The first installer that is there, fetched if need be.
    pub(super) async fn tool(&self) -> Result<Tool<'_>, PackageError> {
        let installers = &self.packages.how.installers;
        if let Some(found) = installers.iter().find_map(|it| self.beside(it)) {
            return Ok(found);
        }
        let around = self.context.around.clone();
        let events = self.context.events.clone();
        let wanted = installers.clone();
        let work = move || find_tool(&wanted, &around, &|text| tell(&events, text));
        let found = tokio::task::spawn_blocking(work).await;
        let found = found.map_err(|_| self.stopped("it was interrupted"))?;
        let (at, found) = found?;
        Ok(Tool {
            installer: &installers[at],
            program: found.program.clone(),
            trees: found.prefix.into_iter().collect(),
        })
    }

    /// The installer in the runtime's own folder, which its cells see anyway.
    fn beside<'a>(&self, installer: &'a Installer) -> Option<Tool<'a>> {
        let runtime = &self.packages.runtime;
        let own = runtime.path.with_file_name(&installer.tool);
        let program = Path::new(&runtime.program).with_file_name(&installer.tool);
        (installer.beside && own.is_file()).then(|| Tool {
            installer,
            program: program.to_string_lossy().into_owned(),
            trees: Vec::new(),
        })
    }
}

fn find_tool(
    installers: &[Installer],
    around: &Surroundings,
    tell: &dyn Fn(&str),
) -> Result<(usize, Runtime), PackageError> {
    let find = || {
        let found = installers.iter().enumerate().filter(|it| !it.1.beside);
        found
            .filter_map(|(at, it)| Some((at, Runtime::tool(&it.tool, around)?)))
            .next()
    };
    if let Some(found) = find() {
        return Ok(found);
    }
    let names: Vec<&str> = installers.iter().map(|it| it.tool.as_str()).collect();
    let missing = |source| PackageError::NoInstaller {
        tool: names.join(" or "),
        source,
    };
    let recipe = installers.iter().find_map(|it| it.recipe.as_deref());
    let (Some(recipe), Some(data)) = (recipe, around.data.as_deref()) else {
        return Err(missing(None));
    };
    let mut hear = |event: Event<'_>| {
        if let Event::Fetching {
            recipe,
            version,
            size,
            ..
        } = event
        {
            let size = size.map_or(String::new(), |it| format!(" ({})", megabytes(it)));
            tell(&format!(
                "fetching {recipe} {version}{size} to install packages"
            ));
        }
    };
    let place = RuntimesFolder::in_data(data);
    add_recipe(recipe, &place, around.config.as_deref(), &mut hear)
        .map_err(|error| missing(Some(Box::new(error))))?;
    find().ok_or_else(|| missing(None))
}
