//! `--as code-runner-mcp`: the tools of that server, on our service.
//!
//! Its names, parameters, variables and texts are that server's, so that a client's
//! configuration needs one changed line. Where it was wrong (one interpreter for
//! everyone, failures reported as success, no exit code) ours is right.

mod settings;
mod text;

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Tool, runs_code};
use super::run_tool::{Link, Params, render_as, run, upstream_tools};
use crate::caller::Caller;
use crate::error_kind::ErrorKind;
use crate::output::RunOutput;
use crate::packages::awaits_at_top;
use crate::request::{CellPath, InputFile, RequestError, RunRequest};
use crate::service::{Ran, Service};
use crate::store::CallerOutputs;

pub use settings::{Kind, Settings};

/// How a model finds a tool of an upstream server: the other server has no tool for that.
const HELP: &str = "`print(mcp.help(\"NAME\"))` lists the tools of one.";

/// The server's name in that mode.
pub const NAME: &str = "code-runner-mcp";

/// Runs what awaits outside of functions, as that server's Python did.
const AWAITING: &str = "\
import ast, asyncio, inspect, sys
def run(path='/workspace/program.py'):
    with open(path, 'rb') as file:
        source = file.read()
    code = compile(source, path, 'exec', flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, vars(sys.modules['__main__']))
    if inspect.iscoroutine(result):
        asyncio.run(result)
run()
";
/// What is imported is installed before the program starts, so there is nothing left to do.
const MICROPIP: &str = "\
async def install(*names, **options):
    '''Packages are installed by what a program imports, or by `packages`.'''
";

const DENO: &str = "typescript@deno";

/// One of the two tools.
pub struct CodeRunnerMcp {
    pub service: Arc<Service>,
    pub settings: Arc<Settings>,
    pub kind: Kind,
    language: OnceLock<&'static str>,
}

impl Tool for CodeRunnerMcp {
    fn listing(&self) -> Value {
        let mut properties = json!({
            "code": { "type": "string", "description": "The code to run" },
        });
        if self.kind == Kind::Python {
            properties["packages"] = json!({
                "type": "object",
                "additionalProperties": { "type": "string" },
                "description": "Import name → package on PyPI, where they differ; all of them are installed",
            });
        }
        let mut description = self.settings.description(self.kind);
        if let Some(tools) = upstream_tools(&self.service, HELP) {
            description += &format!("\n\n{tools}");
        }
        json!({
            "name": self.kind.tool(),
            "description": description,
            "inputSchema": { "type": "object", "properties": properties, "required": ["code"] },
            "annotations": runs_code(self.kind.title(), false),
        })
    }

    fn prepare(&self, caller: &Caller) {
        self.service.welcome(caller);
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let service = &self.service;
            let ran = match self.params(arguments, service.outputs(&context.caller)) {
                Ok(params) => run(service, params, context).await,
                Err((message, hint)) => Ran::refused(ErrorKind::InvalidRequest, message, hint),
            };
            let say =
                |output: &RunOutput, _: &[Link]| text::text(output, self.kind, &self.settings);
            let (budget, surface) = (service.settings().budget, self.kind.surface());
            Ok(Answer::Complete(render_as(ran, budget, surface, say)))
        })
    }
}

impl CodeRunnerMcp {
    fn params(
        &self,
        mut arguments: Arguments,
        outputs: CallerOutputs<'_>,
    ) -> Result<Params, (String, Option<String>)> {
        // Who speaks of Deno means that runtime, which the other server had.
        let code = arguments.get("code").and_then(Value::as_str);
        let is_deno_s =
            self.kind == Kind::JavaScript && code.is_some_and(|it| it.contains("Deno."));
        let language = match is_deno_s {
            true => DENO,
            false => self.language(),
        };
        arguments.insert("language".to_owned(), language.into());
        let limit = self.kind.seconds();
        arguments.entry("timeout").or_insert(limit.into());
        let params = Params::read(arguments, outputs);
        let params = params.map_err(|bad| (bad.message, bad.hint))?;
        let request = self.grant(params.request);
        let request = request.map_err(|error| {
            let hint = error.hint().map(|hint| hint.words(self.kind.surface()));
            (error.to_string(), hint)
        })?;
        Ok(Params { request, ..params })
    }

    pub fn new(service: Arc<Service>, settings: Arc<Settings>, kind: Kind) -> Self {
        Self {
            service,
            settings,
            kind,
            language: OnceLock::new(),
        }
    }

    /// Which of our languages runs it: the first that is there when it is first asked for.
    fn language(&self) -> &'static str {
        let languages = self.kind.languages();
        let can_run = |language: &&str| self.service.engine().can_run(language);
        let find = || languages.iter().copied().find(can_run);
        self.language
            .get_or_init(|| find().unwrap_or(languages[languages.len() - 1]))
    }

    /// What the server's owner has granted in that server's variables.
    fn grant(&self, request: RunRequest) -> Result<RunRequest, RequestError> {
        let settings = &self.settings;
        let request = match self.kind {
            Kind::Python => with_await(request)?.mounts(settings.python_mounts.iter().cloned())?,
            Kind::JavaScript => request
                .mounts(settings.mounts.iter().cloned())?
                .env(settings.env.iter().cloned())?
                .network(settings.network.clone()),
        };
        // That server brought its own.
        Ok(request.fetches_runtime())
    }
}

/// A program that Python itself would not run, beside one that runs it.
fn with_await(request: RunRequest) -> Result<RunRequest, RequestError> {
    let code = String::from_utf8_lossy(request.code()).into_owned();
    let file = |path: &str, text: &str| -> Result<InputFile, RequestError> {
        Ok(InputFile::from_bytes(CellPath::parse(path)?, text))
    };
    let mut request = request;
    if code.contains("micropip") {
        request = request.files([file("micropip.py", MICROPIP)?])?;
    }
    if awaits_at_top(&code) {
        request = request
            .files([file("program.py", &code)?])?
            .with_code(AWAITING)?;
    }
    Ok(request)
}
