//! Sandboxes that a server of the same user lends to this process, if one runs.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::time::Duration;

use jail::{codec, wire};
use tokio::time::timeout;

use super::loan::{Found, Line, Order};
use super::lock;
use super::running::JailCell;
use super::setup::Program;
use crate::cell::{CellError, Start};
use crate::resident::Servers;

/// How long a server may take. Far above what it takes: one that is stuck is no reason to wait for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// The servers that may lend sandboxes. Any that does not is as good as none.
pub struct Lenders(Mutex<Option<Servers>>);

impl Lenders {
    pub fn new(servers: Servers) -> Self {
        Self(Mutex::new(Some(servers)))
    }

    /// Has a program started in a borrowed sandbox. `None` if there is none, and no byte of the program ran.
    pub async fn start(
        &self,
        start: &Start<'_>,
        program: &Program<'_>,
    ) -> Result<Option<JailCell>, CellError> {
        let Some(order) = Order::of(start) else {
            return Ok(None);
        };
        // Another cell of this process asks anew; after a refusal none does.
        let Some(mut servers) = lock(&self.0).take() else {
            return Ok(None);
        };
        while let Some(server) = servers.next() {
            let Ok(Ok(found)) = timeout(PATIENCE, borrow(server, &order)).await else {
                continue;
            };
            *lock(&self.0) = Some(servers.again());
            let (started, is_warm) = match found {
                Found::Ahead(waiting) => {
                    if program.check(&waiting.started.isolation).is_err() {
                        return Ok(None);
                    }
                    (waiting.start(program).await?, true)
                }
                Found::Prestarted(prestarted, is_warm) => {
                    let isolation = prestarted.cell.isolation(&prestarted.walls);
                    if program.check(&isolation).is_err() {
                        return Ok(None);
                    }
                    (program.start_in(*prestarted).await?, is_warm)
                }
            };
            tracing::debug!(is_warm, "sandbox borrowed");
            return Ok(started.map(|started| JailCell::new(started, Vec::new(), is_warm)));
        }
        Ok(None)
    }
}

async fn borrow(server: OwnedFd, order: &Order) -> io::Result<Found> {
    let file = codec::to_memory_file(order)?;
    wire::send(server.as_fd(), b"order", &[file.as_fd()])?;
    let line = Line::new(server)?;
    let message = line.receive().await?;
    let message = message.ok_or(io::ErrorKind::ConnectionRefused)?;
    Found::receive(message, line.into_socket(), order.has_input)
}
