//! The fuzz target `bridge`: the body of a question, as a program may send it.

use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};

use super::{Bridge, Called, Functions, Searcher, Tool, UpstreamServer};
use crate::loopback::fuzzing::exchange;
use crate::loopback::{Http, http1};

struct Shop;

impl Functions for Shop {
    fn tools(&self) -> Vec<Tool> {
        let input = json!({ "type": "object", "properties": { "n": { "type": "integer" }, "who": { "type": ["string", "null"] } }, "required": ["n"] });
        let made = |name| Tool::new(name, "Sells a number of things. Slowly.", input.clone());
        vec![
            made("sell"),
            made("sell-all"),
            Tool::new("fail", "", json!(7)),
        ]
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: Map<String, Value>) -> Called<'a> {
        Box::pin(async move {
            match tool {
                "fail" => Err("sold out".to_owned()),
                _ => Ok(json!(arguments)),
            }
        })
    }
}

pub fn bridge(body: &[u8]) {
    let shop =
        UpstreamServer::functions("My Shop".to_owned(), "my_shop".to_owned(), Arc::new(Shop));
    let configured = vec![("My Shop".to_owned(), "Sells.".to_owned())];
    let bridge = Bridge::new(vec![Arc::new(shop)], configured, Arc::<Searcher>::default());
    let bridge = Arc::new(bridge);
    let mut request = format!(
        "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    let answer = exchange(&request, |stream| {
        let answer = service_fn(|request| {
            let answer = bridge.clone().answer(request);
            async { Ok::<_, std::convert::Infallible>(answer.await) }
        });
        async move {
            let io = TokioIo::new(stream);
            let _ = http1().serve_connection(io, answer).await;
        }
    });
    let text = String::from_utf8_lossy(&answer);
    let said = text
        .split_once("\r\n\r\n")
        .map(|it| it.1)
        .unwrap_or_default();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
    // The command's answer has a form of its own: numbers first.
    let is_command = said.starts_with(|it: char| it.is_ascii_digit());
    if !is_command {
        let value: Value = serde_json::from_str(said).expect("an answer is JSON");
        let kinds = ["value", "text", "parts", "result", "error"];
        let members = value.as_object().expect("an answer is an object");
        assert!(
            members.keys().all(|it| kinds.contains(&it.as_str())),
            "{said}"
        );
    }
}
