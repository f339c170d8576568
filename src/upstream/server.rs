//! One server: its tools, and calls of them.

mod judge;
mod visibility;

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::approval::Approved;
use super::ledger::Ledger;
use super::lifecycle::{Lifecycle, ServerState, lock};
use super::nearest::find;
use super::redact::Pseudonyms;
use super::result_value;
use super::schema::Checks;
use super::scrub::scrubbed;
use super::{Arguments, CallError, Functions, Tool, signature};
use crate::config::{Reach, Redaction, Server};

const NO_RESULT: &str = "it gave no result";
/// Characters of a name that is a program's word alone.
const LONGEST_NAME: usize = 128;

pub struct UpstreamServer {
    /// As its owner calls it.
    pub name: String,
    /// As programs call it.
    pub alias: String,
    kind: Kind,
    checks: Arc<Checks>,
    /// Of the run that this is for, if it is for one.
    ledger: Option<Arc<Ledger>>,
    approved: Arc<Approved>,
    pseudonyms: Arc<Pseudonyms>,
    /// Whether there was something to call from the start.
    lasting: bool,
}

#[derive(Clone)]
enum Kind {
    Configured(Arc<Lifecycle>),
    Functions(Arc<dyn Functions>, Arc<Mutex<Arc<Vec<Tool>>>>),
}

impl UpstreamServer {
    /// One of the configuration.
    pub(super) fn configured(
        (name, alias): (String, String),
        lifecycle: Lifecycle,
        approved: Arc<Approved>,
        pseudonyms: Arc<Pseudonyms>,
    ) -> Self {
        Self {
            name,
            alias,
            kind: Kind::Configured(Arc::new(lifecycle)),
            checks: Arc::default(),
            ledger: None,
            approved,
            pseudonyms,
            lasting: true,
        }
    }

    /// Functions of this process.
    pub(super) fn functions(name: String, alias: String, functions: Arc<dyn Functions>) -> Self {
        let tools = functions.tools();
        Self {
            name,
            alias,
            lasting: !tools.is_empty(),
            kind: Kind::Functions(functions, Arc::new(Mutex::new(Arc::new(tools)))),
            checks: Arc::default(),
            ledger: None,
            approved: Arc::default(),
            pseudonyms: Arc::default(),
        }
    }

    /// The same for one run, whose calls are written down.
    pub(super) fn for_run(&self, ledger: &Arc<Ledger>) -> Self {
        Self {
            name: self.name.clone(),
            alias: self.alias.clone(),
            kind: self.kind.clone(),
            checks: self.checks.clone(),
            ledger: Some(ledger.clone()),
            approved: self.approved.clone(),
            pseudonyms: self.pseudonyms.clone(),
            lasting: self.lasting,
        }
    }

    /// The tools that may be called, as they were last told, maybe to another process. Waits for nothing.
    pub fn known(&self) -> Arc<Vec<Tool>> {
        match &self.kind {
            Kind::Configured(lifecycle) => lifecycle.offered(),
            Kind::Functions(functions, known) => {
                let mut known = lock(known);
                let now = functions.tools();
                if now != **known {
                    *known = Arc::new(now);
                }
                known.clone()
            }
        }
    }

    /// What the configuration says of it; none for functions.
    pub fn settings(&self) -> Option<&Server> {
        match &self.kind {
            Kind::Configured(lifecycle) => Some(&lifecycle.server),
            Kind::Functions(..) => None,
        }
    }

    /// Whether it runs, as far as a stranger may know.
    pub fn state(&self) -> ServerState {
        match &self.kind {
            Kind::Configured(lifecycle) => lifecycle.state(),
            Kind::Functions(..) => ServerState::Functions,
        }
    }

    /// Variables that it should have and that are not set.
    pub fn unset(&self) -> &[String] {
        self.settings().map_or(&[], |settings| &settings.unset)
    }

    /// What is wrong with its entry, for the owner of the file.
    pub fn mistake(&self) -> Option<&str> {
        match &self.settings()?.reach {
            Reach::Mistake(why) => Some(why),
            _ => None,
        }
    }

    /// Lets somebody log in to it, with a browser at the address that `show` is told.
    pub async fn log_in(&self, show: impl FnOnce(&str)) -> Result<(), String> {
        let Kind::Configured(lifecycle) = &self.kind else {
            return Err("there is nothing to log in to".to_owned());
        };
        let tokens = lifecycle.memory.as_ref().and_then(|it| it.tokens.as_ref());
        match (&lifecycle.server.reach, tokens) {
            (Reach::Remote(remote), Some(tokens)) => tokens.log_in(remote, show).await,
            _ => Err("there is nothing to log in to".to_owned()),
        }
    }

    /// The tools that are known, each in a line.
    pub fn signatures(&self) -> Vec<String> {
        let known = self.known();
        known
            .iter()
            .map(|tool| signature::line(&self.alias, tool))
            .collect()
    }

    /// All that the server says of a tool.
    pub fn documentation(&self, tool: &Tool) -> String {
        signature::whole(&self.alias, tool)
    }

    /// The tools; starts the server if they are not known.
    pub async fn tools(&self) -> Result<Arc<Vec<Tool>>, CallError> {
        match &self.kind {
            Kind::Configured(lifecycle) if lifecycle.is_known() && !lifecycle.is_stale() => {}
            _ => self.ask().await?,
        }
        Ok(self.known())
    }

    /// Has the server tell its tools, and so starts it if it does not run.
    pub async fn ask(&self) -> Result<(), CallError> {
        if let Kind::Configured(lifecycle) = &self.kind {
            let link = lifecycle.link().await?;
            lifecycle.refresh(&*link).await;
        }
        Ok(())
    }

    /// Where it was started, if its owner says so.
    pub fn folder(&self) -> Option<&std::path::Path> {
        match &self.settings()?.reach {
            Reach::Program(program) => program.folder.as_deref(),
            Reach::Remote(_) | Reach::Mistake(_) => None,
        }
    }

    /// Asks for something that is no tool: resources, prompts.
    pub async fn request(&self, method: &str, params: &Value) -> Result<Value, CallError> {
        let Kind::Configured(lifecycle) = &self.kind else {
            return Err(CallError::Tool("it has tools only".to_owned()));
        };
        let redaction = lifecycle.server.rules.redact.unwrap_or_default();
        let mut params = params.clone();
        self.pseudonyms.restore(&mut params, redaction);
        let link = lifecycle.link().await?;
        let asked = link.request(method, &params).await;
        let asked = scrubbed(asked, &lifecycle.server.secrets, &link.secrets());
        self.redacted(asked, redaction)
    }

    /// Calls a tool by its name or alias, for the owner; what it came to, as a program would want it.
    pub async fn call(&self, tool: &str, arguments: Arguments) -> Result<Value, CallError> {
        match self
            .carry_out(tool, &arguments, Redaction::default())
            .await?
        {
            Value::Object(result) => result_value::value(result),
            _ => Err(CallError::Tool(NO_RESULT.to_owned())),
        }
    }

    /// The same for a program or a model; its whole result, also one that says that it failed.
    ///
    /// Dropping the future takes the call back.
    pub async fn call_whole(
        &self,
        tool: &str,
        arguments: Arguments,
    ) -> Result<Map<String, Value>, CallError> {
        match self.written_down(tool, arguments).await? {
            Value::Object(result) => Ok(result),
            _ => Err(CallError::Tool(NO_RESULT.to_owned())),
        }
    }

    /// Writes down that a program of this run called a server that it may not call, or that there is not.
    pub(super) fn note_refused(&self, server: &str, tool: &str, arguments: &Arguments) {
        if let Some(ledger) = &self.ledger {
            let server: String = server.chars().take(LONGEST_NAME).collect();
            let refused = CallError::UnknownServer(String::new());
            ledger.begin(&server, tool, arguments).end(&Err(refused));
        }
    }

    /// What a server said to a program, with tokens for personal data.
    fn redacted(
        &self,
        said: Result<Value, CallError>,
        redaction: Redaction,
    ) -> Result<Value, CallError> {
        match said {
            Ok(mut said) => {
                self.pseudonyms.redact(&mut said, redaction);
                Ok(said)
            }
            Err(error) => Err(self.pseudonyms.redact_error(error, redaction)),
        }
    }

    async fn written_down(&self, tool: &str, arguments: Arguments) -> Result<Value, CallError> {
        let rules = self.settings().map(|settings| &settings.rules);
        let redaction = rules.and_then(|rules| rules.redact).unwrap_or_default();
        let Some(ledger) = &self.ledger else {
            return self.carry_out(tool, &arguments, redaction).await;
        };
        let open = ledger.begin(&self.name, tool, &arguments);
        let spent = rules.map_or(Ok(()), |rules| ledger.spend(&self.name, open.sent(), rules));
        let called = match spent {
            Ok(()) => self.carry_out(tool, &arguments, redaction).await,
            Err(error) => Err(error),
        };
        open.end(&called);
        called
    }

    /// With tokens for personal data, which are values again for the server.
    async fn carry_out(
        &self,
        tool: &str,
        arguments: &Arguments,
        redaction: Redaction,
    ) -> Result<Value, CallError> {
        if redaction == Redaction::default() {
            return self.carry_out_plain(tool, arguments).await;
        }
        let restored = self.pseudonyms.restore_arguments(arguments, redaction)?;
        let called = self.carry_out_plain(tool, &restored).await;
        self.redacted(called, redaction)
    }

    async fn carry_out_plain(&self, tool: &str, arguments: &Arguments) -> Result<Value, CallError> {
        match &self.kind {
            Kind::Functions(functions, _) => {
                let known = self.known();
                let name = match functions.hidden().contains(&tool) {
                    true => tool,
                    false => {
                        let tool = find(&known, tool)?;
                        self.checks.check(&known, tool, arguments)?;
                        &tool.name
                    }
                };
                let called = functions.call(name, arguments.to_map()?);
                let value = called.await.map_err(CallError::Tool)?;
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                let content = json!([{ "type": "text", "text": text }]);
                Ok(json!({ "content": content, "structuredContent": value }))
            }
            Kind::Configured(lifecycle) => {
                let Server { secrets, rules, .. } = &lifecycle.server;
                let link = lifecycle.link().await?;
                lifecycle.refresh(&*link).await;
                // Those that are refused too: the caller is told which rule it is.
                let known = lifecycle.all();
                let tool = find(&known, tool)?;
                self.checks.check(&known, tool, arguments)?;
                // SECURITY: by the name that the server has for it, not by the program's.
                self.judge(&tool.name, arguments, rules).await?;
                let called = link.call(&tool.name, arguments);
                let called = match rules.timeout {
                    None => called.await,
                    Some(most) => match tokio::time::timeout(most, called).await {
                        Ok(called) => called,
                        Err(_) => Err(CallError::Timeout(most.as_secs_f64())),
                    },
                };
                scrubbed(called, secrets, &link.secrets())
            }
        }
    }
}
