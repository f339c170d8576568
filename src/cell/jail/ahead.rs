//! Sandboxes that have done what a program begins with: the imports of its packages.
//!
//! SECURITY: packages are a stranger's code, so they are loaded within all walls, in the sandbox that is to run the program and in no other
//! process, after everything of ours in it was closed. Each has one program, of a caller for whom its packages were installed.

use std::cmp::Reverse;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::prestarted::{Walls, ZygoteMaker};
use super::running::Guard;
use super::setup::{Program, Started};
use crate::cell::pool::{Budget, Maker, Pool, Size};
use crate::cell::{Ahead, Boxed, CellError, Channel, Launch, Requirement};

/// How long the imports may take.
const IMPORTS: Duration = Duration::from_secs(60);
/// What such a sandbox says when it has done them.
const READY: &[u8] = b"ready\n";
/// How many wait for each beginning. Each has memory of its own: so many MiB are assumed until it is there, and where no cgroup counts.
const SIZE: Size = Size {
    ready: 2,
    own_memory: Some(48),
    forget: Duration::from_secs(300),
};
/// How many beginnings are remembered.
const MOST: usize = 32;

/// The pools of the beginnings that were used, the last one at the end.
#[derive(Default)]
pub struct AheadPools(Mutex<Vec<Arc<Pool<AheadMaker>>>>);

impl AheadPools {
    /// Has sandboxes wait for programs like that of `maker`, and keeps them when nobody uses them.
    pub fn keep(&self, maker: AheadMaker, budget: Arc<Budget>) {
        self.with(|pools| of(pools, maker, budget)).keep();
    }

    /// One that waits for a program like that of `maker`, if there is one; and what to keep until the run has ended, when more are made.
    pub fn take(&self, maker: AheadMaker, budget: Arc<Budget>) -> (Option<Waiting>, Vec<Guard>) {
        let (own, mut serving) = self.with(|pools| {
            let own = of(pools, maker, budget);
            let serves = |it: &&Arc<Pool<AheadMaker>>| it.maker.serves(&own.maker);
            let serving: Vec<_> = pools.iter().filter(serves).cloned().collect();
            (own, serving)
        });
        // One that has done fewer of the imports is better than one that has done none.
        serving.sort_by_key(|it| Reverse(it.maker.ahead.imports.len()));
        let mut refills: Vec<Guard> = vec![Box::new(own.refill_later())];
        let mut found = serving.iter().filter_map(|pool| {
            let found = pool.take_ready()?;
            refills.push(Box::new(pool.refill_later()));
            Some(found)
        });
        let found = found.next();
        (found, refills)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Vec<Arc<Pool<AheadMaker>>>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The pool of a maker, which is the last used one from now on.
fn of(
    pools: &mut Vec<Arc<Pool<AheadMaker>>>,
    maker: AheadMaker,
    budget: Arc<Budget>,
) -> Arc<Pool<AheadMaker>> {
    let known = pools.iter().position(|it| it.maker.makes_same(&maker));
    let own = match known {
        Some(at) => pools.remove(at),
        None => Pool::new(maker, budget, SIZE),
    };
    if pools.len() >= MOST {
        pools.remove(0);
    }
    pools.push(own.clone());
    own
}

/// Makes them of pre-started sandboxes of one kind.
pub struct AheadMaker {
    pub zygote: Arc<Pool<ZygoteMaker>>,
    pub ahead: Ahead,
    pub requirement: Requirement,
    pub launch: Launch,
}

/// It has its program's packages loaded and waits for the program.
pub struct Waiting {
    pub started: Started,
    pub channel: Channel,
    pub walls: Walls,
}

impl AheadMaker {
    /// Whether what it makes can run the programs of another.
    fn serves(&self, other: &Self) -> bool {
        let [own, others] = [&self.ahead, &other.ahead];
        Arc::ptr_eq(&self.zygote, &other.zygote)
            && self.requirement == other.requirement
            && own.packages == others.packages
            && own.imports.iter().all(|it| others.imports.contains(it))
    }

    fn makes_same(&self, other: &Self) -> bool {
        self.serves(other) && self.ahead.imports == other.ahead.imports
    }

    async fn import(&self) -> Result<Waiting, CellError> {
        let prestarted = self.zygote.maker.make().await?;
        let walls = prestarted.walls.clone();
        let program = Program {
            launch: &self.launch,
            requirement: self.requirement,
        };
        let started = program.start_ahead(prestarted, &self.ahead.code).await?;
        let Some(mut started) = started else {
            return Err(CellError::Lost);
        };
        let mut channel = started.cell.channel.take().ok_or(CellError::Lost)?;
        let mut said = [0; READY.len()];
        let heard = timeout(IMPORTS, channel.answers.read_exact(&mut said)).await;
        // One that has printed something may not have done so here when it is run from its beginning.
        let is_quiet = || started.streams.are_silent();
        if !matches!(heard, Ok(Ok(_))) || said != READY || !is_quiet() {
            return Err(CellError::Lost);
        }
        Ok(Waiting {
            started,
            channel,
            walls,
        })
    }
}

impl Waiting {
    /// Has it start the program. `None` if it died while it waited.
    pub async fn start(mut self, program: &Program<'_>) -> Result<Option<Started>, CellError> {
        program.check(&self.started.isolation)?;
        program.furnish(&mut self.started.cell).await?;
        let ahead = program
            .launch
            .prestart
            .as_ref()
            .and_then(|it| it.ahead.as_ref());
        let rest = ahead.map_or("", |ahead| &ahead.rest);
        let text = [rest.as_bytes(), b"\0"].concat();
        let sent = self.channel.calls.write_all(&text).await;
        Ok(sent.is_ok().then_some(self.started))
    }
}

impl Maker for AheadMaker {
    type Made = Waiting;

    fn is_started(&self) -> bool {
        self.zygote.maker.is_started()
    }

    fn start(&self) -> Result<(), CellError> {
        self.zygote.maker.start()
    }

    fn stop(&self) {}

    fn make(&self) -> Boxed<'_, Result<Waiting, CellError>> {
        Box::pin(self.import())
    }

    fn weight(made: &Waiting) -> Option<u64> {
        let cell = &made.started.cell.inner;
        // What else could count takes long.
        let is_counted = cell.watcher().is_none();
        let bytes = is_counted.then(|| cell.usage().memory_now)?;
        (bytes > 0).then_some(bytes)
    }

    fn still_waits(made: &mut Waiting) -> bool {
        matches!(made.started.cell.inner.next_event(), Ok(None))
    }
}
