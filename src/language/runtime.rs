//! Which program of this host runs a language, and what of the host a cell must
//! see for it.
//!
//! A runtime under `/usr` is in every cell already. Any other is shown with its
//! prefix (the folder above `bin`) and nothing else, so a prefix that would show
//! more than a runtime is refused. Version managers put shims in `PATH`, which
//! need a home and a shell; those are asked for the program behind them.

mod answers;
mod cache;
mod candidate;
mod elf;
mod fetched;
mod missing;
mod prefix;
mod shim;
mod version;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jail::Tree;

use super::{Definition, Surroundings, Way};
use candidate::{
    base_of_environment, in_path, is_executable, is_renamed, is_script, is_shim, shown,
};
use missing::install_command;
pub use missing::{MissingRuntime, PassedOver, Refusal, UnsupportedPlatform};
use prefix::{cell_location, moved_libraries};
pub use version::Versions;

/// A program that was found, and how a cell sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// The name it was found by.
    pub command: String,
    /// The real program on the host: no link, no shim.
    pub path: PathBuf,
    /// The same program's absolute path in a cell; for an engine of ours, the name that stands for all of them.
    pub program: String,
    /// What the cell must see beyond `/usr`.
    pub prefix: Option<Tree>,
    /// Folders in the cell for `LD_LIBRARY_PATH`: where the program's own
    /// library path would lead, had the prefix not moved.
    pub libraries: Vec<String>,
    /// How it is used.
    pub way: Way,
    /// The other programs that this way needs.
    pub tools: Vec<Tool>,
    /// What else of the host they read.
    pub shown: Vec<Tree>,
    /// What the program itself needs in its environment: only a fetched one needs something.
    pub env: BTreeMap<String, String>,
}

/// A program beside the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// What the definition calls it.
    pub command: String,
    pub path: PathBuf,
    pub program: String,
    pub prefix: Option<Tree>,
}

impl Runtime {
    /// Searches `PATH` for the definition's ways in their order; the first of which
    /// everything is there wins.
    ///
    /// May wait for a shim, at most five seconds for each.
    pub fn find(definition: &Definition, around: &Surroundings) -> Result<Self, MissingRuntime> {
        Self::search(definition, None, around)
    }

    /// The same for one program: a way may be for some programs only.
    pub fn find_for(
        definition: &Definition,
        code: &[u8],
        around: &Surroundings,
    ) -> Result<Self, MissingRuntime> {
        Self::search(definition, Some(code), around)
    }

    /// A program that is no language's own, if there is one that a cell can be shown; and else all that was passed over.
    pub fn tool(command: &str, around: &Surroundings) -> Result<Self, Vec<PassedOver>> {
        let folder = format!("tool-{command}");
        let mut passed_over = Vec::new();
        for path in in_path(command, around) {
            match Self::from_candidate(command, &path, &folder, &Way::default(), around) {
                Ok(found) => return Ok(found),
                Err(why) => passed_over.push(PassedOver { path, why }),
            }
        }
        Err(passed_over)
    }

    /// What the program prints when it is asked `question`, as the user and outside any
    /// cell. Nothing if it fails or takes long.
    pub fn say(&self, question: &[String], around: &Surroundings) -> String {
        const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
        // Starting it takes longer than most programs run, so answers are kept in a file.
        let mut answers = answers::Answers::load(self, around);
        if let Some(answer) = answers.find(question) {
            return answer;
        }
        let said = shim::run(&self.path, question, around, PATIENCE).unwrap_or_default();
        let answer = String::from_utf8_lossy(&said[0]).into_owned();
        answers.keep(question, &answer);
        answer
    }

    /// What it answered when it was last asked, if it is the same since.
    pub fn said_before(&self, question: &[String], around: &Surroundings) -> Option<String> {
        answers::Answers::load(self, around).find(question)
    }

    /// Whether `PATH` has a program of this name, of whatever kind.
    pub fn is_in_path(command: &str, around: &Surroundings) -> bool {
        in_path(command, around).next().is_some()
    }

    fn search(
        definition: &Definition,
        code: Option<&[u8]>,
        around: &Surroundings,
    ) -> Result<Self, MissingRuntime> {
        let mut passed_over = Vec::new();
        let mut searched: Vec<String> = Vec::new();
        let fits = |way: &&Way| code.is_none_or(|code| way.fits(code));
        let (own, mut ways): (Vec<&Way>, Vec<&Way>) = definition
            .commands()
            .iter()
            .filter(fits)
            .partition(|way| way.when.is_some());
        // A way that is for programs like this one comes before those that are for all. It does
        // not stand for the language.
        match code {
            Some(_) => ways.splice(..0, own).for_each(drop),
            None => ways.extend(own),
        }
        for way in ways {
            if let (Some(engine), []) = (&way.embedded, way.needs.as_slice()) {
                return Ok(Self::of_engine(engine, way));
            }
            let names = way.needs.join(" + ");
            if !searched.contains(&names) {
                searched.push(names);
            }
            if let Some(runtime) = Self::by_way(way, definition, around, &mut passed_over) {
                return Ok(runtime);
            }
        }
        Err(MissingRuntime {
            language: definition.id.clone(),
            searched,
            path: around.path.to_string_lossy().into(),
            passed_over,
            install: install_command(&definition.runtime.install, around).map(Into::into),
            elsewhere: definition.runtime.elsewhere.as_deref().map(Into::into),
        })
    }

    fn by_way(
        way: &Way,
        definition: &Definition,
        around: &Surroundings,
        passed_over: &mut Vec<PassedOver>,
    ) -> Option<Self> {
        let mut find = |at: usize, command: &str| {
            // Each program has a folder of its own in the cell, the first the language's.
            let folder = match at {
                0 => definition.id.to_string(),
                at => format!("{}.{at}", definition.id),
            };
            // Only the runtime itself is asked: the question is in its language.
            let way = if at == 0 { way.clone() } else { Way::default() };
            in_path(command, around).find_map(|candidate| {
                let found = Self::from_candidate(command, &candidate, &folder, &way, around);
                let note = |why| {
                    passed_over.push(PassedOver {
                        path: candidate.clone(),
                        why,
                    })
                };
                found.map_err(note).ok()
            })
        };
        let (first, others) = way.needs.split_first()?;
        let mut runtime = find(0, first)?;
        let shows = definition.runtime.shows.iter();
        runtime.shown = shows.flat_map(|pattern| shown(pattern)).collect();
        for (at, command) in others.iter().enumerate() {
            let mut found = find(at + 1, command)?;
            runtime.libraries.append(&mut found.libraries);
            runtime.tools.append(&mut found.tools);
            runtime.tools.push(Tool {
                command: command.clone(),
                path: found.path,
                program: found.program,
                prefix: found.prefix,
            });
        }
        Some(runtime)
    }

    fn from_candidate(
        command: &str,
        candidate: &Path,
        folder: &str,
        way: &Way,
        around: &Surroundings,
    ) -> Result<Self, Refusal> {
        let mut path = fs::canonicalize(candidate)?;
        if let Some(fetched) = fetched::find(command, &path, folder, way, around)? {
            return Ok(fetched);
        }
        if is_shim(command, candidate, &path)? {
            if !way.locate.is_empty() {
                let inside = way.inside.as_deref();
                path = shim::ask(candidate, &way.locate, inside, around).map_err(Refusal::Shim)?;
            } else if is_script(&path)? && !path.starts_with("/usr") {
                return Err(Refusal::Shim(
                    "it is a script, and hotcell cannot tell which program it starts".to_owned(),
                ));
            }
        }
        let path = base_of_environment(path)?;
        let (mut program, prefix) = cell_location(folder, &path, around.home.as_deref())?;
        // One program of several names looks at its own: the cell has the same links.
        if prefix.is_none() && is_renamed(command, &path) {
            let folder = candidate.parent().map(fs::canonicalize).transpose()?;
            let named = folder.map(|folder| folder.join(command));
            if let Some(named) = named.filter(|named| named.starts_with("/usr")) {
                program = named.to_string_lossy().into_owned();
            }
        }
        let libraries = prefix
            .as_ref()
            .map(|tree| moved_libraries(&path, tree))
            .unwrap_or_default();
        Ok(Self {
            command: command.to_owned(),
            path,
            program,
            prefix,
            libraries,
            way: way.clone(),
            tools: Vec::new(),
            shown: Vec::new(),
            env: BTreeMap::new(),
        })
    }
}

#[cfg(test)]
mod tests;
