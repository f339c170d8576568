//! The folder of saved tools: one file each, and under `versions/` what they were before.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::publish::folder::read_script;
use crate::publish::front_matter::{FrontMatter, Kind};

/// Tools, and names of which earlier versions are kept.
const MOST_TOOLS: usize = 200;
/// Earlier versions that are kept of a tool.
const MOST_VERSIONS: usize = 10;
const VERSIONS: &str = "versions";

/// One tool as its file says.
pub struct SavedTool {
    pub name: String,
    pub file_name: String,
    pub version: usize,
    pub code: Vec<u8>,
    /// Or why it cannot be used.
    pub front: Result<FrontMatter, String>,
}

impl SavedTool {
    pub fn new(file_name: &str, code: Vec<u8>, front: Result<FrontMatter, String>) -> Self {
        let stem = Path::new(file_name).file_stem().and_then(|it| it.to_str());
        Self {
            name: stem.unwrap_or_default().to_owned(),
            file_name: file_name.to_owned(),
            version: 1,
            code,
            front,
        }
    }
}

#[derive(Clone)]
pub struct SavedFolder(PathBuf);

impl SavedFolder {
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// All tools, by name. One that cannot be used is among them, and says why.
    pub fn list(&self) -> Vec<SavedTool> {
        self.files().iter().map(|name| self.read(name)).collect()
    }

    /// The names of all tools.
    pub fn names(&self) -> Vec<String> {
        let stem = |file: String| Some(Path::new(&file).file_stem()?.to_str()?.to_owned());
        self.files().into_iter().filter_map(stem).collect()
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let is_tool = |name: &String| !name.starts_with('.') && self.0.join(name).is_file();
        let mut names: Vec<String> = names.filter(is_tool).collect();
        names.sort();
        names.truncate(MOST_TOOLS);
        names
    }

    pub fn find(&self, name: &str) -> Option<SavedTool> {
        self.file_of(name).map(|file_name| self.read(&file_name))
    }

    fn read(&self, file_name: &str) -> SavedTool {
        let mut tool = match read_script(&self.0.join(file_name), file_name) {
            Ok(Some((front, code))) if front.kind == Kind::Tool => {
                SavedTool::new(file_name, code, Ok(front))
            }
            Ok(_) => {
                let why = "it has no front matter that says `--- tool`".to_owned();
                SavedTool::new(file_name, Vec::new(), Err(why))
            }
            Err(why) => SavedTool::new(file_name, Vec::new(), Err(why)),
        };
        tool.version = self
            .versions(&tool.name)
            .last()
            .map_or(1, |last| last.0 + 1);
        tool
    }

    /// Writes a tool in place of the one that has its name, which becomes an earlier version.
    pub fn keep(&self, name: &str, file_name: &str, text: &str) -> io::Result<()> {
        make_folder(&self.0)?;
        if self.file_of(name).is_none() && self.files().len() >= MOST_TOOLS {
            let why = format!("there are {MOST_TOOLS} already; delete some");
            return Err(io::Error::other(why));
        }
        let aside = self.0.join(format!(".{file_name}"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&aside)?.write_all(text.as_bytes())?;
        self.put_away(name)?;
        fs::rename(&aside, self.0.join(file_name))
    }

    /// Takes a tool away; what it was stays as a version. Whether there was one.
    pub fn delete(&self, name: &str) -> io::Result<bool> {
        self.put_away(name)
    }

    /// Makes an earlier version the tool again. Whether there is one of this number.
    pub fn restore(&self, name: &str, version: usize) -> io::Result<bool> {
        let versions = self.versions(name);
        let Some((_, path)) = versions.into_iter().find(|(number, _)| *number == version) else {
            return Ok(false);
        };
        let extension = path.extension().and_then(|it| it.to_str());
        let file_name = format!("{name}.{}", extension.unwrap_or_default());
        let text = fs::read_to_string(path)?;
        self.keep(name, &file_name, &text).map(|()| true)
    }

    /// The earlier versions of a tool, the oldest first.
    pub fn versions(&self, name: &str) -> Vec<(usize, PathBuf)> {
        // A name that leads elsewhere has none.
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Vec::new();
        }
        let entries = fs::read_dir(self.0.join(VERSIONS).join(name));
        let number = |path: &Path| path.file_stem()?.to_str()?.parse().ok();
        let mut found: Vec<(usize, PathBuf)> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter_map(|path| Some((number(&path)?, path)))
            .collect();
        found.sort();
        found
    }

    fn put_away(&self, name: &str) -> io::Result<bool> {
        let Some(file_name) = self.file_of(name) else {
            return Ok(false);
        };
        let versions = self.versions(name);
        let number = versions.last().map_or(1, |last| last.0 + 1);
        let folder = self.0.join(VERSIONS).join(name);
        make_folder(&folder)?;
        let extension = Path::new(&file_name).extension().and_then(|it| it.to_str());
        let kept = format!("{number}.{}", extension.unwrap_or_default());
        fs::rename(self.0.join(&file_name), folder.join(kept))?;
        let too_many = (versions.len() + 1).saturating_sub(MOST_VERSIONS);
        for (_, path) in versions.into_iter().take(too_many) {
            fs::remove_file(path)?;
        }
        self.forget_oldest()?;
        Ok(true)
    }

    /// Removes the versions of tools that were deleted longest ago, if there are too many. SECURITY: else a program fills the disk, with one
    /// name after another.
    fn forget_oldest(&self) -> io::Result<()> {
        let entries = fs::read_dir(self.0.join(VERSIONS))?;
        let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_deleted = |path: &PathBuf| {
            let name = path.file_name().and_then(|it| it.to_str());
            name.is_some_and(|name| self.file_of(name).is_none())
        };
        let changed = |path: &PathBuf| fs::metadata(path).and_then(|it| it.modified()).ok();
        let mut deleted: Vec<PathBuf> = folders.filter(is_deleted).collect();
        deleted.sort_by_key(changed);
        let too_many = deleted.len().saturating_sub(MOST_TOOLS);
        deleted
            .iter()
            .take(too_many)
            .try_for_each(fs::remove_dir_all)
    }

    fn file_of(&self, name: &str) -> Option<String> {
        let is_it = |file: &String| {
            let stem = Path::new(file).file_stem().and_then(|it| it.to_str());
            stem == Some(name)
        };
        self.files().into_iter().find(is_it)
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_cannot_fill_the_disk_with_tools() {
        let place = tempfile::tempdir().unwrap();
        let folder = SavedFolder::new(place.path());
        let text = "# --- tool\n# ---\n";
        for number in 0..MOST_VERSIONS + 5 {
            let text = format!("{text}{number}");
            folder.keep("f", "f.py", &text).unwrap();
        }
        assert_eq!(folder.versions("f").len(), MOST_VERSIONS);
        assert_eq!(folder.find("f").unwrap().version, MOST_VERSIONS + 5);
        for number in 0..MOST_TOOLS + 5 {
            let name = format!("g{number}");
            folder.keep(&name, &format!("{name}.py"), text).unwrap();
            assert!(folder.delete(&name).unwrap());
        }
        let versions = fs::read_dir(place.path().join(VERSIONS)).unwrap();
        assert_eq!(versions.count(), MOST_TOOLS + 1);
        assert_eq!(folder.names(), ["f"]);
        for number in 1..MOST_TOOLS {
            let name = format!("h{number}");
            folder.keep(&name, &format!("{name}.py"), text).unwrap();
        }
        assert!(folder.keep("more", "more.py", text).is_err());
        let again = folder.keep("f", "f.py", text);
        assert!(again.is_ok(), "one that is there can be replaced");
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_no_tool() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("f.py"), "# --- tool\n# ---\n").unwrap();
        let folder = SavedFolder::new(&place.path().join("tools"));
        for name in ["../f", "..", "", ".f", "/f"] {
            assert!(folder.find(name).is_none(), "{name}");
            assert!(!folder.delete(name).unwrap(), "{name}");
            assert!(!folder.restore(name, 1).unwrap(), "{name}");
        }
        assert!(place.path().join("f.py").exists());
    }
}
