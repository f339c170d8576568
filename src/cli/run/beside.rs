//! Files that lie beside a program and that it names: they are taken along into its sandbox.
//!
//! SECURITY: the folder may be a stranger's, and a link in it may lead to a secret of ours. Every path is opened below the folder, where
//! the kernel refuses links that leave it, and read once: what was looked at is what the program gets.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use crate::language::Definition;
use crate::packages;
use crate::request::{CellPath, InputFile};

/// What is taken along at most. A folder of data is mounted instead.
const MOST_FILES: usize = 2000;
const MOST_BYTES: u64 = 64 << 20;
const DEEPEST: usize = 16;
/// What tools leave in folders, and no program names.
const SKIPPED: [&str; 5] = ["node_modules", "__pycache__", "target", "venv", "vendor"];

/// A folder, and what was taken from it.
pub struct Folder {
    opened: OwnedFd,
    files: BTreeMap<String, Taken>,
    bytes: u64,
    /// What was there, and too much.
    left_out: bool,
    /// What was named and is a link that leads out of the folder.
    leading_out: Vec<String>,
}

/// What came of looking beside a program.
#[derive(Default)]
pub struct Found {
    pub files: Vec<InputFile>,
    /// Modules that are the program's own and were not taken.
    pub refused: Vec<String>,
    /// A line that says so.
    pub line: Option<String>,
}

struct Taken {
    content: Vec<u8>,
    mode: u32,
}

impl Folder {
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            opened: rustix::fs::open(path, flags, Mode::empty())?,
            files: BTreeMap::new(),
            bytes: 0,
            left_out: false,
            leading_out: Vec::new(),
        })
    }

    /// Takes what a program names, and what that names in turn.
    pub fn take_named(&mut self, program: (&str, &[u8]), definition: &Definition) {
        let Some(beside) = &definition.beside else {
            return;
        };
        let mut seen = HashSet::from([program.0.to_owned()]);
        let mut texts = vec![(program.0.to_owned(), program.1.to_vec())];
        while let Some((at, text)) = texts.pop() {
            let text = String::from_utf8_lossy(&text).into_owned();
            // SECURITY: whatever a registry could be asked for is looked for here first.
            let how = definition.packages.as_ref();
            let modules = how.map_or(Vec::new(), |it| packages::modules(it, &text));
            for wanted in beside.wanted(&text, &modules, Path::new(&at)) {
                let Some(first) = wanted
                    .one_of
                    .iter()
                    .find(|it| self.is_there(it, definition))
                else {
                    let out = wanted.one_of.iter().find(|it| self.leads_out(it));
                    self.leading_out.extend(out.cloned());
                    continue;
                };
                let also = wanted.also.iter().filter(|path| self.kind(path).is_some());
                let paths: Vec<String> = [first].into_iter().chain(also).cloned().collect();
                for path in paths {
                    if !seen.insert(path.clone()) {
                        continue;
                    }
                    for taken in self.take(&path, 0) {
                        if let Some(file) = self.files.get(&taken)
                            && definition.owns(&taken)
                            && taken != program.0
                        {
                            texts.push((taken, file.content.clone()));
                        }
                    }
                }
            }
        }
        self.files.remove(program.0);
    }

    /// Takes all that is there, but for the program itself.
    pub fn take_all(&mut self, program: &str) {
        self.take("", 0);
        self.files.remove(program);
    }

    /// A file of it as text.
    pub fn text(&self, path: &str) -> Option<String> {
        let content = self.read(path).ok()??.content;
        Some(String::from_utf8_lossy(&content).into_owned())
    }

    pub fn is_file(&self, path: &str) -> bool {
        self.kind(path) == Some(FileType::RegularFile)
    }

    /// What is directly in it, sorted.
    pub fn entries(&self) -> Vec<String> {
        self.names("")
    }

    /// Takes a file, or a folder with all that is in it; which files are new.
    fn take(&mut self, path: &str, depth: usize) -> Vec<String> {
        match self.kind(path) {
            Some(FileType::RegularFile) if !self.files.contains_key(path) => {
                match self.read(path) {
                    Ok(Some(taken)) => {
                        self.bytes += taken.content.len() as u64;
                        self.files.insert(path.to_owned(), taken);
                        vec![path.to_owned()]
                    }
                    Ok(None) => {
                        self.left_out = true;
                        Vec::new()
                    }
                    Err(_) => Vec::new(),
                }
            }
            Some(FileType::Directory) if depth < DEEPEST => {
                let names = self.names(path);
                let inside = names.iter().flat_map(|name| {
                    let path = [path, name].join("/");
                    self.take(path.trim_start_matches('/'), depth + 1)
                });
                inside.collect()
            }
            _ => Vec::new(),
        }
    }

    fn names(&self, path: &str) -> Vec<String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let entries = self
            .open_below(path, flags)
            .and_then(|it| Ok(Dir::new(it)?));
        let entries = entries.into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        let is_taken = |name: &String| !name.starts_with('.') && !SKIPPED.contains(&name.as_str());
        let mut names: Vec<String> = names.filter(is_taken).take(MOST_FILES).collect();
        names.sort();
        names
    }

    /// Whether it is a file, or a folder with one of the language in it: others have nothing that a program could name.
    fn is_there(&self, path: &str, definition: &Definition) -> bool {
        match self.kind(path) {
            Some(FileType::RegularFile) => true,
            Some(FileType::Directory) => {
                let names = self.names(path);
                let inside = |name: &String| format!("{path}/{name}");
                names.iter().any(|name| definition.owns(name))
                    || names.iter().map(inside).any(|it| {
                        let is_folder = self.kind(&it) == Some(FileType::Directory);
                        is_folder && self.names(&it).iter().any(|name| definition.owns(name))
                    })
            }
            _ => false,
        }
    }

    /// SECURITY: nothing whose name begins with a dot, such as `.env`: a program that names it is not to have it for that.
    fn kind(&self, path: &str) -> Option<FileType> {
        if path.split('/').any(|part| part.starts_with('.')) {
            return None;
        }
        let found = self.open_below(path, OFlags::PATH).ok()?;
        let mode = rustix::fs::fstat(found).ok()?.st_mode;
        Some(FileType::from_raw_mode(mode))
    }

    /// A file's content, unless that is too much.
    fn read(&self, path: &str) -> io::Result<Option<Taken>> {
        // Not one that a read would wait for.
        let file = File::from(self.open_below(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
        let found = rustix::fs::fstat(&file)?;
        let left = MOST_BYTES - self.bytes;
        let mut content = Vec::new();
        file.take(left + 1).read_to_end(&mut content)?;
        let mode = if found.st_mode & 0o111 != 0 {
            0o755
        } else {
            0o644
        };
        let fits = content.len() as u64 <= left && self.files.len() < MOST_FILES;
        Ok(fits.then_some(Taken { content, mode }))
    }

    fn open_below(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.is_empty() { "." } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        let flags = flags | OFlags::CLOEXEC;
        Ok(openat2(&self.opened, path, flags, Mode::empty(), resolve)?)
    }

    /// Whether it is a link, or below one, that leads out of the folder.
    fn leads_out(&self, path: &str) -> bool {
        let found = self.open_below(path, OFlags::PATH);
        found.is_err_and(|error| error.raw_os_error() == Some(Errno::XDEV.raw_os_error()))
    }

    pub fn finish(self) -> Found {
        let names: Vec<&str> = self.files.keys().map(String::as_str).collect();
        let out: Vec<String> = self
            .leading_out
            .iter()
            .map(|it| format!("`{it}`"))
            .collect();
        let parts = [
            summary(&names),
            (!out.is_empty()).then(|| format!("left out what leads out of the folder: {}", out.join(", "))),
            self.left_out.then(|| "left out what is more than can be taken along: give the folder with `--workspace DIR`".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let files = self.files.into_iter().filter_map(|(path, taken)| {
            let mut file = InputFile::from_bytes(CellPath::parse(&path).ok()?, taken.content);
            file.mode = taken.mode;
            Some(file)
        });
        let module = |path: &String| {
            let top = path.split('/').next()?;
            Some(top.split('.').next()?.to_owned())
        };
        Found {
            files: files.collect(),
            refused: self.leading_out.iter().filter_map(module).collect(),
            line: (!parts.is_empty()).then(|| parts.join("; ")),
        }
    }
}

/// Which files they are, in one line: those in a folder by its name.
fn summary(names: &[&str]) -> Option<String> {
    const NAMED: usize = 5;
    let mut tops: Vec<(&str, usize)> = Vec::new();
    for name in names {
        let top = name.split_once('/').map_or(*name, |(top, _)| top);
        match tops.last_mut().filter(|(last, _)| *last == top) {
            Some((_, count)) => *count += 1,
            None => tops.push((top, 1)),
        }
    }
    let is_folder = |top: &str| {
        names
            .iter()
            .any(|name| name.starts_with(&format!("{top}/")))
    };
    let shown = tops
        .iter()
        .take(NAMED)
        .map(|(top, count)| match is_folder(top) {
            true if *count == 1 => format!("`{top}/` (1 file)"),
            true => format!("`{top}/` ({count} files)"),
            false => format!("`{top}`"),
        });
    let shown: Vec<String> = shown.collect();
    let more = tops.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!shown.is_empty()).then(|| {
        format!(
            "also copied into the sandbox, because the program uses it: {}{more}",
            shown.join(", ")
        )
    })
}
