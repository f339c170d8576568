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

use jail::Jail;
use jail::cgroup::Cgroups;
use tokio::sync::mpsc;

use crate::cell::Requirement;
use crate::plan::{BUILD_FOLDER, Build, RunPlan, Source, WarmUp};
use crate::request::{CellPath, FileSource, InputFile};
use crate::run::{self, Captured, Compiled, Outcome, RunResult, StartError, Stdin, Surface};

use cache::Cache;
use key::Key;

/// Whether there is a program to start.
pub enum Built {
    /// To be placed in the workspace of the run.
    Ready(InputFile, Vec<InputFile>, Compiled),
    Failed(Box<RunResult>),
}

/// Builds programs, and keeps what was built.
pub struct Builder {
    builds: Option<Cache>,
    tools: Option<Cache>,
    /// Builds that go on: who wants the same one waits for it.
    open: Mutex<HashMap<Key, Weak<tokio::sync::Mutex<()>>>>,
}

/// The cells that a build runs in.
pub struct Cells<'a> {
    pub jail: Arc<Jail>,
    pub cgroups: &'a Cgroups,
    pub requirement: Requirement,
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
        let cache = |name, most| folder.as_ref().map(|it| Cache::new(it.join(name), most));
        Self {
            builds: cache("builds", BUILDS),
            tools: cache("toolchains", TOOLS),
            open: Mutex::default(),
        }
    }

    /// The built program of a plan that has a compile step.
    ///
    /// Whoever wants what is being built already waits for that, even when cancelled:
    /// no longer than the compiler may take. Dropping the future ends the wait.
    pub async fn build<C: Future<Output = ()>>(
        &self,
        plan: &RunPlan,
        build: &Build,
        cells: Cells<'_>,
        mut cancelled: Pin<&mut C>,
    ) -> Result<Built, StartError> {
        let started = Instant::now();
        let key = Key::of_build(plan, build);
        let found = |key: &Option<Key>| self.builds.as_ref()?.find(key.as_ref()?);
        let ready = |folder: PathBuf| {
            let place = InputFile {
                path: build_folder(),
                source: FileSource::HostFolder(folder),
                mode: 0o755,
            };
            Built::Ready(place, Vec::new(), compiled(started, true))
        };
        if let Some(folder) = found(&key) {
            return Ok(ready(folder));
        }
        let turn = key.as_ref().map(|key| self.turn(key));
        let _turn = match &turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        // Somebody may have built it while we waited.
        if let Some(folder) = found(&key) {
            return Ok(ready(folder));
        }
        let seed = match &build.warm_up {
            Some(warm_up) => {
                self.warm(plan, build, warm_up, &cells, cancelled.as_mut())
                    .await?
            }
            None => None,
        };
        let mut files: Vec<InputFile> = Vec::new();
        for step in &build.steps {
            let mut step = step_plan(plan, build, step.clone(), files, seed.as_ref());
            step.env.extend(build.more_env.clone());
            let more = &build.more_files;
            step.files
                .retain(|file| !more.iter().any(|it| it.is_in_the_way_of(file)));
            step.files.extend(more.iter().cloned());
            let mut result = execute(&step, &cells, cancelled.as_mut()).await?;
            if !matches!(result.outcome, Outcome::Exited { code: 0, .. }) {
                return Ok(Built::Failed(Box::new(failure(result, build, started))));
            }
            files = std::mem::take(&mut result.collected);
        }
        let folder = InputFile {
            path: build_folder(),
            source: FileSource::EmptyFolder,
            mode: 0o755,
        };
        if let (Some(cache), Some(key)) = (&self.builds, &key) {
            // A cache that cannot be written makes the next build slow, and no more.
            let _ = cache.store(key, BUILD_FOLDER, &files);
        }
        Ok(Built::Ready(folder, files, compiled(started, false)))
    }

    /// The filled cache of a tool chain; none if it cannot be kept or filled.
    ///
    /// SECURITY: only our own program is ever built into it. What a request's
    /// build writes into its copy dies with its cell.
    async fn warm<C: Future<Output = ()>>(
        &self,
        plan: &RunPlan,
        build: &Build,
        warm_up: &WarmUp,
        cells: &Cells<'_>,
        cancelled: Pin<&mut C>,
    ) -> Result<Option<InputFile>, StartError> {
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
        if let Some(folder) = cache.find(&key) {
            return Ok(Some(seed(folder)));
        }
        let mut first = step_plan(plan, build, Vec::new(), Vec::new(), None);
        first.argv = warm_up.steps.first().cloned().unwrap_or_default();
        first.source = Source {
            path: warm_up.file.clone(),
            bytes: warm_up.program.clone().into_bytes(),
        };
        first.files.retain(|file| file.path == build_folder());
        first.files.push(InputFile {
            path: warm_up.cache.clone(),
            source: FileSource::EmptyFolder,
            mode: 0o755,
        });
        first.collect = vec![warm_up.cache.clone()];
        first.timeout = WARM_UP;
        first.limits.cpu_seconds = 2 * WARM_UP.as_secs();
        let result = execute(&first, cells, cancelled).await?;
        let stored = match result.outcome {
            Outcome::Exited { code: 0, .. } => cache
                .store(&key, warm_up.cache.as_str(), &result.collected)
                .ok(),
            _ => None,
        };
        Ok(stored.map(seed))
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

/// The plan of one step's cell.
fn step_plan(
    plan: &RunPlan,
    build: &Build,
    argv: Vec<String>,
    made: Vec<InputFile>,
    seed: Option<&InputFile>,
) -> RunPlan {
    let folder = InputFile {
        path: build_folder(),
        source: FileSource::EmptyFolder,
        mode: 0o755,
    };
    let own = plan.files.iter().cloned();
    let files = own.chain([folder]).chain(made).chain(seed.cloned());
    RunPlan {
        argv,
        env: build.env.clone(),
        files: files.collect(),
        limits: build.limits.clone(),
        timeout: build.timeout,
        output_limit: OUTPUT,
        build: None,
        zygote: None,
        mounts: Vec::new(),
        egress: None,
        collect: vec![build_folder()],
        ..plan.clone()
    }
}

async fn execute<C: Future<Output = ()>>(
    plan: &RunPlan,
    cells: &Cells<'_>,
    cancelled: Pin<&mut C>,
) -> Result<RunResult, StartError> {
    let surface = Surface {
        stdin: Stdin::Empty,
        // Nobody listens: what is kept is enough.
        events: mpsc::channel(1).0,
        requirement: cells.requirement,
        door: None,
    };
    run::run(
        cells.jail.clone(),
        None,
        cells.cgroups,
        plan,
        surface,
        cancelled,
    )
    .await
}

/// A run that ended with its compiler: all that it said is an error's text.
fn failure(result: RunResult, build: &Build, started: Instant) -> RunResult {
    let said = Captured::joined([&result.stderr, &result.stdout]);
    let problems = build.compile.problems(&said.to_text());
    RunResult {
        stdout: Captured::default(),
        stderr: said,
        compiled: Some(Compiled {
            failed: true,
            problems,
            ..compiled(started, false)
        }),
        ..result
    }
}
