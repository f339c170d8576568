//! The resource `hotcell://languages`: what this server can run, as `hotcell languages --json`.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Boxed, Resource};
use crate::language::rows;
use crate::service::Service;

const URI: &str = "hotcell://languages";

pub struct Languages(pub Arc<Service>);

impl Resource for Languages {
    fn listing(&self) -> Value {
        json!({
            "uri": URI,
            "name": "languages",
            "title": "Languages",
            "description": "Every language: whether it can run here, with which version, or why not.",
            "mimeType": "application/json",
        })
    }

    fn holds(&self, uri: &str) -> bool {
        uri == URI
    }

    fn read<'a>(&'a self, uri: &'a str, _: &'a Context) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let service = self.0.clone();
            // Runtimes that are new to us are asked for their versions.
            let work = move || {
                let engine = service.engine();
                rows(engine.registry(), engine.surroundings(), engine.has_pools())
            };
            let listed = tokio::task::spawn_blocking(work).await.unwrap_or_default();
            let text = serde_json::to_string_pretty(&listed).unwrap_or_default();
            let content = json!({ "uri": uri, "mimeType": "application/json", "text": text });
            let contents = ("contents".to_owned(), json!([content]));
            Ok(Answer::Complete(Map::from_iter([contents])))
        })
    }
}
