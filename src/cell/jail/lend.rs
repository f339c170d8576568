//! Lends sandboxes to other processes of the same user: `hotcell run` at a shell, which so finds one that waits.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use jail::codec;
use tokio::time::timeout;

use super::JailProvider;
use super::loan::{Found, Line, Order};
use super::prestarted::Prestarted;
use super::running::Guard;
use super::setup::AsyncCell;
use crate::caller::Caller;
use crate::cell::pool::Taken;
use crate::cell::{CellError, Requirement};

/// How long the other may take to ask: until then it reads its program and installs what that needs.
const ORDER: Duration = Duration::from_secs(60);
/// How long a sandbox may take to be made.
const SETUP: Duration = Duration::from_secs(20);

impl JailProvider {
    /// Lends one sandbox to who asks over `line`, until that end is closed or the sandbox is not wanted. One who gets none makes its own.
    pub(super) async fn lend_over(&self, line: OwnedFd, caller: &Caller) -> Result<(), CellError> {
        // Those of containers belong to an engine, which nobody can pass on.
        if !self.sources.copies() {
            return Ok(());
        }
        let line = Line::new(line).map_err(CellError::Pipe)?;
        let order = timeout(ORDER, line.receive()).await;
        let Ok(Ok(Some(message))) = order else {
            return Ok(());
        };
        let order = message.fds.first().map(codec::from_memory_file::<Order>);
        let Some(Ok(order)) = order.filter(is_ours) else {
            tracing::debug!("an order of another build, or from another place");
            return Ok(());
        };
        let found = timeout(SETUP, self.find(&order, caller)).await;
        let (found, refills) = found.map_err(|_| CellError::Slow)??;
        let cell = found.send(line.socket()).map_err(CellError::Pipe)?;
        // Nothing more is said: this is its end.
        let _ = line.receive().await;
        drop(cell);
        drop(refills);
        Ok(())
    }

    /// A sandbox that waits, or one that is made; and what to keep until it has ended.
    async fn find(&self, order: &Order, caller: &Caller) -> Result<(Found, Vec<Guard>), CellError> {
        let launch = order.launch();
        let pool = self.pool(&launch, order.has_input, caller)?;
        let usual = Requirement::default();
        let maker = pool.as_ref();
        let maker = maker.and_then(|pool| self.ahead_maker(pool, &launch, usual));
        let ahead = maker.map(|maker| self.aheads.take(maker, self.budget()));
        let (waiting, mut refills) = ahead.unwrap_or_default();
        if let Some(waiting) = waiting {
            return Ok((Found::Ahead(Box::new(waiting)), refills));
        }
        let taken = pool.as_ref().and_then(|pool| {
            pool.stay();
            pool.take()
        });
        let made = match taken {
            Some((Taken::Ready(ready), refill)) => {
                refills.push(Box::new(refill));
                return Ok((Found::Prestarted(ready, true), refills));
            }
            Some((Taken::OnDemand(pool), refill)) => {
                refills.push(Box::new(refill));
                let (cell, streams) = pool.0.maker.spawn(false).await?;
                (Prestarted::wait_for(cell, streams).await?, true)
            }
            None => {
                let source = self.plain(&order.view)?;
                let (cell, streams) =
                    AsyncCell::spawn(source, &order.policy, order.has_input).await?;
                (Prestarted::wait_for(cell, streams).await?, false)
            }
        };
        Ok((Found::Prestarted(Box::new(made.0), made.1), refills))
    }
}

fn is_ours(order: &io::Result<Order>) -> bool {
    order.as_ref().is_ok_and(Order::is_ours)
}
