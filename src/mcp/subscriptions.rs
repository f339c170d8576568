//! `subscriptions/listen`: one long request, on which a client is notified of changes.

use serde_json::{Map, Value, json};
use tokio::sync::broadcast::error::RecvError;

use super::change::Change;
use super::context::Outbox;
use super::era::SUBSCRIPTION_KEY;
use super::message::{self, Fault, Id};
use super::server::Server;

/// Resources that one request may watch.
const MOST_WATCHED: usize = 1000;

/// Tells `out` of the changes that `params` ask for, until the server ends.
pub async fn listen(
    server: &Server,
    id: &Id,
    params: &Map<String, Value>,
    out: &Outbox,
) -> Result<Map<String, Value>, Fault> {
    let filter = Filter::parse(params)?;
    // Before the acknowledgement, so that nothing after it is missed.
    let mut changes = server.changes();
    let tell = |method: &'static str, mut params: Value| {
        params["_meta"] = json!({ SUBSCRIPTION_KEY: id.to_value() });
        out.send(message::notification(method, &params))
    };
    let accepted = json!({ "notifications": filter.to_value() });
    tell("notifications/subscriptions/acknowledged", accepted).await;
    let ended = server.ended();
    let mut ended = std::pin::pin!(ended);
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            () = &mut ended => break,
        };
        match change {
            Ok(change) if filter.wants(&change) => {
                tell(change.method(), change.params()).await;
            }
            // Too slow for some of them: each says "look again", so one of each will do.
            Err(RecvError::Lagged(_)) => {
                for change in [Change::Tools, Change::Prompts, Change::Resources] {
                    if filter.wants(&change) {
                        tell(change.method(), change.params()).await;
                    }
                }
            }
            Ok(_) => {}
            Err(RecvError::Closed) => break,
        }
    }
    let meta = json!({ SUBSCRIPTION_KEY: id.to_value() });
    Ok(Map::from_iter([("_meta".to_owned(), meta)]))
}

struct Filter {
    tools: bool,
    prompts: bool,
    resources: bool,
    watched: Option<Vec<String>>,
}

impl Filter {
    fn parse(params: &Map<String, Value>) -> Result<Self, Fault> {
        let Some(Value::Object(asked)) = params.get("notifications") else {
            return Err(Fault::invalid_params("`notifications` must be an object"));
        };
        let flag = |name: &str| asked.get(name) == Some(&Value::Bool(true));
        let watched = match asked.get("resourceSubscriptions") {
            None => None,
            Some(Value::Array(uris)) if uris.len() <= MOST_WATCHED => {
                let uris = uris.iter().map(|uri| uri.as_str().map(str::to_owned));
                let uris: Option<Vec<String>> = uris.collect();
                Some(uris.ok_or_else(|| {
                    Fault::invalid_params("`resourceSubscriptions` must hold strings")
                })?)
            }
            Some(_) => {
                return Err(Fault::invalid_params(format!(
                    "`resourceSubscriptions` must be a list of at most {MOST_WATCHED}"
                )));
            }
        };
        Ok(Self {
            tools: flag("toolsListChanged"),
            prompts: flag("promptsListChanged"),
            resources: flag("resourcesListChanged"),
            watched,
        })
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Updated(uri) => self.watched.iter().flatten().any(|watched| watched == uri),
        }
    }

    fn to_value(&self) -> Value {
        let mut accepted = json!({});
        for (name, on) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if on {
                accepted[name] = true.into();
            }
        }
        if let Some(watched) = &self.watched {
            accepted["resourceSubscriptions"] = watched.as_slice().into();
        }
        accepted
    }
}
