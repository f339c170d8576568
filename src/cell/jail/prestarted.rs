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
    pub missing: Vec<Missing>,
    pub landlock: u8,
    pub seccomp: bool,
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
        let (mut cell, mut streams) = self.spawn(true).await?;
        let mut missing = None;
        loop {
            match cell.next_event().await.map_err(JailError::Talk)? {
                Event::Ready { missing: found } => {
                    missing = Some(found);
                    streams.pending = cell.pending()?;
                }
                Event::Locked { landlock, seccomp } => {
                    return Ok(Prestarted {
                        cell,
                        streams,
                        missing: missing.ok_or(CellError::Lost)?,
                        landlock,
                        seccomp,
                    });
                }
                Event::Failed(failed) => return Err(JailError::from(failed).into()),
                Event::Exited(_) | Event::Gone => return Err(CellError::Lost),
            }
        }
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
