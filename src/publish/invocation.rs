//! One call of a script: run it, ask what it asks, run it again with the answers.
//!
//! A script that asks is stopped and later started anew with all answers so far.
//! In the modern era the protocol wants it so: the client repeats its request and
//! brings the answers. We do the same in the legacy eras, where we could wait:
//! a cell is not held while a person thinks, the script's deadline counts only its
//! own work, and a script behaves alike in front of every client.

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::Shared;
use super::collector::{Collected, Collector};
use super::front_matter::FrontMatter;
use super::message_parser::MessageParser;
use super::question::{Question, as_capabilities, can};
use super::request_state::{Answers, Binding};
use crate::hint::Surface;
use crate::mcp::{Answer, Context, Fault};
use crate::output::RunOutput;
use crate::request::{AskedLimits, CellPath, InputFile, RequestError, RunRequest};
use crate::service::RunContext;

/// How often one request may make a script ask.
const MOST_ROUNDS: usize = 32;
/// A variable longer than this is only in the file.
const LONGEST_VARIABLE: usize = 32 << 10;
const LONGEST_VARIABLES: usize = 256 << 10;

/// What a script is called with.
pub struct Input {
    pub arguments: Map<String, Value>,
    /// The address, for a resource.
    pub uri: Option<String>,
}

/// What a call came to.
pub enum Ended {
    Ran(Box<(RunOutput, Collected)>),
    /// The client has to answer first.
    Asks(Answer),
    /// It never came to an end, for a reason that the caller can read.
    Failed(String),
}

pub struct Invocation<'a> {
    pub front: &'a FrontMatter,
    pub file_name: &'a str,
    pub code: &'a [u8],
    pub shared: &'a Shared,
    pub input: Input,
    pub context: &'a Context,
}

impl Invocation<'_> {
    pub async fn carry_out(self) -> Result<Ended, Fault> {
        let needs = self.front.needs.iter().map(String::as_str);
        if let Some(refused) = self.refuse(needs)? {
            return Ok(refused);
        }
        let binding = Binding::new(&self.context.method, &self.context.params);
        let mut answers = self.given(&binding)?;
        let mut told = 0;
        for _ in 0..MOST_ROUNDS {
            let (output, collected) = match self.run(&answers, told).await {
                Ok(ran) => ran,
                Err(error) => return Ok(Ended::Failed(error.to_string())),
            };
            if let Some(why) = collected.misled {
                return Ok(Ended::Failed(why));
            }
            if collected.asks.is_empty() {
                return Ok(Ended::Ran(Box::new((output, collected))));
            }
            if let Some(refused) = self.refuse(collected.asks.iter().map(Question::need))? {
                return Ok(refused);
            }
            told = told.max(collected.logged);
            if self.context.era.is_modern() {
                return self.ask_later(&binding, &collected);
            }
            for question in &collected.asks {
                match self.ask_now(question).await {
                    Ok(answer) => answers.insert(question.key.clone(), answer),
                    Err(why) => return Ok(Ended::Failed(why)),
                };
            }
        }
        let why = format!("the script asked more than {MOST_ROUNDS} times");
        Ok(Ended::Failed(why))
    }

    /// The answers that the request brings along.
    fn given(&self, binding: &Binding) -> Result<Answers, Fault> {
        let mut answers = match &self.context.request_state {
            Some(state) => {
                let opened = self.shared.signer.open(state, binding);
                opened.map_err(|bad| Fault::invalid_params(bad.to_string()))?
            }
            None => Answers::new(),
        };
        let fresh = self.context.input_responses.iter();
        let fresh = fresh.filter(|(_, answer)| answer.is_object());
        answers.extend(fresh.map(|(key, answer)| (key.clone(), answer.clone())));
        Ok(answers)
    }

    /// Refuses to go on without something that the client cannot do.
    fn refuse<'a>(&self, needs: impl Iterator<Item = &'a str>) -> Result<Option<Ended>, Fault> {
        let missing: Vec<&str> = needs.filter(|need| !can(self.context, need)).collect();
        if missing.is_empty() {
            return Ok(None);
        }
        let message = format!("this needs a client that can do {}", missing.join(", "));
        if self.context.era.is_modern() {
            let required = as_capabilities(missing);
            return Err(Fault::new(Fault::MISSING_CAPABILITY, message)
                .with(serde_json::json!({ "requiredCapabilities": required })));
        }
        Ok(Some(Ended::Failed(message)))
    }

    fn ask_later(&self, binding: &Binding, collected: &Collected) -> Result<Ended, Fault> {
        let sealed = self.shared.signer.seal(binding, &collected.used);
        let state = sealed.map_err(|bad| Fault::invalid_params(bad.to_string()))?;
        let asks = collected.asks.iter();
        Ok(Ended::Asks(Answer::InputRequired {
            requests: asks.map(|ask| (ask.key.clone(), ask.to_value())).collect(),
            state: Some(state),
        }))
    }

    async fn ask_now(&self, question: &Question) -> Result<Value, String> {
        let params = Value::Object(question.params.clone());
        match self.context.ask(&question.method, params).await {
            Ok(answer) if question.is_answered_by(&answer) => match question.fault_of(&answer) {
                None => Ok(answer),
                Some(fault) => Err(fault),
            },
            Ok(_) => Err(format!(
                "the client's answer to `{}` is no answer",
                question.key
            )),
            Err(fault) => Err(format!(
                "the client did not answer `{}`: {}",
                question.key, fault.message
            )),
        }
    }

    async fn run(
        &self,
        answers: &Answers,
        told: usize,
    ) -> Result<(RunOutput, Collected), RequestError> {
        let parser = MessageParser::new();
        let request = self.request(parser.mark(), answers)?;
        let (stop, stopped) = oneshot::channel();
        let listener = Collector {
            parser,
            name: self.file_name,
            answers,
            told,
            context: self.context,
            stop,
        };
        let stopped = async {
            // A collector that is gone without asking stops nothing.
            if stopped.await.is_err() {
                std::future::pending().await
            }
        };
        let run = RunContext::new(self.context.caller.clone(), listener).until(stopped);
        let ran = self.shared.service.run(request, run).await;
        Ok((ran.output.words(Surface::Mcp), ran.heard))
    }

    fn request(&self, mark: &str, answers: &Answers) -> Result<RunRequest, RequestError> {
        let script = (self.front, self.file_name, self.code);
        let variables = self.variables(mark, answers);
        request(script, &self.input.arguments, answers, variables)
    }

    /// The same facts as variables, for languages in which JSON is a burden.
    fn variables(&self, mark: &str, answers: &Answers) -> Vec<(String, String)> {
        let mut all = vec![("HOTCELL_TALK".to_owned(), mark.to_owned())];
        let mut left = LONGEST_VARIABLES;
        let mut add = |name: String, value: &Value| {
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let size = name.len() + value.len();
            if name.bytes().all(plain)
                && size <= LONGEST_VARIABLE.min(left)
                && !value.contains('\0')
            {
                left -= size;
                all.push((name, value));
            }
        };
        let client = self.context.capabilities.clone().unwrap_or_default();
        add("HOTCELL_CLIENT".to_owned(), &client.into());
        if let Some(uri) = &self.input.uri {
            add("HOTCELL_URI".to_owned(), &uri.as_str().into());
        }
        for (name, value) in &self.input.arguments {
            add(format!("ARG_{name}"), value);
        }
        for (key, answer) in answers {
            add(format!("ANSWER_{key}"), &answer["action"]);
            for (name, value) in answer["content"].as_object().into_iter().flatten() {
                add(format!("ANSWER_{key}_{name}"), value);
            }
        }
        all
    }
}

/// What it takes to run a script, which is its front matter, its name and its text.
pub fn request(
    (front, file_name, code): (&FrontMatter, &str, &[u8]),
    arguments: &Map<String, Value>,
    answers: &Answers,
    variables: Vec<(String, String)>,
) -> Result<RunRequest, RequestError> {
    let json = |value: &Map<String, Value>| serde_json::to_vec(value).unwrap_or_default();
    let file = |name: &str, bytes: Vec<u8>| {
        CellPath::parse(name).map(|path| InputFile::from_bytes(path, bytes))
    };
    let mut files = vec![
        file("arguments.json", json(arguments))?,
        file("answers.json", json(answers))?,
    ];
    for (name, text) in super::HELPERS {
        files.push(file(name, text.into())?);
    }
    let mut request = RunRequest::new(code)?.named(file_name);
    if let Some(language) = &front.language {
        request = request.language(language);
    }
    request.env(variables)?.files(files)?.limits(AskedLimits {
        timeout: front.timeout,
        memory: front.memory,
        ..AskedLimits::default()
    })
}
