//! The command line: reads arguments, calls the service, prints what comes of it.

mod call_output;
mod completions;
mod config;
mod doctor;
mod help;
mod image;
mod install;
mod languages;
mod logs;
mod notebook;
mod packages;
mod repl;
mod replay;
mod run;
mod saved;
mod serve;
mod servers;
mod session;
mod signals;
mod skill;
mod speech;
mod token;

use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

use crate::cell::Requirement;
use crate::engine::Engine;
use crate::hint::{Hint, Surface};
use crate::language::{Registry, Surroundings, closeness};
use crate::output::{BAD_INPUT, OUR_FAILURE};
use crate::request::IsolationChoice;
use speech::{Speech, is_verbose, print_error, print_hint, print_note, show_progress};

const EXAMPLES: &str = "\
Examples:
  hotcell a.py x y                 Run a file with arguments (short for `hotcell run a.py x y`)
  hotcell run py 'print(6 * 7)'    Run a line of code
  hotcell install claude-code      Add hotcell to an MCP client
  hotcell help running             Read more; `hotcell help` lists the topics";

/// Run untrusted code in a sandbox
#[derive(Parser)]
#[command(
    name = "hotcell",
    version,
    long_version = env!("HOTCELL_VERSION"),
    propagate_version = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = EXAMPLES
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    speech: Speech,
}

#[derive(Subcommand)]
enum Command {
    /// Run a program in a sandbox
    Run(Box<run::Arguments>),
    /// Run code interactively in one sandbox
    Repl(Box<repl::Arguments>),
    /// Start the MCP server, on standard input and output or over HTTP
    Serve(Box<serve::Arguments>),
    /// Add hotcell to an MCP client on this machine
    #[command(arg_required_else_help = true)]
    Install(install::Arguments),
    /// Remove hotcell from an MCP client
    #[command(arg_required_else_help = true)]
    Uninstall(install::Uninstall),
    /// List the languages and which of them can run on this machine, or fetch a runtime
    Languages(languages::Arguments),
    /// List, install or remove packages
    Packages(packages::Arguments),
    /// List, test and call the upstream MCP servers whose tools programs may call
    Servers(servers::Arguments),
    /// List, show, delete or restore the tools that programs have saved
    Saved(saved::Arguments),
    /// Print or install a skill that teaches an agent to use hotcell
    Skill(skill::Arguments),
    /// List what was run, or show one run
    Logs(logs::Arguments),
    /// Run a recorded program again and show what differs
    Replay(replay::Arguments),
    /// Test from inside whether the sandbox works on this machine
    Doctor(doctor::Arguments),
    /// Print all settings and where they come from; edit or check the file
    Config(config::Arguments),
    /// Print the token that HTTP clients send
    Token(token::Arguments),
    /// Build a container image for `--isolation podman` or `docker`
    Image(image::Arguments),
    /// Print the completion script for a shell
    Completions(completions::Arguments),
    /// Write the manual pages to a folder
    #[command(hide = true)]
    Man(completions::Man),
    /// Print help for a command or a topic
    Help(help::Arguments),
}

pub fn main() -> ExitCode {
    // The one look at the command line before it is parsed, at its first word alone, as in
    // `hook`: the sandbox starts while the rest is read. An early start that turns out not to
    // be needed (`--help`, `--plan`) ends with the process.
    let is_run = std::env::args_os().nth(1).is_some_and(|word| word == "run");
    main_with(is_run.then(Engine::early))
}

/// For the first line of a server's process: starts what its first sandbox needs.
pub(crate) fn start_early() {
    // What makes sandboxes has as many file descriptors as the server.
    serve::raise_open_files();
    jail::launch_early();
}

/// The same, with an engine for `run` that is there already.
pub fn main_with(engine: Option<Engine>) -> ExitCode {
    // A library that gets no thread or file descriptor has no other way to say so.
    std::panic::set_hook(Box::new(|panic| {
        let what = panic.payload_as_str().unwrap_or("for no known reason");
        print_error(&format!("internal error: {what}"), Some(LOW_LIMITS));
    }));
    let work = move || match parse(&typed()).command {
        Command::Run(arguments) => run::main(*arguments, engine),
        Command::Repl(arguments) => repl::main(&arguments),
        Command::Serve(arguments) => serve::main(&arguments),
        Command::Install(arguments) => install::install(&arguments),
        Command::Uninstall(arguments) => install::uninstall(&arguments),
        Command::Languages(arguments) => languages::main(&arguments),
        Command::Packages(arguments) => packages::main(&arguments),
        Command::Servers(arguments) => servers::main(&arguments),
        Command::Saved(arguments) => saved::main(&arguments),
        Command::Skill(arguments) => skill::main(&arguments),
        Command::Logs(arguments) => logs::main(&arguments),
        Command::Replay(arguments) => replay::main(&arguments),
        Command::Doctor(arguments) => doctor::main(&arguments),
        Command::Config(arguments) => config::main(&arguments),
        Command::Token(arguments) => token::main(&arguments),
        Command::Help(arguments) => help::main(&arguments, Arguments::command()),
        Command::Image(arguments) => image::main(&arguments),
        Command::Completions(arguments) => completions::main(&arguments, Arguments::command()),
        Command::Man(arguments) => completions::man(&arguments, Arguments::command()),
    };
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(OUR_FAILURE.into())
}

/// What was typed, with the command that `hotcell a.py` leaves out.
fn typed() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let is_ours = |word: &OsString| word.to_str().is_some_and(is_command);
    let at = command_at(&words);
    let first = words.get(at).filter(|word| !is_ours(word));
    if first.is_some_and(|word| run::is_program(word)) {
        words.insert(at, "run".into());
    }
    words
}

/// Where the command is, or what stands in its place: options of every command may come before it.
fn command_at(words: &[OsString]) -> usize {
    let mut at = 1;
    while let Some(word) = words.get(at).and_then(|word| word.to_str()) {
        at += match word {
            "--color" => 2,
            "-q" | "--quiet" | "-v" | "--verbose" => 1,
            _ if word.starts_with("--color=") => 1,
            _ => break,
        };
    }
    at
}

fn parse(words: &[OsString]) -> Arguments {
    let parsed = Arguments::try_parse_from(words).unwrap_or_else(|error| {
        let first = words.get(command_at(words)).and_then(|word| word.to_str());
        let (what, hint) = match (error.kind(), first) {
            (ErrorKind::InvalidSubcommand, Some(word)) if !is_command(word) => {
                (format!("there is no command `{word}`"), meant(word))
            }
            (ErrorKind::UnknownArgument, Some(word)) if is_option_of_run(word) => (
                format!("`{word}` is an option of `hotcell run`"),
                format!("Write `hotcell run {word}`, and then the rest."),
            ),
            _ => error.exit(),
        };
        print_error(&what, Some(&hint));
        std::process::exit(BAD_INPUT.into())
    });
    parsed.speech.apply();
    parsed
}

fn is_command(word: &str) -> bool {
    word == "run" || Arguments::command().find_subcommand(word).is_some()
}

fn is_option_of_run(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    let commands = Arguments::command();
    let run = commands.find_subcommand("run");
    run.into_iter()
        .flat_map(clap::Command::get_arguments)
        .any(|it| {
            let long = it.get_long().map(|it| format!("--{it}"));
            let short = it.get_short().map(|it| format!("-{it}"));
            [long, short].iter().flatten().any(|it| it == name)
        })
}

/// What may have been meant by a word that is neither a command nor a file.
fn meant(word: &str) -> String {
    let names = Arguments::command();
    let names = names.get_subcommands().map(clap::Command::get_name);
    let near = names.filter_map(|name| Some((closeness(word, name)?, name)));
    let registry = Registry::load(Surroundings::from_env().config.as_deref());
    match (near.min(), registry.find(word)) {
        (Some((_, name)), _) => format!("Did you mean `hotcell {name}`?"),
        (None, Ok(_)) => format!("Write `hotcell run {word}`, then a file or code."),
        (None, Err(error)) if error.has_similar() => {
            format!(
                "Is it a language? {}",
                error
                    .hint()
                    .map_or(String::new(), |hint| hint.words(Surface::CommandLine))
            )
        }
        (None, Err(_)) if run::is_code(word) => {
            "Write `hotcell run -c CODE` to run code.".to_owned()
        }
        (None, Err(_)) => "Run `hotcell --help` for the list.".to_owned(),
    }
}

/// Reads words that begin with `hotcell run`.
fn parse_run(words: &[OsString]) -> run::Arguments {
    match parse(words).command {
        Command::Run(arguments) => *arguments,
        _ => unreachable!("the words are those of `run`"),
    }
}

/// How much of the sandbox must be there: for `run` and `serve`.
#[derive(clap::Args)]
#[command(next_help_heading = "Sandbox")]
struct RequirementArguments {
    /// Refuse to run unless every layer of the sandbox is active (`strict`), or unless the program has a kernel of its own (`kernel`)
    #[arg(long, value_name = "LEVEL", value_parser = ["strict", "kernel"], conflicts_with = "allow_reduced")]
    require: Option<String>,
    /// Run even if this machine cannot build a layer of the sandbox that confines the program
    #[arg(long)]
    allow_reduced: bool,
    /// What makes the sandbox: hotcell itself (`jail`), a container engine, gVisor, or the first that works (`auto`) [default: jail]
    #[arg(long, value_name = "PROVIDER", value_parser = IsolationChoice::WORDS)]
    isolation: Option<String>,
}

impl RequirementArguments {
    fn read(&self) -> Requirement {
        match (self.require.as_deref(), self.allow_reduced) {
            (Some("kernel"), _) => Requirement::Kernel,
            (Some(_), _) => Requirement::Strict,
            (None, true) => Requirement::Reduced,
            (None, false) => Requirement::Confined,
        }
    }

    fn isolation(&self) -> Option<IsolationChoice> {
        self.isolation.as_deref().and_then(IsolationChoice::parse)
    }
}

/// What to do when we cannot even start.
const LOW_LIMITS: &str = "Raise the limits on open files and processes (`ulimit -n`, `ulimit -u`) if they are low; else report this.";

/// A runtime of one thread; without one, what to exit with.
fn single_thread() -> Result<tokio::runtime::Runtime, ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(|error| cannot_start(&error))
}

fn cannot_start(error: &std::io::Error) -> ExitCode {
    print_error(&format!("could not start: {error}"), Some(LOW_LIMITS));
    OUR_FAILURE.into()
}

/// An error and its causes, in one line.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// A line on standard output. Nobody left to read it is no failure.
fn print_line(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

fn print_json(value: &impl serde::Serialize) {
    if let Ok(text) = serde_json::to_string_pretty(value) {
        let _ = writeln!(std::io::stdout().lock(), "{text}");
    }
}

/// An error with a hint that is not in words yet.
fn explain(message: &str, hint: Option<Hint>, surface: Surface) {
    let hint = hint.map(|hint| hint.words(surface));
    print_error(message, hint.as_deref());
}
