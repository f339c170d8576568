//! The files of a session, which its languages have in turn.

use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Call, Life, Session};
use crate::cell::{Carried, CellError, Workspace};

/// How long a worker may take to start. Far above what it takes.
const START: Duration = Duration::from_secs(20);

impl Session {
    /// Its files, also when it has ended.
    pub fn workspace(&self) -> Option<Workspace> {
        let except = self.known.wanted.iter().flat_map(|wanted| &wanted.except);
        let except = except.map(|path| PathBuf::from(path.as_str()));
        let workspace = self.cell.workspace()?.except(except);
        Some(workspace.without(self.known.left_out.iter().cloned()))
    }

    /// Gives it the files of another workspace in place of its own, before the call of this number; how many could not be brought.
    pub async fn bring(&mut self, from: &Workspace, number: u64) -> Result<usize, CellError> {
        // A worker removes its own files when it starts, and would miss them.
        if self.line.number == 0 {
            let call = Call::empty(number.saturating_sub(1).max(1));
            let called = self.call(call, pending()).await?;
            if called.life != Life::Kept {
                return Err(CellError::Lost);
            }
        }
        self.known.left_out.clear();
        let (own, from) = (self.workspace().ok_or(CellError::Lost)?, from.clone());
        let carried = tokio::task::spawn_blocking(move || own.carry(&from)).await;
        Ok(self.remember(carried.map_err(|_| CellError::Lost)?))
    }

    /// What was brought is known, and none of the next call's changes.
    fn remember(&mut self, carried: Carried) -> usize {
        let known = &mut self.known;
        if let Some(wanted) = &mut known.wanted {
            let is_gone = |path: &str| {
                let mut removed = carried.removed.iter();
                removed.any(|it| Path::new(path).starts_with(it))
            };
            wanted.known.retain(|path, _| !is_gone(path.as_str()));
            for (path, version) in carried.files {
                known.texts.forget(&path);
                // What is shared by name is carried too, and no file of the program's.
                if !wanted.is_within_excepted(&path) {
                    wanted.known.insert(path, version);
                }
            }
        }
        known.left_out = carried.left_out;
        known.left_out.len()
    }
}

impl Call<'_> {
    /// Does nothing: its answer says that the worker is ready.
    fn empty(number: u64) -> Self {
        Self {
            number,
            code: b"\n",
            prelude: "",
            files: Vec::new(),
            stdin: Vec::new(),
            timeout: START,
            output_limit: u64::MAX,
            pause: None,
            events: mpsc::channel(1).0,
        }
    }
}
