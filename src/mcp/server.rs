//! Answers requests out of a catalogue.
//!
//! One [`Server`] serves every transport. It owns no connection: a [`Peer`] says
//! where a request came from and where messages for it go.

mod methods;
mod reply;

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use serde_json::{Map, Value, json};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;

use super::change::Change;
use super::context::Outbox;
use super::era::{Era, Transport};
use super::era_members::shape;
use super::message::{self, Fault, Garbled, Id, Message, Notification, Request};
use super::objects::Catalog;
use super::questions::Questions;
use super::session::{OpenCall, Session};
use super::subscriptions::listen;
use crate::caller::Caller;
use crate::memory_budget::Hold;

pub use reply::Reply;
use reply::caught;

/// Requests that one stdio process or HTTP session may have open.
const MOST_OPEN: usize = 1024;

/// Who we say we are.
#[derive(Debug, Clone)]
pub struct Identity {
    pub name: String,
    pub title: String,
    /// For the model: what this server is for, in a paragraph.
    pub instructions: Option<String>,
}

impl Identity {
    pub(super) fn to_value(&self) -> Value {
        json!({ "name": self.name, "title": self.title, "version": env!("CARGO_PKG_VERSION") })
    }
}

/// Where a message came from, and where messages for it go.
#[derive(Clone)]
pub struct Peer {
    /// Who sent it, as far as the transport knows.
    pub caller: Caller,
    pub session: Arc<Session>,
    pub transport: Transport,
    pub out: Outbox,
    /// What is held while one request is answered.
    pub held: Arc<Mutex<Hold>>,
}

pub struct Server {
    identity: Identity,
    catalog: RwLock<Arc<Catalog>>,
    changes: broadcast::Sender<Change>,
    questions: Arc<Questions>,
    ended: watch::Sender<bool>,
}

impl Server {
    pub fn new(identity: Identity, catalog: Catalog) -> Arc<Self> {
        Arc::new(Self {
            identity,
            catalog: RwLock::new(Arc::new(catalog)),
            changes: broadcast::channel(256).0,
            questions: Arc::default(),
            ended: watch::channel(false).0,
        })
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What is on offer now.
    pub fn catalog(&self) -> Arc<Catalog> {
        let catalog = self.catalog.read().unwrap_or_else(PoisonError::into_inner);
        catalog.clone()
    }

    /// Changes what is on offer and tells whoever listens.
    pub fn change(&self, what: &[Change], edit: impl FnOnce(&mut Catalog)) {
        {
            let mut catalog = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
            edit(Arc::make_mut(&mut catalog));
        }
        what.iter().for_each(|change| self.announce(change.clone()));
    }

    /// Tells whoever listens.
    pub fn announce(&self, change: Change) {
        // Nobody listening is fine.
        let _ = self.changes.send(change);
    }

    pub(super) fn questions(&self) -> &Arc<Questions> {
        &self.questions
    }

    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    /// Lets the requests that only wait for news be answered.
    pub fn end(&self) {
        self.ended.send_replace(true);
    }

    pub async fn ended(&self) {
        let mut ended = self.ended.subscribe();
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// Whether a request may take a while. The others are answered at once, in order.
    pub fn takes_time(request: &Request) -> bool {
        matches!(
            request.method.as_str(),
            "tools/call"
                | "prompts/get"
                | "resources/read"
                | "completion/complete"
                | "subscriptions/listen"
                | "skills/list"
                | "skills/get"
        ) || request.method.starts_with("tasks/")
    }

    /// The whole answer to a request, as a message; none if the client took it back.
    ///
    /// Dropping the future ends all work for the request. The request counts as open
    /// from this call on, and not from when the future first runs: a cancellation may
    /// come right behind it.
    pub fn answer(
        self: &Arc<Self>,
        request: Request,
        peer: &Peer,
    ) -> impl Future<Output = Option<Reply>> + Send + use<> {
        let open = self.open(&request, peer);
        let held = Arc::default();
        let (server, peer) = (
            self.clone(),
            Peer {
                held,
                ..peer.clone()
            },
        );
        async move {
            match open {
                Ok(open) => server.answer_open(request, &peer, open).await,
                Err(fault) => Some(Reply::fault(&request.id, None, fault)),
            }
        }
    }

    fn open(&self, request: &Request, peer: &Peer) -> Result<OpenCall, Fault> {
        if peer.session.calls_open() >= MOST_OPEN {
            let message = format!("more than {MOST_OPEN} requests are open; wait for some");
            return Err(Fault::new(Fault::INTERNAL, message));
        }
        let message = "the id is in use by an open request";
        let in_use = || Fault::new(Fault::INVALID_REQUEST, message);
        peer.session.begin(&request.id).ok_or_else(in_use)
    }

    async fn answer_open(
        self: &Arc<Self>,
        request: Request,
        peer: &Peer,
        open: OpenCall,
    ) -> Option<Reply> {
        let id = request.id.clone();
        let era = match Era::of(&request, &peer.transport, &peer.session) {
            Ok(era) => era,
            Err(fault) => {
                return Some(Reply {
                    malformed: true,
                    ..Reply::fault(&id, None, fault)
                });
            }
        };
        let method = request.method.clone();
        let result = tokio::select! {
            result = caught(self.dispatch(era, request, peer)) => result,
            () = open.cancelled() => return None,
        };
        Some(match result {
            Ok(result) => {
                let result = shape(era, &method, &self.identity, result);
                let message = message::response(&id, &result);
                drop(result);
                match Hold::of(message.len()) {
                    Some(hold) => Reply {
                        message,
                        era: Some(era),
                        code: None,
                        malformed: false,
                        hold,
                    },
                    None => Reply::fault(&id, Some(era), Fault::busy()),
                }
            }
            Err(fault) => Reply::fault(&id, Some(era), fault),
        })
    }

    /// The answers to several messages at once; none if nothing wants one.
    ///
    /// Dropping the future ends all work for them.
    pub async fn answer_all(
        self: &Arc<Self>,
        messages: Vec<Result<Message, Garbled>>,
        peer: &Peer,
    ) -> Option<Reply> {
        let mut calls = JoinSet::new();
        let mut answers = Vec::new();
        for message in messages {
            match message {
                Ok(Message::Request(request)) if request.method == "initialize" => {
                    let message = "`initialize` must come alone";
                    let fault = Fault::new(Fault::INVALID_REQUEST, message);
                    answers.push(fault.to_message(Some(&request.id)));
                }
                Ok(Message::Request(request)) => {
                    calls.spawn(self.answer(request, peer));
                }
                Ok(other) => self.receive(other, &peer.session),
                Err(garbled) => answers.push(garbled.to_message()),
            }
        }
        let mut holds = Vec::new();
        while let Some(answered) = calls.join_next().await {
            if let Ok(Some(reply)) = answered {
                answers.push(reply.message);
                holds.push(reply.hold);
            }
        }
        (!answers.is_empty()).then(|| Reply {
            message: format!("[{}]", answers.join(",")),
            era: None,
            code: None,
            malformed: false,
            hold: holds.into_iter().fold(Hold::default(), Hold::and),
        })
    }

    /// Takes a message that wants no answer.
    pub fn receive(&self, message: Message, session: &Session) {
        match message {
            Message::Notification(Notification { method, params }) => {
                if method == "notifications/cancelled"
                    && let Some(id) = params.get("requestId").and_then(Id::of_value)
                {
                    session.cancel(&id);
                }
                // The rest tells us nothing that we act on.
            }
            Message::Response { id, result } => {
                if let Some(id) = id.as_text() {
                    self.questions.answered(id, result);
                }
            }
            Message::Request(_) => {}
        }
    }

    async fn dispatch(
        self: &Arc<Self>,
        era: Era,
        request: Request,
        peer: &Peer,
    ) -> Result<Map<String, Value>, Fault> {
        match (era, request.method.as_str()) {
            (Era::Modern, "server/discover") => Ok(self.discover(peer)),
            (Era::Modern, "subscriptions/listen") => {
                listen(self, &request.id, &request.params, &peer.out).await
            }
            (Era::Legacy(revision), "initialize") => self.initialize(revision, &request, peer),
            (Era::Legacy(_), "ping") => Ok(Map::new()),
            (Era::Legacy(_), "logging/setLevel") => methods::set_level(&request, &peer.session),
            (Era::Legacy(_), "resources/subscribe") => self.watch(&request, &peer.session),
            (Era::Legacy(_), "resources/unsubscribe") => methods::unwatch(&request, &peer.session),
            (_, "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list") => {
                self.list(era, &request)
            }
            (_, "tools/call" | "prompts/get" | "resources/read") => {
                self.use_object(era, request, peer).await
            }
            (_, "completion/complete") => self.complete(&request).await,
            (Era::Modern, "skills/list" | "skills/get") => self.skill(&request).await,
            (_, method) if method.starts_with("tasks/") => self.task(era, request, peer).await,
            (_, method) => Err(Fault::method_not_found(method)),
        }
    }
}
