//! One set of packages, from what was asked for to a tree that cells see.

mod files;
mod key;
mod npm_commands;
mod reason;
mod step;
mod tool;

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Url;
use tokio::sync::Semaphore;

use self::step::Step;
use self::tool::Tool;
use super::gateway::Gateway;
use super::lock::Lock;
use super::registry::RegistryClient;
use super::requirement::Ecosystem;
use super::settings::Settings;
use super::store::{Set, Store};
use super::{
    Installed, InstallerContext, PackageError, PackagePlan, Readied, Refused, release_age, tell,
};
use crate::run::Ended;
use crate::runtimes::megabytes;

pub use key::key;

/// How long an import that was refused stays so without asking again.
const REMEMBERED: Duration = Duration::from_secs(600);
/// How often it is shown how far the files are.
const PACE: Duration = Duration::from_millis(100);

/// What packages unpack to, at most: so much, and so many times what was downloaded. Text and what Python compiles it to are a dozen times.
const PLAUSIBLE: u64 = 64 << 20;
const RATIO: u64 = 40;

/// SECURITY: an archive of a few megabytes may unpack to as many gigabytes. None that is meant well does.
pub fn implausible(fetched: u64, unpacked: u64) -> Option<String> {
    let most = PLAUSIBLE.saturating_add(fetched.saturating_mul(RATIO));
    let [size, from] = [unpacked, fetched].map(megabytes);
    (unpacked > most).then(|| {
        format!("they unpack to {size} from {from}, which no package does that is meant well")
    })
}

pub struct Job<'a> {
    pub packages: &'a PackagePlan,
    pub settings: &'a Settings,
    pub store: Store,
    pub context: &'a InstallerContext<'a>,
    pub refused: &'a Mutex<HashMap<String, (Instant, Refused)>>,
    pub base: Url,
    pub key: &'a str,
    pub turns: &'a Semaphore,
}

impl Job<'_> {
    pub async fn run<C: Future<Output = ()>>(
        &self,
        mut cancelled: Pin<&mut C>,
    ) -> Result<Readied, PackageError> {
        let started = Instant::now();
        let wishes = &self.packages.wishes;
        if self.packages.offline || self.settings.offline {
            let offline = |it: &super::Found| Refused {
                module: it.module.clone(),
                why: "hotcell is offline".to_owned(),
                candidates: vec![it.package.name().to_owned()],
            };
            if !wishes.guessed.is_empty() {
                let refused = wishes.guessed.iter().map(offline).collect();
                return self.without(refused, cancelled).await;
            }
            // What a program can do without is no reason to stop it either.
            if wishes.lock.is_none() && wishes.named.is_empty() && wishes.known.is_empty() {
                return Ok(Readied::Without(Vec::new()));
            }
            return Err(PackageError::Offline { what: self.what() });
        }
        let upstream = RegistryClient::new(self.base.clone(), self.packages.how.from)?;
        let refused = self.judge(&upstream).await;
        if !refused.is_empty() {
            return self.without(refused, cancelled).await;
        }
        self.store.trees()?;
        let (store, own) = (self.store.clone(), self.key.to_owned());
        let locked = tokio::task::spawn_blocking(move || store.lock(&own)).await;
        let _turn = locked.map_err(|_| self.stopped("it was interrupted"))??;
        // Somebody may have installed it while we waited.
        if let Some(set) = self.store.find_aside(self.key).await {
            return Ok(Readied::With(Installed::new(set, None)));
        }
        // The semaphore is never closed. Who leaves while it waits has installed nothing.
        let _turn = tokio::select! {
            turn = self.turns.acquire() => turn,
            () = cancelled.as_mut() => return Err(self.stopped("it was cancelled")),
        };
        let tool = self.tool().await?;
        self.context.tell(&format!("installing {}", self.what()));
        let language = &self.packages.language;
        tracing::info!(%language, key = self.key, "installs packages");
        let events = self.context.events.clone();
        let gateway = Gateway::new(upstream, move |text| tell(&events, &text));

        let staged = self.store.stage()?;
        let installing = self.install(&tool, &gateway, &staged, cancelled.as_mut());
        let installed = self.shown(&gateway, installing).await;
        let (lock, bytes) = match installed {
            Ok(Ok(installed)) => installed,
            failed => {
                tracing::info!(key = self.key, "packages were not installed");
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
        // SECURITY: a later caller who pins these versions gets this tree, so it is filed under them only if the server has seen that it was
        // made of their bytes, and no code of a package ran beside them.
        let is_sure = lock.is_verified && !self.settings.build;
        let by_lock = is_sure.then(|| key(&pinned, self.base.as_str(), false));
        let took = Some(started.elapsed());
        tracing::info!(key = self.key, bytes, ?took, "packages installed");
        // Others may have asked for the same in other words.
        let same = match &by_lock {
            Some(key) => self.store.find_aside(key).await,
            None => None,
        };
        if let Some(set) = same {
            let _ = std::fs::remove_dir_all(&staged);
            self.store.note(self.key, &set)?;
            return Ok(Readied::With(Installed::new(set, took)));
        }
        let set = Set {
            language: self.packages.language.to_string(),
            asked: wishes.all(true).iter().map(ToString::to_string).collect(),
            installed: lock.installed,
            lock: lock.text,
            tree: String::new(),
            bytes,
        };
        let keys = [Some(self.key.to_owned()), by_lock].into_iter().flatten();
        let (store, keys, most) = (self.store.clone(), keys.collect(), self.settings.size);
        let kept = tokio::task::spawn_blocking(move || store.keep(set, &staged, keys, most)).await;
        let set = kept.map_err(|_| self.stopped("it was interrupted"))??;
        Ok(Readied::With(Installed::new(set, took)))
    }

    /// Shows how far the files are while something is at work.
    async fn shown<T>(&self, gateway: &Gateway, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let mut tick = tokio::time::interval(PACE);
        let mut shown = 0;
        loop {
            tokio::select! {
                done = &mut work => {
                    let (got, size) = gateway.progress();
                    if got > 0 {
                        self.context.show(crate::runtimes::bar(got, size));
                        self.context.show(String::new());
                    }
                    return done;
                }
                _ = tick.tick() => {
                    let (got, size) = gateway.progress();
                    if got != shown {
                        self.context.show(crate::runtimes::bar(got, size));
                        shown = got;
                    }
                }
            }
        }
    }

    /// The same without imports that nothing is installed for. Nobody named them, so they may be modules that the
    /// program writes itself; if not, its own words for what is missing are the best answer.
    async fn without<C: Future<Output = ()>>(
        &self,
        refused: Vec<Refused>,
        cancelled: Pin<&mut C>,
    ) -> Result<Readied, PackageError> {
        let mut packages = self.packages.clone();
        let wishes = &mut packages.wishes;
        // The other guesses have been judged.
        let guessed = std::mem::take(&mut wishes.guessed).into_iter();
        let is_left = |it: &super::Found| refused.iter().all(|no| no.module != it.module);
        wishes.known.extend(guessed.filter(is_left));
        if wishes.is_empty() {
            return Ok(Readied::Without(refused));
        }
        let key = key(&packages, self.base.as_str(), self.settings.build);
        let readied = match self.store.find_aside(&key).await {
            Some(set) => Readied::With(Installed::new(set, None)),
            None => {
                let job = Job {
                    packages: &packages,
                    key: &key,
                    store: self.store.clone(),
                    base: self.base.clone(),
                    ..*self
                };
                Box::pin(job.run(cancelled)).await?
            }
        };
        Ok(match readied {
            Readied::With(mut installed) => {
                installed.refused = refused;
                Readied::With(installed)
            }
            Readied::Without(_) => Readied::Without(refused),
            ended @ Readied::Ended(_) => ended,
        })
    }

    /// The imports that we may not take a package for: there is none, or it is too young, or nobody can tell.
    async fn judge(&self, upstream: &RegistryClient) -> Vec<Refused> {
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
                None => release_age::judge(found, upstream, self.settings.age).await,
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
        refused
    }

    fn check_size(&self, fetched: u64, unpacked: u64) -> Result<(), PackageError> {
        if let Some(why) = implausible(fetched, unpacked) {
            return Err(self.stopped(&why));
        }
        let [size, room] = [unpacked, self.settings.size].map(megabytes);
        if unpacked > self.settings.size {
            let why = format!("they have {size}, and all packages may have {room} together");
            return Err(self.stopped(&why));
        }
        Ok(())
    }

    /// Installs into `staged`: by the lock if there is one, and else all that is wanted, or if
    /// that fails, what cannot be done without. The lock of what was installed, and its bytes.
    async fn install<C: Future<Output = ()>>(
        &self,
        tool: &Tool<'_>,
        gateway: &Arc<Gateway>,
        staged: &Path,
        mut cancelled: Pin<&mut C>,
    ) -> Result<Result<(Lock, u64), Box<Ended>>, PackageError> {
        let wishes = &self.packages.wishes;
        let ecosystem = self.packages.how.from;
        let mut tries = Vec::new();
        let mut asked = None;
        if let Some(text) = &wishes.lock {
            let lock = Lock::read(text, ecosystem).map_err(PackageError::BadLock)?;
            let lock = &*asked.insert(lock);
            tries.push((&tool.installer.exact, files::lock(ecosystem, lock)));
        } else {
            let install = &tool.installer.install;
            let with = |optional, kept| files::wishes(ecosystem, wishes, optional, kept);
            // Whoever asks for another version than the runtime's own packages were built for gets it.
            let kept = Some(wishes.kept.as_slice()).filter(|it| !it.is_empty());
            for kept in kept.into_iter().chain([&[][..]]) {
                tries.push((install, with(true, kept)));
                if !wishes.optional.is_empty() && !wishes.all(false).is_empty() {
                    tries.push((install, with(false, kept)));
                }
            }
        }
        let mut failure = String::new();
        for (words, files) in tries {
            let step = self.step(tool, gateway, words, files, staged);
            match self.execute(step, gateway, cancelled.as_mut()).await? {
                Step::Cancelled(result) => return Ok(Err(result)),
                Step::Failed(reason) => failure = reason,
                Step::Done(result) => {
                    if ecosystem == Ecosystem::Npm {
                        npm_commands::write(staged).map_err(|it| self.store.disk(it))?;
                    }
                    self.check_size(gateway.progress().0, result.exported)?;
                    let fetched = gateway.log().fetched.clone();
                    let lock = Lock::of_tree(staged, ecosystem, &fetched);
                    let lock = lock.map_err(|why| self.unresolved(gateway, why))?;
                    if asked.is_some_and(|asked| asked.installed != lock.installed) {
                        let why = "the packages in it need others that it does not list";
                        return Err(PackageError::BadLock(why.to_owned()));
                    }
                    return Ok(Ok((lock, result.exported)));
                }
            }
        }
        Err(self.unresolved(gateway, failure))
    }
}
