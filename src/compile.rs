//! Building a program before it runs: each step in a cell of its own, and never
//! twice for the same sources, commands and tools.
//!
//! A compiler that is fed hostile sources is a program like any other: it gets
//! no more than a run would, save its own limits. What it makes is only bytes to
//! us, and only ever goes into cells that run the same sources.

mod cache;
mod key;

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::cell::{CellError, Launch, Limits, Provider, Requirement};
use crate::language::Problem;
use crate::plan::{BUILD_FOLDER, Build, WarmUp};
use crate::request::{CellPath, FileSource, InputFile};
use crate::run::{self, Captured, Ended, Outcome, Surface};

use cache::Cache;
use key::Key;

/// Whether there is a program to start.
pub enum Built {
    /// To be placed in the workspace of the run.
    Ready(InputFile, Vec<InputFile>, Compiled),
    Failed(Box<Ended>, Compiled),
}

/// What became of a compile step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    pub duration: Duration,
    /// It was built before, and only looked up.
    pub cached: bool,
    /// The run ended here: the compiler failed, and these are its complaints.
    pub failed: bool,
    pub problems: Vec<Problem>,
}

/// Builds programs, and keeps what was built.
pub struct Builder {
    builds: Option<Arc<Cache>>,
    tools: Option<Arc<Cache>>,
    /// Builds that go on: who wants the same one waits for it.
    open: Mutex<HashMap<Key, Weak<tokio::sync::Mutex<()>>>>,
}

/// The cells that a build runs in.
#[derive(Clone, Copy)]
pub struct Cells<'a> {
    pub provider: &'a dyn Provider,
    pub requirement: Requirement,
}

impl Cells<'_> {
    async fn run<C: Future<Output = ()>>(
        &self,
        launch: &Launch,
        cancelled: Pin<&mut C>,
    ) -> Result<Ended, CellError> {
        let surface = Surface::silent(self.requirement);
        run::run(self.provider, launch, surface, cancelled).await
    }
}

/// What all kept programs may take, and all caches of tool chains.
const BUILDS: u64 = 1 << 30;
const TOOLS: u64 = 4 << 30;
/// A tool chain's cache is filled once, so it may take its time.
const WARM_UP: Duration = Duration::from_secs(300);
/// More than a reader wants of a compiler's output.
const OUTPUT: u64 = 16 << 20;

impl Builder {
    /// `folder` is hotcell's own for things that may be lost.
    pub fn new(folder: Option<PathBuf>) -> Self {
        let cache = |name, most| {
            let place = folder.as_ref().map(|it| it.join(name));
            place.map(|it| Arc::new(Cache::new(it, most)))
        };
        Self {
            builds: cache("builds", BUILDS),
            tools: cache("toolchains", TOOLS),
            open: Mutex::default(),
        }
    }

    /// What a program's build makes.
    ///
    /// Whoever wants what is being built already waits for that, even when cancelled:
    /// no longer than the compiler may take. Dropping the future ends the wait.
    pub async fn build<C: Future<Output = ()>>(
        &self,
        build: &Build,
        cells: Cells<'_>,
        mut cancelled: Pin<&mut C>,
    ) -> Result<Built, CellError> {
        let started = Instant::now();
        let key = Key::of_build(build);
        let found = || async { find(self.builds.as_ref()?, key.as_ref()?).await };
        let ready = |folder: PathBuf| {
            let place = InputFile {
                path: build_folder(),
                source: FileSource::HostFolder(folder),
                mode: 0o755,
            };
            Built::Ready(place, Vec::new(), compiled(started, true))
        };
        if let Some(folder) = found().await {
            return Ok(ready(folder));
        }
        let turn = key.as_ref().map(|key| self.turn(key));
        let _turn = match &turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        // Somebody may have built it while we waited.
        if let Some(folder) = found().await {
            return Ok(ready(folder));
        }
        let seed = match &build.warm_up {
            Some(warm_up) => {
                let warm = self.warm(build, warm_up, cells, cancelled.as_mut());
                warm.await?
            }
            None => None,
        };
        tracing::debug!(steps = build.all_steps().count(), "builds a program");
        let mut made: Vec<InputFile> = Vec::new();
        for step in build.all_steps() {
            let launch = step_launch(build, step, made, seed.clone());
            let mut ended = cells.run(&launch, cancelled.as_mut()).await?;
            if !matches!(ended.outcome, Outcome::Exited { code: 0, .. }) {
                return Ok(failure(ended, build, started));
            }
            made = std::mem::take(&mut ended.collected);
        }
        if let (Some(cache), Some(key)) = (&self.builds, &key) {
            // A cache that cannot be written makes the next build slow, and no more.
            made = store(cache, key, BUILD_FOLDER, made).await.0;
        }
        let folder = empty_folder(build_folder());
        Ok(Built::Ready(folder, made, compiled(started, false)))
    }

    /// The filled cache of a tool chain; none if it cannot be kept or filled.
    ///
    /// SECURITY: only our own program is ever built into it. What a request's
    /// build writes into its copy dies with its cell.
    async fn warm<C: Future<Output = ()>>(
        &self,
        build: &Build,
        warm_up: &WarmUp,
        cells: Cells<'_>,
        cancelled: Pin<&mut C>,
    ) -> Result<Option<InputFile>, CellError> {
        let Some(cache) = &self.tools else {
            return Ok(None);
        };
        let key = Key::of_tools(build, warm_up);
        let seed = |folder: PathBuf| InputFile {
            path: warm_up.cache.clone(),
            source: FileSource::HostFolder(folder),
            mode: 0o755,
        };
        let turn = self.turn(&key);
        let _turn = turn.lock().await;
        if let Some(folder) = find(cache, &key).await {
            return Ok(Some(seed(folder)));
        }
        let argv = warm_up.steps.first().cloned().unwrap_or_default();
        let program = InputFile::from_bytes(warm_up.file.clone(), warm_up.program.as_bytes());
        let launch = tool_launch(build, argv)
            .files([program, empty_folder(build_folder())])
            .files([empty_folder(warm_up.cache.clone())])
            .collect(warm_up.cache.clone())
            .timeout(WARM_UP)
            .limits(Limits {
                cpu_seconds: 2 * WARM_UP.as_secs(),
                ..build.limits.clone()
            });
        let result = cells.run(&launch, cancelled).await?;
        let stored = match result.outcome {
            Outcome::Exited { code: 0, .. } => {
                let root = warm_up.cache.as_str();
                store(cache, &key, root, result.collected).await.1
            }
            _ => None,
        };
        Ok(stored.map(seed))
    }

    /// Looks at every byte of what is kept: how much there is of each kind, and what of it was damaged and is removed now.
    pub fn verify(&self) -> Vec<(&'static str, (usize, Vec<String>))> {
        let caches = [("builds", &self.builds), ("toolchains", &self.tools)];
        let there = caches
            .into_iter()
            .filter_map(|(name, it)| Some((name, it.as_ref()?)));
        there.map(|(name, cache)| (name, cache.verify())).collect()
    }

    fn turn(&self, key: &Key) -> Arc<tokio::sync::Mutex<()>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, turn| turn.strong_count() > 0);
        if let Some(turn) = open.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        let turn = Arc::default();
        open.insert(key.clone(), Arc::downgrade(&turn));
        turn
    }
}

/// An entry of a cache. One that this process has not used yet is looked at by a thread that may block.
async fn find(cache: &Arc<Cache>, key: &Key) -> Option<PathBuf> {
    if cache.is_verified(key) {
        return cache.find(key);
    }
    let (cache, key) = (cache.clone(), key.clone());
    let found = tokio::task::spawn_blocking(move || cache.find(&key)).await;
    found.ok().flatten()
}

/// Keeps files; with where they are, if that could be done.
async fn store(
    cache: &Arc<Cache>,
    key: &Key,
    root: &str,
    files: Vec<InputFile>,
) -> (Vec<InputFile>, Option<PathBuf>) {
    let (cache, key, root) = (cache.clone(), key.clone(), root.to_owned());
    let work = move || {
        let stored = cache.store(&key, &root, &files);
        (files, stored.ok())
    };
    // A thread that panicked has taken the files with it, and there is nothing to start.
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}

fn build_folder() -> CellPath {
    CellPath::parse(BUILD_FOLDER).expect("a plain name")
}

fn compiled(started: Instant, cached: bool) -> Compiled {
    Compiled {
        duration: started.elapsed(),
        cached,
        failed: false,
        problems: Vec::new(),
    }
}

fn empty_folder(path: CellPath) -> InputFile {
    InputFile {
        path,
        source: FileSource::EmptyFolder,
        mode: 0o755,
    }
}

/// A program of the tool chain, with nothing but that.
fn tool_launch(build: &Build, argv: Vec<String>) -> Launch {
    Launch::new(argv)
        .env(build.env.clone())
        .trees(build.trees.clone())
        .limits(build.limits.clone())
        .timeout(build.timeout)
        .output_limit(OUTPUT)
}

/// One step: the program's own files, those of its packages in place of what is in their way, and what was made before.
fn step_launch(
    build: &Build,
    argv: &[String],
    made: Vec<InputFile>,
    seed: Option<InputFile>,
) -> Launch {
    let folder = empty_folder(build_folder());
    let files = build.files.iter().cloned().chain([folder]);
    let files = files.chain(made).chain(seed);
    let more = &build.more_files;
    let is_free = |file: &InputFile| !more.iter().any(|it| it.is_in_the_way_of(file));
    tool_launch(build, argv.to_vec())
        .env(build.more_env.clone())
        .files(files.filter(is_free))
        .files(more.iter().cloned())
        .collect(build_folder())
}

/// A build that ended with its compiler: all that it said is an error's text.
fn failure(ended: Ended, build: &Build, started: Instant) -> Built {
    let said = Captured::joined([&ended.stderr, &ended.stdout]);
    let problems = build.compile.problems(&said.to_text());
    let ended = Ended {
        stdout: Captured::default(),
        stderr: said,
        ..ended
    };
    let compiled = Compiled {
        failed: true,
        problems,
        ..compiled(started, false)
    };
    Built::Failed(Box::new(ended), compiled)
}
