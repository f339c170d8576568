//! Sandboxes that were started before their program came, and the zygote that makes them.

use std::sync::Arc;

use jail::{Event, JailError, Missing, Policy};

use super::setup::AsyncCell;
use super::source::Source;
use crate::cell::pool::Maker;
use crate::cell::{Boxed, CellError, Streams};

/// At its last step: it starts its program at the start message.
pub struct Prestarted {
    pub cell: AsyncCell,
    pub streams: Streams,
    pub walls: Walls,
}

/// What a cell has said of its walls when the last of them stood.
#[derive(Debug, Clone, PartialEq)]
pub struct Walls {
    pub missing: Vec<Missing>,
    pub landlock: u8,
    pub seccomp: bool,
}

impl Prestarted {
    /// Waits until all walls of a new cell stand.
    pub async fn wait_for(mut cell: AsyncCell, mut streams: Streams) -> Result<Self, CellError> {
        let mut missing = None;
        loop {
            match cell.next_event().await.map_err(JailError::Talk)? {
                Event::Ready { missing: found } => {
                    missing = Some(found);
                    streams.pending = cell.pending()?;
                }
                Event::Locked { landlock, seccomp } => {
                    let walls = Walls {
                        missing: missing.ok_or(CellError::Lost)?,
                        landlock,
                        seccomp,
                    };
                    return Ok(Self {
                        cell,
                        streams,
                        walls,
                    });
                }
                Event::Failed(failed) => return Err(JailError::from(failed).into()),
                Event::Exited(_) | Event::Gone => return Err(CellError::Lost),
            }
        }
    }
}

/// Makes sandboxes of one zygote.
pub struct ZygoteMaker {
    pub source: Arc<dyn Source>,
    pub policy: Policy,
    pub has_input: bool,
    pub gathers: bool,
}

impl ZygoteMaker {
    /// Asks for a cell, with its streams. One that is made in advance may rehearse meanwhile.
    pub async fn spawn(&self, in_advance: bool) -> Result<(AsyncCell, Streams), CellError> {
        let policy = Policy {
            prestarted: in_advance,
            ..self.policy.clone()
        };
        let (cell, streams) =
            AsyncCell::spawn(self.source.clone(), &policy, self.has_input).await?;
        Ok((cell.gathering(self.gathers), streams))
    }

    async fn prestart(&self) -> Result<Prestarted, CellError> {
        let (cell, streams) = self.spawn(true).await?;
        Prestarted::wait_for(cell, streams).await
    }
}

impl Maker for ZygoteMaker {
    type Made = Prestarted;

    fn is_started(&self) -> bool {
        self.source.is_started()
    }

    fn start(&self) -> Result<(), CellError> {
        self.source.start()
    }

    fn stop(&self) {
        self.source.stop();
    }

    fn make(&self) -> Boxed<'_, Result<Prestarted, CellError>> {
        Box::pin(self.prestart())
    }

    fn still_waits(made: &mut Prestarted) -> bool {
        // It has said all that one says that waits: anything more is its end.
        matches!(made.cell.inner.next_event(), Ok(None))
    }
}
