//! Which program of this host runs a language, and what of the host a cell must
//! see for it.
//!
//! A runtime under `/usr` is in every cell already. Any other is shown with its
//! prefix (the folder above `bin`) and nothing else, so a prefix that would show
//! more than a runtime is refused. Version managers put shims in `PATH`, which
//! need a home and a shell; those are asked for the program behind them.

mod answers;
mod cache;
mod elf;
mod fetched;
mod prefix;
mod shim;
mod version;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jail::Tree;

use super::{Definition, Install, LanguageId, Surroundings, Way};
use crate::runtimes::{Order, RuntimesFolder};
use prefix::{cell_location, moved_libraries};

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

/// No usable runtime on this host.
#[derive(Debug, thiserror::Error)]
#[error("no runtime for `{language}`: no usable {} in PATH{}", searched.join(" or "), list(passed_over))]
pub struct MissingRuntime {
    pub language: LanguageId,
    pub searched: Vec<String>,
    /// `PATH` as it was searched.
    pub path: Box<str>,
    /// What was found but could not be used.
    pub passed_over: Vec<PassedOver>,
    /// The command that would install it.
    pub install: Option<Box<str>>,
    elsewhere: Option<Box<str>>,
}

/// A language that exists on one other system only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Language '{language}' runs only on {platform} (needs {requires}). This server runs on {}/{}.",
    std::env::consts::OS,
    std::env::consts::ARCH
)]
pub struct UnsupportedPlatform {
    pub language: LanguageId,
    pub platform: &'static str,
    pub requires: String,
}

impl UnsupportedPlatform {
    /// Whether the language is bound to a system that is not this one.
    pub fn check(definition: &Definition) -> Result<(), Self> {
        match definition.platform {
            Some(platform) if !platform.is_here() => Err(Self {
                language: definition.id.clone(),
                platform: platform.name(),
                requires: definition.commands()[0].needs.join(" and "),
            }),
            _ => Ok(()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{} {why}", path.display())]
pub struct PassedOver {
    pub path: PathBuf,
    pub why: Refusal,
}

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("is a shim: {0}")]
    Shim(String),
    #[error("using it would show all of {} to the program", .0.display())]
    TooWide(PathBuf),
    #[error("cannot be used: {0}")]
    Unusable(#[from] io::Error),
}

impl MissingRuntime {
    /// What the caller can do about it, in one imperative sentence.
    pub fn hint(&self) -> Option<String> {
        let wide = self
            .passed_over
            .iter()
            .any(|passed| matches!(passed.why, Refusal::TooWide(_)));
        let language = self.language.as_str();
        let add = match self.searched.as_slice() {
            // Another may be there already, and is not what was asked for.
            [one] if crate::runtimes::offers_by(one, language) => {
                Some(format!("`hotcell languages add {language} --recipe {one}`"))
            }
            _ => crate::runtimes::offers(language)
                .then(|| format!("`hotcell languages add {language}`")),
        };
        match (&self.install, add) {
            (Some(command), Some(add)) => Some(format!("Install it: {add}, or `{command}`.")),
            (Some(command), None) => Some(format!("Install it: `{command}`.")),
            (None, Some(add)) => Some(format!("Install it: {add}.")),
            (None, None) if wide => {
                Some("Install it under /usr, or in a folder of its own.".to_owned())
            }
            (None, None) => self.elsewhere.as_deref().map(str::to_owned),
        }
    }
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

    /// A program that is no language's own, if there is one that a cell can be shown.
    pub fn tool(command: &str, around: &Surroundings) -> Option<Self> {
        let folder = format!("tool-{command}");
        in_path(command, around).find_map(|candidate| {
            Self::from_candidate(command, &candidate, &folder, &Way::default(), around).ok()
        })
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
                    "the language's definition has no `where`".to_owned(),
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

/// The folders of this host that fit `/etc/java-*`: real ones that anybody may read.
fn shown(pattern: &str) -> Vec<Tree> {
    let (folder, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
    let readable = |path: &Path| {
        let found = fs::symlink_metadata(path);
        found.is_ok_and(|it| it.is_dir() && it.permissions().mode() & 0o005 == 0o005)
    };
    let tree = |path: PathBuf| Tree {
        host: path.clone(),
        cell: path,
    };
    let Some((before, after)) = name.split_once('*') else {
        let path = PathBuf::from(pattern);
        return readable(&path).then(|| tree(path)).into_iter().collect();
    };
    let fits = |name: &str| {
        let rest = name.strip_prefix(before);
        rest.is_some_and(|rest| rest.ends_with(after))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(fits));
    let mut paths: Vec<PathBuf> = named
        .map(|entry| entry.path())
        .filter(|it| readable(it))
        .collect();
    // The same every time: cells of one view share a spawner.
    paths.sort();
    paths.into_iter().map(tree).collect()
}

pub use version::Versions;

/// The executable files of this name, in `PATH` and among what was fetched. Relative
/// entries of `PATH` are skipped: what runs must not depend on the folder we were started in.
fn in_path(command: &str, around: &Surroundings) -> impl Iterator<Item = PathBuf> {
    let fetched = around.data.as_deref().map(RuntimesFolder::in_data);
    let links = |order| fetched.as_ref().map(|it| it.links(order));
    let mut seen: Vec<PathBuf> = Vec::new();
    links(Order::BeforePath)
        .into_iter()
        .chain(std::env::split_paths(&around.path))
        .chain(links(Order::AfterPath))
        .filter(|folder| folder.is_absolute())
        .map(move |folder| folder.join(command))
        .filter(|path| is_executable(path))
        // A folder may stand there twice.
        .filter(move |path| match seen.contains(path) {
            true => false,
            false => {
                seen.push(path.clone());
                true
            }
        })
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A script, a link through a folder of shims, or a link to a program of another
/// name (snap, rustup, volta: one program that looks at its own name).
fn is_shim(command: &str, candidate: &Path, real: &Path) -> io::Result<bool> {
    Ok(is_renamed(command, real)
        || links(candidate).iter().any(|path| mentions_shim(path))
        || is_script(real)?)
}

/// Whether a program has another name than what it was called by, save its version.
fn is_renamed(command: &str, real: &Path) -> bool {
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with(command.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// The file and each link on the way to the real one.
fn links(path: &Path) -> Vec<PathBuf> {
    let mut seen = vec![path.to_owned()];
    // The kernel follows at most 40; `canonicalize` has found an end already.
    while let Some(target) = seen
        .last()
        .and_then(|last| Some(last.parent()?.join(fs::read_link(last).ok()?)))
    {
        seen.push(target);
        if seen.len() > 40 {
            break;
        }
    }
    seen
}

fn mentions_shim(path: &Path) -> bool {
    path.components()
        .any(|part| part.as_os_str().to_string_lossy().contains("shim"))
}

fn is_script(path: &Path) -> io::Result<bool> {
    let mut start = [0; 2];
    // A file of one byte is not a script, nor anything else we can use.
    Ok(fs::File::open(path)?.read(&mut start)? == 2 && &start == b"#!")
}

/// The interpreter behind a virtual environment's copy of it; any other program is itself.
fn base_of_environment(path: PathBuf) -> io::Result<PathBuf> {
    let environment = path
        .parent()
        .and_then(Path::parent)
        .map(|root| root.join("pyvenv.cfg"));
    let Some(text) = environment.and_then(|file| fs::read_to_string(file).ok()) else {
        return Ok(path);
    };
    let mut settings = text.lines().filter_map(|line| line.split_once('='));
    match (
        settings.find(|(key, _)| key.trim() == "home"),
        path.file_name(),
    ) {
        (Some((_, home)), Some(name)) => fs::canonicalize(Path::new(home.trim()).join(name)),
        _ => Ok(path),
    }
}

/// The command that installs the runtime with the package manager this host has.
fn install_command(install: &Install, around: &Surroundings) -> Option<String> {
    let managers = [
        ("apt", "apt install", &install.apt),
        ("dnf", "dnf install", &install.dnf),
        ("apk", "apk add", &install.apk),
        ("pacman", "pacman -S", &install.pacman),
        ("brew", "brew install", &install.brew),
    ];
    let (_, command, package) = managers.into_iter().find(|(manager, _, package)| {
        package.is_some() && in_path(manager, around).next().is_some()
    })?;
    package
        .as_ref()
        .map(|package| format!("{command} {package}"))
}

fn list(passed_over: &[PassedOver]) -> String {
    passed_over
        .iter()
        .map(|passed| format!("; {passed}"))
        .collect()
}

#[cfg(test)]
mod tests;
