//! Which program of this host runs a language, and what of the host a cell must
//! see for it.
//!
//! A runtime under `/usr` is in every cell already. Any other is shown with its
//! prefix (the folder above `bin`) and nothing else, so a prefix that would show
//! more than a runtime is refused. Version managers put shims in `PATH`, which
//! need a home and a shell; those are asked for the program behind them.

mod cache;
mod elf;
mod prefix;
mod shim;

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jail::Tree;

use super::{Definition, Install, LanguageId, Surroundings};
use prefix::{moved_libraries, place};

/// A program that was found, and how a cell sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// The name it was found by.
    pub command: String,
    /// The real program on the host: no link, no shim.
    pub path: PathBuf,
    /// The same program's absolute path in a cell.
    pub program: String,
    /// What the cell must see beyond `/usr`.
    pub prefix: Option<Tree>,
    /// Folders in the cell for `LD_LIBRARY_PATH`: where the program's own
    /// library path would lead, had the prefix not moved.
    pub libraries: Vec<String>,
}

/// No usable runtime on this host.
#[derive(Debug, thiserror::Error)]
#[error("no runtime for `{language}`: no usable {} in PATH{}", searched.join(" or "), list(passed_over))]
pub struct MissingRuntime {
    pub language: LanguageId,
    pub searched: Vec<String>,
    /// `PATH` as it was searched.
    pub path: String,
    /// What was found but could not be used.
    pub passed_over: Vec<PassedOver>,
    install: Option<String>,
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
    #[error("would show all of {} to the program", .0.display())]
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
        match &self.install {
            Some(command) => Some(format!("Install it: `{command}`.")),
            None if wide => Some("Install it under /usr, or in a folder of its own.".to_owned()),
            None => None,
        }
    }
}

impl Runtime {
    /// Searches `PATH` for the definition's commands in their order; the first usable one wins.
    ///
    /// May wait for a shim, at most five seconds for each.
    pub fn find(definition: &Definition, around: &Surroundings) -> Result<Self, MissingRuntime> {
        let mut passed_over = Vec::new();
        for command in &definition.runtime.commands {
            for candidate in in_path(command, around) {
                match Self::from_candidate(command, &candidate, definition, around) {
                    Ok(runtime) => return Ok(runtime),
                    Err(why) => passed_over.push(PassedOver {
                        path: candidate,
                        why,
                    }),
                }
            }
        }
        Err(MissingRuntime {
            language: definition.id.clone(),
            searched: definition.runtime.commands.clone(),
            path: around.path.to_string_lossy().into_owned(),
            passed_over,
            install: install_command(&definition.runtime.install, around),
        })
    }

    fn from_candidate(
        command: &str,
        candidate: &Path,
        definition: &Definition,
        around: &Surroundings,
    ) -> Result<Self, Refusal> {
        let mut path = fs::canonicalize(candidate)?;
        if is_shim(command, candidate, &path)? {
            let locate = &definition.runtime.locate;
            if !locate.is_empty() {
                path = shim::ask(candidate, locate, around).map_err(Refusal::Shim)?;
            } else if is_script(&path)? && !path.starts_with("/usr") {
                return Err(Refusal::Shim(
                    "its language does not say how to ask it".to_owned(),
                ));
            }
        }
        let path = base_of_environment(path)?;
        let (program, prefix) = place(&definition.id, &path, around.home.as_deref())?;
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
        })
    }
}

/// The executable files of this name. Relative entries of `PATH` are skipped:
/// what runs must not depend on the folder we were started in.
fn in_path(command: &str, around: &Surroundings) -> impl Iterator<Item = PathBuf> {
    std::env::split_paths(&around.path)
        .filter(|folder| folder.is_absolute())
        .map(move |folder| folder.join(command))
        .filter(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A script, a link through a folder of shims, or a link to a program of another
/// name (snap, rustup, volta: one program that looks at its own name).
fn is_shim(command: &str, candidate: &Path, real: &Path) -> io::Result<bool> {
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    let renamed =
        !name.starts_with(command.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'));
    Ok(renamed || links(candidate).iter().any(|path| mentions_shim(path)) || is_script(real)?)
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
