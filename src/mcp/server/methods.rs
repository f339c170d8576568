//! The methods of the protocol: lists, calls, completions and subscriptions.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Peer, Server};
use crate::mcp::context::{Context, LogLevel};
use crate::mcp::era::{Era, Revision, SUPPORTED};
use crate::mcp::message::{Fault, Request};
use crate::mcp::objects::{Answer, Arguments};
use crate::mcp::session::Session;
use crate::mcp::{skills, tasks};

/// Entries on one page of a list.
const PAGE: usize = 100;
/// Values that a completion may have.
const MOST_VALUES: usize = 100;

type Members = Map<String, Value>;

impl Server {
    pub(super) fn discover(&self, peer: &Peer) -> Members {
        let mut result = members([
            ("supportedVersions", json!(SUPPORTED)),
            ("capabilities", self.capabilities(Era::Modern)),
        ]);
        self.welcome(&mut result, peer);
        result
    }

    pub(super) fn initialize(
        &self,
        revision: Revision,
        request: &Request,
        peer: &Peer,
    ) -> Result<Members, Fault> {
        if !request
            .params
            .get("protocolVersion")
            .is_some_and(Value::is_string)
        {
            return Err(Fault::invalid_params("`protocolVersion` must be a string"));
        }
        let client = request.params.get("capabilities");
        let none = json!({});
        let client = client.filter(|it| it.is_object()).unwrap_or(&none);
        if !peer.session.open(revision, client) {
            return Err(Fault::invalid_params("`capabilities` are too long"));
        }
        let mut result = members([
            ("protocolVersion", revision.name().into()),
            ("capabilities", self.capabilities(Era::Legacy(revision))),
            ("serverInfo", self.identity.to_value()),
        ]);
        self.welcome(&mut result, peer);
        Ok(result)
    }

    fn capabilities(&self, era: Era) -> Value {
        let mut capabilities = usual_capabilities();
        if self.catalog().tasks.is_some() {
            tasks::add_capability(&mut capabilities, era);
        }
        if self.catalog().skills.is_some() && era.is_modern() {
            capabilities["extensions"][skills::EXTENSION] = json!({});
        }
        capabilities
    }

    fn welcome(&self, result: &mut Members, peer: &Peer) {
        for tool in self.catalog().tools.values() {
            tool.prepare(&peer.caller);
        }
        if let Some(instructions) = &self.identity.instructions {
            result.insert("instructions".to_owned(), instructions.as_str().into());
        }
    }

    pub(super) fn list(&self, era: Era, request: &Request) -> Result<Members, Fault> {
        let catalog = self.catalog();
        let (name, entries): (&str, Vec<Value>) = match request.method.as_str() {
            "tools/list" => {
                let listed = catalog.tools.values().filter(|tool| tool.is_listed());
                let listed = listed.map(|tool| tasks::listing(&**tool, era));
                ("tools", listed.collect())
            }
            "prompts/list" => ("prompts", each(&catalog.prompts, |prompt| prompt.listing())),
            "resources/list" => (
                "resources",
                each(&catalog.resources, |found| found.listing()),
            ),
            _ => (
                "resourceTemplates",
                each(&catalog.templates, |template| template.listing()),
            ),
        };
        pages(name, &entries, request)
    }

    /// A method of the Skills extension, where there are some.
    pub(super) async fn skill(&self, request: &Request) -> Result<Members, Fault> {
        let none = || Fault::method_not_found(&request.method);
        let skills = self.catalog().skills.clone().ok_or_else(none)?;
        match request.method.as_str() {
            "skills/list" => pages("skills", &skills::list(&skills).await, request),
            "skills/get" => {
                let uri = string(&request.params, "uri")?;
                let found = skills::get(&skills, uri).await;
                found.ok_or_else(|| no_resource(uri))
            }
            _ => Err(none()),
        }
    }

    pub(super) async fn use_object(
        self: &Arc<Self>,
        era: Era,
        request: Request,
        peer: &Peer,
    ) -> Result<Members, Fault> {
        let catalog = self.catalog();
        let key = if request.method == "resources/read" {
            "uri"
        } else {
            "name"
        };
        let name = string(&request.params, key)?.to_owned();
        let arguments = if key == "uri" {
            Arguments::new()
        } else {
            arguments(&request.params)?
        };
        let method = request.method.clone();
        let context = Arc::new(Context::new(self, era, request, peer));
        let answer = match method.as_str() {
            "tools/call" => match catalog.tools.get(&name) {
                Some(tool) => {
                    tasks::check(&**tool, &context)?;
                    tool.call(arguments, &context).await?
                }
                None => {
                    let mut tools = catalog.tools.values();
                    let answer = tools.find_map(|tool| tool.answer_for_unknown(&name));
                    answer.ok_or_else(|| unknown("tool", &name))?
                }
            },
            "prompts/get" => {
                let prompt = catalog.prompts.get(&name);
                let prompt = prompt.ok_or_else(|| unknown("prompt", &name))?;
                prompt.get(arguments, &context).await?
            }
            _ => {
                let resource = catalog.resource(&name);
                let resource = resource.ok_or_else(|| no_resource(&name))?;
                resource.read(&name, &context).await?
            }
        };
        match answer {
            Answer::Complete(result) => Ok(result),
            Answer::InputRequired { requests, state } if era.is_modern() => {
                let mut result = members([
                    ("resultType", "input_required".into()),
                    ("inputRequests", requests.into()),
                ]);
                if let Some(state) = state {
                    result.insert("requestState".to_owned(), state.into());
                }
                Ok(result)
            }
            Answer::InputRequired { .. } => Err(Fault::new(
                Fault::INTERNAL,
                "this needs an answer of the user, which this revision does not support",
            )),
        }
    }

    /// A method of tasks, where there are some.
    pub(super) async fn task(
        self: &Arc<Self>,
        era: Era,
        request: Request,
        peer: &Peer,
    ) -> Result<Members, Fault> {
        let context = Context::new(self, era, request, peer);
        let none = || Fault::method_not_found(&context.method);
        let tasks = self.catalog().tasks.clone().ok_or_else(none)?;
        tasks.answer(&context).await.ok_or_else(none)?
    }

    pub(super) async fn complete(&self, request: &Request) -> Result<Members, Fault> {
        let bad = Fault::invalid_params;
        let reference = request.params.get("ref").and_then(Value::as_object);
        let reference = reference.ok_or_else(|| bad("`ref` must be an object"))?;
        let argument = request.params.get("argument").and_then(Value::as_object);
        let argument = argument.ok_or_else(|| bad("`argument` must be an object"))?;
        let (name, prefix) = (string(argument, "name")?, string(argument, "value")?);
        let catalog = self.catalog();
        let mut values = match string(reference, "type")? {
            "ref/prompt" => {
                let prompt = string(reference, "name")?;
                let found = catalog.prompts.get(prompt);
                let found = found.ok_or_else(|| unknown("prompt", prompt))?;
                found.complete(name, prefix).await
            }
            "ref/resource" => {
                let uri = string(reference, "uri")?;
                let found = catalog.templates.get(uri);
                let found = found.or_else(|| catalog.resources.get(uri));
                found
                    .ok_or_else(|| no_resource(uri))?
                    .complete(name, prefix)
                    .await
            }
            _ => return Err(bad("`ref.type` must be `ref/prompt` or `ref/resource`")),
        };
        let total = values.len();
        values.truncate(MOST_VALUES);
        let completion =
            json!({ "values": values, "total": total, "hasMore": total > MOST_VALUES });
        Ok(members([("completion", completion)]))
    }

    pub(super) fn watch(&self, request: &Request, session: &Session) -> Result<Members, Fault> {
        let uri = string(&request.params, "uri")?;
        if self.catalog().resource(uri).is_none() {
            return Err(no_resource(uri));
        }
        match session.watch(uri) {
            true => Ok(Map::new()),
            false => Err(Fault::invalid_params("too many resources are watched")),
        }
    }
}

pub(super) fn unwatch(request: &Request, session: &Session) -> Result<Members, Fault> {
    session.unwatch(string(&request.params, "uri")?);
    Ok(Map::new())
}

pub(super) fn set_level(request: &Request, session: &Session) -> Result<Members, Fault> {
    let level = LogLevel::parse(string(&request.params, "level")?);
    session.set_log_level(level.ok_or_else(|| Fault::invalid_params("no such log level"))?);
    Ok(Map::new())
}

/// What the methods of both eras do.
fn usual_capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "prompts": { "listChanged": true },
        "completions": {},
        "logging": {},
    })
}

fn each<T: ?Sized>(
    objects: &BTreeMap<String, Arc<T>>,
    listing: impl Fn(&T) -> Value,
) -> Vec<Value> {
    objects.values().map(|object| listing(object)).collect()
}

/// The page of a list that a request asks for.
fn pages(name: &str, entries: &[Value], request: &Request) -> Result<Members, Fault> {
    let start = match request.params.get("cursor") {
        None => 0,
        Some(cursor) => page(cursor, entries.len())
            .ok_or_else(|| Fault::invalid_params("`cursor` is not valid"))?,
    };
    let end = entries.len().min(start + PAGE);
    let mut result = members([(name, entries[start..end].into())]);
    if end < entries.len() {
        result.insert("nextCursor".to_owned(), format!("p{end}").into());
    }
    Ok(result)
}

fn page(cursor: &Value, entries: usize) -> Option<usize> {
    let start: usize = cursor.as_str()?.strip_prefix('p')?.parse().ok()?;
    (start.is_multiple_of(PAGE) && start < entries).then_some(start)
}

fn arguments(params: &Members) -> Result<Arguments, Fault> {
    match params.get("arguments") {
        None => Ok(Arguments::new()),
        Some(Value::Object(arguments)) => Ok(arguments.clone()),
        Some(_) => Err(Fault::invalid_params("`arguments` must be an object")),
    }
}

fn string<'a>(params: &'a Members, key: &str) -> Result<&'a str, Fault> {
    params
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| Fault::invalid_params(format!("`{key}` must be a string")))
}

fn unknown(kind: &str, name: &str) -> Fault {
    let name: String = name.chars().take(128).collect();
    // In the words of the official libraries, which clients know.
    Fault::invalid_params(format!("Unknown {kind}: {name}"))
}

fn no_resource(uri: &str) -> Fault {
    let uri: String = uri.chars().take(400).collect();
    Fault::invalid_params(format!("resource not found: {uri}")).with(json!({ "uri": uri }))
}

fn members<const N: usize>(entries: [(&str, Value); N]) -> Members {
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}
