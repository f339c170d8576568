//! What a client can list and use.
//!
//! Everything the server offers is one of these objects in a [`Catalog`]; the
//! server itself knows none by name. An object's `listing` goes to the client as
//! it is, so a schema that somebody wrote arrives as they wrote it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::context::Context;
use super::message::Fault;
use super::skills::Skills;
use super::tasks::Tasks;
use crate::caller::Caller;

pub type Arguments = Map<String, Value>;

/// An argument that a tool has no parameter for: it would be ignored in silence.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownParameter {
    pub message: String,
    pub hint: String,
}

impl UnknownParameter {
    /// Looks for one among `arguments`.
    pub fn check(arguments: &Arguments, known: &[&str]) -> Result<(), Self> {
        let Some(unknown) = arguments.keys().find(|key| !known.contains(&key.as_str())) else {
            return Ok(());
        };
        let unknown: String = unknown.chars().take(40).collect();
        Err(Self {
            message: format!("unknown parameter {unknown:?}"),
            hint: format!("The parameters are {}.", known.join(", ")),
        })
    }
}
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What an object answers: the result's own members. The era's are added later.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Complete(Map<String, Value>),
    /// Ask the client first, then be called again. Modern era only; in a legacy
    /// era an object asks with [`Context::ask`] while it works.
    InputRequired {
        requests: Map<String, Value>,
        state: Option<String>,
    },
}

/// A tool. Dropping the future of `call` is how a client takes the call back.
pub trait Tool: Send + Sync {
    /// The entry of `tools/list`, with its `name` and `inputSchema`.
    fn listing(&self) -> Value;

    /// Whether clients are told of it now. One that they are not told of can be called all the same.
    fn is_listed(&self) -> bool {
        true
    }

    /// Whether a call of it may be answered with a task.
    fn takes_tasks(&self) -> bool {
        false
    }

    /// What is answered to a call of a tool that nobody has, if that is no error of the protocol in the system whose tool this is.
    fn answer_for_unknown(&self, _name: &str) -> Option<Answer> {
        None
    }

    /// A client of this caller is here and may call soon.
    fn prepare(&self, _caller: &Caller) {}

    /// Runs it. A program that fails is an answer with `isError`, and so are
    /// arguments that do not fit; a [`Fault`] is for the protocol only.
    fn call<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>>;
}

pub trait Prompt: Send + Sync {
    /// The entry of `prompts/list`, with its `name`.
    fn listing(&self) -> Value;

    fn get<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Context,
    ) -> Boxed<'a, Result<Answer, Fault>>;

    /// Values for `argument` that start like `prefix`.
    fn complete<'a>(&'a self, argument: &'a str, prefix: &'a str) -> Boxed<'a, Vec<String>> {
        let _ = (argument, prefix);
        Box::pin(async { Vec::new() })
    }
}

/// A resource with one address, or a template for many.
pub trait Resource: Send + Sync {
    /// The entry of the list: with `uri`, or with `uriTemplate`.
    fn listing(&self) -> Value;

    /// Whether this one answers for `uri`.
    fn holds(&self, uri: &str) -> bool;

    fn read<'a>(&'a self, uri: &'a str, context: &'a Context) -> Boxed<'a, Result<Answer, Fault>>;

    /// Values for a variable of the template that start like `prefix`.
    fn complete<'a>(&'a self, variable: &'a str, prefix: &'a str) -> Boxed<'a, Vec<String>> {
        let _ = (variable, prefix);
        Box::pin(async { Vec::new() })
    }
}

/// Everything on offer, by name: lists come out sorted, the same for everyone.
#[derive(Clone, Default)]
pub struct Catalog {
    pub tools: BTreeMap<String, Arc<dyn Tool>>,
    pub prompts: BTreeMap<String, Arc<dyn Prompt>>,
    /// By address.
    pub resources: BTreeMap<String, Arc<dyn Resource>>,
    /// By template.
    pub templates: BTreeMap<String, Arc<dyn Resource>>,
    /// Calls that go on when they were answered, if some do.
    pub tasks: Option<Arc<Tasks>>,
    /// Skills for agents, if there may be some.
    pub skills: Option<Arc<dyn Skills>>,
}

impl Catalog {
    pub fn add_tool(&mut self, tool: impl Tool + 'static) {
        let name = text(&tool.listing(), "name");
        self.tools.insert(name, Arc::new(tool));
    }

    pub fn add_prompt(&mut self, prompt: impl Prompt + 'static) {
        let name = text(&prompt.listing(), "name");
        self.prompts.insert(name, Arc::new(prompt));
    }

    /// Adds a resource, or a template if its listing has a `uriTemplate`.
    pub fn add_resource(&mut self, resource: impl Resource + 'static) {
        let listing = resource.listing();
        let resource: Arc<dyn Resource> = Arc::new(resource);
        match listing.get("uriTemplate") {
            Some(_) => self
                .templates
                .insert(text(&listing, "uriTemplate"), resource),
            None => self.resources.insert(text(&listing, "uri"), resource),
        };
    }

    /// The resource at `uri`: by its own address first, then by a template.
    pub fn resource(&self, uri: &str) -> Option<&Arc<dyn Resource>> {
        let fits = |resource: &&Arc<dyn Resource>| resource.holds(uri);
        self.resources
            .get(uri)
            .or_else(|| self.resources.values().find(fits))
            .or_else(|| self.templates.values().find(fits))
    }
}

/// The hints of a tool that runs code: nobody knows what it does. `reaches`: whether that may be something outside of the sandbox.
pub fn runs_code(title: &str, reaches: bool) -> Value {
    json!({
        "title": title,
        "readOnlyHint": false,
        "destructiveHint": true,
        "idempotentHint": false,
        "openWorldHint": reaches,
    })
}

fn text(listing: &Value, key: &str) -> String {
    listing[key].as_str().unwrap_or_default().to_owned()
}
