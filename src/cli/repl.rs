//! `hotcell repl`: a session at a terminal, or fed by a pipe.

mod editor;
mod history;
mod input;
mod screen;

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use rustyline::error::ReadlineError;
use tokio::runtime::Runtime;

use super::run::{Grants, HERE, print_shown};
use super::session::Session;
use super::signals::interrupted;
use super::{
    BAD_INPUT, OUR_FAILURE, RequirementArguments, explain, print_error, print_note, single_thread,
    with_causes,
};
use crate::engine::Rejected;
use crate::output::{RunOutput, Status};
use crate::service::{Service, Settings};

use screen::{Pictures, Screen, Terminal};

#[derive(clap::Args)]
pub struct Arguments {
    /// The session's language
    #[arg(default_value = "python")]
    language: String,
    #[command(flatten)]
    grants: Grants,
    /// Write pictures, and files that are left in the working directory, into this folder
    /// [default: pictures into a temporary one]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    requirement: RequirementArguments,
}

/// What people write who want to leave.
const LEAVING: [&str; 7] = ["exit", "exit()", "quit", "quit()", ".exit", ":q", "q()"];

pub fn main(arguments: &Arguments) -> ExitCode {
    let service = Service::new(Settings {
        requirement: arguments.requirement.read(),
        isolation: arguments.requirement.isolation(),
        ..Settings::for_one_run()
    });
    let session = match open(service, arguments) {
        Ok(session) => session,
        Err(rejected) => {
            explain(&with_causes(&rejected), rejected.hint(), HERE);
            return BAD_INPUT.into();
        }
    };
    let runtime = match single_thread() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    let prompt = Rc::new(Prompt::new(session, runtime, arguments));
    let code = match io::stdin().is_terminal() {
        true => at_terminal(&prompt),
        false => from_pipe(&prompt),
    };
    code.into()
}

/// The session, if there can be one.
fn open(service: Service, arguments: &Arguments) -> Result<Session, Rejected> {
    let session = Session::new(service, &arguments.language, &arguments.grants)?;
    let session = session.wants_files(arguments.out.is_some());
    // Any code: nothing is run.
    session.service.plan(session.request("0")?)?;
    Ok(session)
}

/// A person types: until Ctrl-D.
fn at_terminal(prompt: &Rc<Prompt>) -> u8 {
    let name = prompt.name.clone();
    print_note(&format!(
        "{name} in a sandbox. Ctrl-C stops what runs, Ctrl-D ends."
    ));
    let mut editor = match editor::open(prompt.clone()) {
        Ok(editor) => editor,
        Err(error) => {
            print_error(&format!("cannot use this terminal: {error}"), None);
            return OUR_FAILURE;
        }
    };
    let mut history = history::open(prompt.language.as_str());
    for entry in history.entries() {
        let _ = editor.add_history_entry(entry);
    }
    loop {
        match editor.readline(">>> ") {
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => {
                let text = text.trim_end();
                let _ = editor.add_history_entry(text);
                history.add(text);
                if LEAVING.contains(&text) {
                    return 0;
                }
                prompt.run(text);
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return 0,
            Err(error) => {
                print_error(&format!("cannot read from this terminal: {error}"), None);
                return OUR_FAILURE;
            }
        }
    }
}

/// A program writes: piece by piece, without prompts. The code of the last one.
fn from_pipe(prompt: &Prompt) -> u8 {
    let (mut piece, mut code) = (String::new(), 0);
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else {
            print_error("standard input is not text", None);
            return BAD_INPUT;
        };
        if !piece.is_empty() {
            piece.push('\n');
        }
        piece += &line;
        if LEAVING.contains(&piece.trim()) {
            return code;
        }
        if !prompt.is_incomplete(&piece) {
            code = prompt.run(&std::mem::take(&mut piece)).unwrap_or(code);
        }
    }
    prompt.run(&piece).unwrap_or(code)
}

/// A session, and all that is needed to use it from outside of a future.
struct Prompt {
    session: Session,
    runtime: Runtime,
    /// The language's name for people, and for files.
    name: String,
    language: String,
    /// Calls that ask the session about a text; none if they are empty.
    incomplete: String,
    complete: String,
    terminal: Terminal,
    pictures: Pictures,
    out: Option<PathBuf>,
}

impl Prompt {
    fn new(session: Session, runtime: Runtime, arguments: &Arguments) -> Self {
        let definition = session.definition();
        let name = definition.map_or(String::new(), |it| it.name.clone());
        let language = definition.map_or(String::new(), |it| it.id.to_string());
        let how = definition.and_then(|it| it.session.clone());
        let (incomplete, complete) =
            how.map_or(Default::default(), |it| (it.incomplete, it.complete));
        Self {
            session,
            runtime,
            name,
            language,
            incomplete,
            complete,
            terminal: Terminal::detect(|name| std::env::var(name).ok()),
            pictures: Pictures::new(arguments.out.as_deref()),
            out: arguments.out.clone(),
        }
    }

    /// Whether a text is the beginning of something: as its interpreter says, or by its brackets.
    fn is_incomplete(&self, text: &str) -> bool {
        if text.trim().is_empty() {
            return false;
        }
        match self.ask(&self.incomplete, text) {
            Some(said) => said.trim() == "true",
            None => input::is_open(text),
        }
    }

    fn ask(&self, question: &str, text: &str) -> Option<String> {
        if question.is_empty() {
            return None;
        }
        self.runtime.block_on(self.session.ask(question, text))
    }

    /// Runs a text and shows what comes of it; none if there is nothing to run.
    fn run(&self, text: &str) -> Option<u8> {
        if text.trim().is_empty() {
            return None;
        }
        let session = &self.session;
        let (output, ()) = self.runtime.block_on(async {
            let screen = Screen {
                draws: self.terminal != Terminal::Plain,
            };
            session.call(text, screen, interrupted()).await
        });
        self.show(&output);
        if let Some(folder) = &self.out {
            let stored = session.service.outputs(session.caller());
            if let Err(error) = super::run::out::write_stored(folder, stored, &output.files) {
                print_note(&format!("cannot write to `{}`: {error}", folder.display()));
            }
        }
        Some(output.shell_code)
    }

    fn show(&self, output: &RunOutput) {
        print_shown(output);
        for line in self.pictures.save(output) {
            print_note(&line);
        }
        if io::stdout().is_terminal() {
            let inline = screen::inline(self.terminal, output, &self.session.service);
            let inline = self.runtime.block_on(inline);
            let mut stdout = io::stdout().lock();
            for picture in inline {
                let _ = stdout.write_all(picture.as_bytes());
            }
            let _ = stdout.flush();
        }
        for line in output.refusals(HERE).iter().chain(&output.notes) {
            print_note(line);
        }
        // What failed by itself has said why.
        if let Some(error) = &output.error
            && (output.status != Status::Failed || output.stderr.is_empty())
            && output.status != Status::Cancelled
        {
            print_error(&error.message, error.hint.as_deref());
        }
    }
}
