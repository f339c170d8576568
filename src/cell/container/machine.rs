//! The virtual machine that Podman has its containers in where it cannot have them on this host.
//!
//! It is made and started when Podman asks for it, and stopped again if nothing has run for a while and it was we who started it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::command::{ContainerEngine, EngineKind};
use super::error::ContainerError;

/// Whether a machine runs that we have started, and who uses it.
pub struct Machine {
    idle: Duration,
    /// Whether this process lives long enough to stop it.
    stops: bool,
    state: Mutex<State>,
}

struct State {
    is_ours: bool,
    running: usize,
    /// When the last program started or ended.
    used: Instant,
}

/// A program that runs in a container.
pub struct InUse(Arc<Machine>);

impl Drop for InUse {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running -= 1;
        state.used = Instant::now();
    }
}

impl Machine {
    pub fn new(idle: Duration, stops: bool) -> Arc<Self> {
        let state = State {
            is_ours: false,
            running: 0,
            used: Instant::now(),
        };
        Arc::new(Self {
            idle,
            stops,
            state: Mutex::new(state),
        })
    }

    /// Counts a program until that is dropped.
    pub fn in_use(self: &Arc<Self>) -> InUse {
        let mut state = self.lock();
        state.running += 1;
        state.used = Instant::now();
        InUse(self.clone())
    }

    /// Whether it is what Podman complains about.
    pub fn is_missing(engine: &ContainerEngine, error: &ContainerError) -> bool {
        let ContainerError::Refused { said, .. } = error else {
            return false;
        };
        let said = said.to_lowercase();
        let words = ["cannot connect to podman", "podman machine"];
        engine.kind == EngineKind::Podman && words.iter().any(|it| said.contains(it))
    }

    /// Starts it, and makes it before if there is none. Blocks.
    pub fn start(self: &Arc<Self>, engine: &ContainerEngine) -> Result<(), ContainerError> {
        // Whoever comes meanwhile waits here, and finds that it runs.
        let mut state = self.lock();
        let ask = |what: &str| engine.ask(&["machine", what].map(Into::into));
        let has = |said: &str, word: &str| said.to_lowercase().contains(word);
        let started = match ask("start") {
            Err(said) if has(&said, "not exist") || has(&said, "no such") => {
                let made = ask("init");
                made.map_err(|said| ContainerError::MachineInit { said })?;
                ask("start")
            }
            started => started,
        };
        match started {
            Err(said) if has(&said, "already running") => return Ok(()),
            Err(said) => return Err(ContainerError::MachineStart { said }),
            Ok(_) => {}
        }
        state.used = Instant::now();
        let is_watched = std::mem::replace(&mut state.is_ours, true);
        if self.stops && !is_watched {
            let (machine, engine) = (self.clone(), engine.clone());
            let watch = std::thread::Builder::new().name("machine".to_owned());
            // Without a thread it runs on.
            let _ = watch.spawn(move || machine.watch(&engine));
        }
        Ok(())
    }

    /// Stops it when nothing has run for long enough.
    fn watch(&self, engine: &ContainerEngine) {
        loop {
            let left = {
                let mut state = self.lock();
                let left = match state.running {
                    0 => self.idle.saturating_sub(state.used.elapsed()),
                    _ => self.idle,
                };
                if left.is_zero() {
                    // Nobody starts it before it has stopped.
                    let _ = engine.ask(&["machine", "stop"].map(Into::into));
                    state.is_ours = false;
                    return;
                }
                left
            };
            std::thread::sleep(left.max(Duration::from_millis(100)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
