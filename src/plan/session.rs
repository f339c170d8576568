//! A program that is a call of a session: what its worker is started with, and what the call itself is.

use std::path::{Path, PathBuf};

use super::RunPlan;
use super::limits::kept;
use crate::cell::Launch;
use crate::language::Session;
use crate::packages::{IN_CELL, PackagePlan, Set};
use crate::request::{CellPath, FileSource, InputFile};

/// Where our own files are in the workspace of a session.
pub const OWN: &str = ".home/.hotcell/";

/// What the file of a call is called, and how its runtime speaks of it.
pub fn call_file(session: &Session, source: &CellPath, number: u64) -> (CellPath, String) {
    let extension = Path::new(source.as_str()).extension();
    let extension = extension.and_then(|it| it.to_str()).unwrap_or_default();
    let name = format!("call-{number}.{extension}");
    let shown = format!("{}/{name}", session.folder);
    (
        CellPath::parse(&name).unwrap_or_else(|_| source.clone()),
        shown,
    )
}

impl RunPlan {
    /// The launch of a new session whose first call this is: its worker takes the program's place.
    pub fn worker_launch(&self, mut launch: Launch) -> Launch {
        let session = self.session.as_ref();
        let worker = session.and_then(|session| session.worker);
        if let Some(source) = launch.files.first_mut() {
            let text = worker.map_or("", |worker| worker.text);
            source.source = FileSource::Bytes(text.into());
        }
        // One without a prelude is told nothing: not every runtime runs some.
        let own = session.filter(|session| !session.prelude.is_empty());
        if let (Some(prestart), Some(session)) = (&mut launch.prestart, own) {
            prestart.prelude = format!("{}\n{}", prestart.prelude, session.prelude);
        }
        let engine = session.filter(|_| self.runtime.is_embedded());
        let engine = engine.and_then(|session| session.embedded.clone());
        if let (Some(engine), Some(word)) = (engine, launch.argv.get_mut(1)) {
            *word = engine;
        }
        if let Some(wanted) = &mut launch.changes {
            wanted.except = self.not_the_sessions();
        }
        let limits = kept(launch.limits.clone());
        launch.limits(limits).channel()
    }

    /// The files that a run of its own leaves in its workspace and none of them is its session's.
    pub fn own_files(&self) -> impl Iterator<Item = PathBuf> {
        let own = self.not_the_sessions().into_iter();
        let path = |path: CellPath| PathBuf::from(path.as_str());
        own.chain([self.source.clone()]).map(path)
    }

    /// What is at the top of its workspace and none of its session's.
    pub(super) fn not_the_sessions(&self) -> Vec<CellPath> {
        let wanted = self.launch.changes.iter();
        let links = self.packages.iter().flat_map(|it| it.how.links.keys());
        let own = wanted.flat_map(|wanted| &wanted.except).chain(links);
        own.cloned().collect()
    }

    /// The text of the program.
    pub fn code(&self) -> &[u8] {
        match self.launch.files.first().map(|file| &file.source) {
            Some(FileSource::Bytes(code)) => code,
            _ => &[],
        }
    }

    /// The files that came with a later call. At a prompt they are those of the first, and may have been changed since.
    pub fn call_files(&self) -> Vec<InputFile> {
        let later = if self.at_prompt { usize::MAX } else { 1 };
        let files = self.launch.files.iter().skip(later);
        let is_callers = |file: &&InputFile| !file.path.as_str().starts_with(OWN);
        files.filter(is_callers).cloned().collect()
    }

    /// What a runtime that runs already needs to have a set of packages: code of its language, and files.
    pub fn later_packages(&self, packages: &PackagePlan, set: &Set) -> (String, Vec<InputFile>) {
        let (how, tree) = (&packages.how, format!("{IN_CELL}/{}", set.tree));
        let fill = |text: &str| text.replace("{packages}", &tree);
        let links = how.links.iter().map(|(path, to)| InputFile {
            path: path.clone(),
            source: FileSource::Link(fill(to).into()),
            mode: 0o777,
        });
        (fill(&how.prelude), links.collect())
    }
}
