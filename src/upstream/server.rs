//! One server: started when it is first needed, and again if it has ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{Notify, OnceCell};

use super::connection::Connection;
use super::launch::ServerStderr;
use super::{Arguments, CallError, Functions, Settings, Tool, signature};

/// The backoff after a server could not be started.
const BACKOFF: Duration = Duration::from_secs(3);
/// Values that are shorter are found in any text.
const SHORTEST: usize = 8;

pub struct UpstreamServer {
    /// As its owner calls it.
    pub name: String,
    /// As programs call it.
    pub alias: String,
    kind: Kind,
    news: Arc<Notify>,
    connection: Mutex<Arc<OnceCell<Connection>>>,
    failed: Mutex<Option<(Instant, String)>>,
    known: Mutex<Arc<Vec<Tool>>>,
}

pub enum Kind {
    Process(Settings, ServerStderr),
    Functions(Arc<dyn Functions>),
}

impl UpstreamServer {
    pub fn new(name: String, alias: String, kind: Kind, news: Arc<Notify>) -> Self {
        let known = match &kind {
            Kind::Functions(functions) => functions.tools(),
            Kind::Process(..) => Vec::new(),
        };
        Self {
            name,
            alias,
            kind,
            news,
            connection: Mutex::default(),
            failed: Mutex::default(),
            known: Mutex::new(Arc::new(known)),
        }
    }

    /// The tools as they were last told. Waits for nothing.
    pub fn known(&self) -> Arc<Vec<Tool>> {
        lock(&self.known).clone()
    }

    /// Variables that it should have and that are not set.
    pub fn unset(&self) -> &[String] {
        match &self.kind {
            Kind::Process(settings, _) => &settings.unset,
            Kind::Functions(_) => &[],
        }
    }

    /// The same, each in a line.
    pub fn signatures(&self) -> Vec<String> {
        let known = self.known();
        known
            .iter()
            .map(|tool| signature::line(&self.alias, tool))
            .collect()
    }

    /// The tools; starts the server if it does not run.
    pub async fn tools(&self) -> Result<Arc<Vec<Tool>>, CallError> {
        if let Kind::Process(settings, stderr) = &self.kind {
            self.connection(settings, *stderr).await?;
        }
        Ok(self.known())
    }

    /// Calls a tool by its name or alias; what it came to, as a program wants it.
    ///
    /// Dropping the future takes the call back.
    pub async fn call(&self, tool: &str, arguments: Arguments) -> Result<Value, CallError> {
        match &self.kind {
            Kind::Functions(functions) => {
                let tool = find(&self.known(), tool)?.name.clone();
                let called = functions.call(&tool, arguments.to_map()?);
                called.await.map_err(CallError::Tool)
            }
            Kind::Process(settings, stderr) => {
                let connection = self.connection(settings, *stderr).await?;
                let connection = connection.get().ok_or_else(gone)?;
                let tool = find(&self.known(), tool)?.name.clone();
                let result = connection.call(&tool, &arguments).await;
                match result {
                    Ok(mut result) => {
                        scrub(&mut result, settings);
                        value(result)
                    }
                    Err(CallError::Tool(why)) => {
                        let mut why = Value::String(why);
                        scrub(&mut why, settings);
                        Err(CallError::Tool(why.as_str().unwrap_or_default().to_owned()))
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// The connection to the server, opened at need; whoever comes meanwhile waits for the same.
    async fn connection(
        &self,
        settings: &Settings,
        stderr: ServerStderr,
    ) -> Result<Arc<OnceCell<Connection>>, CallError> {
        let cell = {
            let mut current = lock(&self.connection);
            if current.get().is_some_and(Connection::is_over) {
                *current = Arc::default();
            }
            current.clone()
        };
        let open = || async {
            if let Some((when, why)) = &*lock(&self.failed)
                && when.elapsed() < BACKOFF
            {
                return Err(why.clone());
            }
            let opened = Connection::open(settings, stderr, self.news.clone()).await;
            let (connection, tools) = opened.inspect_err(|why| {
                // Not why: that may be the server's own words.
                tracing::warn!(server = self.name, "upstream server does not start");
                *lock(&self.failed) = Some((Instant::now(), why.clone()));
            })?;
            tracing::info!(
                server = self.name,
                tools = tools.len(),
                "upstream server started"
            );
            *lock(&self.known) = Arc::new(tools);
            Ok::<_, String>(connection)
        };
        let opened = cell.get_or_try_init(open).await;
        let connection = opened.map_err(CallError::Unavailable)?;
        if connection.take_stale()
            && let Ok(tools) = connection.tools().await
        {
            *lock(&self.known) = Arc::new(tools);
        }
        Ok(cell)
    }
}

fn gone() -> CallError {
    CallError::Unavailable("it has ended".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tool that a program means: its own name, or one that only differs in how it is written.
pub fn find<'a>(tools: &'a [Tool], asked: &str) -> Result<&'a Tool, CallError> {
    let plain = |name: &str| -> String {
        let letters = name.chars().filter(|it| it.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let same = |tool: &&Tool| tool.name == asked;
    let alike = |tool: &&Tool| plain(&tool.name) == plain(asked);
    let found = tools.iter().find(same).or_else(|| tools.iter().find(alike));
    found.ok_or_else(|| {
        let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let shared = |name: &str| {
            let (name, asked) = (plain(name), plain(asked));
            name.chars()
                .zip(asked.chars())
                .take_while(|(a, b)| a == b)
                .count()
        };
        names.sort_by_key(|name| std::cmp::Reverse(shared(name)));
        names.truncate(8);
        CallError::UnknownTool(names.join(", "))
    })
}

/// What a result is to a program: its structure; or its text, read as JSON if it is; or its parts.
fn value(result: Value) -> Result<Value, CallError> {
    let Value::Object(mut result) = result else {
        return Err(CallError::Tool("it gave no result".to_owned()));
    };
    let mut take = |name| result.remove(name).unwrap_or_default();
    let (content, is_error) = (take("content"), take("isError"));
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| part["text"].as_str().filter(|_| part["type"] == "text"))
        .collect();
    let text = texts.map(|texts| texts.join("\n"));
    if is_error == true {
        return Err(CallError::Tool(text.unwrap_or_else(|| content.to_string())));
    }
    Ok(match (take("structuredContent"), text) {
        (Value::Null, Some(text)) => {
            serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text))
        }
        (Value::Null, None) => content,
        (structure, _) => structure,
    })
}

/// Takes the secrets of a server out of what it said. SECURITY: it may be a page that it was
/// shown, or a complaint with its own settings in it.
fn scrub(value: &mut Value, settings: &Settings) {
    let secrets = settings
        .env
        .iter()
        .filter(|(name, secret)| settings.is_secret(name) && secret.reveal().len() >= SHORTEST);
    let secrets: Vec<&str> = secrets.map(|(_, secret)| secret.reveal()).collect();
    if !secrets.is_empty() {
        replace(value, &secrets);
    }
}

fn replace(value: &mut Value, secrets: &[&str]) {
    match value {
        Value::String(text) => {
            for secret in secrets
                .iter()
                .filter(|secret| text.contains(**secret))
                .copied()
                .collect::<Vec<_>>()
            {
                *text = text.replace(secret, "(hidden)");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, secrets)),
        Value::Object(members) => {
            let named = |name: &String| secrets.iter().any(|secret| name.contains(secret));
            if members.keys().any(named) {
                let all = std::mem::take(members).into_iter();
                *members = all
                    .map(|(name, value)| {
                        let mut name = Value::String(name);
                        replace(&mut name, secrets);
                        (name.as_str().unwrap_or_default().to_owned(), value)
                    })
                    .collect();
            }
            members
                .values_mut()
                .for_each(|member| replace(member, secrets));
        }
        _ => {}
    }
}
