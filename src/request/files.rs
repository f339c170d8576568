//! Files that a request brings along into the workspace.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{CellPath, RequestError};
use crate::spool::Spooled;

/// Each is written on its own before the program starts. A folder of the host is one.
const MOST_FILES: usize = 10_000;

/// One file or folder to be placed in the workspace before the program starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    pub path: CellPath,
    pub source: FileSource,
    /// Permission bits; for a folder, those of its files are their own.
    pub mode: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSource {
    Bytes(Vec<u8>),
    /// What is kept of an earlier run. However often it is wanted, it is there once.
    Kept(Arc<Spooled>),
    /// A file of the host, absolute or relative to where we were started.
    HostFile(PathBuf),
    /// A folder of the host, to be placed with all that is in it.
    HostFolder(PathBuf),
    /// A folder with nothing in it.
    EmptyFolder,
    /// A link to something else in the cell.
    Link(PathBuf),
}

impl InputFile {
    pub fn new(path: CellPath, source: FileSource) -> Self {
        let mode = 0o644;
        Self { path, source, mode }
    }

    pub fn from_bytes(path: CellPath, bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(path, FileSource::Bytes(bytes.into()))
    }

    /// How many bytes it has in memory.
    pub fn held(&self) -> u64 {
        match &self.source {
            FileSource::Bytes(bytes) => bytes.len() as u64,
            _ => 0,
        }
    }

    fn is_folder(&self) -> bool {
        matches!(
            self.source,
            FileSource::HostFolder(_) | FileSource::EmptyFolder
        )
    }

    /// Whether both cannot be placed: they have one path, or one would have to be
    /// a folder that holds the other and is not one.
    pub fn is_in_the_way_of(&self, other: &Self) -> bool {
        let holds = |outer: &Self, inner: &Self| {
            let inside = Path::new(inner.path.as_str()).starts_with(outer.path.as_str());
            inside && !outer.is_folder()
        };
        self.path == other.path || holds(self, other) || holds(other, self)
    }

    /// Reads `HOST` or `HOST:CELL`, and checks that the host's file is there and can be read.
    ///
    /// Without `CELL` the file keeps its name; a `CELL` that ends in `/` is a
    /// folder to put it in. A host path with a colon is taken whole if it exists.
    pub fn from_argument(argument: &str) -> Result<Self, RequestError> {
        match argument.rsplit_once(':') {
            Some((host, cell)) if !Path::new(argument).exists() => {
                Self::from_host(Path::new(host), Some(cell))
            }
            _ => Self::from_host(Path::new(argument), None),
        }
    }

    fn from_host(host: &Path, cell: Option<&str>) -> Result<Self, RequestError> {
        let fail = |source| RequestError::HostFile {
            path: host.to_owned(),
            source,
        };
        let found = fs::metadata(host).map_err(fail)?;
        let source = if found.is_dir() {
            fs::read_dir(host).map_err(fail)?;
            FileSource::HostFolder(host.to_owned())
        } else if found.is_file() {
            File::open(host).map_err(fail)?;
            FileSource::HostFile(host.to_owned())
        } else {
            // Opening a pipe or a device could wait for ever.
            return Err(fail(std::io::Error::other("neither a file nor a folder")));
        };
        let name = host
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let path = match cell {
            None => CellPath::parse(name)?,
            Some(folder) if folder.ends_with('/') => CellPath::parse(&format!("{folder}{name}"))?,
            Some(cell) => CellPath::parse(cell)?,
        };
        let mode = if found.permissions().mode() & 0o111 != 0 {
            0o755
        } else {
            0o644
        };
        Ok(Self { path, source, mode })
    }
}

/// Whether all of them can be placed. Takes time in proportion to the length of their paths, whatever they are: a caller chooses them.
pub(super) fn check_paths(files: &[InputFile]) -> Result<(), RequestError> {
    if files.len() > MOST_FILES {
        return Err(RequestError::TooManyFiles(files.len()));
    }
    let mut all = HashMap::with_capacity(files.len());
    for file in files {
        if all.insert(file.path.as_str(), file.is_folder()).is_some() {
            return Err(RequestError::SamePath(file.path.clone()));
        }
    }
    for file in files {
        let above = file.path.as_str().match_indices('/');
        let mut above = above.map(|(end, _)| &file.path.as_str()[..end]);
        if above.any(|path| all.get(path) == Some(&false)) {
            return Err(RequestError::SamePath(file.path.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_file_keeps_its_name_unless_another_is_given() {
        let folder = tempfile::TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("in.csv"), "x").unwrap();
        fs::write(at("a:b"), "x").unwrap();
        fs::create_dir(at("data")).unwrap();
        let read = |argument: String| {
            let file = InputFile::from_argument(&format!("{}/{argument}", folder.path().display()))
                .unwrap();
            (file.path.to_string(), file.source, file.mode)
        };

        let file = || FileSource::HostFile(at("in.csv"));
        assert_eq!(
            read("in.csv".to_owned()),
            ("in.csv".to_owned(), file(), 0o644)
        );
        assert_eq!(
            read("in.csv:x/y.csv".to_owned()),
            ("x/y.csv".to_owned(), file(), 0o644)
        );
        assert_eq!(
            read("in.csv:x/".to_owned()),
            ("x/in.csv".to_owned(), file(), 0o644)
        );
        assert_eq!(
            read("a:b".to_owned()),
            ("a:b".to_owned(), FileSource::HostFile(at("a:b")), 0o644)
        );
        assert_eq!(
            read("data".to_owned()).1,
            FileSource::HostFolder(at("data"))
        );
    }

    #[test]
    fn a_file_that_is_missing_odd_or_placed_outside_is_an_error() {
        let missing = InputFile::from_argument("/nowhere/in.csv").unwrap_err();
        assert_eq!(missing.to_string(), "cannot read `/nowhere/in.csv`");
        assert_eq!(missing.hint(), Some("Check the path.".into()));
        for odd in [
            "/dev/null",
            "/dev/null:x",
            ".",
            "/etc/passwd:/etc/passwd",
            "/etc/passwd:../x",
            "",
        ] {
            assert!(InputFile::from_argument(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn files_that_cannot_all_be_placed_are_refused_and_so_are_too_many() {
        let file = |path: &str| InputFile::from_bytes(CellPath::parse(path).unwrap(), "");
        let folder = |path: &str| InputFile {
            source: FileSource::EmptyFolder,
            ..file(path)
        };
        let check = |files: Vec<InputFile>| check_paths(&files).map_err(|it| it.to_string());
        let same = |path: &str| Err(format!("two files have the path `{path}`"));
        assert_eq!(check(vec![file("a/b"), file("a/c"), file("ab")]), Ok(()));
        assert_eq!(check(vec![folder("a"), file("a/b/c")]), Ok(()));
        assert_eq!(check(vec![file("a"), file("./a")]), same("a"));
        assert_eq!(check(vec![file("a"), file("a/b/c")]), same("a/b/c"));
        assert_eq!(check(vec![file("a/b/c"), file("a")]), same("a/b/c"));
        let many = |count| (0..count).map(|at| file(&format!("f/{at}"))).collect();
        assert_eq!(check(many(MOST_FILES)), Ok(()));
        assert!(check(many(MOST_FILES + 1)).is_err());
    }
}
