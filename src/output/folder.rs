//! A program that failed at a folder of the user: what was refused there, as far as its stderr says so.

use jail::Mount;

use crate::hint::Hint;

/// Of a long stderr only this many lines are looked at: the last, where runtimes say it.
const LINES: usize = 40;

/// Why a folder among `mounts` was closed to the program, and what its reader can do.
pub fn refused(stderr: &[u8], mounts: &[Mount]) -> Option<(String, Hint)> {
    if mounts.is_empty() {
        return None;
    }
    let text = String::from_utf8_lossy(stderr);
    text.lines().rev().take(LINES).find_map(|line| {
        let mount = mounts.iter().find(|mount| names(line, mount))?;
        let path = mount.cell.display().to_string();
        let line = line.to_ascii_lowercase();
        if line.contains("read-only file system") {
            let why = format!("`{path}` is read-only");
            return Some((why, Hint::AllowWriting(path)));
        }
        line.contains("permission denied").then(|| {
            let why = format!("it has no access to something in `{path}`");
            (why, Hint::OpenFolder(path))
        })
    })
}

/// Whether a line has the path of the folder, or of something in it.
fn names(line: &str, mount: &Mount) -> bool {
    let Some(path) = mount.cell.to_str() else {
        return false;
    };
    let goes_on = |c: char| c.is_alphanumeric() || "._-".contains(c);
    line.match_indices(path)
        .any(|(at, _)| !line[at + path.len()..].starts_with(goes_on))
}

#[cfg(test)]
mod tests {
    use jail::Access;

    use super::*;

    #[test]
    fn what_a_runtime_says_of_a_folder_is_understood_and_nothing_else() {
        let mounts = [Mount {
            host: "/srv".into(),
            cell: "/data".into(),
            access: Access::ReadOnly,
        }];
        let of = |text: &str| refused(text.as_bytes(), &mounts).map(|(_, hint)| hint);
        for text in [
            "PermissionError: [Errno 13] Permission denied: '/data/a.csv'\n",
            "Error: EACCES: permission denied, open '/data/a.csv'\n    at openSync\n",
            "ls: cannot open directory '/data': Permission denied",
        ] {
            assert_eq!(
                of(text),
                Some(Hint::OpenFolder("/data".to_owned())),
                "{text}"
            );
        }
        for text in [
            "OSError: [Errno 30] Read-only file system: '/data/out.csv'",
            "sh: 1: cannot create /data/x: Read-only file system",
        ] {
            assert_eq!(
                of(text),
                Some(Hint::AllowWriting("/data".to_owned())),
                "{text}"
            );
        }
        for text in [
            "",
            "Permission denied: '/database/a'",
            "FileNotFoundError: No such file or directory: '/data/a.csv'",
            "'/data/a' is there\nPermission denied: '/etc/shadow'",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(refused(b"/data: Permission denied", &[]), None);
    }
}
