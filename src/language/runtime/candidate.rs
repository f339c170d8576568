//! Programs of this host that could be a runtime: where they are, and which is really behind a name.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use jail::Tree;

use crate::language::Surroundings;
use crate::runtimes::{Order, RuntimesFolder};

/// The executable files of this name, in `PATH` and among what was fetched. Relative
/// entries of `PATH` are skipped: what runs must not depend on the folder we were started in.
pub(super) fn in_path(command: &str, around: &Surroundings) -> impl Iterator<Item = PathBuf> {
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

pub(super) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// A script, a link through a folder of shims, or a link to a program of another
/// name (snap, rustup, volta: one program that looks at its own name).
pub(super) fn is_shim(command: &str, candidate: &Path, real: &Path) -> io::Result<bool> {
    Ok(is_renamed(command, real)
        || links(candidate).iter().any(|path| mentions_shim(path))
        || is_script(real)?)
}

/// Whether a program has another name than what it was called by, save its version.
pub(super) fn is_renamed(command: &str, real: &Path) -> bool {
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

pub(super) fn is_script(path: &Path) -> io::Result<bool> {
    let mut start = [0; 2];
    // A file of one byte is not a script, nor anything else we can use.
    Ok(fs::File::open(path)?.read(&mut start)? == 2 && &start == b"#!")
}

/// The interpreter behind a virtual environment's copy of it; any other program is itself.
pub(super) fn base_of_environment(path: PathBuf) -> io::Result<PathBuf> {
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

/// The folders of this host that fit `/etc/java-*`: real ones that anybody may read.
pub(super) fn shown(pattern: &str) -> Vec<Tree> {
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
