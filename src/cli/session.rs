//! A session of this process alone: for a notebook, and for a person at a prompt.

use std::future::Future;
use std::sync::Arc;

use super::call_output::{Heard, Listener};
use super::run::Grants;
use crate::caller::Caller;
use crate::engine::Rejected;
use crate::hint::Surface;
use crate::language::Definition;
use crate::output::RunOutput;
use crate::request::{AskedPackages, RequestError, RunRequest, SessionName, Showing};
use crate::service::{Observer, RunContext, Service};

pub struct Session {
    pub service: Arc<Service>,
    caller: Caller,
    language: String,
    /// A call, but for its code.
    call: RunRequest,
}

impl Session {
    /// Nothing is started before its first call.
    pub fn new(service: Service, language: &str, grants: &Grants) -> Result<Self, RequestError> {
        let call = grants
            .give("0")?
            .language(language)
            .showing(Showing::Prompt)
            .in_session(SessionName::parse("prompt")?);
        // What a language of an unknown name is told, planning says.
        let found = service.engine().registry().find(language).ok();
        if let Some(own) = found.filter(|own| own.session.is_none()) {
            return Err(RequestError::NoSessions(own.name.clone()));
        }
        Ok(Self {
            service: Arc::new(service),
            caller: Caller::local(),
            language: language.to_owned(),
            call,
        })
    }

    /// Has the contents of the files brought back that its calls leave.
    pub fn wants_files(self, wants: bool) -> Self {
        let call = self.call.wants_files(wants);
        Self { call, ..self }
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Its language, if there is one of that name.
    pub fn definition(&self) -> Option<&Definition> {
        self.service.engine().registry().find(&self.language).ok()
    }

    /// A call as it is asked for.
    pub fn request(&self, code: impl Into<Vec<u8>>) -> Result<RunRequest, RequestError> {
        self.call.clone().with_code(code)
    }

    /// Runs one call, until it ends or `stop` does.
    pub async fn call<O: Observer>(
        &self,
        code: impl Into<Vec<u8>>,
        observer: O,
        stop: impl Future<Output = ()>,
    ) -> (RunOutput, O::Heard) {
        let request = match self.request(code) {
            Ok(request) => request,
            Err(error) => {
                let rejected = Rejected::from(error);
                let message = super::with_causes(&rejected);
                let output = RunOutput::of_rejected(&rejected, message);
                return (output.words(Surface::CommandLine), O::Heard::default());
            }
        };
        self.run(request, observer, stop).await
    }

    /// What a call of ours prints, if it succeeds; nothing is installed for it.
    pub async fn ask(&self, question: &str, text: &str) -> Option<String> {
        use base64::Engine as _;
        let base64 = base64::engine::general_purpose::STANDARD.encode(text);
        let request = self.request(question.replace("{base64}", &base64)).ok()?;
        let request = request.packages(AskedPackages::List(Vec::new())).ok()?;
        let (output, _): (_, Heard) = self.run(request, Listener, std::future::pending()).await;
        (output.exit_code == Some(0)).then_some(output.stdout)
    }

    async fn run<O: Observer>(
        &self,
        request: RunRequest,
        observer: O,
        stop: impl Future<Output = ()>,
    ) -> (RunOutput, O::Heard) {
        let context = RunContext::new(self.caller.clone(), observer).until(stop);
        let ran = self.service.run(request, context).await;
        (ran.output.words(Surface::CommandLine), ran.heard)
    }
}
