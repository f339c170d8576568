//! The resource `hotcell://state`: what goes on in a server over HTTP, for its page.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Boxed, Resource};
use crate::caller::Caller;
use crate::records::{Kept, Reader, RecordsError};
use crate::service::{CODE, LiveRun, Service, first_line};
use crate::upstream::{ServerState, UpstreamServer};

const URI: &str = "hotcell://state";
/// How many runs that have ended are told.
const MOST: usize = 30;
/// Bytes of a program in which its first line is looked for.
const BEGINNING: usize = 400;

pub struct State {
    service: Arc<Service>,
    since: Instant,
}

impl State {
    pub fn new(service: Arc<Service>) -> Self {
        let since = Instant::now();
        Self { service, since }
    }
}

impl Resource for State {
    fn listing(&self) -> Value {
        json!({
            "uri": URI,
            "name": "state",
            "title": "State",
            "description": "Your runs that go on and have ended, the upstream servers, and how busy this server is.",
            "mimeType": "application/json",
        })
    }

    fn holds(&self, uri: &str) -> bool {
        uri == URI
    }

    fn read<'a>(&'a self, uri: &'a str, context: &'a Context) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let (service, caller) = (&self.service, &context.caller);
            let (running, waiting) = service.load();
            let live = service.live_runs(caller);
            let ended = ended(service, caller).await;
            let is_over = |run: &Value| !live.iter().any(|it| run["id"] == *it.log.id);
            let runs = live.iter().rev().map(|run| going_on(run));
            let runs: Vec<Value> = runs.chain(ended.into_iter().filter(is_over)).collect();
            let servers = service.engine().servers();
            let servers = servers.iter().flat_map(|it| it.all());
            // Functions that there are none of yet are no server.
            let servers = servers.filter(|it| it.settings().is_some() || it.is_shown());
            let state = json!({
                "version": env!("HOTCELL_VERSION"),
                "up_s": self.since.elapsed().as_secs(),
                "running": running,
                "waiting": waiting,
                "recorded": service.records().is_some() && *caller == Caller::token(),
                "isolation": service.isolation(),
                "runs": runs,
                "servers": servers.map(|it| of_server(it)).collect::<Value>(),
            });
            let text = state.to_string();
            let content = json!({ "uri": uri, "mimeType": "application/json", "text": text });
            let contents = ("contents".to_owned(), json!([content]));
            Ok(Answer::Complete(Map::from_iter([contents])))
        })
    }
}

fn going_on(run: &LiveRun) -> Value {
    json!({
        "id": run.log.id,
        "status": "running",
        "language": run.language,
        "session": run.session,
        "first_line": run.first_line,
        "seconds": run.log.elapsed().as_secs_f64(),
        "job": run.log.is_detached(),
    })
}

/// The newest runs of a caller that were recorded.
///
/// SECURITY: of bearers of the token alone. Those who come without one are strangers to each other, and their runs are found by ids only.
async fn ended(service: &Service, caller: &Caller) -> Vec<Value> {
    let records = service.records().filter(|_| *caller == Caller::token());
    let Some(records) = records.cloned() else {
        return Vec::new();
    };
    let caller = caller.clone();
    let look_up = move || records.look_up(|reader| recorded(reader, &caller));
    let found = tokio::task::spawn_blocking(look_up).await;
    found.ok().flatten().unwrap_or_default()
}

fn recorded(reader: &Reader, caller: &Caller) -> Result<Vec<Value>, RecordsError> {
    let mut runs = Vec::new();
    for kept in reader.newest_of(caller, MOST)? {
        let code = reader.beginning_of(&kept.id, CODE, BEGINNING)?;
        runs.push(of_record(&kept, &first_line(&code)));
    }
    Ok(runs)
}

fn of_record(kept: &Kept, first_line: &str) -> Value {
    let seconds = |ended: i64| (ended - kept.started) as f64 / 1000.0;
    json!({
        "id": kept.id,
        "status": kept.status,
        "language": kept.language,
        "session": kept.session,
        "first_line": first_line,
        "seconds": kept.ended.map(seconds),
        "started": kept.started,
    })
}

fn of_server(server: &UpstreamServer) -> Value {
    let (state, error) = match server.state() {
        ServerState::Functions => ("built in", None),
        ServerState::Closed => ("not running", None),
        ServerState::Opening => ("starting", None),
        ServerState::Open => ("running", None),
        ServerState::Failed(why) => ("failed", Some(why)),
    };
    let mut told = json!({
        "name": server.name,
        "alias": server.alias,
        "state": state,
        "tools": server.known().len(),
    });
    if let Some(error) = error {
        told["error"] = error.into();
    }
    told
}
