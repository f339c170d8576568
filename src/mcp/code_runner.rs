//! `--as code-runner`: the tool of mcp-server-code-runner, on our service.
//!
//! Its name, parameters, messages and text are that server's, so that a client's
//! configuration needs one changed line. Where that server was wrong (output lost
//! to a warning, failures reported as success) ours is right. What its users may not
//! expect but cannot hurt, the other parameters of `run` and the whole record of
//! the run, is there too.

use std::sync::Arc;

use serde_json::{Value, json};

use super::context::Context;
use super::message::Fault;
use super::objects::{Answer, Arguments, Boxed, Tool, runs_code};
use super::run_tool::{Link, Params, render_as, run, separate};
use crate::error_kind::ErrorKind;
use crate::hint::{Shown, Surface};
use crate::language::HOST_FIRST;
use crate::output::RunOutput;
use crate::service::{Ran, Service};
use crate::store::CallerOutputs;

/// The server's name in that mode.
pub const NAME: &str = "Code Runner";
pub const PORT: u16 = 3088;
/// Its tool takes a program and its language.
const SURFACE: Surface = Surface::Compat(Shown {
    packages: false,
    timeout: false,
    deno: false,
});

/// The ids in the order in which they have always been listed.
#[rustfmt::skip]
pub const LANGUAGES: &[&str] = &[
    "javascript", "php", "python", "perl", "perl6", "ruby", "go", "lua", "groovy", "powershell",
    "bat", "shellscript", "fsharp", "csharp", "vbscript", "typescript", "coffeescript", "scala",
    "swift", "julia", "crystal", "ocaml", "r", "applescript", "clojure", "racket", "scheme", "ahk",
    "autoit", "dart", "haskell", "nim", "lisp", "kit", "v", "sass", "scss",
];

pub struct CodeRunner(pub Arc<Service>);

impl Tool for CodeRunner {
    fn listing(&self) -> Value {
        json!({
            "name": "run-code",
            "description": "Run a code snippet and return the result.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "code": { "type": "string", "description": "The code to run" },
                    "languageId": { "type": "string", "enum": LANGUAGES, "description": "The language of the code" },
                },
                "required": ["code", "languageId"],
            },
            "annotations": runs_code("Run code", false),
        })
    }

    fn call<'a>(
        &'a self,
        arguments: Arguments,
        context: &'a Arc<Context>,
    ) -> Boxed<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let service = &self.0;
            let (ran, words) = match params(arguments, service.outputs(&context.caller)) {
                Ok(params) => (run(service, params, context).await, None),
                Err(refused) => (*refused.ran, refused.words),
            };
            let say = |output: &RunOutput, _: &[Link]| words.unwrap_or_else(|| text(output));
            let budget = service.settings().budget;
            Ok(Answer::Complete(render_as(ran, budget, SURFACE, say)))
        })
    }
}

/// A call that runs nothing.
struct Refused {
    ran: Box<Ran>,
    /// The whole text, where that server had one.
    words: Option<String>,
}

impl From<Ran> for Refused {
    fn from(ran: Ran) -> Self {
        Self {
            ran: Box::new(ran),
            words: None,
        }
    }
}

/// That server's checks and words first, then those of `run`.
fn params(mut arguments: Arguments, outputs: CallerOutputs<'_>) -> Result<Params, Refused> {
    let refuse = |kind, words: String, hint| Refused {
        ran: Box::new(Ran::refused(kind, words.trim_end_matches('.'), hint)),
        words: Some(words),
    };
    let is_empty = |key: &str| match arguments.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    if is_empty("code") {
        return Err(refuse(
            ErrorKind::InvalidRequest,
            "Code is required.".to_owned(),
            None,
        ));
    }
    if is_empty("languageId") {
        let words = "Language ID is required.";
        return Err(refuse(ErrorKind::InvalidRequest, words.to_owned(), None));
    }
    let Some(Value::String(id)) = arguments.remove("languageId") else {
        let message = "`languageId` must be a string";
        return Err(Ran::refused(ErrorKind::InvalidRequest, message, None).into());
    };
    if !LANGUAGES.contains(&id.as_str()) {
        let short: String = id.chars().take(40).collect();
        let words = format!("Language '{}' is not supported.", short.escape_debug());
        let hint = format!("Use one of {}.", LANGUAGES.join(", "));
        return Err(refuse(ErrorKind::UnknownLanguage, words, Some(hint)));
    }
    // That server had no runtime of its own: what its users have installed comes first.
    arguments.insert("language".to_owned(), format!("{id}@{HOST_FIRST}").into());
    Params::read(arguments, outputs)
        .map_err(|bad| Ran::refused(ErrorKind::InvalidRequest, bad.message, bad.hint).into())
}

/// Exactly what was printed; after it, and only if there is any, what went wrong.
fn text(output: &RunOutput) -> String {
    let mut text = output.stdout.clone();
    if !output.stderr.is_empty() {
        separate(&mut text);
        text += "Stderr: ";
        text += &output.stderr;
    }
    let reason = match (&output.error, output.exit_code) {
        (None, _) => return text,
        (Some(_), Some(code)) => format!("Error: exit code {code}"),
        (Some(error), None) => format!("Error: {}", error.message),
    };
    separate(&mut text);
    text += &reason;
    if let Some(hint) = output.error.as_ref().and_then(|error| error.hint.as_ref()) {
        text += &format!("\n{hint}");
    }
    text
}
