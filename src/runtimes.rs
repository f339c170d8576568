//! Runtimes that are fetched: pinned, checked, unpacked into the user's own
//! folder, without root and without running anything of theirs.
//!
//! Knows languages by their ids only. `src/language` finds what is here.

mod archive;
mod download;
mod error;
mod folder;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod progress;
mod recipe;
mod recipes;
mod registry;

use std::path::Path;

pub use error::FetchError;
pub use folder::{Order, Receipt, RuntimesFolder};
pub use progress::{Bar, Event, bar, megabytes};
pub use recipe::{Recipe, Registry};
pub use recipes::{language_of, offers, offers_by};
pub use registry::base as registry_base;

/// What is wanted.
pub struct Wanted<'a> {
    pub language: &'a str,
    /// One recipe of several, by name.
    pub recipe: Option<&'a str>,
    pub order: Order,
    /// Whether `PATH` has a program of this name already.
    pub has: &'a dyn Fn(&str) -> bool,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    pub recipe: String,
    pub version: String,
    /// It was there already.
    pub already: bool,
}

/// Brings a runtime for a language, and what that runs on. The first recipe that
/// can be had wins; `tell` hears of each that cannot.
///
/// Blocks, for minutes if the line is slow. Two at once install once.
pub fn add(
    wanted: &Wanted<'_>,
    runtimes: &RuntimesFolder,
    config: Option<&Path>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Added, FetchError> {
    let all = recipes::recipes(config)?;
    let mut recipes = recipes::for_language(wanted.language, &all)?;
    if let Some(name) = wanted.recipe {
        let known = recipes.iter().map(|it| it.name.clone()).collect();
        recipes.retain(|it| it.name == name);
        if recipes.is_empty() {
            return Err(FetchError::NotItsRecipe {
                language: wanted.language.to_owned(),
                asked: name.to_owned(),
                known,
            });
        }
    }
    let none = || FetchError::NoRecipe(wanted.language.to_owned());
    let mut rest = recipes.iter().peekable();
    let mut answer = Err(none());
    while let Some(recipe) = rest.next() {
        answer = with_required(recipe, &all, wanted, runtimes, tell);
        match (&answer, rest.peek()) {
            // Another recipe may have it. A wrong hash or a full disk is no reason to go on.
            (
                Err(
                    error @ (FetchError::Unreachable { .. }
                    | FetchError::Refused { .. }
                    | FetchError::NotListed { .. }),
                ),
                Some(next),
            ) => tell(Event::Instead {
                failed: &recipe.name,
                why: &error.to_string(),
                next: &next.name,
            }),
            _ => break,
        }
    }
    answer
}

/// Brings one recipe by its name, as for a tool that runs no language. Blocks.
pub fn add_recipe(
    name: &str,
    runtimes: &RuntimesFolder,
    config: Option<&Path>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Added, FetchError> {
    let all = recipes::recipes(config)?;
    let found = all.iter().find(|it| it.name == name);
    let recipe = found.ok_or_else(|| FetchError::NoRecipe(name.to_owned()))?;
    bring(recipe, Order::AfterPath, runtimes, tell)
}

/// Takes a language's runtimes out again; says which.
pub fn remove(language: &str, runtimes: &RuntimesFolder) -> Result<Vec<Receipt>, FetchError> {
    let runs = |it: &&(String, Receipt)| it.1.languages.iter().any(|id| id == language);
    if !runtimes.installed().iter().any(|it| runs(&it)) {
        return Err(FetchError::NotThere(language.to_owned()));
    }
    let _lock = runtimes.lock(|| {})?;
    let installed = runtimes.installed();
    let ours: Vec<_> = installed.iter().filter(runs).collect();
    for (_, receipt) in &ours {
        let leans = |it: &&(String, Receipt)| it.1.requires.contains(&receipt.recipe);
        let others = installed.iter().filter(leans);
        let by: Vec<String> = others.map(|it| format!("`{}`", it.1.recipe)).collect();
        if !by.is_empty() {
            return Err(FetchError::Needed {
                recipe: receipt.recipe.clone(),
                by,
            });
        }
    }
    for (folder, _) in &ours {
        runtimes.take_out(folder)?;
    }
    Ok(ours.into_iter().map(|it| it.1.clone()).collect())
}

/// A recipe, after those that it runs on, unless `PATH` has them.
fn with_required(
    recipe: &Recipe,
    all: &[Recipe],
    wanted: &Wanted<'_>,
    runtimes: &RuntimesFolder,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Added, FetchError> {
    for name in &recipe.requires {
        let found = all.iter().find(|it| it.name == *name);
        let required = found.ok_or_else(|| FetchError::NoRecipe(name.clone()))?;
        if !required.programs.keys().all(|name| (wanted.has)(name)) {
            bring(required, Order::AfterPath, runtimes, tell)?;
        }
    }
    bring(recipe, wanted.order, runtimes, tell)
}

fn bring(
    recipe: &Recipe,
    order: Order,
    runtimes: &RuntimesFolder,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Added, FetchError> {
    let arch = std::env::consts::ARCH;
    let archives = recipe.archives_for(arch);
    if archives.is_empty() {
        let recipe = recipe.name.clone();
        return Err(FetchError::OtherMachine { recipe, arch });
    }
    let _lock = runtimes.lock(|| tell(Event::Waiting))?;
    let folder = recipe.folder(arch);
    // Asked under the lock: whoever had it before may have brought the same.
    let mut already = runtimes.has(&folder);
    if already && !runtimes.is_whole(&folder) {
        tracing::warn!(folder, "a runtime is damaged: it is fetched again");
        runtimes.take_out(&folder)?;
        already = false;
    }
    if !already {
        let (name, version) = (&recipe.name, &recipe.version);
        tracing::info!(name, version, "fetches a runtime");
        let client = download::Client::new()?;
        for archive in &archives {
            tell(Event::Fetching {
                recipe: &recipe.name,
                version: &recipe.version,
                registry: &archive.from.to_string(),
                file: &archive.file,
                size: archive.size,
            });
            let to = runtimes.download(archive.sha256.as_str());
            download::download(&client, archive, &to, &mut |got| tell(Event::Arrived(got)))?;
        }
        tell(Event::Unpacking {
            recipe: &recipe.name,
        });
        let staged = runtimes.stage(&folder)?;
        let done = unpack(recipe, &archives, runtimes, &staged)
            .and_then(|()| runtimes.settle(recipe, &staged, &folder));
        if let Err(error) = done {
            // The next one who takes the lock would do it, but the disk may be full now.
            let _ = std::fs::remove_dir_all(&staged);
            return Err(error);
        }
        for archive in &archives {
            let _ = std::fs::remove_file(runtimes.download(archive.sha256.as_str()));
        }
    }
    runtimes.link(recipe, &folder, order)?;
    Ok(Added {
        recipe: recipe.name.clone(),
        version: recipe.version.clone(),
        already,
    })
}

fn unpack(
    recipe: &Recipe,
    archives: &[&recipe::Archive],
    runtimes: &RuntimesFolder,
    staged: &Path,
) -> Result<(), FetchError> {
    use std::os::unix::fs::PermissionsExt;
    let tree = staged.join("tree");
    for archive in archives {
        let file = runtimes.download(archive.sha256.as_str());
        if let Err(error) = archive::unpack(archive, &file, &tree) {
            // A full disk is not the archive's fault; anything else will not get better.
            return Err(match error {
                FetchError::Disk { source, .. } => runtimes.disk(source),
                other => {
                    let _ = std::fs::remove_file(&file);
                    other
                }
            });
        }
    }
    for path in recipe.programs.values() {
        let program = path.below(&tree);
        let found = std::fs::metadata(&program).is_ok_and(|found| found.is_file());
        if !found {
            return Err(FetchError::Incomplete {
                file: recipe.name.clone(),
                missing: path.as_path().to_owned(),
            });
        }
        // Wheels do not always say that a program is one.
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, mode).map_err(|source| runtimes.disk(source))?;
    }
    Ok(())
}
