//! What of the host a cell must see for a runtime, and where it sees it.

use std::path::{Path, PathBuf};
use std::{fs, io};

use jail::Tree;

use super::{Refusal, elf};

/// Where a cell sees this program, and the tree it needs for that.
pub fn cell_location(
    name: &str,
    path: &Path,
    home: Option<&Path>,
) -> Result<(String, Option<Tree>), Refusal> {
    let text = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .ok_or_else(|| io::Error::other("its path is not UTF-8"))
    };
    if path.starts_with("/usr") {
        return Ok((text(path)?, None));
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    let prefix = if folder.file_name().is_some_and(|name| name == "bin") {
        folder.parent()
    } else {
        Some(folder)
    };
    let prefix = prefix.unwrap_or(Path::new("/"));
    if too_wide(prefix, home) {
        return Err(Refusal::TooWide(prefix.to_owned()));
    }
    let tree = Tree {
        host: prefix.to_owned(),
        cell: Path::new("/opt").join(name),
    };
    let inside = path.strip_prefix(prefix).map_err(io::Error::other)?;
    Ok((text(&tree.cell.join(inside))?, Some(tree)))
}

/// Whether a prefix is a folder of many things rather than one runtime's own.
///
/// SECURITY: whatever passes here is readable by the program. A home, anything
/// above one, and the shared folders in a home must not.
pub(super) fn too_wide(prefix: &Path, home: Option<&Path>) -> bool {
    const SYSTEM: &[&str] = &[
        "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/media", "/mnt",
        "/nix", "/opt", "/proc", "/root", "/run", "/sbin", "/snap", "/srv", "/sys", "/tmp", "/usr",
        "/var",
    ];
    const NEVER_BELOW: &[&str] = &["/boot", "/dev", "/etc", "/proc", "/sys"];
    const CROWDED: &[&str] = &["/home", "/media", "/mnt", "/run", "/var"];
    const IN_A_HOME: &[&str] = &[
        ".aws",
        ".cache",
        ".cargo",
        ".config",
        ".docker",
        ".gnupg",
        ".kube",
        ".local",
        ".local/share",
        ".ssh",
        "Desktop",
        "Documents",
        "Downloads",
        "snap",
    ];
    let home_like = |home: &Path| {
        home.starts_with(prefix) || IN_A_HOME.iter().any(|name| home.join(name) == prefix)
    };
    let crowded = |parent: &Path| CROWDED.iter().any(|folder| parent == Path::new(folder));
    prefix.parent().is_none()
        || SYSTEM.iter().any(|folder| prefix == Path::new(folder))
        || NEVER_BELOW.iter().any(|folder| prefix.starts_with(folder))
        || prefix.parent().is_some_and(crowded)
        || home.is_some_and(home_like)
        || home_like(Path::new("/root"))
        || prefix.join(".ssh").exists()
}

/// The program's own absolute library folders inside its prefix, as the cell sees them.
pub fn moved_libraries(program: &Path, tree: &Tree) -> Vec<String> {
    let inside = |folder: PathBuf| {
        let real = fs::canonicalize(folder).ok()?;
        tree.cell
            .join(real.strip_prefix(&tree.host).ok()?)
            .to_str()
            .map(str::to_owned)
    };
    elf::library_paths(program)
        .into_iter()
        .filter_map(inside)
        .collect()
}
