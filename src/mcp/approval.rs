//! Asks the client's user whether a program may call a tool, in both eras.
//!
//! A legacy client is asked while the call of `run` goes on. A modern one gets the question as the answer of that call, whose program waits as a
//! job; it repeats the call with what its user decided, and is answered with what the program came to.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::context::Context;
use super::jobs::Rendered;
use crate::caller::Caller;
use crate::random::random_name;
use crate::service::Job;
use crate::upstream::{Approver, Decision, Question, is_unseen};

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(900);
/// Characters of the arguments that are shown.
const SHOWN: usize = 4000;
/// The key of the one question of an answer.
const KEY: &str = "approve";

/// A question on its way to a modern client, and where the decision goes.
pub type Asked = (Question, oneshot::Sender<Decision>);

/// Asks the client of one request.
pub struct ClientApprover {
    context: Arc<Context>,
    /// To whoever answers the request.
    asked: mpsc::Sender<Asked>,
}

impl ClientApprover {
    pub fn new(context: Arc<Context>) -> (Arc<Self>, mpsc::Receiver<Asked>) {
        let (asked, questions) = mpsc::channel(1);
        (Arc::new(Self { context, asked }), questions)
    }

    fn can_be_asked(&self) -> bool {
        let ways = self.context.capabilities.as_ref();
        let ways = ways.and_then(|all| all.get("elicitation"));
        // Whoever names only other ways cannot show a form.
        ways.is_some_and(|ways| {
            let ways = ways.as_object();
            ways.is_none_or(|ways| ways.is_empty() || ways.contains_key("form"))
        })
    }
}

impl Approver for ClientApprover {
    fn ask(&self, question: Question) -> Pin<Box<dyn Future<Output = Decision> + Send + '_>> {
        Box::pin(async move {
            if !self.can_be_asked() {
                return Decision::Unasked;
            }
            if !self.context.era.is_modern() {
                let asked = self.context.ask("elicitation/create", form(&question));
                return asked
                    .await
                    .map_or(Decision::Unasked, |answer| decision(&answer));
            }
            let (reply, decided) = oneshot::channel();
            if self.asked.send((question, reply)).await.is_err() {
                return Decision::Unasked;
            }
            match tokio::time::timeout(PATIENCE, decided).await {
                Ok(Ok(decision)) => decision,
                _ => Decision::Unasked,
            }
        })
    }
}

/// The question as a form, with all that there is to know.
fn form(question: &Question) -> Value {
    let Question {
        server,
        tool,
        arguments,
    } = question;
    let length = arguments.chars().count();
    let shown: String = arguments.chars().take(SHOWN).map(visible).collect();
    let more = match length > SHOWN {
        true => format!(" … ({length} characters in all)"),
        false => String::new(),
    };
    let (server, tool) = (server.escape_debug(), tool.escape_debug());
    json!({
        "message": format!("A program wants to call {server}.{tool} with {shown}{more}"),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Allow this call?",
                    "enum": ["once", "session", "always", "no"],
                    "enumNames": ["Once", "For this session", "Always", "No"],
                },
            },
            "required": ["decision"],
        },
    })
}

/// A letter as a person sees it. SECURITY: what would change how the rest is shown is spelled out.
fn visible(letter: char) -> String {
    match is_unseen(letter) {
        true => format!("\\u{:04x}", letter as u32),
        false => letter.to_string(),
    }
}

/// What an answer to it means. What is unclear is a no.
fn decision(answer: &Value) -> Decision {
    let decided = answer["content"]["decision"].as_str();
    match (answer["action"].as_str(), decided) {
        (Some("accept"), Some("once")) => Decision::Once,
        (Some("accept"), Some("session")) => Decision::Session,
        (Some("accept"), Some("always")) => Decision::Always,
        _ => Decision::No,
    }
}

/// Programs that wait for a decision.
#[derive(Default)]
pub struct Waiting(Mutex<HashMap<String, Open>>);

/// One of them.
pub struct Open {
    caller: Caller,
    /// Of the request, which must be repeated as it was.
    params: Map<String, Value>,
    since: Instant,
    reply: oneshot::Sender<Decision>,
    pub job: Arc<Job<Rendered>>,
    pub questions: mpsc::Receiver<Asked>,
}

impl Waiting {
    /// What a modern client is asked, and under which name its decision is waited for.
    pub fn wait(
        &self,
        context: &Context,
        (question, reply): Asked,
        (job, questions): (Arc<Job<Rendered>>, mpsc::Receiver<Asked>),
    ) -> (Map<String, Value>, String) {
        let state = random_name();
        let open = Open {
            caller: context.caller.clone(),
            params: context.params.clone(),
            since: Instant::now(),
            reply,
            job,
            questions,
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those programs have been told that nobody answers.
        all.retain(|_, open| open.since.elapsed() < PATIENCE);
        all.insert(state.clone(), open);
        let asked = json!({ "method": "elicitation/create", "params": form(&question) });
        (Map::from_iter([(KEY.to_owned(), asked)]), state)
    }

    /// Hands a decision to the program that waits for it; none waits if the state is another caller's, of another request, or was used.
    ///
    /// SECURITY: the state is a name that cannot be guessed, and is good once.
    pub fn decide(&self, context: &Context) -> Option<(Arc<Job<Rendered>>, mpsc::Receiver<Asked>)> {
        let state = context.request_state.as_ref()?;
        let answer = context.input_responses.get(KEY)?;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |open: &Open| open.caller == context.caller && open.params == context.params;
        let open = match all.get(state).is_some_and(fits) {
            true => all.remove(state)?,
            false => return None,
        };
        let _ = open.reply.send(decision(answer));
        Some((open.job, open.questions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_what_would_be_sent() {
        let question = Question {
            server: "s".to_owned(),
            tool: "t".to_owned(),
            arguments: "{\"a\":\"\u{202e}x\u{2028}y\u{85}é\"}".to_owned(),
        };
        let message = form(&question)["message"].clone();
        let expected = "A program wants to call s.t with {\"a\":\"\\u202ex\\u2028y\\u0085é\"}";
        assert_eq!(message, expected);
        let long = Question {
            arguments: "x".repeat(5000),
            ..question
        };
        let message = form(&long)["message"].to_string();
        assert!(
            message.len() < 4200 && message.contains("(5000 characters in all)"),
            "{message}"
        );
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        for (answer, expected) in [
            (
                json!({ "action": "accept", "content": { "decision": "once" } }),
                Decision::Once,
            ),
            (
                json!({ "action": "accept", "content": { "decision": "session" } }),
                Decision::Session,
            ),
            (
                json!({ "action": "accept", "content": { "decision": "always" } }),
                Decision::Always,
            ),
            (
                json!({ "action": "accept", "content": { "decision": "no" } }),
                Decision::No,
            ),
            (json!({ "action": "accept", "content": {} }), Decision::No),
            (json!({ "action": "accept" }), Decision::No),
            (
                json!({ "action": "decline", "content": { "decision": "once" } }),
                Decision::No,
            ),
            (json!({ "action": "cancel" }), Decision::No),
            (json!(7), Decision::No),
        ] {
            assert_eq!(decision(&answer), expected, "{answer}");
        }
    }
}
