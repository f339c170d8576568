//! What we have asked legacy clients, and who waits for the answers.
//!
//! An answer may come over another connection than the question went out on, so
//! it is found by its id alone, and that id cannot be guessed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;

use super::message::Fault;
use crate::random::random_name;

type Answer = Result<Value, Fault>;

#[derive(Default)]
pub struct Questions(Mutex<HashMap<String, oneshot::Sender<Answer>>>);

impl Questions {
    /// Prepares for the answer to a question.
    pub fn ask(self: &Arc<Self>) -> (Question, oneshot::Receiver<Answer>) {
        let id = random_name();
        let (sender, receiver) = oneshot::channel();
        self.open().insert(id.clone(), sender);
        let questions = self.clone();
        (Question { id, questions }, receiver)
    }

    /// Hands an answer to whoever waits for it; one that nobody waits for is let go.
    pub fn answered(&self, id: &str, answer: Answer) {
        let waiting = self.open().remove(id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(answer);
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Answer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that is open; forgotten when this is dropped.
pub struct Question {
    id: String,
    questions: Arc<Questions>,
}

impl Question {
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.questions.open().remove(&self.id);
    }
}
