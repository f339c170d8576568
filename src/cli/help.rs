//! `hotcell help`: how a command is used, and pages about what several commands share. The pages are in the program, so that
//! an error can name one to a user who has nothing else.

use std::io::{self, Write};
use std::process::ExitCode;

use super::{BAD_INPUT, print_error};
use crate::config::reference;
use crate::language::closeness;

#[derive(clap::Args)]
pub struct Arguments {
    /// A command, or a topic: `hotcell help` lists them
    #[arg(value_name = "TOPIC")]
    words: Vec<String>,
}

/// The pages: a name, what it is about, and the text; none where it is made.
const PAGES: &[(&str, &str, Option<&str>)] = &[
    (
        "clients",
        "add hotcell to an MCP client",
        Some(include_str!("../../docs/clients.md")),
    ),
    (
        "codemode",
        "programs that call tools, and tools that programs save",
        Some(include_str!("../../docs/codemode.md")),
    ),
    ("config", "every key of config.toml", None),
    (
        "errors",
        "statuses and kinds of errors",
        Some(include_str!("../../docs/errors.md")),
    ),
    (
        "isolation",
        "what makes the sandbox: the jail, containers, gVisor",
        Some(include_str!("../../docs/isolation.md")),
    ),
    (
        "jobs",
        "programs that take long",
        Some(include_str!("../../docs/jobs.md")),
    ),
    (
        "languages",
        "the languages, and how each is run",
        Some(include_str!("../../docs/languages.md")),
    ),
    (
        "limits",
        "time, memory, processors and processes",
        Some(include_str!("../../docs/limits.md")),
    ),
    (
        "network",
        "hosts, folders, variables and secrets",
        Some(include_str!("../../docs/network.md")),
    ),
    (
        "notebooks",
        "run a Jupyter notebook",
        Some(include_str!("../../docs/notebooks.md")),
    ),
    (
        "packages",
        "how packages are found and installed",
        Some(include_str!("../../docs/packages.md")),
    ),
    (
        "page",
        "the web page of a server",
        Some(include_str!("../../docs/page.md")),
    ),
    (
        "publish",
        "publish scripts as tools, prompts and resources",
        Some(include_str!("../../docs/publish.md")),
    ),
    (
        "records",
        "what is recorded of runs, and how to run one again",
        Some(include_str!("../../docs/records.md")),
    ),
    (
        "repl",
        "run code interactively",
        Some(include_str!("../../docs/repl.md")),
    ),
    (
        "results",
        "what a run returns: text, values, pictures, files",
        Some(include_str!("../../docs/results.md")),
    ),
    (
        "running",
        "run a file, a project or a line",
        Some(include_str!("../../docs/running.md")),
    ),
    (
        "servers",
        "call the tools of other MCP servers",
        Some(include_str!("../../docs/servers.md")),
    ),
    (
        "sessions",
        "state that is kept between calls",
        Some(include_str!("../../docs/sessions.md")),
    ),
];

pub fn main(arguments: &Arguments, mut command: clap::Command) -> ExitCode {
    command.build();
    let words: Vec<&str> = arguments.words.iter().map(String::as_str).collect();
    let [first, rest @ ..] = words.as_slice() else {
        let topics = PAGES
            .iter()
            .map(|(name, about, _)| format!("  {name:11}  {about}\n"));
        let topics: String = topics.collect();
        return print(&format!(
            "{}\nTopics (`hotcell help TOPIC`):\n{topics}",
            command.render_help()
        ));
    };
    let page = PAGES.iter().find(|(name, ..)| name == first);
    let page = page.filter(|_| rest.is_empty());
    let page = page.map(|(_, _, text)| text.map_or_else(reference::page, str::to_owned));
    let mut named = Some(&mut command);
    for word in &words {
        named = named.and_then(|it| it.find_subcommand_mut(word));
    }
    let usage = named.map(|it| it.render_long_help().to_string());
    match (usage, page) {
        // `config` is both, and its page says what the command does.
        (_, Some(page)) if *first == "config" => print(&page),
        (Some(usage), Some(page)) => print(&format!("{usage}\n{page}")),
        (Some(text), None) | (None, Some(text)) => print(&text),
        (None, None) => {
            let names = PAGES.iter().map(|(name, ..)| *name);
            let names = names.chain(command.get_subcommands().map(clap::Command::get_name));
            let near = names.filter_map(|name| Some((closeness(first, name)?, name)));
            let hint = match near.min() {
                Some((_, name)) if rest.is_empty() => {
                    format!("Did you mean `hotcell help {name}`?")
                }
                _ => "Run `hotcell help` for the list.".to_owned(),
            };
            let words = words.join(" ");
            print_error(&format!("there is no help on `{words}`"), Some(&hint));
            BAD_INPUT.into()
        }
    }
}

fn print(text: &str) -> ExitCode {
    // Nobody left to read is no failure of ours.
    let _ = io::stdout().lock().write_all(text.as_bytes());
    ExitCode::SUCCESS
}
