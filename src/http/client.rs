//! The client behind one POST: who it is, and in which form it is answered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;

use super::body::Accepts;
use super::connections::AtWork;
use super::events::{Events, Work};
use super::responses::{Answered, event_stream, respond, respond_held, status};
use crate::caller::Caller;
use crate::mcp::{Outbox, Peer, Session, Transport};
use crate::memory_budget::Hold;

/// After this time a client hears that we are still there.
const PATIENCE: Duration = Duration::from_secs(5);

/// The sender of one POST, and what its answer depends on.
pub struct Client {
    pub caller: Caller,
    pub transport: Transport,
    pub accepts: Accepts,
    pub at_work: AtWork,
}

impl Client {
    /// Plain JSON if the answer is all there is to say, else a stream of events.
    pub async fn respond(self, session: Arc<Session>, work: impl FnOnce(Peer) -> Work) -> Answered {
        let Self {
            caller,
            transport,
            accepts,
            at_work,
        } = self;
        let (out, mut messages) = Outbox::new(64);
        let mut work = work(Peer {
            caller,
            session,
            transport,
            out,
            held: Arc::default(),
        });
        let mut ready = VecDeque::new();
        if !accepts.events {
            messages.close();
        }
        let reply = tokio::select! {
            biased;
            reply = &mut work => Some(reply),
            Some(message) = messages.recv() => {
                ready.push_back((message, Hold::default()));
                None
            }
            () = tokio::time::sleep(PATIENCE), if accepts.events => None,
        };
        let Some(reply) = reply else {
            return event_stream(Events::new(Some(work), messages, ready, at_work));
        };
        while let Ok(message) = messages.try_recv() {
            ready.push_back((message, Hold::default()));
        }
        match reply {
            // The client took it back, so there is nothing to say.
            None => respond(StatusCode::NO_CONTENT, "text/plain", ""),
            Some(reply) if ready.is_empty() && accepts.json => {
                let status = status(&reply);
                respond_held(status, reply.message, reply.hold)
            }
            Some(reply) => {
                ready.push_back((reply.message, reply.hold));
                event_stream(Events::new(None, messages, ready, at_work))
            }
        }
    }
}
