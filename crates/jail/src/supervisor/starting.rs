//! A spawner that builds its root, and what it says meanwhile.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::net::RecvFlags;

use super::handle::SpawnerHandle;
use super::launch::SpawnerProcess;
use crate::codec;
use crate::error::{Failed, step};
use crate::spawner::{MOVED, READY, SWEEPING};
use crate::spec::Status;
use crate::wire;

const LISTENING: &str = "listening to the spawner";

/// A spawner that is not done starting.
pub struct Starting {
    pub spawner: SpawnerProcess,
    pub handle: Arc<SpawnerHandle>,
}

impl Starting {
    /// Answers what it asks for; `true` once its root is built, or never will be.
    pub fn is_over(&mut self, sweeper: &mut Option<OwnedFd>) -> bool {
        let built = loop {
            match wire::receive(self.handle.control.as_fd(), RecvFlags::DONTWAIT) {
                Ok(Some(message)) if message.bytes == SWEEPING => {
                    *sweeper = message.fds.into_iter().next();
                    let _ = self.handle.swept.set(sweeper.is_some());
                }
                Ok(Some(message)) => match self.handle_message(message) {
                    Ok(true) => break Ok(()),
                    Ok(false) => {}
                    Err(failed) => break Err(Some(failed)),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Ok(None) => break Err(None),
                Err(error) => break step(LISTENING, || Err(error)).map_err(Some),
            }
        };
        if built.is_err() {
            self.spawner.kill();
        }
        let _ = self.handle.built.set(built);
        // Whoever waits to make a cgroup must not wait for a sweeper that never comes.
        let _ = self.handle.swept.set(false);
        true
    }

    fn handle_message(&mut self, message: wire::Message) -> Result<bool, Failed> {
        match &message.bytes[..] {
            READY => return Ok(true),
            MOVED => {
                self.spawner = step("following the spawner", || {
                    let pidfd = message.fds.into_iter().next();
                    let pidfd = pidfd.ok_or(io::ErrorKind::InvalidData)?;
                    Ok(pidfd.into())
                })?;
            }
            bytes => match step(LISTENING, || codec::from_bytes(bytes))? {
                Status::Failed(failed) => return Err(failed),
                _ => {
                    return step(LISTENING, || Err(io::ErrorKind::InvalidData.into()));
                }
            },
        }
        Ok(false)
    }
}
