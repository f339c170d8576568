//! A script as a tool, a prompt or a resource.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Shared;
use super::front_matter::{FrontMatter, Kind};
use super::invocation::{Ended, Input, Invocation};
use super::method_result;
use super::schema_check::check;
use crate::mcp::{Answer, Arguments, Boxed, Context, Fault, Prompt, Resource, Tool};
use crate::upstream::misfit;

/// A script and what it is published as. Cheap to clone.
#[derive(Clone)]
pub struct Script(Arc<Inner>);

struct Inner {
    front: FrontMatter,
    file_name: String,
    code: Vec<u8>,
    shared: Arc<Shared>,
}

impl Script {
    pub fn new(front: FrontMatter, file_name: String, code: Vec<u8>, shared: Arc<Shared>) -> Self {
        Self(Arc::new(Inner {
            front,
            file_name,
            code,
            shared,
        }))
    }

    pub fn front(&self) -> &FrontMatter {
        &self.0.front
    }

    pub fn file_name(&self) -> &str {
        &self.0.file_name
    }

    /// Whether both would behave the same.
    pub fn is_same(&self, other: &Self) -> bool {
        let (one, other) = (&self.0, &other.0);
        one.front == other.front && one.file_name == other.file_name && one.code == other.code
    }

    async fn call(
        &self,
        arguments: Arguments,
        uri: Option<String>,
        context: &Context,
    ) -> Result<Ended, Fault> {
        let inner = &self.0;
        let call = Invocation {
            front: &inner.front,
            file_name: &inner.file_name,
            code: &inner.code,
            shared: &inner.shared,
            input: Input { arguments, uri },
            context,
        };
        call.carry_out().await
    }

    /// A result, unless it is not what its schema promises: clients would throw it away, and say nothing of the cause.
    fn fitting(&self, result: Map<String, Value>) -> Map<String, Value> {
        let Some(schema) = self.0.front.listing.get("outputSchema") else {
            return result;
        };
        let structured = result.get("structuredContent");
        let wrong = match structured {
            _ if result.contains_key("isError") => None,
            Some(structured) => misfit(schema, structured),
            None => Some("it returned no structured content".to_owned()),
        };
        match wrong {
            Some(wrong) => {
                let name = &self.0.file_name;
                let why = format!("the result does not fit the `output_schema` of {name}: {wrong}");
                method_result::failure(&why)
            }
            None => result,
        }
    }

    /// Values for an argument: the ones written down, or those its schema allows.
    fn offers(&self, argument: &str, begun: &str) -> Vec<String> {
        let front = &self.0.front;
        let mut values = match front.complete.get(argument) {
            Some(values) => values.clone(),
            None => {
                let allowed = &front.schema["properties"][argument]["enum"];
                let allowed = allowed.as_array().into_iter().flatten();
                allowed
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect()
            }
        };
        let begun = begun.to_lowercase();
        values.retain(|value| value.to_lowercase().starts_with(&begun));
        values
    }
}

impl Tool for Script {
    fn listing(&self) -> Value {
        self.0.front.listing.clone()
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let arguments = Value::Object(arguments);
            if let Err(wrong) = check(&self.0.front.schema, &arguments) {
                let why = format!("invalid arguments: {wrong}");
                return Ok(Answer::Complete(method_result::failure(&why)));
            }
            let Value::Object(arguments) = arguments else {
                return Ok(Answer::Complete(Map::new()));
            };
            Ok(match self.call(arguments, None, context).await? {
                Ended::Ran(ran) => {
                    let service = &self.0.shared.service;
                    let result = method_result::tool(*ran, service, &context.caller);
                    Answer::Complete(self.fitting(result))
                }
                Ended::Asks(answer) => answer,
                Ended::Failed(why) => Answer::Complete(method_result::failure(&why)),
            })
        })
    }
}

impl Prompt for Script {
    fn listing(&self) -> Value {
        self.0.front.listing.clone()
    }

    fn get<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Context,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            // A prompt has no way to say that a call went wrong but this one.
            if arguments.values().any(|value| !value.is_string()) {
                return Err(Fault::invalid_params(
                    "the arguments of a prompt must be strings",
                ));
            }
            let required = self.0.front.schema["required"].as_array();
            for name in required.into_iter().flatten().filter_map(Value::as_str) {
                if !arguments.contains_key(name) {
                    return Err(Fault::invalid_params(format!("`{name}` is missing")));
                }
            }
            match self.call(arguments, None, context).await? {
                Ended::Ran(ran) => {
                    let front = &self.0.front;
                    method_result::prompt(*ran, front).map(Answer::Complete)
                }
                Ended::Asks(answer) => Ok(answer),
                Ended::Failed(why) => Err(Fault::new(Fault::INTERNAL, why)),
            }
        })
    }

    fn complete<'a>(&'a self, argument: &'a str, begun: &'a str) -> Boxed<'a, Vec<String>> {
        Box::pin(async move { self.offers(argument, begun) })
    }
}

impl Resource for Script {
    fn listing(&self) -> Value {
        self.0.front.listing.clone()
    }

    fn holds(&self, uri: &str) -> bool {
        match &self.0.front.kind {
            Kind::Resource(template) => template.fit(uri).is_some(),
            Kind::Tool | Kind::Prompt => false,
        }
    }

    fn read<'a>(&'a self, uri: &'a str, context: &'a Context) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let variables = match &self.0.front.kind {
                Kind::Resource(template) => template.fit(uri).unwrap_or_default(),
                Kind::Tool | Kind::Prompt => Map::new(),
            };
            match self.call(variables, Some(uri.to_owned()), context).await? {
                Ended::Ran(ran) => {
                    let mime = self.0.front.mime.as_deref();
                    method_result::resource(*ran, uri, mime).map(Answer::Complete)
                }
                Ended::Asks(answer) => Ok(answer),
                Ended::Failed(why) => Err(Fault::new(Fault::INTERNAL, why)),
            }
        })
    }

    fn complete<'a>(&'a self, variable: &'a str, begun: &'a str) -> Boxed<'a, Vec<String>> {
        Box::pin(async move { self.offers(variable, begun) })
    }
}
