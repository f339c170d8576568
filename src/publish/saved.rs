//! Tools that programs have saved: functions of theirs, each a published script in one folder, which later programs call as `saved.NAME`.
//!
//! A program in a cell says what to keep, so all of it is untrusted: it is checked, written as a file that a person can read and change, tried in
//! a cell of its own, and only ever run in cells. To programs the folder is one more server (`upstream::Functions`).

mod draft;
mod folder;

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::front_matter::FrontMatter;
use super::invocation::request;
use super::message_parser::{MessageParser, Piece};
use super::method_result::failed;
use super::schema_check::check;
use crate::caller::Caller;
use crate::hint::Surface;
use crate::run::{OutputEvent, Stream};
use crate::service::{Observer, Output, RunContext, Service};
use crate::upstream::{Called, Functions, Tool, misfit};
use draft::Draft;
pub use folder::{SavedFolder, SavedTool};

/// The server that programs call.
pub const NAME: &str = "saved";
/// What is called of it beside the tools: by what `save_tool` and `saveTool` do, and by programs that look after their tools.
const OWN: [&str; 4] = ["save_tool", "save_script", "list_tools", "delete_tool"];
/// Saved tools that run at a time. One more is refused and does not wait: a tool may call others, itself too.
const MOST_RUNNING: usize = 8;
/// Bytes of text that one may print.
const MOST_TEXT: usize = 8 << 20;

pub struct SavedTools {
    folder: SavedFolder,
    service: OnceLock<Weak<Service>>,
    room: Semaphore,
}

impl SavedTools {
    /// The tools of a folder, which need not be there yet.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: SavedFolder::new(folder),
            service: OnceLock::new(),
            room: Semaphore::new(MOST_RUNNING),
        }
    }

    /// Has them run by this service, of which they are functions.
    pub fn run_by(&self, service: &Arc<Service>) {
        let _ = self.service.set(Arc::downgrade(service));
    }

    pub fn folder(&self) -> &SavedFolder {
        &self.folder
    }

    fn service(&self) -> Result<Arc<Service>, String> {
        let service = self.service.get().and_then(Weak::upgrade);
        service.ok_or_else(|| "saved tools cannot be used here".to_owned())
    }

    /// Keeps what a program has sent, if it works.
    async fn save(&self, asked: Map<String, Value>) -> Result<Value, String> {
        let draft = Draft::read(asked)?;
        let service = self.service()?;
        let (file_name, text) = {
            let registry = service.engine().registry();
            let definition = registry
                .find(&draft.language)
                .map_err(|it| it.to_string())?;
            draft.file(definition)?
        };
        let front = FrontMatter::read(&file_name, &text)?;
        let front = front.ok_or("the file would have no front matter")?;
        let returns = returns(&front).clone();
        let tool = SavedTool::new(&file_name, text.clone().into_bytes(), Ok(front));
        let tried = match &draft.example {
            Some(example) => self.call_saved(&tool, example.clone()).await,
            None => self.run(&tool, Map::new(), &[("HOTCELL_TRIAL", "1")]).await,
        };
        let tried = tried.and_then(|value| match misfit(&returns, &value) {
            Some(wrong) if draft.example.is_some() => {
                Err(format!("what it returned is not what it says: {wrong}"))
            }
            _ => Ok(()),
        });
        tried.map_err(|why| {
            format!(
                "`{}` was not saved, for its trial failed: {why}",
                draft.name
            )
        })?;
        let kept = self.folder.keep(&draft.name, &file_name, &text);
        kept.map_err(|error| format!("`{}` could not be written: {error}", draft.name))?;
        service.functions_changed();
        Ok(json!(format!(
            "Tool '{}' saved. It will be available in future sessions.",
            draft.name
        )))
    }

    fn list(&self) -> Value {
        let one = |tool: SavedTool| {
            let mut entry =
                json!({ "name": tool.name, "file": tool.file_name, "version": tool.version });
            match &tool.front {
                Ok(front) => entry["description"] = front.listing["description"].clone(),
                Err(why) => entry["broken"] = why.as_str().into(),
            }
            entry
        };
        self.folder.list().into_iter().map(one).collect()
    }

    fn delete(&self, asked: &Map<String, Value>) -> Result<Value, String> {
        let name = asked.get("name").and_then(Value::as_str);
        let name = name.ok_or("`name` says which tool")?;
        let deleted = self
            .folder
            .delete(name)
            .map_err(|error| error.to_string())?;
        if !deleted {
            return Err(format!("there is no saved tool `{}`", name.escape_debug()));
        }
        self.service()?.functions_changed();
        Ok(json!(format!("Tool '{name}' deleted.")))
    }

    /// The script that a program's `save_tool` goes on with.
    fn script(&self, asked: &Map<String, Value>) -> Result<Value, String> {
        let service = self.service()?;
        let language = asked.get("language").and_then(Value::as_str);
        let found = service
            .engine()
            .registry()
            .find(language.unwrap_or_default());
        let saved = found.ok().and_then(|definition| definition.saved.as_ref());
        let saved = saved.ok_or("functions of this language cannot be saved")?;
        Ok(saved.script.0.into())
    }

    async fn call_saved(
        &self,
        tool: &SavedTool,
        asked: Map<String, Value>,
    ) -> Result<Value, String> {
        let front = tool.front.as_ref().map_err(|why| broken(tool, why))?;
        let asked = Value::Object(asked);
        check(&front.schema, &asked).map_err(|wrong| format!("invalid arguments: {wrong}"))?;
        match asked {
            Value::Object(arguments) => self.run(tool, arguments, &[]).await,
            _ => Ok(Value::Null),
        }
    }

    async fn run(
        &self,
        tool: &SavedTool,
        arguments: Map<String, Value>,
        variables: &[(&str, &str)],
    ) -> Result<Value, String> {
        let front = tool.front.as_ref().map_err(|why| broken(tool, why))?;
        let Ok(_room) = self.room.try_acquire() else {
            return Err(format!(
                "more than {MOST_RUNNING} saved tools run at a time"
            ));
        };
        let service = self.service()?;
        let parser = MessageParser::new();
        let mark = [("HOTCELL_TALK", parser.mark())];
        let variables = mark.iter().chain(variables);
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let script = (front, tool.file_name.as_str(), tool.code.as_slice());
        let request = request(script, &arguments, &Map::new(), variables.collect());
        let request = request.map_err(|error| error.to_string())?;
        let context = RunContext::new(Caller::local(), Listener(parser));
        let ran = service.run_within(request, context).await;
        let output = ran.output.words(Surface::Mcp);
        match failed(&output, None) {
            Some(why) => Err(why),
            None => Ok(ran.heard),
        }
    }
}

impl Functions for SavedTools {
    fn tools(&self) -> Vec<Tool> {
        let one = |tool: SavedTool| match &tool.front {
            Ok(front) => {
                let about = front.listing["description"].as_str().unwrap_or_default();
                let output = returns(front).clone();
                Tool {
                    output,
                    ..Tool::new(&tool.name, about, front.schema.clone())
                }
            }
            Err(why) => Tool::new(&tool.name, &broken(&tool, why), Value::Null),
        };
        self.folder.list().into_iter().map(one).collect()
    }

    fn hidden(&self) -> &[&str] {
        &OWN
    }

    /// `saved.` is in many a text: only with the name of a tool does it mean one. The folder is read for such a program alone.
    fn is_named_in(&self, code: &str) -> Option<bool> {
        let saves = ["save_tool", "saveTool", "user_tools"];
        let is_own = || {
            OWN.iter()
                .any(|own| code.contains(&format!("{NAME}.{own}")))
        };
        let is_tool = || {
            let mut names = self.folder.names().into_iter();
            names.any(|name| code.contains(&format!("{NAME}.{name}")))
        };
        let saves = saves.iter().any(|word| code.contains(word));
        Some(saves || (code.contains("saved.") && (is_own() || is_tool())))
    }

    fn call<'a>(&'a self, tool: &'a str, arguments: Map<String, Value>) -> Called<'a> {
        Box::pin(async move {
            match tool {
                "save_tool" => self.save(arguments).await,
                "save_script" => self.script(&arguments),
                "list_tools" => Ok(self.list()),
                "delete_tool" => self.delete(&arguments),
                name => match self.folder.find(name) {
                    Some(tool) => self.call_saved(&tool, arguments).await,
                    None => Err(format!("there is no saved tool `{}`", name.escape_debug())),
                },
            }
        })
    }
}

/// The schema of the value that programs are given; clients get it as `{"result": value}`.
fn returns(front: &FrontMatter) -> &Value {
    &front.listing["outputSchema"]["properties"]["result"]
}

fn broken(tool: &SavedTool, why: &str) -> String {
    format!("Cannot be used: {} is broken: {why}", tool.file_name)
}

/// Hears what a saved tool answers: `{"result"}` as structured content, or what it printed, read as JSON if it is.
struct Listener(MessageParser);

impl Observer for Listener {
    type Heard = Value;

    async fn hear(mut self, mut events: Output) -> Value {
        let (mut pieces, mut text, mut result) = (Vec::new(), Vec::new(), None);
        let mut take = |pieces: &mut Vec<Piece>| {
            for piece in pieces.drain(..) {
                match piece {
                    Piece::Text(bytes) if text.len() < MOST_TEXT => text.extend(bytes),
                    Piece::Said(mut said) if said.get("type") == Some(&"structured".into()) => {
                        result = said.get_mut("content").map(|it| it["result"].take());
                    }
                    _ => {}
                }
            }
        };
        while let Some(OutputEvent { stream, bytes }) = events.recv().await {
            if stream == Stream::Stdout {
                self.0.hear(&bytes, &mut pieces);
                take(&mut pieces);
            }
        }
        self.0.end(&mut pieces);
        take(&mut pieces);
        result.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&text).trim_end().to_owned();
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        })
    }
}
