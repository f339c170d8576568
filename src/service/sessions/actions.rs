//! What a caller does with a session besides running code: keep it as it is, go back, make another of it, see what is different.
//!
//! Each is a task of its own, in order with the session's calls, so that nothing is left half done when its caller leaves.

use std::sync::Arc;

use super::call::Held;
use super::entry::{Begin, State};
use super::{Busy, Key};
use crate::caller::Caller;
use crate::engine::LiveSession;
use crate::language::LanguageId;
use crate::request::SessionName;
use crate::run::{BranchError, Difference, Mark, Snapshot};
use crate::service::Service;
use crate::service::queue::Waiting;

/// Of one session whose runtime cannot copy itself.
const MOST_KEPT: usize = 4;

/// What is to be done with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionAction {
    /// Keep it as it is now, under a name; without one from now on before each call.
    Checkpoint(Option<String>),
    Restore(String),
    /// Go back to what was before the last call.
    Undo,
    /// Make another session that begins as this one is.
    Fork(SessionName),
    /// Say what is different in its files since a checkpoint, or since its beginning.
    Diff(Option<String>),
}

/// What was done.
#[derive(Debug, Default)]
pub struct Acted {
    /// The languages whose variables did not come along, because their runtimes cannot copy themselves.
    pub left: Vec<LanguageId>,
    /// What was asked to be told.
    pub differences: Vec<Difference>,
}

impl Service {
    /// Does something with a session of this caller, when its calls before have ended. An error says why not.
    pub async fn act_on_session(
        self: &Arc<Self>,
        caller: &Caller,
        name: &SessionName,
        action: SessionAction,
    ) -> Result<Acted, String> {
        let (this, key) = (self.clone(), (caller.clone(), name.clone()));
        let acted = tokio::spawn(async move { this.act(key, action).await }).await;
        acted.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))
    }

    async fn act(&self, key: Key, action: SessionAction) -> Result<Acted, String> {
        let mut held = self.hold_existing(key).await?;
        let can_fork = match &held.state.live {
            Some(live) => live.can_fork().await,
            None => false,
        };
        let left = match action {
            SessionAction::Fork(to) => self.fork(&mut held, to, can_fork).await?,
            SessionAction::Diff(since) => {
                let differences = held.differences(since.as_deref()).await?;
                return Ok(Acted {
                    differences,
                    ..Acted::default()
                });
            }
            action if can_fork => held.act_on_copies(action).await?,
            action => held.act_on_files(action).await?,
        };
        Ok(Acted {
            left,
            ..Acted::default()
        })
    }

    /// Waits until nothing else is done with a session that there is.
    async fn hold_existing(&self, key: Key) -> Result<Held, String> {
        let none = || format!("there is no session `{}`", key.1);
        let entry = self.sessions.find(&key).ok_or_else(none)?;
        let most = self.settings.queue.waiting;
        let waiting = Waiting::join(&entry.waiting, most);
        let waiting = waiting.ok_or_else(|| Busy::Calls(most).to_string())?;
        entry.wake();
        let state = entry.state.clone().lock_owned().await;
        drop(waiting);
        let is_there = self.sessions.holds(&key, &entry);
        let mut held = Held {
            sessions: self.sessions.clone(),
            key: key.clone(),
            entry,
            state,
        };
        held.notice_end();
        let has_something = held.state.live.is_some() || held.state.begin.is_some();
        match is_there && has_something {
            true => Ok(held),
            false => Err(none()),
        }
    }

    /// Makes another session of one.
    async fn fork(
        &self,
        held: &mut Held,
        to: SessionName,
        can_fork: bool,
    ) -> Result<Vec<LanguageId>, String> {
        let key = (held.key.0.clone(), to);
        if self.sessions.find(&key).is_some() {
            return Err(format!("there is a session `{}` already", key.1));
        }
        let entry = self.sessions.entry(&key).map_err(|busy| busy.to_string())?;
        let state = entry.state.clone().lock_owned().await;
        let mut new = Held {
            sessions: self.sessions.clone(),
            key,
            entry,
            state,
        };
        let made = match (&mut held.state.live, can_fork) {
            (Some(live), true) => live.fork().await.map(|(live, left)| {
                let live = Some(live);
                let state = State {
                    live,
                    ..State::default()
                };
                (state, left)
            }),
            _ => held.files().await.map(|begin| {
                let left = begin.left.clone();
                let begin = Some(begin);
                let state = State {
                    begin,
                    ..State::default()
                };
                (state, left)
            }),
        };
        let (state, left) = made.map_err(|error| error.to_string())?;
        *new.state = state;
        Ok(left)
    }
}

impl Held {
    async fn act_on_copies(&mut self, action: SessionAction) -> Result<Vec<LanguageId>, String> {
        let Some(live) = &mut self.state.live else {
            return Err(BranchError::Over.to_string());
        };
        let done = match action {
            SessionAction::Checkpoint(Some(name)) => live.keep(Mark::Checkpoint(name)).await,
            SessionAction::Checkpoint(None) => live.keep(Mark::Undo).await,
            SessionAction::Restore(name) => live.go_back(&Mark::Checkpoint(name)).await,
            _ => live.go_back(&Mark::Undo).await,
        };
        done.map_err(|error| match error {
            BranchError::NothingToUndo => format!(
                "{error}: the action `checkpoint` without `to` keeps the session before each call from then on"
            ),
            error => error.to_string(),
        })
    }

    /// The same for a runtime that cannot copy itself: what is kept and restored are its files, and it is started anew with them.
    async fn act_on_files(&mut self, action: SessionAction) -> Result<Vec<LanguageId>, String> {
        let only_files = || "its runtime cannot be copied, only its files can: name the checkpoint";
        match action {
            SessionAction::Checkpoint(Some(name)) => {
                let begin = self.files().await.map_err(|error| error.to_string())?;
                let kept = &mut self.state.kept;
                if kept.len() >= MOST_KEPT && !kept.contains_key(&name) {
                    return Err(format!("there are {MOST_KEPT} checkpoints of it already"));
                }
                let left = begin.left.clone();
                kept.insert(name, begin);
                Ok(left)
            }
            SessionAction::Restore(name) => {
                let begin = self.state.kept.get(&name).cloned();
                let none = || BranchError::NoCheckpoint(name.clone()).to_string();
                let begin = begin.ok_or_else(none)?;
                let left = begin.left.clone();
                self.state.begin = Some(begin);
                self.state.live = None;
                Ok(left)
            }
            _ => Err(only_files().to_owned()),
        }
    }

    async fn differences(&self, since: Option<&str>) -> Result<Vec<Difference>, String> {
        let State {
            live, begin, kept, ..
        } = &*self.state;
        let before = match (since, live) {
            (None, _) => Ok(Snapshot::default()),
            (Some(name), _) if kept.contains_key(name) => Ok(kept[name].snapshot.clone()),
            (Some(name), Some(live)) => live.snapshot_at(name).await,
            (Some(name), None) => Err(BranchError::NoCheckpoint(name.to_owned())),
        };
        let now = match (live, begin) {
            (Some(live), _) => live.snapshot().await,
            (None, Some(begin)) => Ok(begin.snapshot.clone()),
            (None, None) => Err(BranchError::Over),
        };
        let text = |error: BranchError| error.to_string();
        Ok(before.map_err(text)?.differences(&now.map_err(text)?))
    }

    /// What a session without variables begins with to have these files.
    async fn files(&self) -> Result<Begin, BranchError> {
        match (&self.state.live, &self.state.begin) {
            (Some(live), _) => of_files(live).await,
            (None, Some(begin)) => Ok(begin.clone()),
            (None, None) => Err(BranchError::Over),
        }
    }
}

async fn of_files(live: &LiveSession) -> Result<Begin, BranchError> {
    Ok(Begin {
        language: live.language.clone(),
        left: live.languages(),
        files: Arc::new(live.files().await?),
        snapshot: live.snapshot().await?,
    })
}
