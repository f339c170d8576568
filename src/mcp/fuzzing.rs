//! The fuzz target `json_rpc`: a line as a client may send it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::message::IdSearch;
use super::{
    Answer, Arguments, Boxed, Catalog, Context, Fault, Identity, Message, Outbox, Peer, Server,
    Session, Tool, Transport, is_batch, parse, parse_batch,
};
use crate::caller::Caller;
use crate::loopback::fuzzing::wait_for;

/// A tool that answers with its arguments.
struct Echo;

impl Tool for Echo {
    fn listing(&self) -> Value {
        json!({ "name": "run", "inputSchema": { "type": "object", "properties": { "code": { "type": "string", "x-mcp-header": "Code" } } } })
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        _: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        let text = Value::from(arguments).to_string();
        let content = json!([{ "type": "text", "text": text }]);
        Box::pin(async {
            Ok(Answer::Complete(Map::from_iter([(
                "content".to_owned(),
                content,
            )])))
        })
    }
}

/// A server whose one tool runs nothing.
pub fn server() -> Arc<Server> {
    static SERVER: OnceLock<Arc<Server>> = OnceLock::new();
    let make = || {
        let mut catalog = Catalog::default();
        catalog.add_tool(Echo);
        let identity = Identity {
            name: "fuzzed".to_owned(),
            title: "fuzzed".to_owned(),
            instructions: None,
        };
        Server::new(identity, catalog)
    };
    SERVER.get_or_init(make).clone()
}

pub fn json_rpc(bytes: &[u8]) {
    let (out, _messages) = Outbox::new(64);
    let peer = Peer {
        caller: Caller::local(),
        session: Arc::new(Session::default()),
        transport: Transport::Stdio,
        out,
        held: Arc::default(),
    };
    let server = server();
    if is_batch(bytes) {
        let reply = match parse_batch(bytes) {
            Ok(messages) => wait_for(soon(server.answer_all(messages, &peer))),
            Err(garbled) => return is_one_line(&garbled.to_message()),
        };
        return reply.iter().for_each(|reply| is_one_line(&reply.message));
    }
    match parse(bytes) {
        Ok(Message::Request(request)) => {
            let id = request.id.to_string();
            let mut search = IdSearch::default();
            search.feed(bytes);
            // One that is written with escapes is not found; another than the true one never is.
            if let Some(found) = search.found() {
                assert_eq!(found.to_string(), id);
            }
            let listens = request.method == "subscriptions/listen";
            let answer = server.answer(request, &peer);
            if listens {
                return drop(wait_for(soon(answer)));
            }
            let reply = wait_for(answer).expect("an answer");
            is_one_line(&reply.message);
            let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
            assert!(reply.message.starts_with(&start), "{}", reply.message);
        }
        Ok(other) => server.receive(other, &peer.session),
        Err(garbled) => is_one_line(&garbled.to_message()),
    }
}

/// What comes at once; some requests are answered when they end.
async fn soon<T>(answer: impl Future<Output = Option<T>>) -> Option<T> {
    let answer = tokio::time::timeout(Duration::from_millis(100), answer);
    answer.await.ok().flatten()
}

fn is_one_line(message: &str) {
    assert!(!message.contains('\n'), "{message:?}");
    serde_json::from_str::<Value>(message).expect("an answer is JSON");
}
