//! Packages: which a program needs, installed in a cell of their own, and kept for
//! every later program that needs the same.
//!
//! An install cell has no network but one registry at a port of its loopback (`gateway`), and
//! nothing of the program. What it made is only bytes to us; it becomes a tree that
//! cells see read-only.

mod error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gateway;
mod go;
mod install;
mod javascript;
mod known_imports;
mod lock;
mod manifest;
mod python;
mod registry;
mod registry_page;
mod release_age;
mod requirement;
mod rust;
mod settings;
mod store;
mod system_versions;
mod wishes;

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jail::Tree;
use tokio::sync::{Semaphore, mpsc};

pub use self::error::{PackageError, Refused};
pub use self::python::awaits_at_top;
pub use self::requirement::{BadRequirement, Requirement};
pub use self::settings::Settings;
pub use self::store::{IN_CELL, Set, Store};
use self::wishes::Modules;
pub use self::wishes::{BadWish, Found, Wishes};
use crate::cell::{Provider, Requirement as Walls};
use crate::language::{Definition, LanguageId, Packages as How, Runtime, Surroundings};
use crate::request::{Ecosystem, FileSource, IsolationChoice, RunRequest};
use crate::run::{Ended, OutputEvent, Stream};

/// The modules that a program asks for, of which one may lie beside it as well as come from a registry.
pub fn modules(how: &How, code: &str) -> Vec<String> {
    match how.from {
        Ecosystem::Pypi => {
            let imports = python::imports(code).into_iter();
            imports.map(|it| it.module).collect()
        }
        // A file is named in another way there.
        Ecosystem::Npm | Ecosystem::Go | Ecosystem::Crates => Vec::new(),
    }
}

/// The packages of a program: what is wanted, for which runtime, and how that is installed. Nothing else of the program is here.
#[derive(Debug, Clone)]
pub struct PackagePlan {
    pub language: LanguageId,
    pub runtime: Runtime,
    /// What the runtime needs of the host.
    pub trees: Vec<Tree>,
    pub wishes: Wishes,
    pub how: How,
    /// What an installer has in its environment beside its own: nothing of the request.
    pub env: std::collections::BTreeMap<String, String>,
    pub offline: bool,
    /// Who builds the walls around its installer, if not who usually does.
    pub isolation: Option<IsolationChoice>,
}

/// What a run had of packages.
#[derive(Debug, Clone)]
pub struct Installed {
    pub set: Set,
    /// How long it took, if it was installed for this run.
    pub took: Option<Duration>,
    /// Imports that it has nothing for.
    pub refused: Vec<Refused>,
}

impl Installed {
    fn new(set: Set, took: Option<Duration>) -> Box<Self> {
        let refused = Vec::new();
        Box::new(Self { set, took, refused })
    }
}

/// What a program begins with, as statements of its language that import and do nothing else.
pub fn leading_imports(from: Ecosystem, code: &str) -> Vec<String> {
    match from {
        Ecosystem::Pypi => python::leading_imports(code),
        Ecosystem::Npm => javascript::leading_requires(code),
        Ecosystem::Go | Ecosystem::Crates => Vec::new(),
    }
}

/// What became of a plan's wishes.
pub enum Readied {
    With(Box<Installed>),
    /// There is nothing to install: no import is a package that we may take.
    Without(Vec<Refused>),
    /// It was cancelled.
    Ended(Box<Ended>),
}

/// What it takes to install something.
pub struct InstallerContext<'a> {
    pub provider: &'a dyn Provider,
    pub requirement: Walls,
    pub events: mpsc::Sender<OutputEvent>,
    pub around: &'a Surroundings,
}

impl InstallerContext<'_> {
    /// Says what goes on; nobody listening is fine.
    pub fn tell(&self, text: &str) {
        tell(&self.events, text);
    }

    /// Says how far it is.
    pub fn show(&self, text: String) {
        let _ = self.events.try_send(OutputEvent {
            stream: Stream::Progress,
            bytes: text.into_bytes(),
        });
    }
}

fn tell(events: &mpsc::Sender<OutputEvent>, text: &str) {
    let _ = events.try_send(OutputEvent {
        stream: Stream::Notice,
        bytes: text.as_bytes().to_vec(),
    });
}

/// A runtime that imports, and whether it may be started to ask where it imports from.
pub struct Importer<'a> {
    pub runtime: &'a Runtime,
    pub around: &'a Surroundings,
    /// If not, what it said before is used; without that nothing is taken to be installed already.
    pub may_ask: bool,
    /// The modules that we bring ourselves.
    pub ours: Vec<String>,
}

/// Finds and installs packages.
pub struct Packages {
    settings: Settings,
    /// The folders that runtimes import from, by their path.
    folders: Mutex<HashMap<PathBuf, Arc<Vec<PathBuf>>>>,
    /// Imports that nothing is installed for, and when that was found out.
    refused: Mutex<HashMap<String, (Instant, Refused)>>,
    verified: store::Verified,
    /// Whose turn it is to install: each installer has memory of its own, far more than a program.
    turns: Semaphore,
}

/// How many installers work at a time.
const INSTALLERS: usize = 2;

impl Packages {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            folders: Mutex::default(),
            refused: Mutex::default(),
            verified: store::Verified::default(),
            turns: Semaphore::new(INSTALLERS),
        }
    }

    /// The same, with what is installed in this folder.
    pub fn in_folder(mut self, folder: PathBuf) -> Self {
        self.settings.folder = Some(folder);
        self
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn store(&self) -> Result<Store, PackageError> {
        let folder = self.settings().folder.clone();
        let store = folder.map(Store::new).ok_or(PackageError::NoFolder)?;
        Ok(store.remembering(self.verified.clone()))
    }

    /// The tree that cells of a language with packages see.
    pub fn tree(&self) -> Result<Tree, PackageError> {
        Ok(Tree {
            host: self.store()?.trees()?,
            cell: IN_CELL.into(),
        })
    }

    /// What a request's program needs.
    pub fn wishes(
        &self,
        request: &RunRequest,
        definition: &Definition,
        importer: &Importer<'_>,
    ) -> Result<Option<Wishes>, BadWish> {
        let Some(how) = &definition.packages else {
            return Ok(None);
        };
        let code = String::from_utf8_lossy(request.code());
        // What is imported by a file beside the program is needed too.
        let beside = request
            .asked_files()
            .iter()
            .filter(|file| definition.owns(file.path.as_str()))
            .filter_map(|file| match &file.source {
                FileSource::Bytes(bytes) => Some(String::from_utf8_lossy(bytes)),
                _ => wishes::text_of(file).map(Cow::from),
            });
        let all: Vec<Cow<'_, str>> = [code].into_iter().chain(beside).collect();
        let present = |module: &str| {
            let folders = self.folders(how, importer);
            wishes::is_present(&folders, module)
        };
        let asked = request.asked_packages().of(how.from, how.from);
        let modules = Modules {
            ours: &importer.ours,
            present,
        };
        let mut wishes = wishes::wishes(how, &all, request.asked_files(), &asked, modules)?;
        if !wishes.is_empty() && wishes.lock.is_none() && !how.keep.is_empty() {
            wishes.kept = system_versions::kept(&self.folders(how, importer), &how.keep);
        }
        if !wishes.is_empty() && !self.settings().detect {
            wishes.known.clear();
            wishes.optional.clear();
            wishes.guessed.clear();
        }
        Ok(Some(wishes).filter(|wishes| !wishes.is_empty()))
    }

    /// What a request names of another language's packages; what names no registry is for `plain`. Its program is not looked at.
    pub fn named(
        &self,
        request: &RunRequest,
        how: &How,
        plain: Ecosystem,
    ) -> Result<Option<Wishes>, BadWish> {
        let modules = Modules {
            ours: &[],
            present: |_: &str| false,
        };
        let asked = request.asked_packages().of(how.from, plain);
        let wishes = wishes::wishes(how, &[""], request.asked_files(), &asked, modules)?;
        Ok(Some(wishes).filter(|wishes| !wishes.is_empty()))
    }

    /// The packages of a plan, installed now if they are not yet.
    ///
    /// Dropping the future ends an install; whoever else wants the same starts it anew.
    pub async fn ready<C: Future<Output = ()>>(
        &self,
        packages: &PackagePlan,
        context: &InstallerContext<'_>,
        cancelled: Pin<&mut C>,
    ) -> Result<Readied, PackageError> {
        let base = self.settings().registry(packages.how.from)?;
        let key = install::key(packages, base.as_str(), self.settings().build);
        // One small file, and the disk decides: another process may have removed it.
        if let Some(set) = self.store()?.find_aside(&key).await {
            return Ok(Readied::With(Installed::new(set, None)));
        }
        let job = install::Job {
            packages,
            settings: self.settings(),
            store: self.store()?,
            context,
            refused: &self.refused,
            base,
            key: &key,
            turns: &self.turns,
        };
        job.run(cancelled).await
    }

    /// Has a runtime say where it imports from, so that no program waits for that later.
    pub fn look(&self, definition: &Definition, runtime: &Runtime, around: &Surroundings) {
        if let Some(how) = &definition.packages {
            let importer = Importer {
                runtime,
                around,
                may_ask: true,
                ours: Vec::new(),
            };
            self.folders(how, &importer);
        }
    }

    fn folders(&self, how: &How, importer: &Importer<'_>) -> Arc<Vec<PathBuf>> {
        let Importer {
            runtime,
            around,
            may_ask,
            ..
        } = importer;
        let mut known = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(folders) = known.get(&runtime.path) {
            return folders.clone();
        }
        let said = match how.present.as_slice() {
            [] => String::new(),
            question if *may_ask => runtime.say(question, around),
            question => match runtime.said_before(question, around) {
                Some(said) => said,
                // Not kept: it may be asked later.
                None => return Arc::default(),
            },
        };
        let folders: Vec<PathBuf> = said.lines().map(PathBuf::from).collect();
        let folders = Arc::new(folders);
        known.insert(runtime.path.clone(), folders.clone());
        folders
    }
}
