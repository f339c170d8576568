//! A program that is a call of a session: what its worker is started with, and what the call itself is.

use std::path::{Path, PathBuf};

use super::RunPlan;
use super::limits::kept;
use super::source::source_text;
use crate::cell::Launch;
use crate::language::{By, Definition, Session};
use crate::packages::{IN_CELL, PackagePlan, Set};
use crate::request::{CellPath, FileSource, InputFile, RunRequest};

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
    /// Whether the plan of another call is this one with another program, if that needs nothing which this does not need.
    pub fn can_be_had_again(&self, definition: &Definition) -> bool {
        self.session.is_some()
            && self.chosen.0 == By::Request
            && self.build.is_none()
            && self.packages.is_none()
            && self.lent.is_empty()
            && definition.source.name.is_empty()
    }

    /// The plan of another call, whose request differs from that of this one in its program alone. Its runtime is started, so nothing is
    /// granted with it.
    pub fn again(&self, definition: &Definition, request: RunRequest) -> Self {
        let parts = request.into_parts();
        let path = self.launch.files.first().map(|file| file.path.clone());
        let path = path.unwrap_or_else(|| self.source.clone());
        let (source, file) = match &self.session {
            Some(session) => call_file(session, &path, parts.call.number),
            None => (path.clone(), self.file.clone()),
        };
        let text = source_text(definition, &parts.code);
        Self {
            language: self.language.clone(),
            chosen: self.chosen,
            runtime: self.runtime.clone(),
            source,
            launch: Launch::new(Vec::new())
                .files([InputFile::from_bytes(path, text)])
                .mounts(self.launch.view.mounts.iter().cloned())
                .limits(self.launch.limits.clone())
                .timeout(self.launch.timeout)
                .output_limit(self.launch.output_limit),
            preparation: None,
            build: None,
            packages_from: self.packages_from,
            packages: None,
            lent: Vec::new(),
            isolation: self.isolation,
            egress: self.egress.clone(),
            servers: self.servers.clone(),
            failure: self.failure.clone(),
            file,
            most: self.most,
            session: self.session.clone(),
            at_prompt: self.at_prompt,
            notes: self.notes.clone(),
        }
    }

    /// The launch of a new session whose first call this is: its worker takes the program's place.
    pub fn worker_launch(&self, mut launch: Launch) -> Launch {
        let session = self.session.as_deref();
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
