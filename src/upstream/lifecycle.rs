//! When a server runs: from when it is first called until nobody has called it for a while, and again if it has ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use super::backoff::Failures;
use super::http::LOGIN;
use super::launch::ServerStderr;
use super::link::{self, Link, MISTAKE, Upstream};
use super::scrub::scrub_tools;
use super::storage::Memory;
use super::{CallError, Tool};
use crate::config::{Reach, Rules, Ruling, Server};

/// One server of the configuration, and whether it runs.
pub struct Lifecycle {
    pub server: Server,
    pub name: String,
    pub stderr: ServerStderr,
    /// Told when the tools may have changed.
    pub news: Arc<Notify>,
    pub memory: Option<Memory>,
    known: Mutex<Known>,
    /// Whether the tools were asked for by this process.
    asked: AtomicBool,
    phase: Mutex<Phase>,
    failures: Mutex<Failures>,
}

/// The tools that a server has, and those that its rules do not refuse: nobody is told of the others.
#[derive(Default)]
struct Known {
    all: Arc<Vec<Tool>>,
    offered: Arc<Vec<Tool>>,
}

/// Whether a server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// There is no server: they are functions of this process.
    Functions,
    Closed,
    Opening,
    Open,
    /// It did not start, or did not stay, and is left alone for a while; or its entry is wrong.
    Failed(String),
}

enum Phase {
    Closed,
    /// Being opened by a task of its own: whoever wanted it first may be gone before it is.
    Opening(watch::Receiver<Option<Result<(), String>>>),
    Open {
        link: Link,
        since: Instant,
        used: Instant,
    },
}

impl Known {
    fn new(all: Vec<Tool>, rules: &Rules) -> Self {
        let is_offered =
            |tool: &&Tool| matches!(rules.judge(&tool.name), Ruling::Allow | Ruling::Ask);
        let all = Arc::new(all);
        let offered = match all.iter().all(|tool| is_offered(&tool)) {
            true => all.clone(),
            false => Arc::new(all.iter().filter(is_offered).cloned().collect()),
        };
        Self { all, offered }
    }
}

impl Lifecycle {
    pub fn new(
        name: String,
        server: Server,
        stderr: ServerStderr,
        news: Arc<Notify>,
        memory: Option<Memory>,
    ) -> Self {
        let known = memory.as_ref().and_then(|it| it.tools.read());
        let known = Known::new(known.unwrap_or_default(), &server.rules);
        Self {
            server,
            name,
            stderr,
            news,
            memory,
            known: Mutex::new(known),
            asked: AtomicBool::new(false),
            phase: Mutex::new(Phase::Closed),
            failures: Mutex::default(),
        }
    }

    pub fn state(&self) -> ServerState {
        if let Reach::Mistake(_) = &self.server.reach {
            return ServerState::Failed(MISTAKE.to_owned());
        }
        match &*lock(&self.phase) {
            Phase::Open { link, .. } if !link.is_over() => return ServerState::Open,
            Phase::Opening(opening) if opening.has_changed().is_ok() => {
                return ServerState::Opening;
            }
            _ => {}
        }
        match lock(&self.failures).check() {
            Ok(()) => ServerState::Closed,
            Err(why) => ServerState::Failed(why),
        }
    }

    /// The tools as they were last told.
    pub fn all(&self) -> Arc<Vec<Tool>> {
        lock(&self.known).all.clone()
    }

    /// Those that the rules do not refuse.
    pub fn offered(&self) -> Arc<Vec<Tool>> {
        lock(&self.known).offered.clone()
    }

    /// Whether the tools are known well enough that nobody has to start it to learn them.
    pub fn is_known(&self) -> bool {
        let is_stored = || self.memory.as_ref().is_some_and(|it| it.tools.is_fresh());
        self.asked.load(Ordering::Relaxed) || is_stored()
    }

    /// Whether it has said that its tools are others now.
    pub fn is_stale(&self) -> bool {
        match &*lock(&self.phase) {
            Phase::Open { link, .. } => link.news().is_stale(),
            _ => false,
        }
    }

    /// The connection, opened at need. Whoever comes meanwhile waits for the same, and nobody's leaving ends it.
    pub async fn link(self: &Arc<Self>) -> Result<Link, CallError> {
        if let Reach::Mistake(_) = &self.server.reach {
            // Nothing to wait for: it is as wrong in a second.
            return Err(CallError::Unavailable(MISTAKE.to_owned()));
        }
        loop {
            let mut opening = {
                let mut phase = lock(&self.phase);
                match &mut *phase {
                    Phase::Open { link, used, .. } if !link.is_over() => {
                        *used = Instant::now();
                        return Ok(link.clone());
                    }
                    Phase::Opening(opening) if opening.has_changed().is_ok() => opening.clone(),
                    ended => {
                        if let Phase::Open { since, .. } = ended {
                            lock(&self.failures).ended(since.elapsed());
                        }
                        *ended = Phase::Closed;
                        lock(&self.failures)
                            .check()
                            .map_err(CallError::Unavailable)?;
                        let opening = self.start();
                        *ended = Phase::Opening(opening.clone());
                        opening
                    }
                }
            };
            let opened = opening.wait_for(Option::is_some).await;
            match opened.as_deref() {
                Ok(Some(Err(why))) => return Err(CallError::Unavailable(why.clone())),
                Ok(_) => {}
                Err(_) => return Err(CallError::Unavailable("it was not opened".to_owned())),
            }
        }
    }

    /// Asks for the tools again, if the server has said that they are others.
    pub async fn refresh(&self, link: &dyn Upstream) {
        if link.news().take()
            && let Ok(tools) = link.tools().await
        {
            self.learn(tools);
        }
    }

    fn start(self: &Arc<Self>) -> watch::Receiver<Option<Result<(), String>>> {
        let (tell, opening) = watch::channel(None);
        let this = self.clone();
        tokio::spawn(async move {
            let tokens = this.memory.as_ref().and_then(|it| it.tokens.as_ref());
            let opened = link::open(&this.server, this.stderr, tokens, &this.news).await;
            let opened = match opened {
                Ok((link, tools)) => {
                    tracing::info!(
                        server = this.name,
                        tools = tools.len(),
                        "upstream server started"
                    );
                    this.learn(tools);
                    this.opened(link);
                    Ok(())
                }
                Err(why) => {
                    // Not why: that may be the server's own words.
                    tracing::warn!(server = this.name, "upstream server does not start");
                    let why = match why == LOGIN {
                        true => format!("{why} (`hotcell servers login {}`)", this.name),
                        false => why,
                    };
                    let why = super::scrub::line(&why, &this.server.secrets);
                    lock(&this.failures).failed(why.clone());
                    *lock(&this.phase) = Phase::Closed;
                    Err(why)
                }
            };
            let _ = tell.send(Some(opened));
        });
        opening
    }

    fn opened(self: &Arc<Self>, link: Link) {
        lock(&self.failures).began();
        tokio::spawn(close_when_idle(Arc::downgrade(self), Arc::downgrade(&link)));
        let now = Instant::now();
        *lock(&self.phase) = Phase::Open {
            link,
            since: now,
            used: now,
        };
    }

    fn learn(&self, mut tools: Vec<Tool>) {
        scrub_tools(&mut tools, &self.server.secrets);
        self.asked.store(true, Ordering::Relaxed);
        let known = Known::new(tools, &self.server.rules);
        let tools = known.all.clone();
        let before = std::mem::replace(&mut *lock(&self.known), known);
        if before.all != tools {
            self.news.notify_one();
        }
        if let Some(memory) = self.memory.clone() {
            // What cannot be written is asked for again next time.
            tokio::task::spawn_blocking(move || memory.tools.write(&tools));
        }
    }

    /// Ends it if nobody has used it for long enough; else, when to look again.
    fn close_if_idle(&self, link: &Weak<dyn Upstream>) -> Option<Duration> {
        let mut phase = lock(&self.phase);
        let Phase::Open {
            link: open, used, ..
        } = &mut *phase
        else {
            return None;
        };
        if !std::ptr::addr_eq(Arc::as_ptr(open), link.as_ptr()) || open.is_over() {
            return None;
        }
        if Arc::strong_count(open) > 1 {
            *used = Instant::now();
        }
        let left = self.server.idle.saturating_sub(used.elapsed());
        if !left.is_zero() {
            return Some(left);
        }
        let closed = std::mem::replace(&mut *phase, Phase::Closed);
        drop(phase);
        drop(closed);
        tracing::info!(server = self.name, "upstream server closed");
        None
    }
}

async fn close_when_idle(lifecycle: Weak<Lifecycle>, link: Weak<dyn Upstream>) {
    while let Some(left) = lifecycle.upgrade().and_then(|it| it.close_if_idle(&link)) {
        tokio::time::sleep(left).await;
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
