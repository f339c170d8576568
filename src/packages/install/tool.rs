//! The program that installs: found, or fetched by its recipe.

use std::path::{Path, PathBuf};

use jail::Tree;

use super::Job;
use super::files::cell_path;
use crate::language::{Installer, PassedOver, Refusal, Runtime, Surroundings};
use crate::packages::{PackageError, tell};
use crate::request::{FileSource, InputFile};
use crate::runtimes::{Event, RuntimesFolder, add_recipe, megabytes};

/// An installer that is there.
pub struct Tool<'a> {
    pub installer: &'a Installer,
    pub program: String,
    pub trees: Vec<Tree>,
    /// The program itself, where the folder that it is in is not for a cell to see.
    pub copy: Option<InputFile>,
}

/// Where a copy of the program is, in the workspace of an install.
const COPY: &str = "tool";

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
        let installer = &installers[at];
        Ok(match found {
            Where::Shown(found) => Tool {
                installer,
                program: found.program,
                trees: found.prefix.into_iter().collect(),
                copy: None,
            },
            Where::Alone(path) => Tool {
                installer,
                program: format!("/workspace/{COPY}/{}", installer.tool),
                trees: Vec::new(),
                copy: Some(InputFile {
                    path: cell_path(&format!("{COPY}/{}", installer.tool)),
                    source: FileSource::HostFile(path),
                    mode: 0o755,
                }),
            },
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
            copy: None,
        })
    }
}

/// Where a cell gets an installer from.
enum Where {
    Shown(Box<Runtime>),
    /// One file: it is in a folder of many things, as `~/.local/bin` is, and needs none of them.
    Alone(PathBuf),
}

fn find_tool(
    installers: &[Installer],
    around: &Surroundings,
    tell: &dyn Fn(&str),
) -> Result<(usize, Where), PackageError> {
    let seen = match look(installers, around) {
        Ok(found) => return Ok(found),
        Err(seen) => seen,
    };
    let names: Vec<&str> = installers.iter().map(|it| it.tool.as_str()).collect();
    let missing = |why: Option<String>| PackageError::NoInstaller {
        tool: names.join(" or "),
        why: seen
            .iter()
            .cloned()
            .chain(why)
            .collect::<Vec<_>>()
            .join("; "),
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
        .map_err(|error| missing(Some(whole(&error))))?;
    let unusable = || missing(Some("what was fetched cannot be used".to_owned()));
    look(installers, around).map_err(|_| unusable())
}

/// The first of them that a cell can be shown, or be given a copy of; or what was found and cannot be used.
fn look(installers: &[Installer], around: &Surroundings) -> Result<(usize, Where), Vec<String>> {
    let mut passed_over = Vec::new();
    for (at, installer) in installers.iter().enumerate().filter(|it| !it.1.beside) {
        match Runtime::tool(&installer.tool, around) {
            Ok(found) => return Ok((at, Where::Shown(Box::new(found)))),
            Err(passed) => passed_over.extend(passed.into_iter().map(|it| (at, it))),
        }
    }
    let alone = |(at, passed): &(usize, PassedOver)| {
        let is_wide = matches!(passed.why, Refusal::TooWide(_)) && installers[*at].one_file;
        let path = std::fs::canonicalize(&passed.path).ok();
        path.filter(|_| is_wide).map(|it| (*at, Where::Alone(it)))
    };
    let found = passed_over.iter().find_map(alone);
    found.ok_or_else(|| passed_over.iter().map(|(_, it)| it.to_string()).collect())
}

/// An error with all that brought it about, in one line.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = format!("fetching it failed: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
