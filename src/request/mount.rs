//! Folders of the host that a caller shows to a program, as they are.

use std::path::{Component, Path, PathBuf};

use jail::{Access, Mount};

use super::RequestError;

/// Places in a cell that are ours.
const TAKEN: [&str; 15] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/dev",
    "/proc",
    "/sys",
    "/run",
    "/host",
    "/mask",
    "/workspace/.home",
];
/// Folders of the host through which walls could be gone around.
const NEVER: [&str; 3] = ["/proc", "/sys", "/dev"];
const MOST: usize = 16;

/// Reads `HOST:PATH`, or with `:ro` behind it; a host's path may have colons.
pub fn parse_mount(argument: &str) -> Result<Mount, RequestError> {
    let (rest, access) = match argument.rsplit_once(':') {
        Some((rest, "ro")) => (rest, Access::ReadOnly),
        Some((rest, "rw")) => (rest, Access::Write),
        _ => (argument, Access::Write),
    };
    let Some((host, cell)) = rest.rsplit_once(':') else {
        return Err(bad(argument, "it is not `HOST:PATH`"));
    };
    check_mount(Path::new(host), cell, access)
}

/// Reads `HOST`, or with `:rw` behind it: the folder of a server's user, at the same path in every sandbox.
pub fn parse_workspace(argument: &str) -> Result<Mount, RequestError> {
    let (host, access) = match argument.rsplit_once(':') {
        Some((host, "rw")) => (host, Access::Write),
        Some((host, "ro")) => (host, Access::ReadOnly),
        _ => (argument, Access::ReadOnly),
    };
    // Not below the workspace, which holds what a program makes and is gone with it.
    check_mount(Path::new(host), "/work", access)
}

/// A mount, checked: the host's folder is there, and its path in the cell is free.
/// A relative path is below the workspace.
pub fn check_mount(host: &Path, cell: &str, access: Access) -> Result<Mount, RequestError> {
    let found = host
        .canonicalize()
        .map_err(|source| RequestError::HostFile {
            path: host.to_owned(),
            source,
        })?;
    let shown = host.display().to_string();
    if !found.is_dir() {
        return Err(bad(&shown, "it is not a folder"));
    }
    if found == Path::new("/") || NEVER.iter().any(|never| found.starts_with(never)) {
        return Err(bad(&shown, "it contains system folders of the host"));
    }
    let mut place = PathBuf::from("/workspace");
    for part in Path::new(cell).components() {
        match part {
            Component::RootDir => place = PathBuf::from("/"),
            Component::CurDir => {}
            Component::Normal(name) => place.push(name),
            Component::ParentDir | Component::Prefix(_) => {
                return Err(bad(cell, "a path in the sandbox has no `..`"));
            }
        }
    }
    let is_taken = ["/", "/workspace", "/tmp", "/opt"]
        .iter()
        .any(|own| place == Path::new(own))
        || TAKEN.iter().any(|taken| place.starts_with(taken));
    if is_taken || cell.contains('\0') {
        return Err(bad(cell, "this path in the sandbox is taken"));
    }
    Ok(Mount {
        host: found,
        cell: place,
        access,
    })
}

/// Adds mounts to others, none of which may lie in another.
pub fn add_mounts(
    mounts: &mut Vec<Mount>,
    more: impl IntoIterator<Item = Mount>,
) -> Result<(), RequestError> {
    for mount in more {
        if mounts.iter().any(|other| overlap(&other.cell, &mount.cell)) {
            let cell = mount.cell.display().to_string();
            return Err(bad(&cell, "another folder is mounted there"));
        }
        mounts.push(mount);
    }
    match mounts.len() > MOST {
        true => Err(bad("mounts", "there are more than 16")),
        false => Ok(()),
    }
}

pub fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

fn bad(what: &str, reason: &'static str) -> RequestError {
    RequestError::BadMount {
        what: what.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_has_a_folder_of_the_host_and_a_free_place_in_the_cell() {
        let folder = tempfile::tempdir().unwrap();
        let host = folder.path().canonicalize().unwrap();
        let text = host.to_str().unwrap();
        for (argument, cell, access) in [
            ("/data", "/data", Access::Write),
            ("/data:ro", "/data", Access::ReadOnly),
            ("in:rw", "/workspace/in", Access::Write),
            ("./a//b/:ro", "/workspace/a/b", Access::ReadOnly),
            ("/tmp/x", "/tmp/x", Access::Write),
            ("/opt/data", "/opt/data", Access::Write),
        ] {
            let mount = parse_mount(&format!("{text}:{argument}")).unwrap();
            let expected = Mount {
                host: host.clone(),
                cell: cell.into(),
                access,
            };
            assert_eq!(mount, expected);
        }
        for bad in [
            "/",
            "",
            ".",
            "/workspace",
            "/tmp",
            "/usr/share/x",
            "/etc",
            "/proc/1",
            "/dev/shm",
            "/sys/x",
            "/a/../etc",
            "../x",
            "/workspace/.home/x",
            "/lib64",
            "/opt",
        ] {
            let error = parse_mount(&format!("{text}:{bad}")).unwrap_err();
            assert!(matches!(error, RequestError::BadMount { .. }), "{bad}");
        }
        for bad in [
            "/:/data",
            "/proc:/data",
            "/sys/kernel:/data",
            "/dev:/data",
            "/etc/passwd:/data",
            "/tmp",
        ] {
            assert!(parse_mount(bad).is_err(), "{bad}");
        }
        let missing = parse_mount(&format!("{text}/none:/data")).unwrap_err();
        assert!(matches!(missing, RequestError::HostFile { .. }));
    }

    #[test]
    fn the_folder_of_a_server_is_read_only_unless_said() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().to_str().unwrap();
        for (suffix, access) in [
            ("", Access::ReadOnly),
            (":ro", Access::ReadOnly),
            (":rw", Access::Write),
        ] {
            let mount = parse_workspace(&format!("{text}{suffix}")).unwrap();
            assert_eq!((mount.cell, mount.access), ("/work".into(), access));
        }
        for bad in ["/", "/proc", "", ":rw"] {
            assert!(parse_workspace(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_mount_lies_in_another() {
        let mount = |cell: &str| Mount {
            host: "/srv".into(),
            cell: cell.into(),
            access: Access::ReadOnly,
        };
        let mut mounts = Vec::new();
        add_mounts(&mut mounts, [mount("/a"), mount("/ab"), mount("/b/c")]).unwrap();
        for cell in ["/a", "/a/x", "/b"] {
            assert!(add_mounts(&mut mounts, [mount(cell)]).is_err(), "{cell}");
        }
        let many = (0..20).map(|n| mount(&format!("/m{n}")));
        assert!(add_mounts(&mut mounts, many).is_err());
    }
}
