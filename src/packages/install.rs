//! One set of packages, from what was asked for to a tree that cells see.

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jail::{Limits, Tree};
use reqwest::Url;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::gateway::{Gateway, PORT};
use super::lock::Lock;
use super::registry::Upstream;
use super::requirement::{Ecosystem, Requirement};
use super::settings::Settings;
use super::store::{Set, Store};
use super::table::lookalikes;
use super::{Installed, PackageError, PackagePlan, Readied, Refused, Workshop, age, tell};
use crate::fetch::{Event, Place, add_recipe};
use crate::language::{Installer, Runtime, Surroundings};
use crate::plan::{RunPlan, Source};
use crate::request::{CellPath, FileSource, InputFile};
use crate::run::{self, Door, Outcome, RunResult, StartError, Stdin, Surface};

/// How long an import that was refused stays so without asking again.
const REMEMBERED: Duration = Duration::from_secs(600);
/// More than a reader wants of a resolver's words.
const LONGEST_REASON: usize = 1500;

/// The name of all that a set depends on.
pub fn key(plan: &RunPlan, packages: &PackagePlan, base: &str) -> String {
    let wishes = &packages.wishes;
    let all: Vec<String> = wishes.all(true).iter().map(ToString::to_string).collect();
    let lock = wishes.lock.as_deref().unwrap_or_default();
    hash(plan, packages, base, &[&all.join("\n"), lock])
}

fn hash(plan: &RunPlan, packages: &PackagePlan, base: &str, parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    let how = format!("{:?}", packages.how.installers);
    let runtime = identity(&plan.runtime.path);
    let version = env!("CARGO_PKG_VERSION");
    for part in [version, base, &how, &plan.runtime.program, &runtime]
        .iter()
        .chain(parts)
    {
        // With its length, so that two fields never look like two others.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Changes whenever the runtime is replaced.
fn identity(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok();
    let facts = found.map(|it| (it.len(), it.ino(), it.mtime(), it.mtime_nsec()));
    format!("{} {facts:?}", path.display())
}

pub struct Job<'a> {
    pub plan: &'a RunPlan,
    pub packages: &'a PackagePlan,
    pub settings: &'a Settings,
    pub store: Store,
    pub workshop: &'a Workshop<'a>,
    pub refused: &'a Mutex<HashMap<String, (Instant, Refused)>>,
    pub base: Url,
    pub key: &'a str,
}

/// An installer that is there.
struct Tool<'a> {
    installer: &'a Installer,
    program: String,
    trees: Vec<Tree>,
}

/// How a step ended.
enum Step {
    Done(Box<RunResult>),
    /// By itself, with words for the caller.
    Failed(String),
    Cancelled(Box<RunResult>),
}

impl Job<'_> {
    pub async fn run<C: Future<Output = ()>>(
        &self,
        mut cancelled: Pin<&mut C>,
    ) -> Result<Readied, PackageError> {
        let started = Instant::now();
        let wishes = &self.packages.wishes;
        if self.packages.offline || self.settings.offline {
            // What nobody named may be no package at all: then the program says so itself.
            if wishes.lock.is_none() && wishes.named.is_empty() && wishes.known.is_empty() {
                let offline = |it: &super::Found| Refused {
                    module: it.module.clone(),
                    why: "hotcell is offline, so nothing was looked for".to_owned(),
                    candidates: vec![it.package.name().to_owned()],
                };
                return Ok(Readied::Without(
                    wishes.guessed.iter().map(offline).collect(),
                ));
            }
            return Err(PackageError::Offline { what: self.what() });
        }
        let upstream = Upstream::new(self.base.clone(), self.packages.how.from)?;
        if let Some(refused) = self.judge(&upstream).await? {
            return Ok(Readied::Without(refused));
        }
        self.store.trees()?;
        let (store, own) = (self.store.clone(), self.key.to_owned());
        let locked = tokio::task::spawn_blocking(move || store.lock(&own)).await;
        let _turn = locked.map_err(|_| self.stopped("it was interrupted"))??;
        // Somebody may have installed it while we waited.
        if let Some(set) = self.store.find(self.key) {
            return Ok(Readied::With(Box::new(Installed { set, took: None })));
        }
        let tool = self.tool().await?;
        self.workshop.tell(&format!("installing {}", self.what()));
        let events = self.workshop.events.clone();
        let gateway = Gateway::new(upstream, move |text| tell(&events, &text));

        let staged = self.store.stage()?;
        let installed = self
            .install(&tool, &gateway, &staged, cancelled.as_mut())
            .await;
        let (lock, bytes) = match installed {
            Ok(Ok(installed)) => installed,
            failed => {
                let _ = std::fs::remove_dir_all(&staged);
                return failed.map(|ended| match ended {
                    Ok(_) => Readied::Without(Vec::new()),
                    Err(ended) => Readied::Ended(ended),
                });
            }
        };
        let pinned = PackagePlan {
            wishes: super::Wishes {
                lock: Some(lock.text.clone()),
                ..super::Wishes::default()
            },
            ..self.packages.clone()
        };
        let by_lock = key(self.plan, &pinned, self.base.as_str());
        let took = Some(started.elapsed());
        // Others may have asked for the same in other words.
        if let Some(set) = self.store.find(&by_lock) {
            let _ = std::fs::remove_dir_all(&staged);
            self.store.note(self.key, &set)?;
            return Ok(Readied::With(Box::new(Installed { set, took })));
        }
        let set = Set {
            language: self.plan.language.to_string(),
            asked: wishes.all(true).iter().map(ToString::to_string).collect(),
            installed: lock.installed,
            lock: lock.text,
            tree: self.store.settle(&staged)?,
            bytes,
        };
        for key in [self.key, &by_lock] {
            self.store.note(key, &set)?;
        }
        self.store.trim(self.settings.size);
        Ok(Readied::With(Box::new(Installed { set, took })))
    }

    /// Whether nothing is to be installed, because no import is a package that we may take.
    async fn judge(&self, upstream: &Upstream) -> Result<Option<Vec<Refused>>, PackageError> {
        let wishes = &self.packages.wishes;
        let mut refused = Vec::new();
        for found in &wishes.guessed {
            let name = found.package.to_string();
            let known = {
                let all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
                all.get(&name)
                    .filter(|it| it.0.elapsed() < REMEMBERED)
                    .map(|it| it.1.clone())
            };
            let judged = match known {
                Some(known) => Ok(Some(known)),
                None => age::judge(found, upstream, self.settings.age).await,
            };
            match judged {
                Ok(None) => {}
                Ok(Some(why)) => {
                    let mut all = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
                    // Names come from programs, so there must be an end to them.
                    if all.len() > 10_000 {
                        all.clear();
                    }
                    all.insert(name, (Instant::now(), why.clone()));
                    refused.push(why);
                }
                Err(reason) => refused.push(Refused {
                    module: found.module.clone(),
                    why: format!("the registry could not be asked for it: {reason}"),
                    candidates: Vec::new(),
                }),
            }
        }
        let others = wishes.named.len() + wishes.known.len() + wishes.guessed.len() - refused.len();
        match (refused.is_empty(), others) {
            (true, _) => Ok(None),
            // Perhaps it is no package at all; the program's own words are the best answer.
            (false, 0) => Ok(Some(refused)),
            // Half of its packages are worth nothing.
            (false, _) => Err(PackageError::Refused { refused }),
        }
    }

    /// Installs into `staged`: by the lock if there is one, and else all that is wanted, or if
    /// that fails, what cannot be done without. The lock of what was installed, and its bytes.
    async fn install<C: Future<Output = ()>>(
        &self,
        tool: &Tool<'_>,
        gateway: &Arc<Gateway>,
        staged: &Path,
        mut cancelled: Pin<&mut C>,
    ) -> Result<Result<(Lock, u64), Box<RunResult>>, PackageError> {
        let wishes = &self.packages.wishes;
        let ecosystem = self.packages.how.from;
        let mut tries = Vec::new();
        if let Some(text) = &wishes.lock {
            let lock = Lock::read(text, ecosystem).map_err(PackageError::BadLock)?;
            tries.push((&tool.installer.exact, lock_files(ecosystem, &lock)));
        } else {
            tries.push((
                &tool.installer.install,
                list_file(ecosystem, &wishes.all(true)),
            ));
            let least = wishes.all(false);
            if !wishes.optional.is_empty() && !least.is_empty() {
                tries.push((&tool.installer.install, list_file(ecosystem, &least)));
            }
        }
        let mut failure = String::new();
        for (words, files) in tries {
            let step = self.step(tool, gateway, words, files, staged);
            match self.execute(step, gateway, cancelled.as_mut()).await? {
                Step::Cancelled(result) => return Ok(Err(result)),
                Step::Failed(reason) => failure = reason,
                Step::Done(result) => {
                    let fetched = gateway.log().fetched.clone();
                    let lock = Lock::of_tree(staged, ecosystem, &fetched);
                    let lock = lock.map_err(|why| self.unresolved(gateway, why))?;
                    return Ok(Ok((lock, result.exported)));
                }
            }
        }
        Err(self.unresolved(gateway, failure))
    }

    /// The plan of one step's cell. It has nothing of the program: neither its code nor its
    /// files, variables or arguments.
    fn step(
        &self,
        tool: &Tool<'_>,
        gateway: &Gateway,
        words: &[String],
        (list, more): (InputFile, Option<InputFile>),
        staged: &Path,
    ) -> RunPlan {
        let how = &self.packages.how;
        let index = gateway.index();
        let fill = [
            ("{tool}", tool.program.as_str()),
            ("{runtime}", &self.plan.runtime.program),
            ("{index}", &index),
        ];
        let memory = u64::from(how.memory) << 20;
        let timeout = Duration::from_secs(how.timeout.into());
        let own = self
            .plan
            .trees
            .iter()
            .filter(|it| it.cell != Path::new(super::IN_CELL));
        let mut trees: Vec<Tree> = own.chain(&tool.trees).cloned().collect();
        trees.dedup();
        let folder = |path: &str| InputFile {
            path: cell_path(path),
            source: FileSource::EmptyFolder,
            mode: 0o755,
        };
        let bytes = match list.source {
            FileSource::Bytes(bytes) => bytes,
            _ => Vec::new(),
        };
        let env = tool.installer.env.iter();
        let env = env.map(|(name, value)| (name.clone(), value.replace("{index}", &index)));
        RunPlan {
            argv: tool.installer.command(words, &fill, self.settings.build),
            env: self.packages.env.clone().into_iter().chain(env).collect(),
            trees,
            source: Source {
                path: list.path,
                bytes,
            },
            files: [folder("out"), folder("cache")]
                .into_iter()
                .chain(more)
                .collect(),
            limits: Limits {
                memory,
                cpus: 2.0,
                cpu_seconds: 2 * timeout.as_secs() + 1,
                tasks: 256,
                file_size: memory,
                workspace: memory / 4 * 3,
                workspace_inodes: 500_000,
                tmp: memory / 4,
                ..self.plan.limits.clone()
            },
            timeout,
            output_limit: 16 << 20,
            build: None,
            zygote: None,
            wake: String::new(),
            packages: None,
            mounts: Vec::new(),
            egress: None,
            collect: Vec::new(),
            export: Some((cell_path("out/tree"), staged.to_owned())),
            ..self.plan.clone()
        }
    }

    async fn execute<C: Future<Output = ()>>(
        &self,
        step: RunPlan,
        gateway: &Arc<Gateway>,
        cancelled: Pin<&mut C>,
    ) -> Result<Step, PackageError> {
        let cell = |error: StartError| match error {
            StartError::Collect(source) if source.kind() == std::io::ErrorKind::StorageFull => {
                self.store.disk(source)
            }
            error => PackageError::Cell(Box::new(error)),
        };
        let jail = (self.workshop.jail)(&step.trees).map_err(|it| cell(it.into()))?;
        let answering = gateway.clone();
        let surface = Surface {
            stdin: Stdin::Empty,
            // Nobody listens: what is kept is enough.
            events: mpsc::channel(1).0,
            requirement: self.workshop.requirement,
            door: Some(Door {
                port: PORT,
                answer: Box::new(move |listener: TcpListener| Box::pin(answering.serve(listener))),
            }),
        };
        let cgroups = self.workshop.cgroups;
        let result = run::run(jail, None, cgroups, &step, surface, cancelled)
            .await
            .map_err(cell)?;
        let trouble = gateway.log().trouble.first().cloned();
        let seconds = step.timeout.as_secs();
        match (&result.outcome, trouble) {
            (Outcome::Exited { code: 0, .. }, _) => Ok(Step::Done(Box::new(result))),
            (Outcome::Cancelled, _) => Ok(Step::Cancelled(Box::new(result))),
            (_, Some(reason)) if gateway.log().is_unreachable => Err(PackageError::NoNetwork {
                what: self.what(),
                reason,
            }),
            (_, Some(reason)) => Err(self.stopped(&reason)),
            (Outcome::TimedOut, _) => {
                Err(self.stopped(&format!("it took longer than {seconds} s")))
            }
            (Outcome::OutOfMemory, _) => {
                Err(self.stopped("the packages are larger than an installer's memory"))
            }
            (Outcome::Exited { .. }, _) => {
                let said = [result.stderr.to_text(), result.stdout.to_text()].concat();
                if said.contains("No space left on device") {
                    return Err(self.stopped("the packages are larger than an installer's disk"));
                }
                Ok(Step::Failed(reason_of(&said)))
            }
            _ => Err(self.stopped("the installer was lost")),
        }
    }

    /// The first installer that is there, fetched if need be.
    async fn tool(&self) -> Result<Tool<'_>, PackageError> {
        let installers = &self.packages.how.installers;
        let around = self.workshop.around.clone();
        let events = self.workshop.events.clone();
        let wanted = installers.clone();
        let work = move || find_tool(&wanted, &around, &|text| tell(&events, text));
        let found = tokio::task::spawn_blocking(work).await;
        let found = found.map_err(|_| self.stopped("it was interrupted"))?;
        let (at, found) = found?;
        Ok(Tool {
            installer: &installers[at],
            program: found.program.clone(),
            trees: found.prefix.into_iter().collect(),
        })
    }

    /// What is wanted, for messages.
    fn what(&self) -> String {
        let wishes = &self.packages.wishes;
        if wishes.lock.is_some() {
            return "the packages of the lock".to_owned();
        }
        let found = wishes
            .known
            .iter()
            .chain(&wishes.guessed)
            .chain(&wishes.optional);
        let found = found.map(|it| match it.package.name() == it.module {
            true => format!("`{}`", it.package),
            false => format!("`{}` (for `import {}`)", it.package, it.module),
        });
        let named = wishes.named.iter().map(|it| format!("`{it}`"));
        let all: Vec<String> = named.chain(found).collect();
        match all.len() {
            0..=6 => all.join(", "),
            more => format!("{} and {} more", all[..5].join(", "), more - 5),
        }
    }

    fn stopped(&self, reason: &str) -> PackageError {
        PackageError::Stopped {
            what: self.what(),
            reason: reason.to_owned(),
        }
    }

    fn unresolved(&self, gateway: &Gateway, reason: String) -> PackageError {
        let missing = gateway.log().missing.clone();
        let wishes = &self.packages.wishes;
        let mut found = wishes.known.iter().chain(&wishes.guessed);
        let of_missing = found.clone().find(|it| missing.contains(&it.package.key()));
        let module = of_missing
            .or_else(|| found.next())
            .map(|it| it.module.clone());
        let near = missing
            .iter()
            .flat_map(|it| lookalikes(self.packages.how.from, it));
        let mut candidates: Vec<String> = near.map(str::to_owned).collect();
        candidates.dedup();
        PackageError::Unresolved {
            what: self.what(),
            reason,
            module,
            candidates,
        }
    }
}

fn find_tool(
    installers: &[Installer],
    around: &Surroundings,
    tell: &dyn Fn(&str),
) -> Result<(usize, Runtime), PackageError> {
    let find = || {
        let found = installers.iter().enumerate();
        found
            .filter_map(|(at, it)| Some((at, Runtime::tool(&it.tool, around)?)))
            .next()
    };
    if let Some(found) = find() {
        return Ok(found);
    }
    let names: Vec<&str> = installers.iter().map(|it| it.tool.as_str()).collect();
    let missing = |source| PackageError::NoInstaller {
        tool: names.join(" or "),
        source,
    };
    let recipe = installers.iter().find_map(|it| it.recipe.as_deref());
    let (Some(recipe), Some(data)) = (recipe, around.data.as_deref()) else {
        return Err(missing(None));
    };
    let mut hear = |event: Event<'_>| {
        if let Event::Fetching {
            recipe,
            version,
            size,
            ..
        } = event
        {
            let size = size.map_or(String::new(), |it| {
                format!(" ({})", crate::fetch::megabytes(it))
            });
            tell(&format!(
                "fetching {recipe} {version}{size}, which installs packages"
            ));
        }
    };
    let place = Place::in_data(data);
    add_recipe(recipe, &place, around.config.as_deref(), &mut hear)
        .map_err(|error| missing(Some(Box::new(error))))?;
    find().ok_or_else(|| missing(None))
}

/// What is wanted, as files of the ecosystem's own kind.
fn list_file(ecosystem: Ecosystem, wanted: &[Requirement]) -> (InputFile, Option<InputFile>) {
    match ecosystem {
        Ecosystem::Pypi => {
            let lines: String = wanted.iter().map(|it| format!("{it}\n")).collect();
            (InputFile::from_bytes(cell_path("packages.in"), lines), None)
        }
        Ecosystem::Npm => {
            let pairs = wanted
                .iter()
                .map(|it| (it.name().to_owned(), it.versions().into()));
            let dependencies = pairs.collect::<serde_json::Map<String, serde_json::Value>>();
            (package_json(dependencies.into()), None)
        }
    }
}

/// A lock, and for npm the list that it was made from, which npm wants beside it.
fn lock_files(ecosystem: Ecosystem, lock: &Lock) -> (InputFile, Option<InputFile>) {
    let file = |path| InputFile::from_bytes(cell_path(path), lock.text.as_bytes());
    match ecosystem {
        Ecosystem::Pypi => (file("packages.lock"), None),
        Ecosystem::Npm => {
            let read: serde_json::Value = serde_json::from_str(&lock.text).unwrap_or_default();
            let list = package_json(read["packages"][""]["dependencies"].clone());
            (file("out/tree/package-lock.json"), Some(list))
        }
    }
}

fn package_json(dependencies: serde_json::Value) -> InputFile {
    let text = serde_json::json!({ "private": true, "dependencies": dependencies });
    InputFile::from_bytes(cell_path("out/tree/package.json"), text.to_string())
}

fn cell_path(path: &str) -> CellPath {
    CellPath::parse(path).expect("a fixed good path")
}

/// A resolver's words in one line, without its ornaments.
fn reason_of(said: &str) -> String {
    let plain = |c: char| !"×╰─▶│├❯✗".contains(c);
    let lines = said
        .lines()
        .map(|line| line.chars().filter(|c| plain(*c)).collect::<String>());
    let words: Vec<String> = lines
        .flat_map(|line| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    let mut text = words.join(" ");
    if let Some((end, _)) = text.char_indices().nth(LONGEST_REASON) {
        text.truncate(end);
        text.push('…');
    }
    match text.is_empty() {
        true => "the installer does not say why".to_owned(),
        false => text,
    }
}
