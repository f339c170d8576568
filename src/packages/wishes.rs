//! Which packages a program needs: what it names itself, what the caller names, and
//! what it imports that is not there.
//!
//! Looks at the request and at the runtime's own folders; asks no registry.

mod imports;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use self::imports::{go_imports, node_imports, python_imports, rust_imports};
use super::manifest::{self, BadList, PackageJson};
use super::{BadRequirement, Ecosystem, Requirement};
use crate::language::Packages as How;
use crate::request::{AskedPackages, FileSource, InputFile};

/// What a program needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// By name: of the caller, of the program's own block, of a list beside it.
    pub named: Vec<Requirement>,
    /// Imports whose package we know.
    pub known: Vec<Found>,
    /// The same, but the program can do without.
    pub optional: Vec<Found>,
    /// Imports that are most likely called like their package.
    pub guessed: Vec<Found>,
    /// Exact versions, instead of all of these.
    pub lock: Option<String>,
    /// Versions that what the runtime has was built for, of packages that need not be among these.
    pub kept: Vec<Requirement>,
}

/// An import and its package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub module: String,
    pub package: Requirement,
}

/// Why it cannot be said what a program needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadWish {
    #[error(transparent)]
    Requirement(#[from] BadRequirement),
    #[error(transparent)]
    List(#[from] BadList),
    #[error("the program needs {0} packages, and {MOST} are allowed")]
    TooMany(usize),
    #[error("{} packages are for programs of their own language alone", .0.title())]
    NotLent(Ecosystem),
}

/// More than any program needs, and less than what keeps a resolver busy for ever.
const MOST: usize = 200;

impl Wishes {
    pub fn is_empty(&self) -> bool {
        let Self {
            named,
            known,
            optional,
            guessed,
            lock,
            kept: _,
        } = self;
        let found = known.is_empty() && optional.is_empty() && guessed.is_empty();
        named.is_empty() && found && lock.is_none()
    }

    /// Whether a package was named, not guessed.
    pub fn names(&self, package: &str) -> bool {
        self.named.iter().any(|it| it.name() == package)
    }

    /// Every package, sorted; without the optional ones if they are not wanted.
    pub fn all(&self, with_optional: bool) -> Vec<Requirement> {
        let found = self.known.iter().chain(&self.guessed);
        let optional = self.optional.iter().filter(|_| with_optional);
        let found = found.chain(optional).map(|it| it.package.clone());
        let mut all: Vec<Requirement> = self.named.iter().cloned().chain(found).collect();
        all.sort();
        all.dedup();
        all
    }
}

impl Wishes {
    /// These and later ones together; none if one of them is a list of exact versions.
    pub fn and(&self, later: &Self) -> Option<Self> {
        fn joined<T: Clone + PartialEq>(one: &[T], other: &[T]) -> Vec<T> {
            let new = other.iter().filter(|it| !one.contains(it));
            one.iter().chain(new).cloned().collect()
        }
        (self.lock.is_none() && later.lock.is_none()).then(|| Self {
            named: joined(&self.named, &later.named),
            known: joined(&self.known, &later.known),
            optional: joined(&self.optional, &later.optional),
            guessed: joined(&self.guessed, &later.guessed),
            lock: None,
            kept: joined(&self.kept, &later.kept),
        })
    }

    /// Whether others have all of these.
    pub fn is_in(&self, others: &Self) -> bool {
        self.and(others).is_some_and(|all| {
            let count = |it: &Self| [&it.known, &it.optional, &it.guessed].map(Vec::len);
            all.named.len() == others.named.len() && count(&all) == count(others)
        })
    }
}

/// The modules that are there without a package.
pub struct Modules<'a, F> {
    /// What we bring ourselves. SECURITY: nobody else's package is installed for these.
    pub ours: &'a [String],
    /// Whether the runtime has one.
    pub present: F,
}

/// What a program needs: its own text is the first of `code`, and files of its language beside
/// it follow.
pub fn wishes(
    how: &How,
    code: &[impl AsRef<str>],
    files: &[InputFile],
    asked: &AskedPackages,
    modules: Modules<'_, impl Fn(&str) -> bool>,
) -> Result<Wishes, BadWish> {
    let mut wishes = Wishes::default();
    let parse = |text: &String| Requirement::parse(text, how.from);
    let mut map = BTreeMap::new();
    match asked {
        // Of one registry there is one list.
        AskedPackages::Detect | AskedPackages::Lists(_) => {}
        // Somebody who names no package wants none.
        AskedPackages::List(list) if list.is_empty() => return Ok(wishes),
        AskedPackages::List(list) => {
            wishes.named = list.iter().map(parse).collect::<Result<_, _>>()?;
        }
        AskedPackages::Map(asked) => {
            for (module, package) in asked {
                let package = parse(package)?;
                map.insert(module.as_str(), package.clone());
                wishes.named.push(package);
            }
        }
        AskedPackages::Lock(lock) => {
            wishes.lock = Some(lock.clone());
            return Ok(wishes);
        }
    }
    let listed = how.list.as_ref().and_then(|list| {
        let file = files.iter().find(|file| file.path == *list)?;
        Some((list.as_str(), text_of(file)?))
    });
    let mut own_module = None;
    match (how.from, listed) {
        (Ecosystem::Go, Some((name, text))) => {
            let (own, required) = manifest::go_mod(name, &text)?;
            own_module = own;
            wishes.named.extend(required);
        }
        (Ecosystem::Crates, Some((name, text))) => {
            wishes.named.extend(manifest::cargo_toml(name, &text)?);
        }
        (_, Some((name, text))) => wishes.named.extend(manifest::list(name, &text, how.from)?),
        (_, None) => {}
    }
    let block = match how.from {
        Ecosystem::Pypi => manifest::block(code.first().map_or("", AsRef::as_ref))?,
        Ecosystem::Npm | Ecosystem::Go | Ecosystem::Crates => None,
    };
    match block {
        // A script that says what it needs has said all.
        Some(block) => wishes.named.extend(block),
        None => {
            let beside = Beside::new(files);
            let is_ours = |module: &str| modules.ours.iter().any(|it| it == module);
            let is_own = |module: &str| {
                // What a session brings.
                module == "hotcell"
                    || is_ours(module)
                    || beside.has(module)
                    || map.contains_key(module)
            };
            let present = modules.present;
            match how.from {
                Ecosystem::Pypi => python_imports(code, &is_own, &present, &mut wishes),
                Ecosystem::Npm => node_imports(code, &is_own, &mut wishes),
                Ecosystem::Crates => rust_imports(code, &is_own, &mut wishes),
                Ecosystem::Go => go_imports(code, &own_module, &mut wishes),
            }
        }
    }
    if how.from == Ecosystem::Npm {
        pin(&mut wishes, files)?;
    }
    let named: Vec<String> = wishes.named.iter().map(Requirement::key).collect();
    let is_new = |it: &Found| !named.contains(&it.package.key());
    wishes.known.retain(is_new);
    wishes.optional.retain(is_new);
    wishes.guessed.retain(is_new);
    match wishes.all(true).len() {
        count if count > MOST => Err(BadWish::TooMany(count)),
        _ => Ok(wishes),
    }
}

/// Takes the versions of imports from a `package.json` among the files: whoever wrote them there has named the packages.
fn pin(wishes: &mut Wishes, files: &[InputFile]) -> Result<(), BadList> {
    const FILE: &str = "package.json";
    let file = files.iter().find(|file| file.path.as_str() == FILE);
    let Some(text) = file.and_then(text_of) else {
        return Ok(());
    };
    let list = PackageJson::read(FILE, &text)?;
    let found = [&wishes.known, &wishes.optional, &wishes.guessed];
    // A version in the import itself is closer.
    let bare = found
        .into_iter()
        .flatten()
        .filter(|it| it.package.is_bare());
    let bare: Vec<String> = bare.map(|it| it.package.name().to_owned()).collect();
    for name in bare {
        let is_named = wishes.names(&name);
        let versions = list.versions(FILE, &name)?.filter(|_| !is_named);
        wishes.named.extend(versions);
    }
    Ok(())
}

/// The files beside a program, by what they could be imported as: in which folder, the program may have told its runtime.
struct Beside<'a> {
    names: HashSet<&'a str>,
    folders: Vec<&'a Path>,
}

impl<'a> Beside<'a> {
    fn new(files: &'a [InputFile]) -> Self {
        let parts = files.iter().flat_map(|file| file.path.components());
        let folders = files.iter().filter_map(|file| match &file.source {
            FileSource::HostFolder(folder) => Some(folder.as_path()),
            _ => None,
        });
        Self {
            names: parts.filter_map(|part| part.split('.').next()).collect(),
            folders: folders.collect(),
        }
    }

    fn has(&self, module: &str) -> bool {
        self.names.contains(module)
            || self.folders.iter().any(|folder| {
                let base = folder.join(module);
                base.is_dir() || base.with_extension("py").is_file()
            })
    }
}

/// What is kept of an earlier run is read for what it imports if it has no more than this.
const MOST_TEXT: u64 = 1 << 20;

/// The text of a file that came with its bytes, or by its path on this host.
pub fn text_of(file: &InputFile) -> Option<String> {
    match &file.source {
        FileSource::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        FileSource::HostFile(path) => std::fs::read_to_string(path).ok(),
        FileSource::Kept(kept) if kept.len() <= MOST_TEXT => {
            let bytes = kept.read(0, usize::MAX).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }
        _ => None,
    }
}

/// Whether one of the folders that a runtime imports from has a module.
pub fn is_present(folders: &[PathBuf], module: &str) -> bool {
    let path = module.replace('.', "/");
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let is_library = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.any(|entry| {
            let rest = entry.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".so"))
        })
    };
    folders.iter().any(|folder| {
        let base = folder.join(&path);
        base.is_dir() || base.with_extension("py").is_file() || is_library(&folder.join(parent))
    })
}

#[cfg(test)]
mod tests;
