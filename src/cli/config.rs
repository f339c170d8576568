//! `hotcell config`: what the owner has decided, where each decision comes from, and the file to change it in.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};

use serde_json::{Value, json};

use super::{BAD_INPUT, OUR_FAILURE, print_error, print_json, print_line, print_note};
use crate::config::{Config, Origin, Reach, Settled, listing, reference};
use crate::language::{Surroundings, Tiers};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Open the file in $VISUAL or $EDITOR, and check it afterwards
    Edit,
    /// Say what is wrong with the file, with line and key
    Check,
    /// Print a JSON Schema of the file, for editors
    Schema,
}

pub fn main(arguments: &Arguments) -> ExitCode {
    let folder = Surroundings::from_env().config;
    match (&arguments.action, &folder) {
        (Some(Action::Schema), _) => {
            print_json(&reference::schema());
            ExitCode::SUCCESS
        }
        (None, _) => list(folder.as_deref(), arguments.json),
        (Some(_), None) => {
            let hint = "Set $HOME or $XDG_CONFIG_HOME to an absolute path.";
            print_error("there is no folder for the configuration", Some(hint));
            BAD_INPUT.into()
        }
        (Some(Action::Check), Some(folder)) => check(folder),
        (Some(Action::Edit), Some(folder)) => edit(folder),
    }
}

/// Prints every setting. A mistake in the file is told too, and what can be said is said.
fn list(folder: Option<&Path>, json: bool) -> ExitCode {
    let file = folder.map(Config::file);
    let settings = listing(folder);
    if json {
        let told = |it: &Settled| json!({ "key": it.key, "value": it.value, "origin": origin(it, file.as_deref()) });
        let list: Vec<Value> = settings.iter().map(told).collect();
        print_json(&json!({ "file": file, "settings": list }));
    } else {
        let mut out = io::stdout().lock();
        let widest = settings.iter().map(|it| it.key.chars().count()).max();
        let width = widest.unwrap_or_default();
        // Most are short, and one that is not may push its origin to the right.
        let values = settings.iter().map(|it| it.value.chars().count());
        let values = values.filter(|it| *it <= 32).max().unwrap_or_default();
        for setting in &settings {
            let (key, value) = (&setting.key, &setting.value);
            let origin = origin(setting, None);
            // Nobody left to read is no failure of ours.
            let _ = writeln!(out, "{key:width$}  {value:values$}  {origin}");
        }
    }
    if let Some(file) = &file {
        let is_there = match file.exists() {
            true => "",
            false => " is not there yet: `hotcell config edit` makes it",
        };
        print_note(&format!("{}{is_there}", file.display()));
    }
    match Config::load(folder) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&error.to_string(), Some(&error.hint()));
            BAD_INPUT.into()
        }
    }
}

fn origin(setting: &Settled, file: Option<&Path>) -> String {
    match (&setting.origin, file) {
        (Origin::Default, _) => "default".to_owned(),
        (Origin::File(line), Some(file)) => format!("{}:{line}", file.display()),
        (Origin::File(line), None) => format!("config.toml:{line}"),
        (Origin::Environment(name), _) => format!("${name}"),
    }
}

/// Says what is wrong with the files of the configuration.
fn check(folder: &Path) -> ExitCode {
    let file = Config::file(folder);
    let config = match Config::load(Some(folder)) {
        Ok(config) => config,
        Err(error) => {
            print_error(&error.to_string(), Some(&error.hint()));
            return BAD_INPUT.into();
        }
    };
    let mut mistakes: Vec<String> = Vec::new();
    for (name, server) in &config.servers {
        if let Reach::Mistake(why) = &server.reach {
            mistakes.push(format!("server `{name}`: {why}"));
        }
        for unset in &server.unset {
            print_note(&format!(
                "server `{name}`: the variable `{unset}` is not set"
            ));
        }
    }
    if let Err(error) = Tiers::load(Some(folder)) {
        mistakes.push(error.to_string());
    }
    for why in config.missing_secrets() {
        print_note(why);
    }
    for mistake in &mistakes {
        print_error(mistake, None);
    }
    if !mistakes.is_empty() {
        return BAD_INPUT.into();
    }
    let said = match file.exists() {
        true => format!("{} is fine", file.display()),
        false => format!("{} is not there, so the defaults hold", file.display()),
    };
    print_line(said);
    ExitCode::SUCCESS
}

/// Opens the file where it stands, as a user's own editor would: links and modes stay what they are.
fn edit(folder: &Path) -> ExitCode {
    let file = Config::file(folder);
    if let Err(error) = begin(&file) {
        print_error(&format!("{}: {error}", file.display()), None);
        return OUR_FAILURE.into();
    }
    let Some(editor) = editor() else {
        let hint = format!("Set $EDITOR, or open {} yourself.", file.display());
        print_error("there is no editor", Some(&hint));
        return BAD_INPUT.into();
    };
    // By a shell, since `code --wait` is a common value.
    let status = process::Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(&file)
        .status();
    match status {
        Ok(status) if status.success() => check(folder),
        Ok(status) => {
            print_error(&format!("the editor `{editor}` ended with {status}"), None);
            OUR_FAILURE.into()
        }
        Err(error) => {
            print_error(
                &format!("could not start the editor `{editor}`: {error}"),
                None,
            );
            OUR_FAILURE.into()
        }
    }
}

/// Makes the file, with every setting as a comment, unless it is there.
fn begin(file: &Path) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    match made {
        Ok(mut made) => made.write_all(reference::template().as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn editor() -> Option<String> {
    let set = |name: &str| env::var(name).ok().filter(|it| !it.trim().is_empty());
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &&str| env::split_paths(&path).any(|it: PathBuf| it.join(name).is_file());
    let usual = || ["sensible-editor", "nano", "vi"].into_iter().find(is_there);
    set("VISUAL")
        .or_else(|| set("EDITOR"))
        .or_else(|| usual().map(str::to_owned))
}
